"""Target mamba alone: what its modules add to the lanes is what the block IR says, bit for bit."""

from __future__ import annotations

import pytest

from tests.targets.harness import STREAMS, check


@pytest.mark.parametrize("spare_state", [0, 3])
@pytest.mark.parametrize("name", STREAMS)
def test_blocks_and_modules_agree(name: str, spare_state: int):
    check("mamba", STREAMS[name], spare_state=spare_state)
