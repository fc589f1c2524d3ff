"""How many lines the checker has, for docs/proofs.md: python -m tests.verify.checker.size writes them there."""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDER, PAGE = ROOT / "verify" / "checker", ROOT / "docs" / "proofs.md"
PARTS = {
    "arithmetic": "arithmetic bent bounds columns language mamba mamba2 mass memories norms once running states"
    " sums tables values",
    "meaning": "bends cases circuit compare entries flags items meaning packed quotient relations rings rules windows",
    "tasks": "hulls matches names readout scores task task_matches task_pairs task_recall task_steps",
    "tasks with open letters (V)": "letters machine task_chains task_copies task_forms walks",
    "files and the verdict": "__init__ __main__ budget check files formats schema text told",
}
"""Every file of the folder, in one part."""
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
    texts = {path.stem: path.read_text("utf-8") for path in FOLDER.glob("*.py")}
    named = [name for names in PARTS.values() for name in names.split()]
    if sorted(named) != sorted(texts):
        raise ValueError(
            f"PARTS and the folder differ in {sorted(set(named) ^ set(texts)) or 'a name that stands twice'}"
        )
    code = {name: lines_of_code(text) for name, text in texts.items()}
    total = sum(len(text.splitlines()) for text in texts.values())
    rows = [f"| {part} | {sum(code[name] for name in names.split()):,} |" for part, names in PARTS.items()]
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
