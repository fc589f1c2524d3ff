"""Absolute time without positional encoding (after paper A, Proposition 1).

Statement. An S6 layer with λ = 0, B = 1 and input 1 has h_t = t. Here the count is read out as
a token: y_t = t for t ≤ H and "H or later" from H on.

True on paper, not on floats. A float32 count stops at 2^24. What is read is
min(t, H) by a falling ramp, which does not see where the count stops, so the answer is right
at every length on Mamba and S4D. On Mamba-2 the norm's ballast must hide the count's square, and longer promises
are refused (`compiler/exactness/ballast.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout_integer
from compiler.language.stream import constant
from compiler.language.words import minimum
from constructions.construction import Construction, parameter
from constructions.papers import SELECTIVITY
from verify.arguments import at_least
from verify.tasks.clock import Clock
from verify.tasks.task import Task


@dataclass(frozen=True)
class AbsoluteTime(Construction):
    name: ClassVar[str] = "absolute-time"
    theorem: ClassVar[str] = f"{SELECTIVITY}, Proposition 1"
    mixers: ClassVar[tuple[str, ...]] = ("mamba",)

    horizon: int = parameter("positions told apart; from here on the answer is the last one", default=64)
    vocab: int = parameter("number of input tokens, which do not matter", default=4)
    arch: Literal["mamba", "mamba2", "s4d"] = parameter("which mixer", default="mamba")
    length: int = parameter("tokens in a sequence", most=1 << 24, default=100)
    max_length: int = parameter(
        "longest sequence that the promise covers (0: 2^40, for mamba2 2^20)", default=0, kw_only=True
    )

    def __post_init__(self):
        at_least("horizon", self.horizon, 1, "a clock shows a time")
        at_least("vocab", self.vocab, 1, "something must be read")

    @property
    def target(self) -> str:
        return self.arch

    def letters(self) -> int:
        """Input tokens and times."""
        return self.vocab + self.horizon

    def circuit(self) -> Circuit:
        """The sum of ones, cut off at the horizon."""
        alphabet = Alphabet.of(v=self.vocab, t=[f"t{i}" for i in range(1, self.horizon + 1)])
        time = minimum(constant(1).cumsum().named("time"), self.horizon)
        logits = readout_integer(time, alphabet, {f"t{i}": i for i in range(1, self.horizon + 1)})
        text = f"every sequence of the {self.vocab} input tokens"
        return Circuit(self.name, logits, InputLanguage.of(alphabet, "any", [("any", "any", "v")], self.reach, text))

    @property
    def reach(self) -> int:
        """The longest sequence.

        The gated norm of Mamba-2 sees the count times 2^27, which its ballast bears up to 2^22.5 tokens.
        """
        return self.max_length or (2**20 if self.arch == "mamba2" else 2**40)

    def tasks(self) -> list[Task]:
        return [Clock(self.vocab, self.horizon, self.length)]

    def asks(self) -> dict[str, Any]:
        return {"name": self.name}

    def otherwise(self) -> str:
        """The proposition's state is the time; here a block reads it, up to the last that there is a token for."""
        return "with a block that reads the count"
