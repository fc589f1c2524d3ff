"""What a verifier asks of a model over numbers: inputs of several sizes, and what is right where someone knows it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from compiler.exactness.samples import drawn
from compiler.language import operations as ops
from compiler.language.allowed import allowed
from compiler.language.circuit import Circuit
from compiler.language.graph import with_operation
from compiler.language.types import OPEN, Real, Type

SIZES = (2.0**-20, 2.0**-6, 1.0, 4.0, 16.0, 256.0, 2.0**16, 2.0**40, 2.0**80)  # of real inputs, as far as is declared
ROWS = 8  # sequences of a batch: the interpreter runs them with Fractions
_LONGEST = 64


@dataclass(frozen=True, eq=False)
class NumberBatch:
    """Sequences of one length, all of one size.

    inputs: for each input by name (batch, time, width), float32 numbers; size: the largest real one, at most.
    expected: (batch, time, outputs) the right outputs, NaN where nobody asks; None where nobody asks at all.
    slack: (batch, time, outputs) how far the circuit itself may be from them (a coefficient that float32 rounds).
    """

    inputs: Mapping[str, np.ndarray]
    size: float
    expected: np.ndarray | None = None
    slack: np.ndarray | None = None
    case: str = ""

    def __len__(self) -> int:
        return len(next(iter(self.inputs.values())))


class NumberTask(ABC):
    """Inputs of a circuit over numbers; most_random: how many sequences are drawn where nobody asks for a number."""

    name: str
    length: int
    most_random = 128

    @abstractmethod
    def describe(self) -> str:
        """One line for a report."""

    @abstractmethod
    def batch(self, rng: np.random.Generator, size: float) -> NumberBatch:
        """ROWS sequences whose real inputs are at most this large."""

    def sizes(self) -> tuple[float, ...]:
        """Sizes of real inputs to try; one of them where no input is real."""
        return SIZES

    def random(self, count: int, seed: int) -> Iterator[NumberBatch]:
        """About `count` sequences (whole batches), every size in turn; batch i depends on the task, the seed and i."""
        sizes = self.sizes()
        for i in range(max(len(sizes), -(-count // ROWS))):
            yield self.batch(np.random.default_rng([seed, i]), sizes[i % len(sizes)])


class AnyNumbers(NumberTask):
    """Numbers of the declared types, the bounds among them: what a circuit is run on where nobody knows its answers."""

    name = "numbers"

    def __init__(self, circuit: Circuit, most_random: int = NumberTask.most_random):
        self.most_random = most_random
        self.types = {stream.label: numbers.type for stream, numbers in with_operation(circuit.streams, ops.Numbers)}
        self.length = min(circuit.max_length, _LONGEST)

    def describe(self) -> str:
        return "numbers of the declared types, at sizes up to the declared ones, against the interpreter"

    def sizes(self) -> tuple[float, ...]:
        real = self._real
        if not real:
            return (1.0,)
        least = min(map(least_of, real))
        return tuple(dict.fromkeys(max(size, least) for size in sizes_up_to(max(map(bound_of, real)))))

    @property
    def _real(self) -> list[Real]:
        return [type for type in self.types.values() if isinstance(type, Real)]

    def batch(self, rng: np.random.Generator, size: float) -> NumberBatch:
        inputs = {name: _of(type, size, (ROWS, self.length), rng) for name, type in self.types.items()}
        return NumberBatch(inputs, max([size, *map(least_of, self._real)]))


def bound_of(type: Real) -> float:
    """The largest number of an input in size."""
    return float(max(OPEN if end is None else abs(end) for end in (type.lo, type.hi)))


def least_of(type: Real) -> float:
    """The size up to which an input has a number other than 0, at least; 0 where it may be as small as it likes."""
    sizes = [max(low, -high, 0.0) for low, high in allowed(type, np.float32) if (low, high) != (0, 0)]
    return min(sizes, default=0.0)


def sizes_up_to(bound: float) -> tuple[float, ...]:
    """The sizes below a declared bound, and itself."""
    return (*(size for size in SIZES if size < bound), bound)


def _of(type: Type, size: float, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Values of an input: float32 numbers of about this size at most, or as small as it may have them."""
    if not isinstance(type, Real):
        return drawn(type, shape, rng).astype(float)
    return drawn(type, shape, rng, max(size, least_of(type)), np.float32)
