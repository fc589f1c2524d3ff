"""`make nearest FILE=…`: the tests that are nearest to a file, by the imports between files.

A test file that imports the file is one step away; where no test does, those that import what imports it are nearest,
and so on. Test files of the same name (`schedule.py`, `test_schedule.py`) are always among them. So no list is kept.

    python -m tests.nearest FILE [FILE ...]
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("compiler", "constructions", "conformance", "verify", "tests", "benchmarks")

Imports = dict[Path, set[Path]]  # of each file, the files that import it


@cache
def importers(root: Path = ROOT) -> Imports:
    """Which files of the project import each file, wherever in it, and whichever of its names."""
    files = {_module(path, root): path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))}
    found: Imports = defaultdict(set)
    for path in files.values():
        for name in _imported(ast.parse(path.read_text("utf-8"))):
            if name in files and files[name] != path:
                found[files[name]].add(path)
    return found


def _module(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def _imported(tree: ast.Module) -> Iterator[str]:
    """Names of modules that a file imports; a name that is taken from a package may be a module of it."""
    for node in statements(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Every statement of a file, those in others too. `ast.walk` goes through all expressions and takes ten times as
    long.
    """
    for name in ("body", "orelse", "handlers", "finalbody", "cases"):
        for node in found if isinstance(found := getattr(tree, name, ()), list) else ():
            yield node
            yield from statements(node)


def nearest(file: Path, imports: Imports) -> list[Path]:
    """The test files nearest to a file, in order of their names; [file] for a test file."""
    if _is_test(file):
        return [file]
    files = set(imports) | {path for reading in imports.values() for path in reading}
    named = {path for path in files if path.name == f"test_{file.name}"}
    level, seen = {file}, {file}
    while level:
        level = {path for near in level for path in imports.get(near, ()) if path not in seen}
        if tests := set(filter(_is_test, level)):
            return sorted(tests | named)
        seen |= level
    return sorted(named) or _beside(file, imports)


def _beside(file: Path, imports: Imports) -> list[Path]:
    """Of a file that is imported by its name as a text: the tests that import the files of its folder."""
    return sorted(
        {path for other in imports if other.parent == file.parent for path in imports[other] if _is_test(path)}
    )


def _is_test(path: Path) -> bool:
    return path.name.startswith("test_")


def main(names: Iterable[str]) -> int:
    imports, found = importers(), set()
    for name in names:
        path = Path(name).resolve()
        if not path.is_file():
            print(f"{name} is no file; name one of the project, such as compiler/passes/schedule.py", file=sys.stderr)
            return 2
        found |= set(nearest(path, imports))
    print("\n".join(str(path.relative_to(ROOT)) for path in sorted(found)))
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
