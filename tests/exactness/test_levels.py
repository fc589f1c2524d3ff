"""The constants: every inequality that a derivation leans on holds, and each is needed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from compiler.exactness import levels
from compiler.formats import FORMATS, format_of

BROKEN = {
    "POSITIVE": 16,
    "NEGATIVE": 64,
    "GATE": 16.0,
    "CONSTANT": 16.0,
    "ON": 64.0,
    "OFF": -64.0,
    "COUNT": 2.0**20,
    "RESET": 2.0**40,
    "KEEP_LOG": -80.0,
    "ERASE_LOG": -1.0,
    "FAINT_LOG": -20.0,
    "HALF": 64,
    "LEAST_BALLAST": 8.0,
    "BALLAST_MARGIN": 10,
}


@pytest.mark.parametrize("name", levels.inequalities())
def test_inequalities_hold(name: str):
    assert levels.inequalities()[name]


@pytest.mark.parametrize(("name", "value"), BROKEN.items())
def test_a_weaker_level_breaks_an_inequality(monkeypatch, name: str, value: float):
    monkeypatch.setattr(levels, name, value)
    assert not all(levels.inequalities().values())


def test_the_functions_do_at_the_levels_what_the_inequalities_stand_for():
    silu, softplus = torch.nn.functional.silu, torch.nn.functional.softplus
    x = torch.tensor(
        [levels.POSITIVE, levels.GATE, levels.CONSTANT, levels.ON, levels.COUNT, levels.COUNT + levels.RESET]
    )
    assert torch.equal(silu(x), x) and torch.equal(softplus(x), x)
    off = torch.tensor([-levels.NEGATIVE, levels.OFF, -levels.ON])
    assert not softplus(off).any() and not silu(off).any()
    faint = -torch.exp(torch.tensor(levels.FAINT_LOG))
    assert torch.exp(levels.COUNT * faint) == 1 and torch.exp((levels.COUNT + levels.RESET) * faint) == 0
    assert -torch.exp(torch.tensor(levels.KEEP_LOG)) == 0


@pytest.mark.parametrize("format", FORMATS.values(), ids=lambda format: format.name)
def test_formats_are_those_of_torch(format):
    info = torch.finfo(format.torch_dtype)
    assert info.eps == 2.0 ** (1 - format.significand) and format.largest <= info.max
    whole = torch.tensor(float(format.exact_integers), dtype=format.torch_dtype)
    assert float(whole) == format.exact_integers and float(whole + 1) == format.exact_integers
    assert np.log2(format.absorbed) % 1 == 0


def test_an_unknown_format_is_named():
    with pytest.raises(ValueError, match="float64.*float32, bfloat16, float16"):
        format_of("float64")
