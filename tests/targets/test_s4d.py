"""Target s4d alone: what its modules add to the lanes is what the block IR says, bit for bit."""

from __future__ import annotations

import pytest

from compiler import driver
from compiler.errors import CompileError
from compiler.language.words import latch
from tests.circuits import is_a, over_abc, token
from tests.targets.harness import WITHOUT_LATCH, check


@pytest.mark.parametrize("spare_state", [0, 3])
@pytest.mark.parametrize("name", WITHOUT_LATCH)
def test_blocks_and_modules_agree(name: str, spare_state: int):
    check("s4d", WITHOUT_LATCH[name], spare_state=spare_state)


@pytest.mark.parametrize("name", WITHOUT_LATCH)
def test_an_unmodified_mamba_holds_the_same_blocks(name: str):
    check("s4d", WITHOUT_LATCH[name], printer="mamba")


def test_what_an_unmodified_mamba_could_hold_and_an_s4d_cannot_is_refused(monkeypatch: pytest.MonkeyPatch):
    """Were it not refused by its operation, a latch would be a Mamba whose steps see the input, under the name S4D."""
    monkeypatch.setattr(driver, "fit_ports", lambda core, context: core)
    with pytest.raises(CompileError, match="s4d has no place for a step that is linear in x̂"):
        driver.compile(over_abc("kept", latch(token, is_a)), "s4d")
