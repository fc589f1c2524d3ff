"""The memories alone: sums, the first and the last value under each key."""

from __future__ import annotations

import pytest

from compiler.language import memory
from tests.gadgets.harness import COUNTED, LETTERS, agrees, counted, one_hot


def _recalled(word, policy):
    """What is known at each letter of what followed it before (the present pair included)."""
    held: dict[str, list[int]] = {letter: [] for letter in LETTERS.tokens}
    out = []
    for t, x in enumerate(word):
        if t:
            held[word[t - 1]].append(COUNTED[x])
        found = held[x]
        out.append([sum(found) if policy == "sum" else found[0 if policy == "first" else -1] if found else 0])
    return out


@pytest.mark.parametrize(
    ("policy", "target", "gadget"),
    [
        ("sum", "mamba", "OuterProductMemory"),
        ("sum", "mamba2", "OuterProductMemory"),
        ("sum", "s4d", "GatedState"),
        ("sum", "mamba-delta-t", "ColumnMemory"),
        ("first", "mamba", "OuterProductMemory"),
        ("first", "mamba2", "OuterProductMemory"),
        ("last", "mamba", "GatedState"),
        ("last", "mamba2", "GatedState"),
        ("last", "mamba-delta-t", "ColumnMemory"),
    ],
)
def test_what_followed_a_letter(policy: str, target: str, gadget: str):
    recalled = memory.write(key=one_hot.shift(1), value=counted, policy=policy).read(one_hot)
    agrees(recalled, lambda word: _recalled(word, policy), (target,), gadget)


def test_a_real_value_that_is_never_read_has_no_sum_to_bound():
    """What is read is 0 everywhere, on every lattice; what is stored is on none."""
    from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile

    letters = Alphabet.of("a", "b")
    x = Tokens(letters)
    faded = memory.outer_sum(x.number({"a": 1}), write=x.is_in(["b"]), read=x.is_in(["b"]), decay=0.5)
    nothing = x.one_hot(["a"])
    read = memory.write(key=nothing, value=faded, policy="first").read(nothing)
    language = InputLanguage.of(letters, "s", [("s", "s", ["b"])], 1, "b")
    assert compile(Circuit("zeros", read, language)).error_bound == 0
