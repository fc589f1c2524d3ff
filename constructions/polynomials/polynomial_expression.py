"""Polynomials as users write them: text in, exact terms out, nothing executed.

Grammar: integers, decimals, variables x1, x2, …, and + − * / ** with parentheses; division by
numbers only, exponents whole numbers. The text is parsed by Python's own parser into a tree
of which only these nodes are walked; arithmetic happens in sympy's polynomial ring over Q.
"""

from __future__ import annotations

import ast
import re
from copy import deepcopy
from fractions import Fraction
from math import comb

import sympy
from sympy.polys.rings import PolyElement, PolyRing, ring

from constructions.polynomials.polynomial_terms import Polynomial, from_terms
from constructions.rationals import LARGEST_BITS, rational

LONGEST_TEXT = 20_000
MOST_TERMS = 20_000
LARGEST_EXPONENT = 1_000
_LONG = re.compile(r"\d[\d_]{2000}")  # digits, of which Python itself reads some thousand
_TOO_DEEP = "the expression is nested too deeply; write it with fewer parentheses."
_VARIABLE = re.compile(r"x([1-9][0-9]{0,5})")


def parse_polynomial(expression: str | sympy.Expr, length: int = 0) -> Polynomial:
    """The polynomial that the text (or a sympy expression) means, over x1 … x<length> (0: as many as occur).

    ValueError, in one sentence, for anything that is no polynomial with rational coefficients.
    """
    text = str(expression)
    names = _names(_tree(text))
    highest = max(names.values(), default=1)
    if length and highest > length:
        raise ValueError(f"variable x{highest} is beyond --length {length}; raise --length to {highest}.")
    generators = ring(list(names), sympy.QQ)[0] if names else ring("x1", sympy.QQ)[0]
    return _polynomial(_evaluate(_tree(text).body, generators), generators, length or highest)


def _tree(text: str) -> ast.Expression:
    if not text.strip():
        raise ValueError("the expression is empty; write a polynomial such as 5*x1**2*x3**3 - x2 + 7.")
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"the expression has {len(text)} characters, and at most {LONGEST_TEXT} are read.")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (RecursionError, MemoryError):
        raise ValueError(_TOO_DEEP) from None
    except (SyntaxError, ValueError) as reason:
        if _LONG.search(text):
            raise ValueError(
                f"a number of the expression has more than {LARGEST_BITS} bits; write smaller numbers."
            ) from None
        if "nested" in str(reason):
            raise ValueError(_TOO_DEEP) from None
        raise ValueError(
            f"{_shown(text)} is no expression: check its parentheses and operators (products need *, powers **)."
        ) from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            node.kind = ast.get_source_segment(text.strip(), node)  # its value is a float64: 0 of 1e-400
    return tree


def _names(tree: ast.Expression) -> dict[str, int]:
    """{variable name: its number}, in increasing order."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            match = _VARIABLE.fullmatch(node.id)
            if not match:
                raise ValueError(f"{node.id!r} is no variable; variables are x1, x2, … (one per position).")
            found[node.id] = int(match[1])
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _evaluate(node: ast.expr, field: PolyRing) -> PolyElement:
    try:
        return _value(node, field)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def _value(node: ast.expr, field: PolyRing) -> PolyElement:
    if isinstance(node, ast.Constant):
        return field(_number(node))
    if isinstance(node, ast.Name):
        return field.gens[[str(s) for s in field.symbols].index(node.id)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
        inner = _value(node.operand, field)
        return inner if isinstance(node.op, ast.UAdd) else -inner
    if isinstance(node, ast.BinOp):
        return _binary(node, _value(node.left, field), _value(node.right, field), field)
    raise ValueError(
        f"{_shown(_written(node))} cannot stand in a polynomial; use numbers, x1, x2, …, + - * / ** and parentheses."
    )


def _number(node: ast.Constant):
    """A whole number or decimal as an exact rational: 0.1 is 1/10."""
    if type(node.value) not in (int, float):
        raise ValueError(f"{_shown(_written(node))} is no rational number.")
    literal = node.kind if isinstance(node.value, float) and node.kind else str(node.value)
    try:
        exact = rational(literal)
    except OverflowError as reason:
        raise ValueError(str(reason)) from None
    return sympy.QQ(exact.numerator, exact.denominator)


def _binary(node: ast.BinOp, left: PolyElement, right: PolyElement, field: PolyRing) -> PolyElement:
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    if isinstance(node.op, ast.Mult):
        _check_terms(len(left) * len(right))
        return left * right
    if isinstance(node.op, ast.Div):
        if not right.is_ground or not right:
            raise ValueError(
                f"{_shown(_written(node))} divides by {_shown(_written(node.right))}; a polynomial "
                "divides by numbers other than 0 only."
            )
        return left * (field.domain.one / right.coeff(1))
    if isinstance(node.op, ast.Pow):
        return _power(node, left, right, field)
    if isinstance(node.op, ast.BitXor):
        raise ValueError("^ means exclusive or here; write powers with **.")
    raise ValueError(f"{_shown(_written(node))} uses an operator that no polynomial has; use + - * / and **.")


def _power(node: ast.BinOp, base: PolyElement, exponent: PolyElement, field: PolyRing) -> PolyElement:
    value = exponent.coeff(1) if exponent.is_ground else None
    if value is None or value.denominator != 1 or value < 0:
        raise ValueError(
            f"{_shown(_written(node))} has the exponent {_shown(_written(node.right))}; exponents must "
            "be whole numbers of at least 0."
        )
    power = int(value)
    if power > LARGEST_EXPONENT:
        raise ValueError(f"the exponent {_shown(str(power))} is too large; at most {LARGEST_EXPONENT} is built.")
    _check_terms(comb(max(len(base), 1) + power - 1, power))
    for coefficient in base.coeffs():
        _check_bits(int(coefficient.numerator) ** min(power, 1), power)
        _check_bits(int(coefficient.denominator) ** min(power, 1), power)
    return base**power


def _check_terms(count: int) -> None:
    if count > MOST_TERMS:
        raise ValueError(
            f"expanding the expression could give more than {MOST_TERMS} terms; write a smaller polynomial."
        )


def _check_bits(number: int, times: int = 1) -> None:
    if number.bit_length() * times > LARGEST_BITS:
        raise ValueError(f"a coefficient of the expression has more than {LARGEST_BITS} bits; write smaller numbers.")


def _polynomial(value: PolyElement, field: PolyRing, length: int) -> Polynomial:
    indices = [int(_VARIABLE.fullmatch(str(s))[1]) for s in field.symbols]
    terms = {}
    for exponents, coefficient in value.terms():
        factors = tuple((i, int(p)) for i, p in zip(indices, exponents, strict=True) if p)
        terms[factors] = Fraction(int(coefficient.numerator), int(coefficient.denominator))
        if max(exponents, default=0) > LARGEST_EXPONENT:
            raise ValueError(f"the exponent {max(exponents)} is too large; at most {LARGEST_EXPONENT} is built.")
    return from_terms(length, terms)


def _written(node: ast.expr) -> str:
    """The node as text, its decimals as they were typed: `ast.unparse` writes 1e400 as 1e309."""
    return ast.unparse(_AsTyped().visit(deepcopy(node)))


class _AsTyped(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.Name(node.kind) if isinstance(node.value, float) and node.kind else node


def _shown(text: str) -> str:
    """The text in quotes, shortened to what fits a sentence."""
    text = " ".join(text.split())
    return repr(text if len(text) <= 60 else text[:57] + "...")
