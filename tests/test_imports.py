"""Whichever module is imported first finds what it needs: none relies on another's having been imported before.

Importing each alone takes minutes. That order matters to nobody follows from the graph of what modules import while
they are imported having no cycle; that each can be imported at all is tried, in one order and in its reverse.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import networkx

ROOT = Path(__file__).parents[1]
PACKAGES = ("compiler", "verify", "constructions", "conformance")


def modules(root: Path) -> dict[str, Path]:
    """Every module of ours by its dotted name; `__main__` runs where it is imported."""
    paths = [path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))]
    named = {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}
    return {name: path for name, path in named.items() if not name.endswith("__main__")}


def at_import(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The import statements that run while a module is imported: none in functions, none for type checkers."""
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            yield from at_import(node.orelse)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for field in ("body", "orelse", "finalbody", "handlers"):
                yield from at_import(getattr(node, field, []))


def ancestors(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:i]) for i in range(1, len(parts))]


def needed(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """The modules that must have run before this one has: what it imports, and the packages that these stand in.

    A package that is importing its own modules is only half there, and they may take its other modules, not its names.
    """
    found = set()
    for node in at_import(ast.parse(path.read_text()).body):
        if isinstance(node, ast.Import):
            wanted = {alias.name for alias in node.names}
        else:
            assert not node.level, f"{name} imports relatively"
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            wanted = {part if part in known else str(node.module) for part in parts}
        found |= {module for module in wanted if module in known}
        found |= {a for module in wanted for a in ancestors(module) if a in known and a not in (name, *ancestors(name))}
    return found


def cycles(root: Path) -> list[list[str]]:
    known = modules(root)
    graph = networkx.DiGraph([(name, other) for name, path in known.items() for other in needed(name, path, known)])
    return [sorted(group) for group in networkx.strongly_connected_components(graph) if len(group) > 1]


def test_no_module_waits_for_one_that_waits_for_it() -> None:
    assert len(modules(ROOT)) > 250
    assert cycles(ROOT) == []


def test_a_cycle_is_found(tmp_path: Path) -> None:
    (tmp_path / "compiler" / "inner").mkdir(parents=True)
    files = {
        "__init__": "",
        "a": "from compiler.inner.b import x",
        "inner/__init__": "from compiler.inner import c",
        "inner/b": "def f():\n    import compiler.a\nx = 1",
        "inner/c": "from compiler.inner.b import x",
    }
    for name, text in files.items():
        (tmp_path / "compiler" / f"{name}.py").write_text(text)
    assert cycles(tmp_path) == []
    (tmp_path / "compiler" / "inner" / "c.py").write_text("import compiler.a")  # by way of the package of b
    assert cycles(tmp_path) == [["compiler.a", "compiler.inner", "compiler.inner.c"]]


# Two processes that have nothing of ours; what takes seconds of other packages is imported before they part.
IN_BOTH_ORDERS = """
import importlib, os, sys
import matplotlib.figure, torch
from transformers import MambaForCausalLM

names = sys.argv[1:]
if child := os.fork():
    names.reverse()
for name in names:
    importlib.import_module(name)
if child and os.waitpid(child, 0)[1]:
    sys.exit("not in the first order")
"""


def test_every_module_can_be_imported_in_both_orders() -> None:
    names = list(modules(ROOT))
    command = [sys.executable, "-c", IN_BOTH_ORDERS, *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert not done.returncode, done.stderr[-2000:]


def test_the_checker_needs_nothing_of_ours() -> None:
    """Nor torch: whoever reads the checker has read all that its verdict rests on."""
    code = "import sys, verify.checker.check as c; print([n for n in sys.argv[1:] if n in sys.modules])"
    command = [sys.executable, "-c", code, "torch", "compiler", "constructions"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
