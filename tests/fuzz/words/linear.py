"""Words that are linear maps and products of their inputs at the same position."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tests.fuzz.kinds import Kind, exact
from tests.fuzz.words.word import Params, Row, Word, lanewise, number, numbers, pointwise

WORDS: dict[str, Word] = {}


# Linear maps --------------------------------------------------------------------------------------


def _mapped(params: Params, x: Row) -> Row:
    return tuple(sum(exact(w) * v for w, v in zip(row, x, strict=True)) for row in params["matrix"])


def _picked(kinds: Sequence[Kind], params: Params) -> Kind:
    name = kinds[0].name
    return Kind({"symbol": "flag", "code": "int"}.get(name, name), len(params["lanes"]))


def _concatenated(kinds: Sequence[Kind], params: Params) -> Kind:
    all_flags = all(kind.name == "flag" for kind in kinds)
    return Kind("flag" if all_flags else numbers(kinds, {}).name, sum(kind.width for kind in kinds))


WORDS |= {
    "add": Word("{0} + {1}", ("any", "=any"), numbers, lanewise(lambda p, a, b: a + b)),
    "spread": Word("{0} + {1}", ("any", "one"), numbers, lanewise(lambda p, a, b: a + b)),
    "subtract": Word("{0} - {1}", ("any", "=any"), numbers, lanewise(lambda p, a, b: a - b)),
    "negative": Word("-{0}", ("any",), numbers, lanewise(lambda p, a: -a)),
    "scale": Word("{k} * {0}", ("any",), numbers, lanewise(lambda p, a: exact(p["k"]) * a), number("factor")),
    "offset": Word("{0} + {k}", ("any",), numbers, lanewise(lambda p, a: a + exact(p["k"])), number("part")),
    "from": Word("{k} - {0}", ("any",), numbers, lanewise(lambda p, a: exact(p["k"]) - a), number("part")),
    "divide": Word(
        "{0} / {k}",
        ("any",),
        lambda kinds, p: Kind("real", kinds[0].width),
        lanewise(lambda p, a: exact(Fraction(a) / Fraction(p["k"]))),
        lambda draw, kinds: {"k": draw.one((2, 4, 8, -2, 0.5)) if draw.chance(0.9) else draw.factor()},
    ),
    "there and back": Word(
        "({k} * {0} + {0}) - {k} * {0}", ("any",), numbers, lanewise(lambda p, a: a), number("whole")
    ),
    "matrix": Word(
        "{matrix} @ {0}",
        ("any",),
        lambda kinds, p: Kind(numbers(kinds, p).name, len(p["matrix"])),
        pointwise(_mapped),
        lambda draw, kinds: {"matrix": draw.matrix(1 + draw.below(4), kinds[0].width)},
    ),
    "lanes": Word(
        "{0}[{lanes}]",
        ("any",),
        _picked,
        pointwise(lambda p, a: tuple(a[i] for i in p["lanes"])),
        lambda draw, kinds: {"lanes": [draw.below(kinds[0].width) for _ in range(1 + draw.below(3))]},
    ),
    "lane": Word(
        "{0}[{lane}]",
        ("any",),
        lambda kinds, p: _picked(kinds, {"lanes": [0]}),
        pointwise(lambda p, a: (a[p["lane"]],)),
        lambda draw, kinds: {"lane": draw.below(kinds[0].width)},
    ),
    "sum": Word(
        "{0}.sum()", ("any",), lambda kinds, p: Kind(numbers(kinds, p).name), pointwise(lambda p, a: (sum(a),))
    ),
    "concatenate": Word("concatenate({0}, {1})", ("any", "any"), _concatenated, pointwise(lambda p, a, b: a + b)),
}


# Products -----------------------------------------------------------------------------------------

WORDS |= {
    "times": Word("{0} * {1}", ("any", "=any"), numbers, lanewise(lambda p, a, b: a * b)),
    "times one": Word("{0} * {1}", ("one", "any"), numbers, lanewise(lambda p, a, b: a * b)),
    "power": Word(
        "{0} ** {n}",
        ("any",),
        lambda kinds, p: numbers(kinds, {}),
        lanewise(lambda p, a: a ** p["n"]),
        lambda draw, kinds: {"n": draw.one((1, 2, 2, 3, 4, 5))},
    ),
    "square": Word("{0}.square()", ("any",), numbers, lanewise(lambda p, a: a * a)),
    "dot": Word(
        "dot({0}, {1})",
        ("any", "=any"),
        lambda kinds, p: Kind(numbers(kinds, p).name),
        pointwise(lambda p, a, b: (sum(u * v for u, v in zip(a, b, strict=True)),)),
    ),
}
