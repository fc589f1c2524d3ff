"""The shared list of circuits: each is run at every level, from the interpreter to the saved checkpoint.

An entry's oracle is plain Python and shares no code with the compiler. It takes the token
names of a sequence and gives for each position what the output must be: a number or a
tuple of numbers (compared exactly), a token name (the one strictly largest logit), or
None (nobody reads this position).
"""

from pathlib import Path

from tests.circuits import automata, memories, outputs, pointwise, shifts, states  # noqa: F401 (each adds its entries)
from tests.circuits.case import (
    ABC,
    CASES,
    NO_LATCH,
    Case,
    abc,
    is_a,
    is_b,
    is_c,
    logits,
    mistakes,
    over_abc,
    token,
    words,
)
from tests.circuits.memories import K4, KV, PAPER, kv, mqar
from tests.circuits.pointwise import counters

FILES = frozenset(path.name for path in Path(__file__).parent.glob("*.py"))  # where the entries are written

__all__ = [
    "FILES",
    "ABC",
    "CASES",
    "Case",
    "K4",
    "KV",
    "NO_LATCH",
    "PAPER",
    "abc",
    "counters",
    "is_a",
    "is_b",
    "is_c",
    "kv",
    "logits",
    "mistakes",
    "mqar",
    "over_abc",
    "token",
    "words",
]
