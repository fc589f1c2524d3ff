"""Gated memories alone: what the gate opens is read under the present query, of everything else nothing."""

from __future__ import annotations

from compiler.gadgets.gated_memory import GatedMemory
from compiler.language import operations as ops
from compiler.language.stream import Stream
from compiler.language.words import concatenate
from tests.gadgets.harness import COUNTED, LETTERS, agrees, compiled, counted, one_hot

HIGH, LOW = one_hot[:2].shift(1), concatenate(one_hot[1:3], one_hot[3:])  # two gates, three columns
BANK = concatenate(counted, counted.shift(1))  # one lane behind each gate
read = Stream(ops.GatedRead(), (BANK, LOW.shift(2), LOW, HIGH), "read")


def _oracle(word: list[str]) -> list[list[int]]:
    """Behind gate a the letters two after a column's letter, behind gate b those one after it; the gate is the letter
    before.
    """
    held = {gate: dict.fromkeys("bcd", 0) for gate in "ab"}
    out = []
    for t, letter in enumerate(word):
        column = word[t - 2] if t > 1 else ""
        if column in held["a"]:
            held["a"][column] += COUNTED[letter]
            held["b"][column] += COUNTED[word[t - 1]]
        out.append([held.get(word[t - 1] if t else "", {}).get(letter, 0)])
    return out


def test_sums_behind_a_gate():
    agrees(read, _oracle, ("mamba", "mamba2"), "GatedMemory")


def test_each_pair_of_gate_and_column_is_an_entry():
    entries = GatedMemory().entries(read, 2, compiled(read).context.target)
    assert [(e.alternative, e.channels.tolist(), e.column) for e in entries] == [
        (h * 3 + n, [h], n) for h in range(2) for n in range(3)
    ]


def test_nothing_wider_than_its_gates():
    assert "which 4 gates do not divide" in " ".join(
        ops.GatedRead().problems(BANK.type, LOW.type, LOW.type, one_hot.type)
    )
    assert len(LETTERS.tokens) == 4
