"""Models of permutations are right at every length: all that they hold meets every letter; a fault is found."""

from __future__ import annotations

import pytest

from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile, language_model, permute, readout_one_hot
from compiler.artifact.dtype import in_dtype
from compiler.artifact.model import Stack
from verify.orbit import Departs, close_orbit

SWAPS = {"parity": [(0, 1)], "S_3": [(0, 1), (1, 2)], "S_4": [(0, 1), (1, 2), (2, 3)]}


def _model(name: str, dtype: str = "float32") -> Stack:
    pairs = SWAPS[name]
    letters = Alphabet.of(*(f"s{i}" for i in range(len(pairs))), "x")
    state = permute(0, Tokens(letters).one_hot([f"s{i}" for i in range(len(pairs))]), pairs)
    circuit = Circuit(name, readout_one_hot(state, letters), InputLanguage.everything(letters, 10**6))
    model = language_model(compile(circuit, "gated-deltanet", dtype))
    return in_dtype(Stack.from_language_model(model.config, model.tensors), dtype)


def _closed(name: str, stack: Stack):
    pairs = SWAPS[name]
    places = len(pairs) + 1

    def follow(place: int, letter: int) -> int:
        return sum(pairs[letter]) - place if letter < len(pairs) and place in pairs[letter] else place

    return close_orbit(stack, 0, follow, lambda place: [float(place == i) for i in range(places)], places)


@pytest.mark.parametrize(("name", "dtype"), [("parity", "float32"), ("S_4", "float32"), ("S_3", "bfloat16")])
def test_all_that_is_held_meets_every_letter(name: str, dtype: str):
    """Three letters stand in the windows of the convolutions, and the state is a function of the place."""
    places = len(SWAPS[name]) + 1
    found = _closed(name, _model(name, dtype))
    assert places <= found.held <= places * sum(places**n for n in range(5))
    assert found.steps == places * (found.held + 1)


def test_a_beta_below_two_is_found():
    stack = _model("S_3")
    weight = stack.blocks[0].b_proj.weight
    weight.data[weight != 0] = 4.0 / stack.norms[0].weight.max()  # σ(4) = 0.982
    with pytest.raises(Departs, match="after the tokens"):
        _closed("S_3", stack)


def test_a_state_that_fades_is_found():
    """1e-5 of it at each step: no score is wrong soon, but what is held never comes back."""
    stack = _model("S_3")
    stack.blocks[0].A_log.data[:] = 0.0
    stack.blocks[0].dt_bias.data[:] = -11.5
    with pytest.raises(Departs):
        close_orbit(stack, 0, lambda place, letter: 0, lambda place: [], 3, most=2000)
