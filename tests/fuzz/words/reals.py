"""Words whose value a model gives within a proved bound, and comparisons of real numbers across a gap."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tests.fuzz.kinds import Draw, Kind, exact
from tests.fuzz.words.word import Column, Params, Row, Word, lanewise

DECAYS = (Fraction(1, 2), Fraction(1, 3), Fraction(9, 10), Fraction(63, 64), Fraction(1, 1000), 0.75)
GAPS = (1, 0.5, 2, Fraction(1, 8), Fraction(1, 3), 3)


def _fading(params: Params, letters: list[str], x: Column) -> Column:
    factor, state, out = Fraction(params["decay"]), (Fraction(0),) * len(x[0]), []
    for row in x:
        state = tuple(factor * s + v for s, v in zip(state, row, strict=True))
        out.append(state)
    return out


def _fading_memory(params: Params, letters: list[str], key: Column, value: Column, query: Column) -> Column:
    """Σ over the past of factor^age · value · <key, query>."""
    factor, out = Fraction(params["decay"]), []
    for t, now in enumerate(query):
        total: Row = (0,) * len(value[0])
        for s in range(t + 1):
            weight = factor ** (t - s) * sum(k * q for k, q in zip(key[s], now, strict=True))
            total = tuple(a + weight * v for a, v in zip(total, value[s], strict=True))
        out.append(total)
    return out


def _width(params: Params) -> Fraction:
    """The largest power of two that is at most the gap."""
    gap, power = Fraction(params["gap"]), Fraction(1)
    while power > gap:
        power /= 2
    while 2 * power <= gap:
        power *= 2
    return power


def _ramp(x: Fraction) -> Fraction:
    return min(max(Fraction(x), Fraction(0)), Fraction(1))


def _chosen(params: Params, t, yes, no):
    width = _width(params)
    return no + _ramp((Fraction(t) + width) / (2 * width)) * (yes - no)


def _decay(draw: Draw, kinds: Sequence[Kind]) -> Params:
    return {"decay": draw.one(DECAYS)}


def _gap(draw: Draw, kinds: Sequence[Kind]) -> Params:
    return {"gap": draw.one(GAPS)}


def _real(kinds: Sequence[Kind], params: Params) -> Kind:
    return Kind("real", max(kind.width for kind in kinds))


def _real_values(kinds: Sequence[Kind], params: Params) -> Kind:
    return Kind("real", kinds[1].width)


WORDS = {
    "fading_sum": Word("fading_sum({0}, {decay})", ("any",), _real, _fading, _decay),
    "fading memory": Word(
        "memory.outer_sum({1}, write={0}, read={2}, decay={decay})",
        ("any", "any", "=any"),
        _real_values,
        _fading_memory,
        _decay,
    ),
    "exceeds": Word(
        "exceeds({0}, {1}, {gap})",
        ("any", "=any"),
        _real,
        lanewise(lambda p, a, b: exact(_ramp((Fraction(a) - b) / _width(p)))),
        _gap,
    ),
    "differs": Word(
        "differs({0}, {1}, {gap})",
        ("any", "=any"),
        _real,
        lanewise(lambda p, a, b: exact(_ramp(abs(Fraction(a) - b) / _width(p)))),
        _gap,
    ),
    "choose": Word("choose({0}, {1}, {2}, {gap})", ("any", "=any", "=any"), _real, lanewise(_chosen), _gap),
}
APPROXIMATE = tuple(WORDS)
"""What a model need not give exactly, but within `Compiled.error_bound`."""
