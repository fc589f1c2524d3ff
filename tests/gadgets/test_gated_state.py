"""A gated bank alone: only the entry of the gate's alternative is read."""

from __future__ import annotations

import pytest

from compiler.gadgets.gated_state import GatedState
from compiler.language import memory
from compiler.language import operations as ops
from compiler.language.stream import Stream
from tests.gadgets.harness import LETTERS, agrees, compiled, counted, one_hot, signed


def test_entries_are_opened_by_the_gate():
    recalled = memory.write(key=one_hot.shift(1), value=counted, policy="last").read(one_hot)
    (stream,) = (s for s in compiled(recalled).schedule.blocks[-1] if isinstance(s.operation, ops.GateSum))
    target = compiled(recalled).context.target
    entries = GatedState().entries(stream, len(LETTERS.tokens) * stream.width, target)
    assert [e.alternative for e in entries] == [0, 1, 2, 3] and all(len(e.channels) == stream.width for e in entries)


def test_signed_values_under_the_last_letter():
    def oracle(word):
        from tests.gadgets.harness import SIGNED

        held, out = dict.fromkeys(LETTERS.tokens, 0), []
        for t, x in enumerate(word):
            if t:
                held[word[t - 1]] = SIGNED[x]
            out.append([held[x]])
        return out

    recalled = memory.write(key=one_hot.shift(1), value=signed, policy="last").read(one_hot)
    agrees(recalled, oracle, ("mamba", "mamba2", "mamba-delta-t"))


def test_a_bank_must_be_a_state():
    with pytest.raises(TypeError, match="no bank of states"):
        GatedState().rows(Stream(ops.GateSum(), (counted.relu(), one_hot[:1])), [True])
