"""COPY of real vectors in one block (after paper B, Theorem 2).

Statement. For x_1 … x_N ∈ [−M, M]^d a Mamba block of size O(N) gives y_i = v_pos(i), v = Δ ⊙ x, for every i. The proof
reads x̃_i = [x_i, e_i, e_pos(i)]: A = 0, B = e_i writes v_i into a column of its own, C = e_pos(i) reads one. Ours
divides Δ out and gives y_i = x_pos(i).

Conditions of real blocks and floats. x passes the convolution and SiLU of a real block, which the paper says it
ignores, so a signed number takes two channels, silu(Sx) − silu(−Sx) = Sx. "y_i = v_pos(i)" is for real arithmetic: on
floats it holds for integers, and real numbers come back within a bound that grows with M. On Mamba the places reach B
and C through 2N channels that carry N columns each, 2(d + N)·N numbers of state; Mamba-2 takes them past the channels,
2d·N. Each place is written once; pos(i) ≤ i, for what has not come reads as 0.

`copy` is the same over tokens, whose places a language model has to count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from compiler.language import memory
from compiler.language.circuit import Circuit
from compiler.language.source import numbers
from compiler.language.types import Int, OneHot, Real
from constructions.construction import NumericConstruction, parameter
from constructions.papers import FREE_LUNCH, OF_PAPER_B
from verify.arguments import at_least, at_most, one_of
from verify.tasks.copy_vectors import CopyVectorsTask
from verify.tasks.numbers import AnyNumbers, NumberTask

_MOST_PLACES, _MOST_WIDTH, _LARGEST = 256, 256, 2.0**40


@dataclass(frozen=True)
class CopyVectors(NumericConstruction):
    """y_i = x_pos(i) for N vectors of d numbers of at most M."""

    name: ClassVar[str] = "copy-vectors"
    theorem: ClassVar[str] = f"{FREE_LUNCH}, Theorem 2"
    mixers: ClassVar[tuple[str, ...]] = OF_PAPER_B

    n: int = parameter("N: vectors of a sequence", default=16)
    width: int = parameter("d: numbers of a vector", default=4)
    largest: float = parameter("M: the largest number in size", default=1.0)
    integers: bool = parameter("whole numbers, copied bit for bit; else real numbers, within a bound", default=False)
    arch: Literal["mamba", "mamba2"] = parameter("which mixer", default="mamba")

    @property
    def target(self) -> str:  # type: ignore[override]
        return self.arch

    def check_sizes(self) -> None:
        super().check_sizes()
        one_of("arch", self.arch, ("mamba", "mamba2"))
        for what, most in (("n", _MOST_PLACES), ("width", _MOST_WIDTH)):
            at_least(what, getattr(self, what), 1, "there must be something to copy")
            at_most(what, getattr(self, what), most, "no more are tried")
        if not 0 < self.largest <= _LARGEST:
            raise ValueError(f"largest = {self.largest} must lie above 0 and be at most {_LARGEST:g}")
        if self.integers and not float(self.largest).is_integer():
            raise ValueError(f"largest = {self.largest} is no whole number, and the vectors hold integers")

    def circuit(self) -> Circuit:
        self.check_sizes()
        top = self.largest
        kind = Int(-int(top), int(top), self.width) if self.integers else Real(-top, top, self.width)
        x, place, asked = numbers(kind, "x"), numbers(OneHot(self.n), "place"), numbers(OneHot(self.n), "asked")
        return Circuit(self.name, memory.outer_sum(x, write=place, read=asked, name="copied"), length=self.n)

    def tasks(self) -> list[NumberTask]:
        return [AnyNumbers(self.circuit()), CopyVectorsTask(self.n, self.width, self.largest, self.integers)]

    def asks_where(self) -> str:
        return "where each place is written once, and pos(i) ≤ i (a place is asked for when it has been written)"

    def otherwise(self) -> str:
        """The theorem copies v = Δ ⊙ x, and ignores the SiLU that x passes."""
        places = ", the places on channels too" if self.arch == "mamba" else ""
        return f"with Δ divided out and a signed number on two channels{places}"

    def stated_bound(self) -> tuple[dict[str, int], str]:
        """By the proof; the inputs and the constant, two channels for each number, one for each lane of the places."""
        lanes, channels = self.width + 2 * self.n + 1, 2 * (self.width + self.n)
        said = "by its proof one block of N columns; ours: two channels for a signed number, 2N for the places"
        return {"d_model": lanes, "d_inner": channels, "d_state": self.n, "layers": 1}, f"Theorem 2, {said}"
