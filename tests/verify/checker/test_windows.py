"""What adds up to a function of the last few letters: found where it is one, and never said where it is none."""

from __future__ import annotations

import json

import numpy as np
import pytest

from compiler.language import memory
from compiler.language.circuit import Circuit
from compiler.language.codebook import Codebook, balanced
from compiler.language.data import to_data
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout_one_hot
from compiler.language.source import Tokens
from tests.circuits.memories import K4
from tests.verify.checker.checkpoints import write
from verify.checker.check import check
from verify.checker.values.windows import Letters, ended, exact_add, join, narrow

LETTERS, LAST = 3, 2  # a window of letters at lags 0 … LAST


def _window(rng: np.random.Generator, lags: int) -> np.ndarray:
    return rng.integers(-3, 4, (LETTERS,) * lags).astype(float)


def _differences(now: np.ndarray, before: np.ndarray) -> np.ndarray:
    """f(x_t, …) - f'(x_(t-1), …), with as many axes as both together see."""
    return now.reshape(now.shape + (1,) * (before.ndim + 1 - now.ndim)) - before[None]


def _parts(tables: list[np.ndarray]) -> list[Letters]:
    return [Letters({lag: np.arange(LETTERS) for lag in range(t.ndim)}, t.copy()) for t in tables]


def _made(rng: np.random.Generator) -> list[np.ndarray]:
    """A window that is a difference: far from the start, and at positions 1 … LAST."""
    far, early = _window(rng, LAST), [_window(rng, t) for t in range(1, LAST + 1)]
    early[-1] = far + 2.0  # so that f is one function, less a constant, from there on
    steps = [now - 0.0 if t == 0 else _differences(now, early[t - 1]) for t, now in enumerate(early)]
    return [_differences(far, far), *steps]


@pytest.mark.parametrize("seed", range(20))
def test_differences_add_up_to_a_window(seed):
    steps = _made(np.random.default_rng(seed))
    found = ended(_parts(steps))
    assert found is not None
    for word in np.ndindex(*(LETTERS,) * 5):
        total = 0.0
        for t in range(1, 6):
            table = steps[t] if t <= LAST else steps[0]
            total += table[tuple(word[t - 1 - lag] for lag in range(table.ndim))]
            f = found[t] if t <= LAST else found[0]
            assert f.table[tuple(f.axes[lag][word[t - 1 - lag]] for lag in sorted(f.axes))] == total


@pytest.mark.parametrize("seed", range(20))
def test_one_number_more_and_it_is_none(seed):
    """A window that differs from a difference in one case far from the start adds up without end."""
    rng = np.random.default_rng(seed)
    steps = _made(rng)
    steps[0][tuple(rng.integers(0, LETTERS, LAST + 1))] += 1.0
    assert ended(_parts(steps)) is None


def test_a_start_that_is_no_difference_is_seen():
    """What is left of the last of the first positions must be the same for all letters."""
    steps = _made(np.random.default_rng(0))
    steps[LAST][(0,) * LAST] += 1.0
    assert ended(_parts(steps)) is None


def test_signed_keys_are_not_those_of_another_code(tmp_path):
    """Keys of ±1 on Mamba-2 store sums of differences; one sign changed in the circuit, and it is another circuit."""
    words = np.array(balanced(4).words)

    def circuit(code: np.ndarray) -> Circuit:
        tokens = Tokens(K4)
        key, value = tokens.code("k", Codebook(code)), tokens.one_hot("v")
        read = memory.write(key.shift(1), value).read(key)
        return Circuit("c", readout_one_hot(read, K4, "v"), InputLanguage.everything(K4, 10))

    directory = write(tmp_path / "c", circuit(words), "mamba2")
    assert check(directory).accepted
    for k, lane in ((0, 0), (3, 1)):
        other = words.copy()
        other[k, lane] *= -1
        (directory / "circuit.json").write_text(json.dumps(to_data(circuit(other))))
        verdict = check(directory)
        assert verdict.arithmetic is None and verdict.meaning


@pytest.mark.parametrize("kinds, width", [(2, 1), (256, 1), (257, 2), (70_000, 4)])
def test_labels_take_as_few_bytes_as_they_can(kinds, width):
    labels = np.random.default_rng(0).permutation(kinds)
    held = narrow(labels, kinds)
    assert held.itemsize == width and np.array_equal(held, labels)


def test_a_function_of_many_letters_takes_a_byte_for_each():
    """A proof holds one for each of thousands of keys."""
    letters = np.arange(1000)
    one, other = (Letters({0: narrow(letters % n, n)}, np.arange(n) + 0.0) for n in (16, 7))
    both = join(one, other, exact_add)
    assert both.axes[0].itemsize == 1
    assert np.array_equal(both.table[both.axes[0]], letters % 16 + letters % 7)
