"""Words whose value is a function of their inputs at the same position."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from tests.fuzz.kinds import FLAG, INT, Draw, Kind, Written, codewords, exact
from tests.fuzz.words.word import Params, Row, Word, fixed, flags, lanewise, like, numbers, pointwise

COMPARISONS = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
WORDS: dict[str, Word] = {}


def _number(name: str):
    return lambda draw, kinds: {"k": getattr(draw, name)()}


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
    "scale": Word("{k} * {0}", ("any",), numbers, lanewise(lambda p, a: exact(p["k"]) * a), _number("factor")),
    "offset": Word("{0} + {k}", ("any",), numbers, lanewise(lambda p, a: a + exact(p["k"])), _number("part")),
    "from": Word("{k} - {0}", ("any",), numbers, lanewise(lambda p, a: exact(p["k"]) - a), _number("part")),
    "divide": Word(
        "{0} / {k}", ("any",), lambda kinds, p: Kind("real", kinds[0].width),
        lanewise(lambda p, a: exact(a / exact(p["k"]) if not isinstance(a, int) else _ratio(a, p["k"]))),
        lambda draw, kinds: {"k": draw.one((2, 4, 8, -2, 0.5)) if draw.chance(0.9) else draw.factor()},
    ),
    "there and back": Word("({k} * {0} + {0}) - {k} * {0}", ("any",), numbers, lanewise(lambda p, a: a), _number("whole")),
    "matrix": Word(
        "{matrix} @ {0}", ("any",), lambda kinds, p: Kind(numbers(kinds, p).name, len(p["matrix"])),
        pointwise(_mapped),
        lambda draw, kinds: {"matrix": draw.matrix(1 + draw.below(4), kinds[0].width)},
    ),
    "lanes": Word(
        "{0}[{lanes}]", ("any",), _picked, pointwise(lambda p, a: tuple(a[i] for i in p["lanes"])),
        lambda draw, kinds: {"lanes": [draw.below(kinds[0].width) for _ in range(1 + draw.below(3))]},
    ),
    "lane": Word(
        "{0}[{lane}]", ("any",), lambda kinds, p: _picked(kinds, {"lanes": [0]}), pointwise(lambda p, a: (a[p["lane"]],)),
        lambda draw, kinds: {"lane": draw.below(kinds[0].width)},
    ),
    "sum": Word("{0}.sum()", ("any",), lambda kinds, p: Kind(numbers(kinds, p).name), pointwise(lambda p, a: (sum(a),))),
    "concatenate": Word("concatenate({0}, {1})", ("any", "any"), _concatenated, pointwise(lambda p, a, b: a + b)),
}  # fmt: skip


def _ratio(a: int, k: object):
    from fractions import Fraction

    return Fraction(a) / Fraction(k)


# Products -----------------------------------------------------------------------------------------

WORDS |= {
    "times": Word("{0} * {1}", ("any", "=any"), numbers, lanewise(lambda p, a, b: a * b)),
    "times one": Word("{0} * {1}", ("one", "any"), numbers, lanewise(lambda p, a, b: a * b)),
    "power": Word(
        "{0} ** {n}", ("any",), lambda kinds, p: numbers(kinds, {}), lanewise(lambda p, a: a ** p["n"]),
        lambda draw, kinds: {"n": draw.one((1, 2, 2, 3, 4, 5))},
    ),
    "square": Word("{0}.square()", ("any",), numbers, lanewise(lambda p, a: a * a)),
    "dot": Word(
        "dot({0}, {1})", ("any", "=any"), lambda kinds, p: Kind(numbers(kinds, p).name),
        pointwise(lambda p, a, b: (sum(u * v for u, v in zip(a, b, strict=True)),)),
    ),
}  # fmt: skip


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
    "clip": Word("{0}.clip({lo}, {hi})", ("ints",), numbers, lanewise(lambda p, a: min(max(a, p["lo"]), p["hi"])), _bounds),
    "heaviside": Word("{0}.heaviside({k})", ("ints",), flags, lanewise(lambda p, a: int(a > p["k"])), _number("whole")),
    "one_hot of": Word(
        "{0}.one_hot({n})", ("int",), lambda kinds, p: Kind("symbol", p["n"]),
        pointwise(lambda p, a: tuple(int(a[0] == i) for i in range(p["n"]))),
        lambda draw, kinds: {"n": draw.one((1, 2, 3, 4, 5, 9))},
    ),
    "lookup": Word("{0}.lookup({table})", ("int",), fixed(INT), pointwise(_entry), _table),
    "lookup map": Word(
        "{0}.lookup({entries})", ("int",), fixed(INT), pointwise(lambda p, a: (p["entries"].get(a[0], 0),)),
        lambda draw, kinds: {"entries": {i: draw.whole() for i in range(1 + draw.below(4))}},
    ),
    "lookup symbol": Word(
        "{0}.lookup({table})", ("symbol",), fixed(INT),
        pointwise(lambda p, a: (sum(v * w for v, w in zip(a, p["table"], strict=True)),)),
        lambda draw, kinds: {"table": [draw.whole() for _ in range(kinds[0].width)]},
    ),
    "minimum": Word("minimum({0}, {1})", ("ints", "=ints"), numbers, lanewise(lambda p, a, b: min(a, b))),
    "maximum": Word("maximum({0}, {1})", ("ints", "=ints"), numbers, lanewise(lambda p, a, b: max(a, b))),
    "at most": Word("minimum({0}, {k})", ("ints",), numbers, lanewise(lambda p, a: min(a, p["k"])), _number("whole")),
    "at least": Word("maximum({k}, {0})", ("ints",), numbers, lanewise(lambda p, a: max(a, p["k"])), _number("whole")),
    "decode": Word(
        "decode({0}, {book})", ("any",), lambda kinds, p: Kind("symbol", len(codewords(p["book"]))), pointwise(_decoded),
        lambda draw, kinds: {"book": draw.book(length=min(kinds[0].width, 5))},
    ),
    "argmax": Word("argmax({0})", ("ints",), fixed(INT), pointwise(lambda p, a: (_best(a),))),
    "hardmax": Word(
        "hardmax({0})", ("ints",), lambda kinds, p: Kind("symbol", kinds[0].width),
        pointwise(lambda p, a: tuple(int(i == _best(a)) for i in range(len(a)))),
    ),
    "same": Word("{0} == {1}", ("symbol", "=symbol"), fixed(FLAG), pointwise(lambda p, a, b: (int(a == b and any(a)),))),
    "other": Word("{0} != {1}", ("symbol", "=symbol"), fixed(FLAG), pointwise(lambda p, a, b: (1 - int(a == b and any(a)),))),
}  # fmt: skip

for _sign, _holds in COMPARISONS.items():
    WORDS[_sign] = Word(
        f"{{0}} {_sign} {{1}}", ("numbers", "=numbers"), flags, lanewise(lambda p, a, b, holds=_holds: int(holds(a, b)))
    )
    WORDS[f"{_sign} number"] = Word(
        f"{{0}} {_sign} {{k}}",
        ("numbers",),
        flags,
        lanewise(lambda p, a, holds=_holds: int(holds(a, p["k"]))),
        _number("whole"),
    )


# Logic --------------------------------------------------------------------------------------------


def _both(kinds: Sequence[Kind], params: Params) -> Kind:
    """Some of a one-hot is one-hot."""
    width = max(kind.width for kind in kinds)
    return Kind("symbol" if Kind("symbol", width) in kinds else "flag", width)


def _selected(kinds: Sequence[Kind], params: Params) -> Kind:
    yes, no = kinds[1:]
    return yes if yes == no and yes.name in ("flag", "symbol") else numbers((yes, no), {})


def _chosen(params: Params, when: Row, yes: Row, no: Row) -> Row:
    return tuple(y if flag else n for flag, y, n in zip(spread(when, len(yes)), yes, no, strict=True))


def spread(row: Row, width: int) -> Row:
    return row * width if len(row) == 1 else row


_either = lanewise(lambda p, a, b: int(bool(a or b)))
WORDS |= {
    "and": Word("{0} & {1}", ("flags", "=flags"), _both, lanewise(lambda p, a, b: a * b)),
    "where": Word("{0} & {1}", ("flags", "flag"), _both, lanewise(lambda p, a, b: a * b)),
    "or": Word("{0} | {1}", ("flags", "=flags"), flags, _either),
    "xor": Word("{0} ^ {1}", ("flags", "=flags"), flags, lanewise(lambda p, a, b: int(a != b))),
    "not": Word("~{0}", ("flags",), flags, lanewise(lambda p, a: 1 - a)),
    "any_of": Word("any_of({0}, {1}, {2})", ("flag",) * 3, fixed(FLAG), lanewise(lambda p, a, b, c: int(bool(a or b or c)))),
    "all_of": Word("all_of({0}, {1}, {2})", ("flag",) * 3, fixed(FLAG), lanewise(lambda p, a, b, c: a * b * c)),
    "select": Word("select({0}, {1}, {2})", ("flag", "any", "=1any"), _selected, pointwise(_chosen)),
    "select number": Word(
        "select({0}, {1}, {k})", ("flag", "any"), lambda kinds, p: numbers(kinds[1:], p),
        pointwise(lambda p, when, yes: yes if when[0] else (exact(p["k"]),) * len(yes)), _number("part"),
    ),
    "select else zero": Word(
        "select({0}, {1})", ("flag", "any"), lambda kinds, p: numbers(kinds[1:], p),
        pointwise(lambda p, when, yes: yes if when[0] else (0,) * len(yes)),
    ),
}  # fmt: skip


# The same numbers under another type ----------------------------------------------------------------


def _retyped(draw: Draw, kinds: Sequence[Kind]) -> Params:
    width = kinds[0].width
    options = [f"Bool({width})", f"OneHot({width})", f"Int({draw.one(SMALL_BOUNDS)}, {draw.one((1, 2, 5, None))}, {width})"]
    return {"type": Written(draw.one(options))}


SMALL_BOUNDS = (None, 0, 0, 1, -3)
WORDS["retyped"] = Word(
    "{0}.retyped({type})",
    ("ints",),
    lambda kinds, p: Kind(
        {"B": "flag", "O": "symbol", "I": "int"}[p["type"].code[0]], kinds[0].width
    ),
    lanewise(lambda p, a: a),
    _retyped,
)
