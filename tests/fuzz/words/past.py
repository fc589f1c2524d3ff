"""Words whose value depends on what came before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from tests.fuzz.kinds import FLAG, INT, Draw, Kind, exact
from tests.fuzz.words.word import Column, Params, Row, Word, fixed, like, numbers


def _plus(a: Row, b: Row) -> Row:
    return tuple(u + v for u, v in zip(a, b, strict=True))


def _times(k: object, a: Row) -> Row:
    return tuple(k * v for v in a)


def _zeros(column: Column) -> Row:
    return (0,) * len(column[0])


def _past(column: Column, k: int) -> Column:
    """The column k positions later, zeros before."""
    return ([_zeros(column)] * min(k, len(column)) + column)[: len(column)]


def _running(column: Column) -> Column:
    return list(accumulate(column, _plus))


# Sums -----------------------------------------------------------------------------------------------


def _filtered(params: Params, letters: list[str], x: Column) -> Column:
    total = [_zeros(x)] * len(x)
    for k, tap in enumerate(params["kernel"]):
        if tap:
            total = [_plus(a, _times(exact(tap), b)) for a, b in zip(total, _past(x, k), strict=True)]
    return total


def _summed_where(params: Params, letters: list[str], value: Column, when: Column) -> Column:
    return _running([sum((_times(flag, v) for flag in flags), ()) for v, flags in zip(value, when, strict=True)])


def _scaled(params: Params, letters: list[str], value: Column, weight: Column, gate: Column) -> Column:
    products = [tuple(u * v for u, v in zip(a, b, strict=True)) for a, b in zip(value, weight, strict=True)]
    return [tuple(u * v for u, v in zip(a, b, strict=True)) for a, b in zip(gate, _running(products), strict=True)]


# What is kept -----------------------------------------------------------------------------------------


def _kept(value: Column, holds: Sequence[bool], first: bool) -> Column:
    """The value where it last (first) held; zeros before."""
    held, found, out = _zeros(value), False, []
    for row, now in zip(value, holds, strict=True):
        if now and not (first and found):
            held, found = row, True
        out.append(held)
    return out


def _latched(first: bool) -> Callable[..., Column]:
    return lambda params, letters, value, when: _kept(value, [flag[0] == 1 for flag in when], first)


def _banked(params: Params, letters: list[str], value: Column, index: Column, when: Column | None = None) -> Column:
    open_ = [1] * len(value) if when is None else [flag[0] for flag in when]
    latches = [
        _kept(value, [row[k] == 1 and now == 1 for row, now in zip(index, open_, strict=True)], False)
        for k in range(len(index[0]))
    ]
    return [sum(rows, ()) for rows in zip(*latches, strict=True)]


def _bank(kinds: Sequence[Kind], params: Params) -> Kind:
    value, index = kinds[:2]
    name = "flag" if value.name in ("flag",) else "int" if value.whole else "real"
    return Kind(name, value.width * index.width)


def _sums(kinds: Sequence[Kind], params: Params) -> Kind:
    return Kind("int" if kinds[0].whole else "real", kinds[0].width * kinds[1].width)


def _counted(params: Params, letters: list[str], when: Column, reset: Column) -> Column:
    n, out = 0, []
    for (now,), (again,) in zip(when, reset, strict=True):
        n = 0 if again else n + now
        out.append((n,))
    return out


def _largest(params: Params, letters: list[str], value: Column, when: Column) -> Column:
    best: list = [None] * len(value[0])
    out = []
    for row, flags in zip(value, when, strict=True):
        for i, v in enumerate(row):
            if flags[i % len(flags)] and (best[i] is None or v > best[i]):
                best[i] = v
        out.append(tuple(0 if b is None else b for b in best))
    return out


# Keyed memories -----------------------------------------------------------------------------------------


def _sum_memory(
    params: Params, letters: list[str], key: Column, value: Column, query: Column, when: Column | None = None
):
    """Σ over what was written of value · <key, query>."""
    state = [_zeros(value)] * len(key[0])
    out = []
    for t, (k, v, q) in enumerate(zip(key, value, query, strict=True)):
        if when is None or when[t][0]:
            state = [_plus(row, _times(weight, v)) for row, weight in zip(state, k, strict=True)]
        answer = _zeros(value)
        for row, weight in zip(state, q, strict=True):
            answer = _plus(answer, _times(weight, row))
        out.append(answer)
    return out


def _keyed_memory(first: bool) -> Callable[..., Column]:
    def means(
        params: Params, letters: list[str], key: Column, value: Column, query: Column, when: Column | None = None
    ):
        held: dict[int, Row] = {}
        out = []
        for t, (k, v, q) in enumerate(zip(key, value, query, strict=True)):
            if 1 in k and (when is None or when[t][0]):
                place = k.index(1)
                held[place] = held.get(place, v) if first else v
            out.append(held.get(q.index(1), _zeros(value)) if 1 in q else _zeros(value))
        return out

    return means


def _sum_read(kinds: Sequence[Kind], params: Params) -> Kind:
    key, value, query = kinds[:3]
    if value.name == "code" and key.whole and query.whole:
        return value
    return Kind("int" if key.whole and value.whole and query.whole else "real", value.width)


def _read_by_place(kinds: Sequence[Kind], params: Params) -> Kind:
    value = kinds[1]
    return value if value.name == "code" else Kind("int" if value.whole else "real", value.width)


def _second(kinds: Sequence[Kind], params: Params) -> Kind:
    return kinds[1]


def _by_place(first: bool) -> Callable[..., Column]:
    """A memory whose slots are the numbers 0 … n − 1."""

    def means(params: Params, letters: list[str], place: Column, value: Column, when: Column, asked: Column):
        held: dict[object, Row] = {}
        out = []
        for (p,), v, (flag,), (q,) in zip(place, value, when, asked, strict=True):
            if flag and 0 <= p < params["n"]:
                held[p] = held.get(p, v) if first else _plus(held.get(p, _zeros(value)), v)
            out.append(held.get(q, _zeros(value)) if q < params["n"] else _zeros(value))
        return out

    return means


def _taps(draw: Draw, kinds: Sequence[Kind]) -> Params:
    return {"kernel": [draw.part() for _ in range(draw.one((1, 2, 3, 4, 5, 6, 9)))]}


WORDS = {
    "shift": Word(
        "{0}.shift({k})",
        ("any",),
        like,
        lambda p, letters, x: _past(x, p["k"]),
        lambda draw, kinds: {
            "k": draw.one((0, 1, 1, 1, 2, 3, 4, 5, 7, 11, 30)) if draw.chance(0.95) else 10 ** draw.below(6)
        },
    ),
    "cumsum": Word("{0}.cumsum()", ("any",), numbers, lambda p, letters, x: _running(x)),
    "lti": Word("lti({0}, {kernel})", ("any",), numbers, _filtered, _taps),
    "sum_where": Word("sum_where({0}, {1})", ("any", "flags"), _sums, _summed_where),
    "scaled_sum": Word("scaled_sum({0}, {1}, {2})", ("any", "=any", "=any"), numbers, _scaled),
    "latch": Word("latch({0}, {1})", ("any", "flag"), like, _latched(False)),
    "latch first": Word("latch({0}, {1}, first=True)", ("any", "flag"), like, _latched(True)),
    "latch_bank": Word("latch_bank({0}, {1})", ("any", "symbol"), _bank, _banked),
    "latch_bank when": Word("latch_bank({0}, {1}, {2})", ("any", "symbol", "flag"), _bank, _banked),
    "present": Word(
        "present({0})", ("flag",), fixed(FLAG), lambda p, letters, when: [(int(v),) for (v,) in accumulate(when, max)]
    ),
    "count": Word("count({0}, reset={1})", ("flag", "flag"), fixed(INT), _counted),
    "running_max": Word("running_max({0}, {1})", ("ints", "flag"), numbers, _largest),
    "memory": Word("memory.write(key={0}, value={1}).read({2})", ("any", "any", "=any"), _sum_read, _sum_memory),
    "memory when": Word(
        "memory.write(key={0}, value={1}, when={3}).read({2})", ("any", "any", "=any", "flag"), _sum_read, _sum_memory
    ),
    "memory by symbol": Word(
        "memory.write(key={0}, value={1}, policy='sum').read({2})", ("symbol", "any", "=symbol"), _sum_read, _sum_memory
    ),
    "outer_sum": Word("memory.outer_sum({1}, write={0}, read={2})", ("any", "any", "=any"), _sum_read, _sum_memory),
}
for _policy in ("sum", "first"):
    WORDS[f"memory by place {_policy}"] = Word(
        f"memory.write({{0}}.one_hot({{n}}), {{1}}, {{2}}, policy={_policy!r}).read({{3}}.one_hot({{n}}))",
        ("int", "any", "flag", "int"),
        _read_by_place if _policy == "sum" else _second,
        _by_place(_policy == "first"),
        lambda draw, kinds: {"n": draw.one((1, 2, 3, 4, 5, 9))},
    )
for _policy in ("first", "last", "once"):
    _means = _keyed_memory(_policy != "last")
    WORDS[f"memory {_policy}"] = Word(
        f"memory.write(key={{0}}, value={{1}}, policy={_policy!r}).read({{2}})",
        ("symbol", "any", "=symbol"),
        _second,
        _means,
    )
    WORDS[f"memory {_policy} when"] = Word(
        f"memory.write(key={{0}}, value={{1}}, when={{3}}, policy={_policy!r}).read({{2}})",
        ("symbol", "any", "=symbol", "flag"),
        _second,
        _means,
    )
