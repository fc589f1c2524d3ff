"""Target mamba2 alone: what its modules add to the lanes is what the block IR says, bit for bit."""

from __future__ import annotations

import pytest

from compiler.language import memory
from compiler.language.words import latch
from tests.circuits import is_a, is_b, token
from tests.targets.harness import check

STREAMS = {
    "sum": is_a.cumsum() * 3,
    "latch": latch(token, is_b),
    "memory": memory.write(key=token.shift(1), value=token).read(token),
    "last": memory.write(key=token.shift(1), value=token, policy="last").read(token),
    "relu": (is_a.cumsum() - is_b.cumsum()).relu(),
}


@pytest.mark.parametrize("spare_state", [0, 3])
@pytest.mark.parametrize("name", STREAMS)
def test_blocks_and_modules_agree(name: str, spare_state: int):
    check("mamba2", STREAMS[name], spare_state=spare_state)
