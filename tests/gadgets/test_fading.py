"""States that fade alone: against the recurrence in double precision, within the proved bound, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from compiler.artifact.numeric import numeric_stack
from compiler.artifact.package import bare
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.exactness.compare import Miscompiled
from compiler.ir import decay as decays
from compiler.language import memory
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import numbers
from compiler.language.types import Real
from compiler.language.words import fading_sum
from tests.gadgets.harness import LETTERS, SIGNED, compiled, counted, one_hot, signed


def _faded(word: np.ndarray, decay: Fraction) -> np.ndarray:
    values = np.array([SIGNED[name] for name in LETTERS.tokens], dtype=float)[word]
    out, state = np.empty_like(values), np.zeros(len(values))
    for t in range(values.shape[1]):
        state = float(decay) * state + values[:, t]
        out[:, t] = state
    return out[..., None]


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
@pytest.mark.parametrize("decay", [Fraction(1, 1000), Fraction(1, 2), Fraction(9, 10), Fraction(63, 64)])
def test_within_the_bound_on_the_module(target: str, decay: Fraction) -> None:
    made = compiled(fading_sum(signed, decay), target)
    ids = np.random.default_rng(0).integers(0, 4, (16, 64))
    with torch.no_grad():
        error = np.abs(bare(made)(torch.from_numpy(ids)).double().numpy() - _faded(ids, decay)).max()
    assert 0 < error <= made.error_bound


def test_the_meaning_is_exact() -> None:
    made = compiled(fading_sum(signed, Fraction(1, 3)))
    ids = np.array([[LETTERS.tokens.index(x) for x in "adba"]])
    assert made.interpret(ids)[0, :, 0].tolist() == [3, 8, 2 / 3, 29 / 9]


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_a_memory_that_fades_recalls_by_key(target: str) -> None:
    faint = memory.outer_sum(counted, one_hot, one_hot, decay=Fraction(1, 2))
    made = compiled(faint, target)
    ids = np.random.default_rng(1).integers(0, 4, (8, 24))
    values = np.array([1, 2, 0, 5], dtype=float)[ids]
    lag = np.arange(24)[:, None] - np.arange(24)
    same = (ids[:, :, None] == ids[:, None, :]) & (lag >= 0)
    expected = (np.where(same, 0.5 ** np.maximum(lag, 0), 0) * values[:, None, :]).sum(-1)
    with torch.no_grad():
        error = np.abs(bare(made)(torch.from_numpy(ids)).double().numpy()[..., 0] - expected).max()
    assert error <= made.error_bound


def test_a_decay_that_is_another_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison at the end of a compilation sees a wrong A."""
    monkeypatch.setattr("compiler.gadgets.fading.fade_by", lambda factor: decays.fade_by(factor * Fraction(1001, 1000)))
    with pytest.raises(Miscompiled):
        compiled(fading_sum(signed, Fraction(1, 2)))


@pytest.mark.parametrize("target", ["s4d", "mamba-delta-t"])
def test_other_targets_refuse(target: str) -> None:
    with pytest.raises(CompileError, match="on mamba and mamba2 only"):
        compiled(fading_sum(signed, Fraction(1, 2)), target)


@pytest.mark.parametrize(
    ("decay", "reason"),
    [
        (1, "use a state without decay"),
        (0, "between 0 and 1"),
        (Fraction(3, 2), "between 0 and 1"),
        (1 - 2.0**-30, "2\\^−18"),
    ],
)
def test_a_factor_that_fades_nothing_is_refused(decay: object, reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        compiled(fading_sum(signed, decay))


def test_other_dtypes_are_refused() -> None:
    circuit = Circuit("alone", fading_sum(signed, Fraction(1, 2)), InputLanguage.everything(LETTERS, 8))
    with pytest.raises(CompileError, match="float32 only"):
        compile(circuit, "mamba", "bfloat16")


def test_a_real_state_on_mamba2_is_refused_where_a_block_would_carry_it() -> None:
    with pytest.raises(CompileError, match="for mamba only"):
        compiled(fading_sum(signed, Fraction(1, 2)).shift(1), "mamba2")
    x = numbers(Real(-1, 1), "x")
    faded = compile(Circuit("real", fading_sum(x, Fraction(1, 2)), length=8))
    assert numeric_stack(faded).run({x: np.full((1, 8, 1), 0.5)})[0, -1, 0] == pytest.approx(1 - 2.0**-8)
