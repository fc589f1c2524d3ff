"""Words of logic at the same position."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.kinds import FLAG, Kind, exact
from tests.fuzz.words.word import Params, Row, Word, fixed, flags, lanewise, number, numbers, pointwise, spread


def _both(kinds: Sequence[Kind], params: Params) -> Kind:
    """Some of a one-hot is one-hot."""
    width = max(kind.width for kind in kinds)
    return Kind("symbol" if Kind("symbol", width) in kinds else "flag", width)


def _selected(kinds: Sequence[Kind], params: Params) -> Kind:
    yes, no = kinds[1:]
    return yes if yes == no and yes.name in ("flag", "symbol") else numbers((yes, no), {})


def _chosen(params: Params, when: Row, yes: Row, no: Row) -> Row:
    return tuple(y if flag else n for flag, y, n in zip(spread(when, len(yes)), yes, no, strict=True))


_either = lanewise(lambda p, a, b: int(bool(a or b)))
WORDS = {
    "and": Word("{0} & {1}", ("flags", "=flags"), _both, lanewise(lambda p, a, b: a * b)),
    "where": Word("{0} & {1}", ("flags", "flag"), _both, lanewise(lambda p, a, b: a * b)),
    "or": Word("{0} | {1}", ("flags", "=flags"), flags, _either),
    "xor": Word("{0} ^ {1}", ("flags", "=flags"), flags, lanewise(lambda p, a, b: int(a != b))),
    "not": Word("~{0}", ("flags",), flags, lanewise(lambda p, a: 1 - a)),
    "any_of": Word(
        "any_of({0}, {1}, {2})", ("flag",) * 3, fixed(FLAG), lanewise(lambda p, a, b, c: int(bool(a or b or c)))
    ),
    "all_of": Word("all_of({0}, {1}, {2})", ("flag",) * 3, fixed(FLAG), lanewise(lambda p, a, b, c: a * b * c)),
    "select": Word("select({0}, {1}, {2})", ("flag", "any", "=1any"), _selected, pointwise(_chosen)),
    "select number": Word(
        "select({0}, {1}, {k})",
        ("flag", "any"),
        lambda kinds, p: numbers(kinds[1:], p),
        pointwise(lambda p, when, yes: yes if when[0] else (exact(p["k"]),) * len(yes)),
        number("part"),
    ),
    "select else zero": Word(
        "select({0}, {1})",
        ("flag", "any"),
        lambda kinds, p: numbers(kinds[1:], p),
        pointwise(lambda p, when, yes: yes if when[0] else (0,) * len(yes)),
    ),
}
