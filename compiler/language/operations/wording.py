"""How operations are written, and what is said of operands that do not fit them."""

from __future__ import annotations

import re

from compiler.language.kinds import is_flags
from compiler.language.operations.exact import Array
from compiler.language.types import Bool, Type

_BRACKETS = r"\([^()]*\)|\[[^\[\]]*\]"


def grouped(expression: str, looser: str = " ") -> str:
    """An expression as an operand: in parentheses where it is more than one word or call.

    looser: what stands outside of brackets in an expression that needs parentheses (a pattern).
    """
    outside, shorter = expression, re.sub(_BRACKETS, "", expression)
    while shorter != outside:
        outside, shorter = shorter, re.sub(_BRACKETS, "", shorter)
    return f"({expression})" if re.search(looser, outside) or expression[:1] in ("-", "~") else expression


def called(expression: str) -> str:
    """An expression of which a word is called, or lanes are picked: no product of numbers, either."""
    return grouped(expression, "[ */]")


def term(expression: str) -> str:
    """An expression as a term of a sum, within which products and sums need no parentheses."""
    return expression if expression[:1] in ("-", "~") else grouped(expression, " ([<>=!]=?|[&|]) ")


def picked(expression: str, lanes: Array) -> str:
    """These lanes of an expression, as their author would pick them."""
    return f"{called(expression)}[{', '.join(map(str, lanes[:4]))}{', …' if len(lanes) > 4 else ''}]"


def needs(kind: type | tuple[type, ...], what: str, *operands: Type, **named: Type) -> list[str]:
    """The complaints about operands of another kind: the one or the two by their order, others by name."""
    order = ("first operand", "second operand") if len(operands) == 2 else ("operand",)
    called = {f"its {name}": t for name, t in (*zip(order, operands, strict=False), *named.items())}
    flags = Bool in (kind if isinstance(kind, tuple) else (kind,))
    fits = lambda t: isinstance(t, kind) or flags and is_flags(t)
    return [f"{name} is {t}, and {what} is needed" for name, t in called.items() if not fits(t)]


def same_width(*inputs: Type) -> list[str]:
    widths = [t.width for t in inputs]
    return [] if len(set(widths)) == 1 else [f"its inputs have {' and '.join(map(str, widths))} lanes; they must agree"]
