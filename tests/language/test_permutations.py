"""`permute` and the deletion of keys against plain Python, and what they refuse."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from compiler.driver import compile
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.language import memory
from compiler.language.circuit import Circuit
from compiler.language.data.circuits import from_data, to_data
from compiler.language.source import numbers
from compiler.language.stream import Stream
from compiler.language.types import Bool, Int, OneHot
from compiler.language.words import concatenate, permute
from tests.circuits import is_a, over_abc, token

SWAPS, RESET = numbers(OneHot(3), "swaps"), numbers(OneHot(4), "reset")
STAY, NONE = 3, 4


def _hot(choices: list[int], n: int) -> np.ndarray:
    return np.eye(n + 1, dtype=np.int64)[np.array(choices)][..., :n]


def _run(stream: Stream, swaps: np.ndarray, reset: np.ndarray | None = None) -> np.ndarray:
    inputs = {SWAPS: _hot(swaps, 3)} | ({} if reset is None else {RESET: _hot(reset, 4)})
    return interpret(Circuit("", stream), inputs=inputs)[stream]


def _walk(start: int | None, pairs: list[tuple[int, int]], swaps: np.ndarray, reset: np.ndarray) -> list[int]:
    place, seen = start, []
    for swap, put in zip(swaps, reset, strict=True):
        if put != NONE:
            place = put
        elif swap != STAY and place in pairs[swap]:
            i, j = pairs[swap]
            place = j if place == i else i
        seen.append(NONE if place is None else place)
    return seen


@pytest.mark.parametrize("pairs", [None, [(0, 1), (0, 2), (0, 3)], [(3, 1), (2, 1), (0, 3)]])
@pytest.mark.parametrize("start", [0, 2, None])
def test_the_state_walks_as_places_are_swapped(pairs: list | None, start: int | None):
    every = np.array(list(product(range(4), repeat=4)))
    rng = np.random.default_rng(0)
    resets = np.where(rng.random(every.shape) < 0.3, rng.integers(0, 4, every.shape), NONE)
    found = _run(permute(start, SWAPS, pairs, RESET), every, resets)
    told = [(0, 1), (1, 2), (2, 3)] if pairs is None else pairs
    expected = [_walk(start, told, *rows) for rows in zip(every, resets, strict=True)]
    assert np.array_equal(found, _hot(expected, 4))


def test_neighbours_generate_all_permutations():
    """Sorting a word by swaps of neighbours brings the state where the permutation takes it."""
    swaps = np.array([[0, 1, 2, 0, 1, 0]])  # the longest permutation: i ↦ 3 − i
    for start in range(4):
        assert _run(permute(start, SWAPS), swaps)[0, -1].tolist() == _hot([3 - start], 4)[0].tolist()


def test_without_a_start_it_is_absent_until_a_reset():
    state = permute(None, SWAPS, reset=RESET)
    assert state.type == OneHot(4)
    assert _run(state, [[0, 1, STAY]], [[NONE, 2, NONE]])[0].tolist() == [[0] * 4, [0, 0, 1, 0], [0, 0, 1, 0]]


def test_it_is_written_as_data_and_read_back():
    circuit = over_abc("toy", permute(1, token, [(0, 1), (0, 2), (1, 3)]))
    again = from_data(to_data(circuit))
    assert again.output.operation == circuit.output.operation


def test_what_is_asked_wrongly_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="neither a start nor a reset"):
        permute(None, SWAPS)
    with pytest.raises(TypeError, match="start of permute is 'a'"):
        permute("a", SWAPS)
    with pytest.raises(TypeError, match="a pair of permute is 1"):
        permute(0, SWAPS, [1, 2])
    wrong = {
        "swaps have 3 lanes for 2 pairs": permute(0, token, [(0, 1), (1, 2)]),
        r"pair \(1, 1\) must name two": permute(0, token, [(0, 1), (1, 1), (1, 2)]),
        "start is 9, and it must be a place of 0 … 3": permute(9, token, reset=concatenate(token, is_a)),
        "its reset has 3 lanes for 4 places": Stream(permute(0, SWAPS).operation, (token, token)),
    }
    for match, stream in wrong.items():
        with pytest.raises(CompileError, match=match):
            compile(over_abc("toy", stream), "mamba")


def test_swaps_that_may_meet_are_refused():
    both = concatenate(is_a, is_a | token[1]).retyped(OneHot(2))
    with pytest.raises(CompileError, match="one-hot|OneHot"):
        compile(over_abc("toy", permute(0, both)), "mamba")


@pytest.mark.parametrize("target", ["mamba", "mamba2", "s4d", "mamba-delta-t", "gated-deltanet-qwen"])
def test_a_state_without_reflections_refuses_it_with_the_reason(target: str):
    with pytest.raises(CompileError, match="factors of at least 0, which cannot swap two places for ever"):
        compile(over_abc("toy", permute(0, token)), target)


KEY, VALUE, WRITE, DELETE = (
    numbers(t, n) for t, n in ((OneHot(3), "k"), (Int(-3, 3), "v"), (Bool(), "w"), (Bool(), "d"))
)


@pytest.mark.parametrize("conditional", [True, False])
def test_a_deleted_key_reads_as_zeros(conditional: bool):
    rng = np.random.default_rng(1)
    keys, values = rng.integers(0, 4, (60, 9)), rng.integers(-3, 4, (60, 9, 1))
    writes, deletions = (rng.integers(0, 2, (60, 9, 1)) for _ in range(2))
    held = memory.write(KEY, VALUE, WRITE if conditional else None, "last").delete(DELETE).read(KEY)
    inputs = {KEY: _hot(keys, 3), VALUE: values, WRITE: writes, DELETE: deletions}
    found = interpret(Circuit("", held), inputs={s: inputs[s] for s in Circuit("", held).streams if s in inputs})[held]
    for b in range(60):
        store: dict[int, int] = {}
        for t in range(9):
            if writes[b, t, 0] or not conditional:
                store[keys[b, t]] = values[b, t, 0]
            if deletions[b, t, 0]:
                store.pop(keys[b, t], None)
            assert found[b, t, 0] == (store.get(keys[b, t], 0) if keys[b, t] < 3 else 0)


def test_only_what_keeps_the_last_write_deletes():
    with pytest.raises(ValueError, match="policy of the memory is 'sum'"):
        memory.write(KEY, VALUE).delete(DELETE)
    assert memory.write(KEY, KEY, policy="last").delete(DELETE).read(KEY).type == OneHot(3)
