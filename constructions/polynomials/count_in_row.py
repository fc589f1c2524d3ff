"""Count-in-row: the length of the run of ones that ends here (paper C, Definition 1, read causally).

Statement (ours; Definition 1 is of the task). One channel of S6 with state 1 counts runs exactly: on binary inputs with
S_A = S_B = S_C = 1, h_t = x_t h_{t−1} + x_t² and y_t = x_t h_t is the run length. On a real Mamba, exp(ΔA)
is 1 or 0 by the size of Δ alone (exactness E9): one block, one channel with a state, exact to 2^24. Mamba-2
subtracts two sums, in two blocks; counts that are capped take one more.

Ours is the causal reading, the run up to this position: the only one that a causal layer can output.
Definition 1 speaks of the run to which a digit belongs, which may be the whole of it; (13) is lost in the text
that we read. Counts are capped here. The checker proves every answer up to the promised length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from compiler.formats import FORMATS
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout_integer
from compiler.language.source import Tokens
from compiler.language.words import count
from constructions.construction import Construction, parameter
from constructions.papers import EXPRESSIVITY
from verify.arguments import at_least
from verify.tasks.count_in_row import CountInRow as Task

if TYPE_CHECKING:
    from constructions.polynomials.polynomial_s6 import PolynomialNetwork


@dataclass(frozen=True)
class CountInRow(Construction):
    name: ClassVar[str] = "count-in-row"
    theorem: ClassVar[str] = f"{EXPRESSIVITY}, Definition 1, read causally"

    largest: int = parameter("largest count that is told apart", default=64)
    arch: Literal["mamba", "mamba2"] = parameter("which mixer", default="mamba")
    length: int = parameter("digits in a sequence", most=1 << 24, default=256)

    def __post_init__(self) -> None:
        at_least("largest", self.largest, 1, "a count of nothing tells nothing")

    @property
    def target(self) -> str:
        return self.arch

    def letters(self) -> int:
        """Two digits and the counts from 0 on."""
        return self.largest + 3

    @property
    def capped(self) -> bool:
        """Whether scores of the longest run, 2·run·largest, would outgrow the integers of the dtype.

        The run is then cut off at the largest count first, which takes a block more.
        """
        return 2 * self.max_length * self.largest >= 2 ** FORMATS[self.dtype].significand

    def circuit(self) -> Circuit:
        """Ones since the last zero.

        The nearest of the counts 0 … largest is the answer, so that longer runs are capped.
        """
        alphabet = Alphabet.of("0", "1", c=self.largest + 1)
        x = Tokens(alphabet)
        run = count(x.is_in("1", name="one"), reset=x.is_in("0", name="zero"))
        if self.capped:
            run = self.largest - (self.largest - run).relu()  # a falling ramp: no term outgrows `largest`
        scores = readout_integer(run, alphabet, {f"c{n}": n for n in range(self.largest + 1)})
        text = f"every binary sequence of at most {self.max_length} digits"
        return Circuit(
            self.name, scores, InputLanguage.of(alphabet, "any", [("any", "any", ("0", "1"))], self.max_length, text)
        )

    def tasks(self) -> list[Task]:
        return [Task(self.length, self.largest), Task(self.length, self.largest, ones=0.5)]

    def asks(self) -> dict[str, Any]:
        return {"name": self.name}


def on_polynomial_s6() -> PolynomialNetwork:
    """The channel of Lemma 1 with all weights 1: the run length on binary inputs (x_t, 1)."""
    from constructions.polynomials.degree_gap import channel

    return channel()
