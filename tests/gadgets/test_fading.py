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
from compiler.language.source import Tokens, numbers
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
    ("decay", "said"),
    [
        (1 - Fraction(1, 2**40), r"its decay is 1 − 9\.09494702e-13, and float32 fades by 2\^−64 to 1 − 2\^−18"),
        (1 - Fraction(1, 2**1100), r"its decay is 1 − about 2\^-1100"),
        (Fraction(1, 2**70), r"its decay is 8\.47032947e-22"),
        (Fraction(1, 2**1100), r"its decay is about 2\^-1100"),
    ],
)
def test_a_factor_beyond_float32_is_told_as_it_is(decay: Fraction, said: str) -> None:
    """1 − 2^-40 was told as 1."""
    with pytest.raises(CompileError, match=said):
        compiled(fading_sum(signed, decay))


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
        compiled(fading_sum(signed, Fraction(1, 2)).relu(), "mamba2")
    x = numbers(Real(-1, 1), "x")
    faded = compile(Circuit("real", fading_sum(x, Fraction(1, 2)), length=8))
    assert numeric_stack(faded).run({x: np.full((1, 8, 1), 0.5)})[0, -1, 0] == pytest.approx(1 - 2.0**-8)


def _selected(word: np.ndarray, decay: Fraction, levels: dict[str, int]) -> np.ndarray:
    """The recurrence with Δ = 0, 1, 3, 5, … in double precision."""
    values = np.array([SIGNED[name] for name in LETTERS.tokens], dtype=float)[word]
    steps = np.maximum(2 * np.array([levels.get(name, 0) for name in LETTERS.tokens])[word] - 1, 0)
    out, state = np.empty_like(values), np.zeros(len(values))
    for t in range(values.shape[1]):
        state = float(decay) ** steps[:, t] * state + steps[:, t] * values[:, t]
        out[:, t] = state
    return out[..., None]


@pytest.mark.parametrize("levels", [{"a": 1, "b": 1}, {"a": 1, "b": 2, "c": 3}, {"d": 4}, {"a": -2, "c": 1}])
@pytest.mark.parametrize("decay", [Fraction(1, 1000), Fraction(9, 10), Fraction(255, 256)])
def test_a_factor_that_depends_on_the_token(decay: Fraction, levels: dict[str, int]) -> None:
    level = Tokens(LETTERS).number(levels, "level")
    made = compiled(fading_sum(signed, decay, level=level))
    ids = np.random.default_rng(0).integers(0, 4, (16, 64))
    with torch.no_grad():
        error = np.abs(bare(made)(torch.from_numpy(ids)).double().numpy() - _selected(ids, decay, levels)).max()
    assert error <= made.error_bound < 1


def test_level_0_leaves_the_state_bit_for_bit() -> None:
    made = compiled(fading_sum(signed, Fraction(9, 10), level=Tokens(LETTERS).is_in(["a"])))
    ids = torch.tensor([[LETTERS.tokens.index(x) for x in "aa" + "bcd" * 20]])
    with torch.no_grad():
        got = bare(made)(ids)[0, :, 0]
    assert (got[1:] == got[1]).all() and got[1] != got[0]


def test_the_meaning_of_a_level_is_exact() -> None:
    made = compiled(fading_sum(signed, Fraction(1, 3), level=Tokens(LETTERS).number({"a": 1, "b": 2}, "level")))
    ids = np.array([[LETTERS.tokens.index(x) for x in "adba"]])
    a, b = Fraction(SIGNED["a"]), Fraction(SIGNED["b"])
    third = a / 27 + 3 * b
    assert made.interpret(ids)[0, :, 0].tolist() == [a, a, float(third), float(third / 3 + a)]


def test_levels_that_are_refused() -> None:
    level = Tokens(LETTERS).number({"a": 40}, "level")
    with pytest.raises(CompileError, match="79 steps at once, and at most 64 work"):
        compiled(fading_sum(signed, Fraction(1, 2), level=level))
    with pytest.raises(CompileError, match="adds up steps over chunks"):
        compiled(fading_sum(signed, Fraction(1, 2), level=Tokens(LETTERS).is_in(["a"])), "mamba2")
    with pytest.raises(CompileError, match="a whole number is needed"):
        compiled(fading_sum(signed, Fraction(1, 2), level=fading_sum(signed, Fraction(1, 2))))


def test_a_selective_decay_that_is_another_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compiler.gadgets.fading.fade_by", lambda factor: decays.fade_by(factor * Fraction(1001, 1000)))
    with pytest.raises(Miscompiled):
        compiled(fading_sum(signed, Fraction(1, 2), level=Tokens(LETTERS).is_in(["a", "b"])))
