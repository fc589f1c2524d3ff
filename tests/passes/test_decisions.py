"""Comparisons of real numbers that are declared to keep away from 0: flags to the last bit, or refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

import compiler
from compiler import (
    Alphabet,
    Circuit,
    InputLanguage,
    Int,
    Real,
    Tokens,
    compile,
    latch,
    numbers,
    readout_integer,
    select,
)
from compiler.analysis.domains import Domains
from compiler.analysis.least_size import least_size
from compiler.artifact.numeric import numeric_stack
from compiler.errors import CompileError
from compiler.exactness import error_bound
from compiler.language.data import from_data, to_data
from compiler.language.words import concatenate

GAP = 2.0**-6
T, N = numbers(Real(-1, 1, gap=GAP), "t"), numbers(Int(-9, 9), "n")
NEAR = [0.0, *(sign * v for sign in (1, -1) for v in (GAP, np.nextafter(np.float32(GAP), np.float32(1)), 0.3, 1.0))]
PLAIN = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal}


def _values(seed: int = 0) -> np.ndarray:
    """(40, 16, 1): zeros, both ends of the gap and what is next to them, and random numbers outside of it."""
    rng = np.random.default_rng(seed)
    drawn = rng.choice([-1, 1], (40, 16)) * rng.uniform(GAP, 1, (40, 16))
    return np.where(rng.random((40, 16)) < 0.5, rng.choice(NEAR, (40, 16)), np.float32(drawn)).astype(float)[..., None]


@pytest.mark.parametrize("relation", PLAIN)
def test_each_comparison_is_a_flag_to_the_last_bit(relation: str) -> None:
    made = compile(Circuit("flag", T._compare(relation, 0), length=16))
    got = numeric_stack(made).run({T: _values()})
    assert np.array_equal(got, PLAIN[relation](_values(), 0)) and made.error_bound == 0


def test_what_cancels_widens_no_gap() -> None:
    """far + t − far is t, within 1; its parts reach 2^20, more than 65,536 times the gap."""
    far = numbers(Real(-(2.0**20), 2.0**20), "far")
    made = compile(Circuit("flag", (far + T) - far > 0, length=16))
    stack, values = numeric_stack(made), {T: _values(), far: np.random.default_rng(3).uniform(-1e6, 1e6, (40, 16, 1))}
    assert np.array_equal(stack.run(values), _values() > 0) and made.error_bound == 0


def test_what_is_made_of_flags_is_exact() -> None:
    """A flag of a real number chooses, counts and says when to store."""
    over = T > 0
    kept = latch(N, when=over)
    made = compile(Circuit("made", concatenate(select(over, N, -N), over.cumsum(), kept), length=16))
    values, whole = _values(1), np.random.default_rng(2).integers(-9, 10, (40, 16, 1))
    got, flags = numeric_stack(made).run({T: values, N: whole}), values[..., 0] > 0
    last = np.zeros((40, 16))
    for t in range(16):
        last[:, t] = np.where(flags[:, t], whole[:, t, 0], last[:, t - 1] if t else 0)
    expected = [np.where(flags, whole[..., 0], -whole[..., 0]), np.cumsum(flags, axis=1), last]
    assert made.error_bound == 0 and np.array_equal(got, np.stack(expected, axis=-1))


def test_multiples_delays_and_rectifiers_keep_the_gap() -> None:
    domains = Domains(None, 9)
    assert least_size(domains, T) == Fraction(GAP)
    assert least_size(domains, -4 * T.shift(2)) == 4 * Fraction(GAP)
    assert least_size(domains, T.relu() * (N > 0)) == Fraction(GAP)
    assert least_size(domains, N / 8) == Fraction(1, 8)
    for near in (T + N / 8, T + T.shift(1), numbers(Real(-1, 1), "x"), T * T):
        assert least_size(domains, near) == 0


@pytest.mark.parametrize(
    ("compared", "options", "reason"),
    [
        (numbers(Real(-1, 1), "x") > 0, {}, "declare that an input keeps away, as numbers"),
        (T > N / 2, {}, "nothing shows how near to 0 it may come"),
        (numbers(Real(-1, 1, gap=2.0**-30), "x") > 0, {}, "what is compared needs a gap of 1/65536"),
        (T > 0, {"dtype": "bfloat16"}, "nothing shows that bfloat16 is near enough to it for its gap"),
        (T > 0, {"target": "mamba2"}, "lowered for mamba only"),
    ],
)
def test_what_is_not_decided_is_refused(compared, options: dict, reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        compile(Circuit("flag", compared, length=4), **options)


def test_a_decision_whose_error_is_unknown_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_bound, "LEAST_SETTLED", 2.0**50)
    with pytest.raises(CompileError, match="it decides about a real number"):
        compile(Circuit("flag", T > 0, length=4))


def test_multiples_of_a_step_are_compared_without_a_gap() -> None:
    letters = Alphabet.of("a", "b", "c")
    x = Tokens(letters).number({"a": 1, "b": 3, "c": 5}, "x") / 4
    more = x + x.shift(1) > Fraction(5, 4)
    scores = readout_integer(more + more.cumsum(), letters, {"a": 0, "b": 1, "c": 2})
    made = compile(Circuit("quarters", scores, InputLanguage.everything(letters, 3)))
    tokens = np.array(list(np.ndindex(3, 3, 3)))
    values = tokens / 2 + 0.25
    before = np.concatenate([np.zeros((27, 1)), values[:, :-1]], axis=1)
    flags = values + before > 1.25
    count = flags + np.cumsum(flags, axis=1)
    assert np.array_equal(made.interpret(tokens)[..., 1] - made.interpret(tokens)[..., 0], 2 * count - 1)
    with torch.no_grad():
        got = compiler.bare(made)(torch.from_numpy(tokens)).numpy()
    assert np.array_equal(got, made.interpret(tokens))


def test_the_gap_is_saved_and_asked_for(tmp_path) -> None:
    made = compile(Circuit("flag", T > 0, length=4))
    made.save(tmp_path / "flag")
    loaded = compiler.load(tmp_path / "flag")
    assert np.array_equal(loaded.run({"t": np.full((1, 4, 1), -GAP)}), np.zeros((1, 4, 1)))
    with pytest.raises(ValueError, match="0 or at least 0.015625 in size"):
        loaded.run({"t": np.full((1, 4, 1), GAP / 2)})


def test_data_without_a_gap_are_read_as_before() -> None:
    gapped, plain = (Circuit("x", numbers(Real(-1, 1, gap=gap), "x"), length=2) for gap in (GAP, 0.0))
    assert "gap" in str(to_data(gapped)) and "gap" not in str(to_data(plain))
    for circuit in (gapped, plain):
        (stream,) = from_data(to_data(circuit)).streams
        assert stream.type == circuit.streams[0].type
    assert replace(Real(-1, 1), gap=GAP) == gapped.streams[0].type
