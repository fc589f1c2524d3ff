"""Target mamba-delta-t alone: what its modules add to the lanes is what the block IR says, bit for bit."""

from __future__ import annotations

import pytest

from compiler.driver import compile
from compiler.errors import CompileError
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens, position
from compiler.language.stream import Stream
from compiler.language.words import latch_bank, present
from compiler.targets.mamba_delta_t import MOST_LATCHES
from tests.targets.harness import STREAMS, check

KEYS = Alphabet.of(k=MOST_LATCHES + 1)
KEY = Tokens(KEYS).one_hot()


@pytest.mark.parametrize("spare_state", [0, 3])
@pytest.mark.parametrize("name", STREAMS)
def test_blocks_and_modules_agree(name: str, spare_state: int):
    check("mamba-delta-t", STREAMS[name], spare_state=spare_state)


def _over_keys(stream: Stream) -> Circuit:
    return Circuit("bank", stream, InputLanguage.everything(KEYS, 8))


def test_a_bank_with_a_block_for_each_latch_is_refused_where_it_has_too_many():
    with pytest.raises(CompileError, match="65 here, and 64 are the most; read it by a query as a memory"):
        compile(_over_keys(latch_bank(position(), KEY)), "mamba-delta-t")


def test_flags_that_were_seen_take_two_blocks_however_many_they_are():
    assert len(compile(_over_keys(present(KEY)), "mamba-delta-t").blocks) == 2
