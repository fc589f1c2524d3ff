"""How many lines the checker has, for docs/proofs.md: python -m tests.verify.checker.size writes them there."""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDER, PAGE = ROOT / "verify" / "checker", ROOT / "docs" / "proofs.md"
PARTS = {
    "values": "values",
    "arithmetic": "arithmetic",
    "meaning": "meaning",
    "tasks": "tasks",
    "files and the verdict": "",
}
"""The rooms of the folder; what stands in none is of the files and the verdict."""
_BESIDE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def lines_of_code(text: str) -> int:
    """Lines that are more than docstring, comment or blank."""
    quoted: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            quoted |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    used: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _BESIDE:
            used |= set(range(token.start[0], token.end[0] + 1))
    return len(used - quoted)


def paragraph() -> str:
    """What the page says of the size."""
    texts = {room: [path.read_text("utf-8") for path in (FOLDER / room).glob("*.py")] for room in PARTS.values()}
    rooms = {path.parent.name for path in FOLDER.glob("*/*.py")}
    if rooms != set(texts) - {""}:
        raise ValueError(f"PARTS and the folder differ in {sorted(rooms ^ (set(texts) - {''}))}")
    code = {room: sum(map(lines_of_code, found)) for room, found in texts.items()}
    total = sum(len(text.splitlines()) for found in texts.values() for text in found)
    rows = [f"| {part} | {code[room]:,} |" for part, room in PARTS.items()]
    told = f"The folder has {total:,} lines, {sum(code.values()):,} without docstrings, comments and\nblank lines:"
    return "\n".join(
        [told, "", "<!-- table: tests/verify/checker/size.py -->", "| part | lines of code |", "| --- | ---: |", *rows]
    )


def said() -> str:
    """The same paragraph as it stands on the page."""
    page = PAGE.read_text("utf-8")
    return page[page.index("The folder has ") : page.index("\n\nMost of the arithmetic is one rule")]


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text("utf-8").replace(said(), paragraph()), "utf-8")
