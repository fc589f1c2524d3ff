"""An operation has one home: who asks what it is asks its traits, and only gadgets and its own file ask its class."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from compiler.language import operations as ops

ROOT = Path(__file__).parents[2]
HOMES = ("compiler/gadgets/", "compiler/language/operations/")
WORDS = {name for name in ops.__all__ if isinstance(getattr(ops, name), type)} - {"Operation"}


def asked(text: str) -> Iterator[str]:
    """The calls of isinstance that name an operation, by itself, of the module or in a tuple that is written before."""
    if "isinstance" not in text:
        return
    nodes = list(ast.walk(ast.parse(text)))
    own = {  # other classes, of an operation's name
        alias.asname or alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and "operations" not in (node.module or "")
        for alias in node.names
    }
    tuples = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and _names(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            kind = node.args[1]
            if isinstance(kind, ast.Name) and kind.id in own:
                continue
            if _names(kind) or isinstance(kind, ast.Name) and kind.id in tuples:
                yield ast.unparse(node)


def _names(kind: ast.expr) -> bool:
    """Whether a class, or one of a tuple, is an operation."""
    if isinstance(kind, ast.Tuple):
        return any(map(_names, kind.elts))
    if isinstance(kind, ast.Attribute):
        return isinstance(kind.value, ast.Name) and kind.value.id in ("ops", "operations") and kind.attr in WORDS
    return isinstance(kind, ast.Name) and kind.id in WORDS


def test_only_gadgets_and_operations_ask_for_a_class() -> None:
    packages = ("compiler", "verify", "constructions", "conformance")
    paths = [path.relative_to(ROOT) for package in packages for path in (ROOT / package).rglob("*.py")]
    found = {str(path): list(asked((ROOT / path).read_text())) for path in paths}
    assert len(found) > 250 and any(found[path] for path in found if path.startswith(HOMES))
    assert {path: calls for path, calls in found.items() if calls and not path.startswith(HOMES)} == {}


def test_a_question_is_found() -> None:
    for kind in ("ops.Relu", "(ops.Relu, int)", "Relu", "KINDS"):
        assert list(asked(f"KINDS = (ops.Relu, ops.Shift)\nx = [1 for s in y if isinstance(s.operation, {kind})]"))
    assert not list(asked("isinstance(x, ops.Operation) or isinstance(x, (Bool, int))"))
    assert not list(asked("from compiler.disguise.steps import Permute\nx = isinstance(step, Permute)"))
    assert list(asked("from compiler.language.operations import Permute\nx = isinstance(step, Permute)"))
