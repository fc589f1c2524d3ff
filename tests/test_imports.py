"""The graph of what modules import has no cycle, and no room imports from one above it.

All imports count: those that run later, in a function, and those of type hints as well. So whichever module is
imported first finds what it needs. That each can be imported at all is tried, in one order and in its reverse.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import networkx
import pytest

from tests.fresh import fresh
from tests.nearest import statements

ROOT = Path(__file__).parents[1]
PACKAGES = ("compiler", "verify", "constructions", "conformance")
ROOMS = (
    ("verify.kernel",),
    ("verify.checker", "compiler.lattice", "compiler.exactness.levels", "compiler.steps", "compiler.digits"),
    ("compiler.language",),
    ("compiler.errors", "compiler.formats", "compiler.interpreter"),
    ("compiler.analysis",),
    ("compiler.ir",),
    ("compiler.lowering",),
    ("compiler.gadgets",),
    ("compiler",),
    ("compiler.disguise", "compiler.export", "compiler.graft", "compiler.ir.printer"),
    ("verify", "conformance"),
    ("constructions",),
)
"""Floor by floor, upwards. A module stands in the innermost of these rooms."""


def modules(root: Path) -> dict[str, Path]:
    """Every module of ours by its dotted name; `__main__` runs where it is imported."""
    paths = [path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))]
    named = {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}
    return {name: path for name, path in named.items() if not name.endswith("__main__")}


def imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import statement of a module, those in functions and those for type checkers too."""
    return (node for node in statements(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))


def ancestors(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:i]) for i in range(1, len(parts))]


def imported(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """The modules that this one imports."""
    found = set()
    for node in imports(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            wanted = {alias.name for alias in node.names}
        else:
            assert not node.level, f"{name} imports relatively"
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            wanted = {part if part in known else str(node.module) for part in parts}
        found |= {module for module in wanted if module in known}
    return found - {name}


Arrows = set[tuple[str, str]]


def arrows(root: Path) -> Arrows:
    """(module, what it imports) for all modules."""
    known = modules(root)
    return {(name, other) for name, path in known.items() for other in imported(name, path, known)}


def with_packages(found: Arrows) -> Arrows:
    """The same, and the packages that the imported modules stand in: they run as well.

    A package that is importing its own modules is only half there, and they may take its other modules, not its names.
    """
    return found | {(a, p) for a, b in found for p in ancestors(b) if p not in (a, *ancestors(a))}


def cycles(found: Arrows) -> set[tuple[str, ...]]:
    """The sets of modules that import each other."""
    groups = networkx.strongly_connected_components(networkx.DiGraph(with_packages(found)))
    return {tuple(sorted(group)) for group in groups if len(group) > 1}


def climbs(found: Arrows, rooms: tuple[tuple[str, ...], ...]) -> list[tuple[str, str]]:
    """The arrows from a room to one on a higher floor, or to its neighbour on the same floor."""
    floor = {room: i for i, level in enumerate(rooms) for room in level}
    home = {name: room_of(name, floor) for arrow in found for name in arrow}
    pairs = ((home[a], home[b], a, b) for a, b in found if home[a] != home[b])
    return sorted((a, b) for here, there, a, b in pairs if floor[there] >= floor[here])


def room_of(name: str, rooms: Iterable[str]) -> str:
    """The innermost room that a module stands in."""
    return max((room for room in rooms if name == room or name.startswith(f"{room}.")), key=len)


@pytest.fixture(scope="module")
def ours() -> Arrows:
    return arrows(ROOT)


def test_no_module_imports_one_that_imports_it(ours: Arrows) -> None:
    assert len(modules(ROOT)) > 250
    assert cycles(ours) == set()


def test_no_room_imports_from_one_above_it(ours: Arrows) -> None:
    assert len(ours) > 1000 and climbs(ours, ROOMS) == []
    assert all(room_of(name, {room: 0 for level in ROOMS for room in level}) for name in modules(ROOT))


def test_a_cycle_and_a_climb_are_found(tmp_path: Path) -> None:
    (tmp_path / "compiler" / "inner").mkdir(parents=True)
    files = {
        "__init__": "",
        "a": "from compiler.inner.b import x",
        "inner/__init__": "from compiler.inner import c",
        "inner/b": "x = 1",
        "inner/c": "from compiler.inner.b import x",
    }
    for name, text in files.items():
        (tmp_path / "compiler" / f"{name}.py").write_text(text)
    rooms = (("compiler.inner",), ("compiler",))
    assert cycles(arrows(tmp_path)) == set() and climbs(arrows(tmp_path), rooms) == []
    for later in ("import compiler.a", "def f():\n    import compiler.a", "if TYPE_CHECKING:\n    import compiler.a"):
        (tmp_path / "compiler" / "inner" / "c.py").write_text(later)  # by way of the package of b
        assert cycles(arrows(tmp_path)) == {("compiler.a", "compiler.inner", "compiler.inner.c")}
        assert climbs(arrows(tmp_path), rooms) == [("compiler.inner.c", "compiler.a")]


def test_every_module_can_be_imported_in_both_orders() -> None:
    names = list(modules(ROOT))
    for order in (names, names[::-1]):
        done = fresh("-c", "import importlib, sys; [*map(importlib.import_module, sys.argv[1:])]", *order, cwd=ROOT)
        assert not done.returncode, done.stderr[-2000:]


def test_the_checker_needs_nothing_of_ours() -> None:
    """Nor torch: whoever reads the checker has read all that its verdict rests on."""
    code = "import sys, verify.checker.check as c; print([n for n in sys.argv[1:] if n in sys.modules])"
    command = [sys.executable, "-c", code, "torch", "compiler", "constructions"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
