"""Count-in-row: the length of the run of ones that ends here (paper C, Definition 1, Eq 13).

Statement. One channel of S6 with state 1 counts runs exactly: on binary inputs with
S_A = S_B = S_C = 1, h_t = x_t h_{t−1} + x_t² and y_t = x_t h_t is the run length. On a real Mamba, exp(ΔA)
is 1 or 0 by the size of Δ alone (exact-arithmetic E9): one block, one channel with a state, exact to 2^24.

What the paper leaves unsaid. The causal reading is the only one that a causal layer can output; its
labels are capped counts, as here. `certificate` proves the real block for all sequences: it puts every
count into the state and takes one real `step()` from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout_integer
from compiler.language.source import Tokens
from compiler.language.stream import count
from compiler.model import Stack
from compiler.targets.polynomial_s6 import PolynomialNetwork
from constructions.construction import Construction, parameter
from constructions.degree_gap import channel
from verify.tasks.count_in_row import ANSWERS
from verify.tasks.count_in_row import CountInRow as Task

_STATES_AT_ONCE = 1 << 13
_WINDOW = 3  # digits that the convolution keeps


@dataclass(frozen=True)
class CountInRow(Construction):
    name: ClassVar[str] = "count-in-row"
    theorem: ClassVar[str] = "On the Expressivity of Selective State-Space Layers, Definition 1"

    largest: int = parameter("largest count that is told apart", default=64)
    arch: Literal["mamba", "mamba2"] = parameter("which mixer", default="mamba")
    length: int = parameter("digits in a sequence", default=256)

    @property
    def target(self) -> str:
        return self.arch

    def circuit(self) -> Circuit:
        """Ones since the last zero; the nearest of the counts 0 … largest is the answer, so that longer runs are capped."""
        alphabet = Alphabet.of("0", "1", c=self.largest + 1)
        x = Tokens(alphabet)
        run = count(x.is_in("1", "one"), reset=x.is_in("0", "zero"))
        scores = readout_integer(run, alphabet, {f"c{n}": n for n in range(self.largest + 1)})
        text = f"every binary sequence of at most {self.max_length} digits"
        return Circuit(self.name, scores, InputLanguage.of(alphabet, "any", [("any", "any", ("0", "1"))], self.max_length, text))

    def tasks(self) -> list[Task]:
        return [Task(self.length, self.largest), Task(self.length, self.largest, ones=0.5)]

    def bound(self) -> dict[str, int]:
        """One layer with one state a channel; Mamba-2 counts from the start and subtracts, in two."""
        return {"d_state": 1, "layers": 1 if self.arch == "mamba" else 2}


def on_polynomial_s6() -> PolynomialNetwork:
    """The channel of Lemma 1 with all weights 1: the run length on binary inputs (x_t, 1)."""
    return channel()


def certificate(stack: Stack, runs: int, largest: int) -> dict[str, Any]:
    """A proof through the real `step()` that a one-block stack counts runs up to `runs` in sequences of any length.

    From every count n < runs, after every window of up to three digits that fits it, a one leads to n + 1 and a zero
    to 0, and the answer is the least of the count and `largest`: an induction over the sequence, from the empty one.
    ValueError at the first step that does otherwise.
    """
    if len(stack.blocks) != 1:
        raise ValueError(f"the certificate is for one block, and the stack has {len(stack.blocks)}.")
    unit = _after(stack, stack.initial_state(1), [1])[0][1]
    checked = 0
    for window in (w for digits in range(_WINDOW + 1) for w in product((0, 1), repeat=digits)):
        for start in range(0, runs, _STATES_AT_ONCE):
            counts = np.array([n for n in range(start, min(runs, start + _STATES_AT_ONCE)) if _fits(n, window)], dtype=np.int64)
            if len(counts):
                (taps, _), = _after(stack, stack.initial_state(1), window)
                state = [(taps.expand(len(counts), -1, -1), torch.from_numpy(counts).view(-1, 1, 1).to(unit) * unit)]
                _require(stack, state, unit, counts, largest)
                checked += len(counts)
    return {"longest_run": runs, "states": checked, "steps": 2 * checked, "sequences": "of every length"}


def _fits(n: int, window: tuple[int, ...]) -> bool:
    """Whether a run of n ones can end in this window; a shorter one is the whole sequence."""
    tail = next((k for k, digit in enumerate(reversed(window)) if digit == 0), len(window))
    return n >= tail if tail == _WINDOW else n == tail


def _after(stack: Stack, state, digits) -> list[tuple[torch.Tensor, torch.Tensor]]:
    for digit in digits:
        _, state = stack.step(torch.full((len(state[0][0]),), digit), state)
    return state


def _require(stack: Stack, state, unit, counts: np.ndarray, largest: int) -> None:
    """Raise unless one step from these counts goes where it must."""
    for digit in (0, 1):
        copy = [(taps.clone(), memory.clone()) for taps, memory in state]
        scores, ((_, memory),) = stack.step(torch.full((len(counts),), digit), copy)
        after = torch.from_numpy(digit * (counts + 1))
        answers = torch.where(after > largest, largest, after) + ANSWERS
        good = (memory == after.view(-1, 1, 1).to(unit) * unit).flatten(1).all(1) & (scores.argmax(-1) == answers)
        if not good.all():
            n = int(counts[int((~good).nonzero()[0])])
            raise ValueError(f"from a run of {n}, the digit {digit} does not lead to a run of {digit * (n + 1)}.")
