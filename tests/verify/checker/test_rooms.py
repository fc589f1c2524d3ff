"""The rooms of the checker: no circle of imports, of whatever kind, and no room uses a later one."""

from __future__ import annotations

import ast
from pathlib import Path

import networkx
import pytest

ROOT = Path(__file__).parents[3]
ORDER = ("values", "arithmetic", "meaning", "tasks", "")
"""Each room and those that it may use, before it; what stands in none is used by all, or uses all."""
USED_BY_ALL = {"formats", "unexpected", "budget", "files", "families", "delta_family"}


def imported(text: str) -> set[str]:
    """What a module of the checker imports of it: at once, later or for types only."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {f"{getattr(node, 'module', '')}.{a.name}".strip(".") for node in nodes for a in node.names}
    return {name.removeprefix("verify.checker.") for name in names if name.startswith("verify.checker.")}


@pytest.fixture(scope="module")
def graph() -> networkx.DiGraph:
    folder = ROOT / "verify" / "checker"
    found = {".".join(p.relative_to(folder).with_suffix("").parts): p.read_text("utf-8") for p in folder.rglob("*.py")}
    edges = [(name, o) for name, text in found.items() for part in imported(text) for o in found if _is(part, o)]
    return networkx.DiGraph(edges)


def _is(part: str, module: str) -> bool:
    return part == module or part.startswith(f"{module}.")


def test_no_circle(graph):
    assert len(graph) > 50 and networkx.is_directed_acyclic_graph(graph), networkx.find_cycle(graph)


def test_no_room_uses_a_later_one(graph):
    place = lambda module: ORDER.index(module.split(".")[0] if "." in module else "")
    assert [(a, b) for a, b in graph.edges if place(b) > place(a) and b not in USED_BY_ALL] == []


def test_imports_of_every_kind_are_seen():
    later = "def f():\n    from verify.checker.values import bounds\nif TYPE_CHECKING:\n    import verify.checker.files"
    assert imported(later) == {"values.bounds", "files"}
