"""Part of compare: a circuit on sampled inputs, as the interpreter runs it, and whether its streams keep within their
domains there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from compiler.analysis.domains import Domains
from compiler.exactness.domains_held import first_outside
from compiler.exactness.samples import Inputs
from compiler.interpreter import interpret
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.stream import Stream

WORK = 1 << 21  # numbers formed by the blocks and the interpreter together, about
EXACT_WORK = 1 << 13  # of them with Python integers and Fractions
ROUNDING = 1e-9  # of real numbers, of the largest output: the blocks and the interpreter add in another order
CANCELLED = 2.0**-48  # of the largest number that is formed: what float64 loses where such numbers cancel


@dataclass(frozen=True, eq=False)
class Held:
    """What the streams of a circuit hold on a part of a batch's sequences."""

    part: np.ndarray
    values: dict[Stream, np.ndarray]


class Sampled:
    """A circuit and the domains that its streams must keep to.

    floats: whether float64 gives its values: exactly, or, of real numbers, within what is compared; work: how many
    numbers a position takes, about.
    """

    def __init__(self, circuit: Circuit, domains: Domains) -> None:
        self.circuit = circuit
        self.floats = floats_do(circuit, domains)
        self.work = sum(s.width + sum(len(m.data) for m in s.operation.maps or ()) for s in circuit.streams)
        self.streams = [s for s in circuit.streams if s.width]
        self.domains = [domains.of(s) for s in self.streams]

    def held(self, inputs: Inputs) -> Held:
        """All streams on as many sequences as the work allows."""
        batch, length = _shape(inputs)
        most = (WORK if self.floats else EXACT_WORK) // (length * self.work)
        part = _spread(max(1, min(batch, most)), batch)
        dtype = np.float64 if self.floats else object
        return Held(part, interpret(self.circuit, *picked(self.circuit, inputs, part), self.circuit.streams, dtype))

    def output(self, inputs: Inputs, held: Held) -> np.ndarray:
        """The output on all sequences, by exact numbers where the work allows that; on all if floats would not do."""
        batch, length = _shape(inputs)
        count = min(batch, EXACT_WORK // (length * self.work)) if self.floats else batch
        output = self.circuit.output
        values = np.empty((batch, length, output.width))
        if len(held.part) == batch:
            values[:] = held.values[output]
            count = count if self.floats else 0
        elif count < batch:
            values[:] = interpret(self.circuit, *picked(self.circuit, inputs), dtype=np.float64)[output]
        if count:
            exact = _spread(count, batch)
            values[exact] = interpret(self.circuit, *picked(self.circuit, inputs, exact))[output].astype(np.float64)
        return values

    def exactly(self, inputs: Inputs, sequence: int) -> np.ndarray:
        """The output on one sequence, (time, width), by exact numbers."""
        alone = picked(self.circuit, inputs, np.array([sequence]))
        return interpret(self.circuit, *alone)[self.circuit.output][0].astype(np.float64)

    def outside(self, held: Held) -> tuple[Stream, str] | None:
        """The first stream that leaves its domain, and how; None where all keep to theirs."""
        values = [held.values[s].astype(np.float64, copy=False) for s in self.streams]
        found = first_outside(self.domains, values, self._tolerances)
        return None if found is None else (self.streams[found[0]], found[1])

    @cached_property
    def _tolerances(self) -> list[float]:
        if not self.floats or all(domain.step for domain in self.domains):
            return [0.0] * len(self.domains)
        bounds = [float(domain.bounds.max(initial=0)) for domain in self.domains]
        lost = CANCELLED * max(bounds)  # of what may cancel on the way
        return [ROUNDING * max(1.0, bound) + lost for bound in bounds]


def floats_do(circuit: Circuit, domains: Domains) -> bool:
    """Whether float64 gives a circuit's values: exactly, or, of real numbers, within what is compared."""
    held = all(ops.is_dyadic(value) for s in circuit.streams for value in s.operation.constants or ())
    real = held and any(not domains.of(s).step for s in circuit.streams)
    return real or domains.exact_dtype(circuit) is np.float64


def read_by(streams: Iterable[Stream], numbers: Mapping[Stream, np.ndarray]) -> dict[Stream, np.ndarray]:
    """The values of the numeric inputs under the streams that stand for them after the passes."""
    values = {source.operation: array for source, array in numbers.items()}
    return {s: values[s.operation] for s in streams if s.operation in values}


def picked(circuit: Circuit, inputs: Inputs, part: np.ndarray | slice = slice(None)) -> Inputs:
    """The inputs of these sequences, by the streams of this circuit that stand for them.

    A circuit of which the passes left a constant reads none: then as many absent tokens as there were numbers.
    """
    tokens, numbers = inputs
    read = {s: v[part] for s, v in read_by(circuit.streams, numbers).items()}
    if tokens is None and not read:
        tokens = np.zeros(_shape(inputs), dtype=np.int64)
    return None if tokens is None else tokens[part], read


def _shape(inputs: Inputs) -> tuple[int, int]:
    """(sequences, positions)."""
    tokens, numbers = inputs
    batch, length = (tokens if tokens is not None else next(iter(numbers.values()))).shape[:2]
    return batch, length


def _spread(count: int, batch: int) -> np.ndarray:
    """So many of the sequences of a batch, at equal distances."""
    return np.arange(count) * batch // count
