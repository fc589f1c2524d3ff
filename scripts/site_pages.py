"""What the site has beside docs/ (hooks of mkdocs): the gallery and the notebooks as pages, links to both.

GitHub shows the same files where they stand, so pages link to them there and this turns the links round.
"""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "examples" / "gallery"
NOTEBOOKS = "notebooks"
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each program of the gallery and for each notebook."""
    from mkdocs.structure.files import File

    pages = {f"gallery/{'index' if path.stem == 'README' else path.stem}.md": _gallery(path) for path in _programs()}
    pages |= {f"{NOTEBOOKS}/{path.stem}.md": notebook(path) for path in _notebooks(Path(config["docs_dir"]))}
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links that leave docs/ go to pages of the site, or are left as words; a table behind a comment is a table."""
    place = PurePosixPath(page.file.src_uri).parent
    markdown = re.sub(r"^<!--.*?-->$", "", markdown, flags=re.MULTILINE)
    return LINK.sub(lambda found: _link(found, place), markdown)


def _link(found: re.Match[str], place: PurePosixPath) -> str:
    words, target = found.groups()
    up = "../" * len(place.parts)
    if target.startswith("../examples/gallery/"):
        return f"[{words}]({up}gallery/{_page_name(target.removeprefix('../examples/gallery/'))})"
    if target.endswith(".ipynb") and not place.parts:
        return f"[{words}]({target.removesuffix('ipynb')}md)"
    leaves_docs = target.startswith("../") and not place.parts
    return words if leaves_docs else found[0]


def _programs() -> list[Path]:
    return [GALLERY / "README.md", *sorted(GALLERY.glob("*.py"))]


def _notebooks(docs: Path) -> list[Path]:
    return sorted((docs / NOTEBOOKS).glob("*.ipynb"))


def _page_name(file: str) -> str:
    return "index.md" if file == "README.md" else file.replace(".py", ".md")


def _gallery(path: Path) -> str:
    """The list of the gallery, or one program: its docstring, then its code."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        return LINK.sub(lambda found: f"[{found[1]}]({_page_name(found[2])})", text)
    return f"# {path.stem.replace('_', ' ').capitalize()}\n\n```python\n{text.rstrip()}\n```\n"


def notebook(path: Path) -> str:
    """A notebook as Markdown: cells, and what they printed, as the file has it."""
    from nbconvert import MarkdownExporter

    body, resources = MarkdownExporter().from_filename(str(path))
    if resources["outputs"]:
        raise ValueError(f"{path.name} has outputs that are no text ({', '.join(resources['outputs'])})")
    cells = len(json.loads(path.read_text("utf-8"))["cells"])
    return f"{body.strip()}\n\n*{cells} cells, run by the tests: [{path.name}](./{path.name}).*\n"
