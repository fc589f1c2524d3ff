"""Words that rectify, compare and look up numbers at the same position."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from tests.fuzz.kinds import FLAG, INT, Draw, Kind, Written, codewords
from tests.fuzz.words.word import Params, Row, Word, fixed, flags, lanewise, number, numbers, pointwise

COMPARISONS = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
WORDS: dict[str, Word] = {}


# Rectifiers, tables, comparisons ------------------------------------------------------------------


def _bounds(draw: Draw, kinds: Sequence[Kind]) -> Params:
    lo, hi = sorted((draw.whole(), draw.whole()))
    return {"lo": lo, "hi": hi}


def _entry(params: Params, x: Row) -> Row:
    table = params["table"]
    return (table[x[0]] if x[0] in range(len(table)) else 0,)


def _table(draw: Draw, kinds: Sequence[Kind]) -> Params:
    return {"table": [draw.whole() for _ in range(1 + draw.below(6))]}


def _decoded(params: Params, x: Row) -> Row:
    return tuple(int(x == word) for word in codewords(params["book"]))


def _best(x: Row) -> int:
    return x.index(max(x))


WORDS |= {
    "relu": Word("{0}.relu()", ("any",), numbers, lanewise(lambda p, a: max(a, 0))),
    "abs": Word("abs({0})", ("any",), numbers, lanewise(lambda p, a: abs(a))),
    "clip": Word(
        "{0}.clip({lo}, {hi})", ("ints",), numbers, lanewise(lambda p, a: min(max(a, p["lo"]), p["hi"])), _bounds
    ),
    "heaviside": Word("{0}.heaviside({k})", ("ints",), flags, lanewise(lambda p, a: int(a > p["k"])), number("whole")),
    "one_hot where": Word(
        "{0}.one_hot({n}) & {1}",
        ("int", "flag"),
        lambda kinds, p: Kind("symbol", p["n"]),
        pointwise(lambda p, a, when: tuple(int(a[0] == i) * when[0] for i in range(p["n"]))),
        lambda draw, kinds: {"n": draw.one((1, 2, 3, 4, 5, 9))},
    ),
    "one_hot of": Word(
        "{0}.one_hot({n})",
        ("int",),
        lambda kinds, p: Kind("symbol", p["n"]),
        pointwise(lambda p, a: tuple(int(a[0] == i) for i in range(p["n"]))),
        lambda draw, kinds: {"n": draw.one((1, 2, 3, 4, 5, 9))},
    ),
    "lookup": Word("{0}.lookup({table})", ("int",), fixed(INT), pointwise(_entry), _table),
    "lookup map": Word(
        "{0}.lookup({entries})",
        ("int",),
        fixed(INT),
        pointwise(lambda p, a: (p["entries"].get(a[0], 0),)),
        lambda draw, kinds: {"entries": {i: draw.whole() for i in range(1 + draw.below(4))}},
    ),
    "lookup symbol": Word(
        "{0}.lookup({table})",
        ("symbol",),
        fixed(INT),
        pointwise(lambda p, a: (sum(v * w for v, w in zip(a, p["table"], strict=True)),)),
        lambda draw, kinds: {"table": [draw.whole() for _ in range(kinds[0].width)]},
    ),
    "minimum": Word("minimum({0}, {1})", ("ints", "=ints"), numbers, lanewise(lambda p, a, b: min(a, b))),
    "maximum": Word("maximum({0}, {1})", ("ints", "=ints"), numbers, lanewise(lambda p, a, b: max(a, b))),
    "quotient": Word(
        "{0} // {n}",
        ("int",),
        fixed(INT),
        pointwise(lambda p, a: (a[0] // p["n"],)),
        lambda draw, kinds: {"n": draw.one((1, 2, 3, 5, 7, 8, 10, 100))},
    ),
    "remainder": Word(
        "{0} % {n}",
        ("int",),
        fixed(INT),
        pointwise(lambda p, a: (a[0] % p["n"],)),
        lambda draw, kinds: {"n": draw.one((1, 2, 3, 5, 7, 8, 10, 100))},
    ),
    "at most": Word("minimum({0}, {k})", ("ints",), numbers, lanewise(lambda p, a: min(a, p["k"])), number("whole")),
    "at least": Word("maximum({k}, {0})", ("ints",), numbers, lanewise(lambda p, a: max(a, p["k"])), number("whole")),
    "decode": Word(
        "decode({0}, {book})",
        ("any",),
        lambda kinds, p: Kind("symbol", len(codewords(p["book"]))),
        pointwise(_decoded),
        lambda draw, kinds: {"book": draw.book(length=min(kinds[0].width, 5))},
    ),
    "argmax": Word("argmax({0})", ("ints",), fixed(INT), pointwise(lambda p, a: (_best(a),))),
    "hardmax": Word(
        "hardmax({0})",
        ("ints",),
        lambda kinds, p: Kind("symbol", kinds[0].width),
        pointwise(lambda p, a: tuple(int(i == _best(a)) for i in range(len(a)))),
    ),
    "same": Word(
        "{0} == {1}", ("symbol", "=symbol"), fixed(FLAG), pointwise(lambda p, a, b: (int(a == b and any(a)),))
    ),
    "other": Word(
        "{0} != {1}", ("symbol", "=symbol"), fixed(FLAG), pointwise(lambda p, a, b: (1 - int(a == b and any(a)),))
    ),
}

for _sign, _holds in COMPARISONS.items():
    WORDS[_sign] = Word(
        f"{{0}} {_sign} {{1}}", ("numbers", "=numbers"), flags, lanewise(lambda p, a, b, holds=_holds: int(holds(a, b)))
    )
    WORDS[f"{_sign} number"] = Word(
        f"{{0}} {_sign} {{k}}",
        ("numbers",),
        flags,
        lanewise(lambda p, a, holds=_holds: int(holds(a, p["k"]))),
        number("whole"),
    )


# The same numbers under another type ----------------------------------------------------------------


def _retyped(draw: Draw, kinds: Sequence[Kind]) -> Params:
    width = kinds[0].width
    options = [
        f"Bool({width})",
        f"OneHot({width})",
        f"Int({draw.one(SMALL_BOUNDS)}, {draw.one((1, 2, 5, None))}, {width})",
    ]
    return {"type": Written(draw.one(options))}


SMALL_BOUNDS = (None, 0, 0, 1, -3)
WORDS["retyped"] = Word(
    "{0}.retyped({type})",
    ("ints",),
    lambda kinds, p: Kind({"B": "flag", "O": "symbol", "I": "int"}[p["type"].code[0]], kinds[0].width),
    lanewise(lambda p, a: a),
    _retyped,
)
