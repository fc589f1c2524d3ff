"""Which lemmas Coq has checked, for docs/proofs.md: python -m tests.verify.checker.proved writes the theorems there.

In lemmas/*.v a comment `Lemma of NAME: …` stands before the theorems of a lemma. What stays on paper a person writes.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.verify.checker.lemmas import stated, uses

ROOT = Path(__file__).parents[3]
FOLDER, PAGE = ROOT / "lemmas", ROOT / "docs" / "proofs.md"
_HEAD = "| lemma | theorem | on paper |\n| --- | --- | --- |\n"
_RULES = "| rule | theorems | on paper, beside its code |\n| --- | --- | --- |\n"


def files() -> list[Path]:
    """The files that `make lemmas` checks."""
    project = (FOLDER / "_CoqProject").read_text("utf-8")
    return [FOLDER / name for name in project.split("\n") if name.endswith(".v")]


def without_comments(text: str) -> str:
    """A file of Coq without its comments, which may be nested."""
    depth, kept = 0, []
    for piece in re.split(r"(\(\*|\*\))", text):
        depth += (piece == "(*") - (piece == "*)")
        kept.append(piece if not depth and piece != "*)" else " ")
    return "".join(kept)


def theorems(text: str) -> list[str]:
    return re.findall(r"^(?:Theorem|Corollary)\s+(\w+)", without_comments(text), re.MULTILINE)


def of_lemmas() -> dict[str, list[str]]:
    """Theorems by lemma, each with its file; `ValueError` for a theorem that is of none."""
    found: dict[str, list[str]] = {}
    names = stated()
    for path in files():
        before, *parts = re.split(r"(?=\(\* Lemmas? of\s)", path.read_text("utf-8"))
        if theorems(before):
            raise ValueError(f"{path.name}: {theorems(before)[0]} stands before any `Lemma of NAME`")
        for part in parts:
            for name in dict.fromkeys(name for name, _ in uses(part, names)):
                found.setdefault(name, []).extend(f"`{path.stem}.{theorem}`" for theorem in theorems(part))
    return found


def of_rules() -> dict[str, list[str]]:
    """What the page says that each rule of the small kernel rests on: theorems, each with its file."""
    rows = PAGE.read_text("utf-8").split(_RULES)[1].split("\n\n")[0].split("\n")
    cells = [row.split(" | ") for row in rows]
    return {row[0].strip("| `"): re.findall(r"`(\w+\.\w+)`", row[1]) for row in cells}


def said() -> dict[str, tuple[str, str]]:
    """By lemma, the theorems and what is on paper, as the page has them."""
    rows = PAGE.read_text("utf-8").split(_HEAD)[1].split("\n\n")[0].strip("\n").split("\n")
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {name: (proved, paper) for name, proved, paper in cells}


def table() -> str:
    """The rows of the table, in alphabetical order."""
    proved, before = of_lemmas(), said()
    papers = {name: before.get(name, ("", "all of it"))[1] for name in stated()}
    return "\n".join(f"| {name} | {', '.join(proved.get(name, []))} | {papers[name]} |" for name in sorted(papers))


if __name__ == "__main__":
    before, after = PAGE.read_text("utf-8").split(_HEAD)
    PAGE.write_text(f"{before}{_HEAD}{table()}\n\n{after[after.index('<!-- end of theorems -->') :]}", "utf-8")
