"""What a run writes never takes the place of what it writes as well, nor of a file of another kind."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from conformance.junit import junit
from constructions.command import outputs
from constructions.command.cli import app
from constructions.experiments.table_files import csv_text, latex_text
from constructions.pictures.page import save

ROOT = Path(__file__).parents[2]
TWO = [
    ("reproduce", "table-a3", "--keep", "{}", "--page", "{}"),
    ("reproduce", "table-a3", "--csv", "{}", "--latex", "{}"),
    ("reproduce", "table-a3", "--keep", "{}", "--latex", "{}"),
    ("reproduce", "table-a3", "--csv", "{}", "--plot", "{}"),
    ("reproduce", "lemmas", "--page", "{}", "--plot", "{}"),
    ("reproduce", "statements", "--keep", "{}", "--csv", "{}"),
    ("reproduce", "languages", "--keep", "{}", "--page", "{}"),
    ("reproduce", "training", "--csv", "{}", "--latex", "{}"),
    ("haar", "--out", "{}", "--plot", "{}"),
    ("disguise", "plain", "--out", "{}", "--key", "{}"),
    ("conformance", "--kernel", "k.py:f", "--out", "{}", "--junit", "{}"),
]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What a command says that refuses before it begins any work."""

    def work(*_arguments: object, **_options: object) -> NoReturn:
        raise AssertionError("work began")

    monkeypatch.chdir(tmp_path)
    for place in ("checkpoints.disguised.disguise_checkpoint", "report.page.page_of", "experiments.command._run"):
        monkeypatch.setattr(f"constructions.{place}", work)

    def said(*arguments: str) -> str:
        done = CliRunner().invoke(app, arguments)
        assert isinstance(done.exception, ValueError), done.exception
        return str(done.exception)

    return said


@pytest.mark.parametrize("arguments", TWO, ids=" ".join)
def test_two_outputs_on_one_path_are_refused_before_the_work(arguments, refused, tmp_path: Path) -> None:
    given = iter(("one.png", "./one.png"))
    said = refused(*(next(given) if part == "{}" else part for part in arguments))
    assert "one.png and --" in said and said.endswith("are one file, and one would replace the other; name two files.")
    assert not [*tmp_path.iterdir()]


def test_the_results_and_the_page_of_scores_are_two_files(refused, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("{}")
    assert "are one file" in refused("score-table", "models", "--keep", "kept", "--page", "kept")
    assert (tmp_path / "kept").read_text() == "{}" and not (tmp_path / "models").exists()


def test_one_file_by_two_names_is_one_file(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "kept").write_text("a,b\n")
    (tmp_path / "linked").symlink_to("real")
    (tmp_path / "other").symlink_to("real/kept")
    (tmp_path / "leads to none").symlink_to("real/new")
    os.link(real / "kept", tmp_path / "hard")
    kept, new = real / "kept", real / "new"
    same = [(kept, tmp_path / name) for name in ("linked/kept", "other", "hard", "linked/../real/kept")]
    for first, second in [*same, (new, tmp_path / "leads to none"), (new, tmp_path / "linked" / "new")]:
        with pytest.raises(ValueError, match="are one file"):
            outputs.check_apart({"--csv": first, "--plot": None, "--latex": second})
    outputs.check_apart({"--csv": kept, "--latex": new, "--page": tmp_path / "new", "--plot": None})


def test_no_output_goes_where_the_standard_output_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "said").open("w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        outputs.check_apart({"--csv": tmp_path / "other"})
        with pytest.raises(ValueError, match="said and the standard output are one file"):
            outputs.check_apart({"--csv": tmp_path / "said"})


HEADS, ROWS = ["model", "said, and of whom"], [["a", 'it is "so",\nso'], ["b", "c"]]
WRITTEN = {
    outputs.CSV: csv_text(HEADS, ROWS),
    outputs.LATEX: latex_text("A table", HEADS, ROWS, ["why", "where"]),
    outputs.MARKDOWN: (ROOT / "docs" / "chains.md").read_text("utf-8"),
    outputs.HTML: (ROOT / "constructions" / "report" / "page.html").read_text("utf-8"),
    outputs.JUNIT: junit([]),
}
OTHERS = ['{"rows": 1, "more": 2}', '{\n "rows": [\n  1,\n  2\n ]\n}', "import os\n\nprint(os, 1)\n", "one line"]


@pytest.mark.parametrize("kind", WRITTEN, ids=lambda kind: kind.name)
def test_a_file_of_one_kind_is_written_again_and_no_other(kind: outputs.Kind, tmp_path: Path) -> None:
    path = tmp_path / "there"
    outputs.text_path(path, "--page", kind)
    for text in ("", WRITTEN[kind], f"\ufeff{WRITTEN[kind]}", csv_text(HEADS, []) if kind is outputs.CSV else ""):
        path.write_text(text, "utf-8")
        outputs.text_path(path, "--page", kind)
    for text in (*(written for other, written in WRITTEN.items() if other is not kind), *OTHERS):
        path.write_text(text, "utf-8")
        with pytest.raises(ValueError, match=f"there is there already, and no {kind.name}: it would be lost"):
            outputs.text_path(path, "--page", kind)


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_a_picture_takes_the_place_of_a_picture_and_of_nothing_else(ending: str, tmp_path: Path) -> None:
    path, other = tmp_path / f"there.{ending}", tmp_path / "other.png"
    save(Figure(), path, 50)
    save(Figure(), other, 50)
    outputs.picture_path(path, "--plot")
    for bytes_ in (b"", other.read_bytes()):  # of another ending it is a picture as well
        path.write_bytes(bytes_)
        outputs.picture_path(path, "--plot")
    for text in (*WRITTEN.values(), *OTHERS):
        path.write_text(text, "utf-8")
        with pytest.raises(ValueError, match=rf"there\.{ending} is there already, and no picture: it would be lost"):
            outputs.picture_path(path, "--plot")


@pytest.mark.parametrize(
    "arguments",
    [
        ("reproduce", "table-a3", "--keep", "new.json", "--page"),
        ("reproduce", "table-a3", "--csv"),
        ("reproduce", "lemmas", "--latex"),
        ("report", "plain", "--out"),
        ("conformance", "--kernel", "k.py:f", "--junit"),
    ],
    ids=" ".join,
)
def test_results_are_not_replaced_by_what_is_written_of_them(arguments, refused, tmp_path: Path) -> None:
    (tmp_path / "kept.json").write_text(OTHERS[1])
    assert "kept.json is there already, and no " in refused(*arguments, "kept.json")
    assert (tmp_path / "kept.json").read_text() == OTHERS[1]
