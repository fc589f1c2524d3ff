"""What the constructions of paper D share: the mixers, and answers as binary digits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compiler.language.alphabet import Alphabet
from compiler.language.codebook import signs
from compiler.language.output import readout
from compiler.language.stream import Stream
from constructions.construction import Construction, parameter
from constructions.copy_dp.places import Arch


@dataclass(frozen=True)
class Selecting(Construction):
    """A circuit that compiles for the paper's class and for real mixers alike."""

    arch: Arch = parameter("which mixer", default="mamba", kw_only=True)
    max_length: int = parameter(
        "longest sequence that the promise covers (0: the longest of the task)", default=0, kw_only=True
    )

    @property
    def target(self) -> str:
        return self.arch


def digits(count: int) -> np.ndarray:
    """(count × d): the numbers 0 … count − 1 in d = ⌈log2 count⌉ binary digits, at least one."""
    return (signs(count).words + 1) // 2


def at_most_one(x: Stream) -> Stream:
    """min(x, 1) of integers of at least 0."""
    return 1 - (1 - x).relu()


def read_digits(bits: Stream, alphabet: Alphabet, members: str) -> Stream:
    """Scores of weights ±1: Σ_b (2c_b − 1)(2·bit_b − 1), the number of digits that agree less that of the others.

    The right token has d, other members at most d − 2, and tokens that are no members 0.
    """
    return readout(2 * bits - 1, signs(len(alphabet.ids(members))), alphabet, members)


def recall_by_hand(keys: int, values: int) -> dict[str, int]:
    """D = n(d + 1), at least 2n + d, and S = 9nd + 3n + d: n keys, d digits of a value, counted on matrices by hand."""
    n, d = keys, digits(values).shape[1]
    return {"M": 2, "D": max(n * (d + 1), 2 * n + d), "S": 9 * n * d + 3 * n + d}
