"""Target s4d alone: what its modules add to the lanes is what the block IR says, bit for bit."""

from __future__ import annotations

import pytest

from tests.targets.harness import WITHOUT_LATCH, check


@pytest.mark.parametrize("spare_state", [0, 3])
@pytest.mark.parametrize("name", WITHOUT_LATCH)
def test_blocks_and_modules_agree(name: str, spare_state: int):
    check("s4d", WITHOUT_LATCH[name], spare_state=spare_state)


@pytest.mark.parametrize("name", WITHOUT_LATCH)
def test_an_unmodified_mamba_holds_the_same_blocks(name: str):
    check("s4d", WITHOUT_LATCH[name], printer="mamba")
