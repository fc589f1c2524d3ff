"""Where the checker and the kernel rest on each lemma: python -m tests.verify.checker.lemmas writes docs/proofs.md.

The page begins each lemma with its name in bold letters; the code says `lemma of NAME`, or `lemmas of NAME, of NAME and
of NAME`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDER, KERNEL, PAGE = ROOT / "verify" / "checker", ROOT / "verify" / "kernel", ROOT / "docs" / "proofs.md"
_HEAD = "| lemma | file and line in `verify/checker` | file in `verify/kernel` |\n| --- | --- | --- |\n"


def stated() -> list[str]:
    """The lemmas of the page, in its order."""
    return [name[0].lower() + name[1:] for name in re.findall(r"\*\*([A-Z][^*]+)\.\*\*", PAGE.read_text("utf-8"))]


def uses(text: str, names: list[str]) -> list[tuple[str, int]]:
    """(name, line) of each lemma that a text names; `ValueError` for one that is none."""
    one = "|".join(r"\s+".join(map(re.escape, name.split())) for name in sorted(names, key=len, reverse=True))
    found = []
    for begin in re.finditer(r"\b[Ll]emmas?\s+of\s", text):
        line = text.count("\n", 0, begin.start()) + 1
        named = re.compile(rf"[Ll]emmas?(?:(?:,|\s+and)?\s+of\s+(?:{one})\b(?:'(?!\w))?)+").match(text, begin.start())
        if named is None:
            raise ValueError(
                f"line {line} names no lemma of docs/proofs.md: {text[begin.start() : begin.end() + 30]!r}"
            )
        found += [(" ".join(name.split()), line) for name in re.findall(rf"of\s+({one})", named.group())]
    return found


def places(folder: Path) -> dict[str, dict[str, list[int]]]:
    """By lemma, the files of a folder that name it, and in which lines."""
    names, found = stated(), defaultdict[str, dict[str, list[int]]](dict)
    for path in sorted(folder.rglob("*.py")):
        for name, line in uses(path.read_text("utf-8"), names):
            found[name].setdefault(str(path.relative_to(folder)), []).append(line)
    return found


def index() -> str:
    """The rows of the table, in alphabetical order."""
    checker, kernel = places(FOLDER), places(KERNEL)
    rows = []
    for name in sorted(stated()):
        lines = [f"`{file}:{line}`" for file, found in checker.get(name, {}).items() for line in found]
        rows.append(f"| {name} | {', '.join(lines)} | {', '.join(f'`{file}`' for file in kernel.get(name, {}))} |")
    return "\n".join(rows)


def said() -> str:
    """The rows that stand on the page."""
    return PAGE.read_text("utf-8").split(_HEAD)[1].split("\n\n")[0].strip("\n")


if __name__ == "__main__":
    before, after = PAGE.read_text("utf-8").split(_HEAD)
    PAGE.write_text(f"{before}{_HEAD}{index()}\n\n{after[after.index('## ') :]}", "utf-8")
