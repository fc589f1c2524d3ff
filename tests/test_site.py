"""The site: every page has its place, every link resolves, and the notebooks print what they say they print."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import notebooks, site_pages

ROOT = Path(__file__).parents[1]
BUILD = [sys.executable, "-m", "mkdocs", "build"]


def built(config: Path, out: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mkdocs", reason="mkdocs-material is not installed: pip install '.[site]'")
    return subprocess.run([*BUILD, "-f", str(config), "-d", str(out)], capture_output=True, text=True, cwd=ROOT)


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Strict: a page without a place, a link or an anchor that leads nowhere fails it."""
    done = built(ROOT / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 0, done.stdout + done.stderr
    sources = [
        page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*") if page.suffix in (".md", ".ipynb")
    ]
    gallery = [Path("gallery") / program.name for program in site_pages.GALLERY.glob("*.py")]
    missing = [page for page in (*sources, *gallery) if not (tmp_path / "site" / page.with_suffix(".html")).is_file()]
    assert not missing
    index = json.loads((tmp_path / "site" / "search" / "search_index.json").read_text("utf-8"))
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {"api.html", "gallery/majority.html", "notebooks/patch_a_circuit.html"} <= found
    page = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert not re.search(r"""(src|href)="(https?:)?//(?!squidfunk)""", page), "a page asks another host for something"


def test_a_link_that_leads_nowhere_fails(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# A\n\n[there](other.md#b), [not there](gone.md)\n")
    (tmp_path / "docs" / "other.md").write_text("# A\n")
    text = (ROOT / "mkdocs.yml").read_text("utf-8").partition("nav:")[0]
    (tmp_path / "mkdocs.yml").write_text(re.sub(r"(hooks|site_dir|extra_css): .*", "", text))
    done = built(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0
    assert "gone.md" in done.stdout + done.stderr and "anchor '#b'" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("place", "link", "there"),
    [
        ("x.md", "../examples/gallery/README.md", "gallery/index.md"),
        ("notebooks/x.md", "../examples/gallery/parity.py", "../gallery/parity.md"),
        ("x.md", "notebooks/y.ipynb", "notebooks/y.md"),
        ("notebooks/y.md", "./y.ipynb", "./y.ipynb"),
        ("notebooks/y.md", "../conformance.md", "../conformance.md"),
        ("x.md", "other.md#part", "other.md#part"),
    ],
)
def test_links_that_leave_docs_are_turned_round(place: str, link: str, there: str) -> None:
    page = type("Page", (), {"file": type("File", (), {"src_uri": place})})
    assert site_pages.on_page_markdown(f"[a]({link})", page) == f"[a]({there})"


def test_a_link_to_code_is_left_as_words() -> None:
    page = type("Page", (), {"file": type("File", (), {"src_uri": "x.md"})})
    assert site_pages.on_page_markdown("see [a](../verify/b.py).", page) == "see a."


@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_its_file_has(path: Path) -> None:
    if path.stem == "find_a_disguised_circuit":
        pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install '.[interpretability]'")
    kept = [cell["outputs"] for cell in notebooks.code_cells(path)]
    assert notebooks.outputs(path) == kept, "run `python scripts/notebooks.py`"
    assert sum(map(len, kept)) >= 4


def test_the_kernel_of_the_notebook_is_right_in_the_end() -> None:
    """What it says above its last two runs: first six cases of one stage are wrong, and then none."""
    *_, first, last = notebooks.code_cells(notebooks.PLACE / "test_your_kernel.ipynb")
    ends = [cell["outputs"][0]["text"][-1].strip() for cell in (first, last)]
    assert ends == ["wrong: 6 in {'one rounding'}", "wrong: 0"]
