"""What nobody reads is not computed: a number of joined streams needs only the streams that it is made of.

Each word is applied to streams side by side and read in one place, so that of its operands some stand in no block.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest

from compiler.driver import compile
from compiler.errors import CompileError
from compiler.language import memory
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import position
from compiler.language.stream import Stream
from compiler.language.types import OneHot
from compiler.language.words import (
    concatenate,
    fading_sum,
    latch,
    latch_bank,
    lti,
    maximum,
    minimum,
    present,
    running_max,
    select,
    sum_where,
)
from compiler.passes.schedule import Schedule
from tests.gadgets import harness
from tests.gadgets.harness import agrees, compiled, counted, is_a, is_b, one_hot

Rows = list[tuple[int, ...]]
LETTERS = "abcd"


def _counts(word: Sequence[str], letters: str) -> Rows:
    """How often each letter stood so far."""
    return [tuple(word[: t + 1].count(letter) for letter in letters) for t in range(len(word))]


def _seen(word: Sequence[str], letters: str) -> Rows:
    return [tuple(int(n > 0) for n in row) for row in _counts(word, letters)]


def _held(word: Sequence[str], values: Rows, flags: Rows) -> Rows:
    """For each flag, then each value: the value when the flag last held."""
    last = [[0] * len(values[0]) for _ in flags[0]]
    out = []
    for value, row in zip(values, flags, strict=True):
        last = [list(value) if flag else kept for flag, kept in zip(row, last, strict=True)]
        out.append(tuple(v for kept in last for v in kept))
    return out


def _summed(values: Rows) -> Rows:
    return list(accumulate(values, lambda a, b: tuple(x + y for x, y in zip(a, b, strict=True))))


def _where(flag: str, word: Sequence[str], values: Rows) -> Rows:
    return [value if letter == flag else (0,) * len(value) for letter, value in zip(word, values, strict=True)]


def _both(word: Sequence[str], letters: str, rule) -> Rows:
    """A rule of the counts and of the flags, number by number."""
    counts, seen = _counts(word, letters), _seen(word, letters)
    return [tuple(rule(n, f) for n, f in zip(*rows, strict=True)) for rows in zip(counts, seen, strict=True)]


def _read(word: Sequence[str], values: Rows) -> Rows:
    """What was stored at b under the letter of now: there is only the letter b."""
    stored = _summed(_where("b", word, values))
    return [row if letter == "b" else (0,) * len(row) for letter, row in zip(word, stored, strict=True)]


counts = concatenate(is_a.cumsum(), is_b.cumsum())
seen = concatenate(present(is_a), present(is_b))
WORDS = {
    "cumsum": (counts.cumsum(), lambda w: _summed(_counts(w, "ab"))),
    "relu": ((counts - 2).relu(), lambda w: _both(w, "ab", lambda n, f: max(0, n - 2))),
    "product": (counts * seen.cumsum(), lambda w: [
        tuple(n * m for n, m in zip(*rows, strict=True))
        for rows in zip(_counts(w, "ab"), _summed(_seen(w, "ab")), strict=True)
    ]),
    "minimum": (minimum(counts, seen), lambda w: _both(w, "ab", min)),
    "maximum": (maximum(3 * seen, counts), lambda w: _both(w, "ab", lambda n, f: max(n, 3 * f))),
    "above": (counts > 2, lambda w: _both(w, "ab", lambda n, f: int(n > 2))),
    "select": (select(is_a, counts, seen), lambda w: [
        n if x == "a" else f for x, n, f in zip(w, _counts(w, "ab"), _seen(w, "ab"), strict=True)
    ]),
    "latched": (latch(counts, is_a), lambda w: _held(w, _counts(w, "ab"), [(int(x == "a"),) for x in w])),
    "flags of a bank": (latch(is_a, seen), lambda w: _held(w, [(int(x == "a"),) for x in w], _seen(w, "ab"))),
    "bank": (latch_bank(seen, one_hot), lambda w: _held(
        w, _seen(w, "ab"), [tuple(int(x == y) for y in LETTERS) for x in w]
    )),
    "sum where": (sum_where(counts, is_b), lambda w: _summed(_where("b", w, _counts(w, "ab")))),
    "memory": (
        memory.write(one_hot, counts, when=is_b, policy="sum").read(one_hot), lambda w: _read(w, _counts(w, "ab"))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WORDS)
def test_one_number_of_joined_streams(name):
    stream, oracle = WORDS[name]
    for lane in range(stream.width):
        agrees(stream[lane], lambda word, lane=lane: [[row[lane]] for row in oracle(word)], ("mamba", "mamba2"))


def _computed(plan: Schedule) -> set[Stream]:
    return {stream for block in plan.blocks for stream in block}


def test_the_other_streams_are_not_computed():
    alone, joined = compiled(is_a.cumsum().cumsum()), compiled(counts.cumsum()[0])
    assert len(_computed(joined.schedule)) == len(_computed(alone.schedule)) == 2
    assert joined.lanes.count == alone.lanes.count


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_states_in_conflict_are_placed_though_an_operand_is_not(target):
    """With states of two column groups, places are also sought by urgency: what is not computed delays nobody."""
    key = select(present(is_a), one_hot, one_hot)
    value = concatenate(is_a.cumsum(), present(is_b))
    read = memory.write(key, value, when=is_a, policy="sum").read(one_hot)
    alone = memory.write(key, is_a.cumsum(), when=is_a, policy="sum").read(one_hot)
    assert len(compiled(read[0], target).schedule.blocks) == len(compiled(alone, target).schedule.blocks)


def test_what_nobody_reads_is_no_reason_to_refuse():
    """Mamba-Δᵀ carries no real numbers, and a real number may be as near to the bound as it likes."""
    count = is_a.cumsum()
    mixed = concatenate(fading_sum(count, Fraction(1, 3)), count)
    for stream, target in ((mixed > 4, "mamba2"), (mixed.cumsum(), "mamba-delta-t")):
        with pytest.raises(CompileError):
            compiled(stream, target)
    agrees((mixed > 4)[1], lambda word: [[int(n > 4)] for (n,) in _counts(word, "a")], ("mamba", "mamba2"))
    agrees(mixed.cumsum()[1], lambda word: _summed(_counts(word, "a")), ("mamba", "mamba-delta-t"))


def _best(word: Sequence[str]) -> Rows:
    """The largest count of a so far at a b."""
    found = [count if letter == "b" else (0,) for letter, count in zip(word, _counts(word, "a"), strict=True)]
    return [max(found[: t + 1]) for t in range(len(word))]


beside = concatenate(is_a.cumsum(), 3**20 * counted.cumsum())
BESIDE = {
    "relu": ((beside - 2).relu(), lambda w: [(max(0, n - 2),) for (n,) in _counts(w, "a")]),
    "clip": (beside.clip(0, 3), lambda w: [(min(n, 3),) for (n,) in _counts(w, "a")]),
    "minimum": (minimum(beside, 4), lambda w: [(min(n, 4),) for (n,) in _counts(w, "a")]),
    "division": (beside // 2, lambda w: [(n // 2,) for (n,) in _counts(w, "a")]),
    "remainder": (beside % 3, lambda w: [(n % 3,) for (n,) in _counts(w, "a")]),
    "above": (beside > 2, lambda w: [(int(n > 2),) for (n,) in _counts(w, "a")]),
    "choice": (select(is_b, beside), lambda w: _where("b", w, _counts(w, "a"))),
    "product": (beside * is_b, lambda w: _where("b", w, _counts(w, "a"))),
    "late": (beside.shift(2), lambda w: [(0,), (0,), *_counts(w, "a")][: len(w)]),
    "filter": (lti(beside, [1, 1]), lambda w: [
        (n + m,) for (n,), (m,) in zip(_counts(w, "a"), [(0,), *_counts(w, "a")], strict=False)
    ]),
    "largest": (running_max(beside, is_b), _best),
    "sum": (sum_where(beside, is_b), lambda w: _summed(_where("b", w, _counts(w, "a")))),
    "latch": (latch(beside, is_b), lambda w: _held(w, _counts(w, "a"), [(int(x == "b"),) for x in w])),
    "memory": (memory.write(one_hot, beside, when=is_b).read(one_hot), lambda w: _read(w, _counts(w, "a"))),
}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE)
def test_a_lane_that_no_format_holds_is_not_computed_beside_another(name):
    stream, oracle = BESIDE[name]
    with pytest.raises(CompileError):
        compiled(stream)
    agrees(stream[0], oracle, ("mamba", "mamba2"))


def test_a_lane_under_each_of_several_flags():
    """Read are the second value under the first flag and the first under the second: so both values are kept."""
    stream = latch(concatenate(counts, beside[1]), concatenate(is_a, is_b))
    held = lambda w: _held(w, _counts(w, "ab"), [(int(x == "a"), int(x == "b")) for x in w])
    agrees(stream[[1, 3]], lambda word: [(row[1], row[2]) for row in held(word)], ("mamba", "mamba2"))


def test_of_a_one_hot_only_the_values_that_are_read():
    """What stands between them keeps its place, and what is one-hot stays so."""
    place = position().one_hot(2**15)
    for picked, ahead in ((place[2], 0), (place[2:4].retyped(OneHot(2))[1], 1)):
        circuit = Circuit("picked", picked, InputLanguage.everything(harness.LETTERS, 2**15))
        found = compile(circuit).interpret(np.zeros((1, 6), dtype=np.int64))[0, :, 0]
        assert found.tolist() == [float(p == 2 + ahead) for p in range(1, 7)]
