"""The boundary of the kernel: what it imports, and who makes facts."""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path

from verify.kernel import facts

ROOT = Path(__file__).parents[3]
KERNEL = ROOT / "verify" / "kernel"
FACTS = {name for name, kind in vars(facts).items() if inspect.isclass(kind) and issubclass(kind, facts.Fact)}


def made_in(text: str) -> set[str]:
    """The kinds of facts that a module makes: by a call, or in any other way than as the type of something."""
    tree = ast.parse(text)
    types = {id(n) for node in ast.walk(tree) for part in _annotations(node) for n in ast.walk(part)}
    classes = {id(base) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for base in node.bases}
    found = (n for n in ast.walk(tree) if isinstance(n, ast.Name | ast.Attribute) and id(n) not in types | classes)
    return {n.id if isinstance(n, ast.Name) else n.attr for n in found} & FACTS


def _annotations(node: ast.AST) -> list[ast.AST]:
    return [part for name in ("annotation", "returns") if isinstance(part := getattr(node, name, None), ast.AST)]


def imported(text: str) -> set[str]:
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Import | ast.ImportFrom)]
    return {n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)} | {
        alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names
    }


def test_only_the_rules_make_facts():
    assert {"Fact", "Ranged", "Same", "Known"} <= FACTS
    for folder in ("verify", "compiler", "constructions", "conformance"):
        for path in (ROOT / folder).rglob("*.py"):
            if "Ranged" in (text := path.read_text("utf-8")) or "kernel.facts" in text:
                found = made_in(text) - (
                    {"Fact", "Ranged"} if path.name == "claims.py" and path.parent == KERNEL else set()
                )
                assert not found or path == KERNEL / "rules.py", (path, found)


def test_a_module_that_makes_one_is_seen():
    assert made_in("from verify.kernel.facts import Ranged\ndef f() -> Ranged:\n    return g()") == set()
    assert made_in("from verify.kernel import facts\nx = facts.Ranged(1, ())") == {"Ranged"}
    assert made_in("from verify.kernel.facts import Ranged\nmake = Ranged") == {"Ranged"}


def test_the_kernel_imports_the_standard_library_and_numpy_only():
    for path in KERNEL.glob("*.py"):
        for name in imported(path.read_text("utf-8")):
            top = name.split(".")[0]
            assert top == "numpy" or top in sys.stdlib_module_names or name.startswith("verify.kernel"), (path, name)
