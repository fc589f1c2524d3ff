"""The values of every named variable of a circuit at every position, by the interpreter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.interpreter import interpret
from compiler.language.circuit import Circuit
from compiler.language.stream import Stream
from compiler.language.types import Bool, Logits, OneHot
from compiler.language.variables import distinct_names


@dataclass(frozen=True, eq=False)
class Variable:
    """A stream that the circuit's author named.

    kind: "choice" (one of `width` alternatives: its number, −1 where there is none), "flag" (0 or 1), "integer" or
    "number"; in the plural, such as "flags", a list with an entry for each lane.
    """

    name: str
    stream: Stream

    @property
    def kind(self) -> str:
        if isinstance(self.stream.type, OneHot):
            return "choice"
        flag = isinstance(self.stream.type, Bool)
        return ("flag" if flag else "integer" if self.stream.type.integral else "number") + "s" * (
            self.stream.width > 1
        )

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "kind": self.kind, "width": self.stream.width, "line": self.stream.origin}

    def label(self, values: np.ndarray) -> list:
        """Of (time, width) exact values a label for each position."""
        if self.kind == "choice":
            return [int(row.argmax()) if row.any() else -1 for row in values]
        number = int if self.stream.type.integral else float
        rows = [[number(value) for value in row] for row in values]
        return rows if self.stream.width > 1 else [row[0] for row in rows]


def variables(circuit: Circuit) -> list[Variable]:
    """The named streams in the order of the circuit, by the names that `trace` of a checkpoint knows them by."""
    found = zip(circuit.streams, distinct_names(circuit.streams, circuit.output), strict=True)
    named = ((stream, names[0]) for stream, names in found if stream.name or stream.as_written.variable)
    return [Variable(name, stream) for stream, name in named if not isinstance(stream.type, Logits)]


def labels(circuit: Circuit, words: Iterable[list[str]]) -> Iterable[dict[str, list]]:
    """For each sequence of tokens the labels of every variable, position by position."""
    named, alphabet = variables(circuit), circuit.token_alphabet
    for word in words:
        ids = np.array([[alphabet.index(token) for token in word]])
        values = interpret(circuit, ids, keep=[variable.stream for variable in named])
        yield {variable.name: variable.label(values[variable.stream][0]) for variable in named}
