"""What a model computed on one input, by the names of its circuit, beside what the circuit computes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from compiler.language.alphabet import Alphabet
from compiler.language.arguments import close_to
from compiler.language.markdown import one_line
from compiler.language.stream import Stream
from compiler.language.variables import INPUT, OUTPUT
from compiler.tracing.compared import Unread, differences, model_values, overwritten
from compiler.tracing.decoding import Decoder
from compiler.tracing.forward import Run
from compiler.tracing.intervention import Intervention, circuit_values
from compiler.tracing.variables import Variable, Variables
from compiler.tracing.why import Why, why

if TYPE_CHECKING:
    from compiler.tracing.inside import BlockValues


class Values(Sequence[Any]):
    """A variable over an input: one entry a position, decoded; `raw` has the numbers behind them.

    raw: (time, width) float64 as the lanes hold them, in the circuit's units.
    """

    def __init__(self, name: str, entries: list[Any], raw: np.ndarray):
        self.name, self._entries, self.raw = name, entries, raw

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> list[Any]: ...
    def __getitem__(self, at: int | slice) -> Any:
        return self._entries[at]

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, (Sequence, Values)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # a list in all but name

    def __repr__(self) -> str:
        return f"{self.name}: {self._entries!r}"


class CircuitValues:
    """What the circuit's interpreter gives on the same input, under the same intervention: `t.circuit["stack"]`."""

    def __init__(self, trace: Trace):
        self._trace = trace

    @cached_property
    def _found(self) -> dict[Stream, np.ndarray]:
        t = self._trace
        read = [v.stream for v in t.variables]
        return circuit_values(t.compiled, t.ids[None], t.setting, read, not t.outside)

    def raw(self, variable: Variable) -> np.ndarray:
        """(time, width) float64."""
        return self._found[variable.stream][0]

    def __getitem__(self, name: str) -> Values:
        variable = self._trace.variables[name]
        raw = self.raw(variable)
        return Values(variable.name, self._trace.decoder(variable).decode(raw), raw)


class Trace:
    """One input through the real modules. Read it like a dict from the names of the circuit's variables.

    tokens: the input; ids: (time,) of them. scores: (time, vocab) of the model, float64; answers: the letter that alone
        scores highest at each position, None where none does.
    lanes: (time, lanes) float64, the residual stream behind the last block, by `lane_names`.
    outside: in what the input or the intervention is outside the circuit's promise, a sentence each.
    """

    def __init__(
        self,
        variables: Variables,
        ids: np.ndarray,
        run: Run,
        inside: Sequence[BlockValues],
        setting: Intervention,
        outside: Sequence[str],
    ):
        self.variables, self.compiled, self.ids = variables, variables.compiled, ids
        self.setting, self.outside = setting, list(outside)
        self.blocks = tuple(inside)
        self.circuit = CircuitValues(self)
        self.tokens = [self._alphabet.tokens[i] for i in ids]
        self._run = run
        self.scores = run.scores[0].double().numpy()
        self._values: dict[Variable, Values] = {}

    @property
    def _alphabet(self) -> Alphabet:
        return self.compiled.source.token_alphabet

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return self.table()

    def __iter__(self) -> Iterator[str]:
        """The names of the variables that can be read."""
        return (v.name for v in self.variables if v.reading is not None and not v.constant)

    def __contains__(self, name: object) -> bool:
        return name in self.variables

    def __getitem__(self, name: str) -> Values:
        variable = self.variables[name]
        if variable not in self._values:
            raw = self.raw(variable)
            self._values[variable] = Values(variable.name, self.decoder(variable).decode(raw), raw)
        return self._values[variable]

    def decoder(self, variable: Variable) -> Decoder:
        """What turns the numbers of a variable into letters, and back."""
        return self.variables.decoder(variable)

    def raw(self, variable: Variable) -> np.ndarray:
        """The numbers of a variable as the lanes hold them: (time, width); Unread where no lanes do."""
        return model_values(self.variables, variable, self._run)[0]

    # Lanes, channels, scores --------------------------------------------------------------------------

    @property
    def lane_names(self) -> tuple[str, ...]:
        """The name of each lane."""
        return self.compiled.lanes.names

    @cached_property
    def lanes(self) -> np.ndarray:
        """The residual stream behind the last block: (time, lanes) float64."""
        return self.lanes_after(len(self._run.streams) - 1)

    def lanes_after(self, blocks: int) -> np.ndarray:
        """The residual stream after so many blocks, 0 being the embedding: (time, lanes) float64."""
        if not 0 <= blocks < len(self._run.streams):
            raise ValueError(f"blocks is {blocks}, and the model has {len(self._run.streams) - 1}")
        return self._run.lanes(self.compiled.lanes.count, blocks)[0]

    def lane(self, name: str) -> np.ndarray:
        """What a lane holds by the end, by its name: (time,) float64."""
        if name not in self.lane_names:
            raise KeyError(f"there is no lane {name!r}{close_to(name, self.lane_names)}")
        return self.lanes[:, self.lane_names.index(name)]

    def block(self, number: int) -> BlockValues:
        """The channels, columns and states of a block, counted from 1, as `construct inspect` counts them."""
        if self._run.basis is not None:
            raise ValueError("the channels of a disguised model have no names; undisguise it to look into its blocks")
        if not 1 <= number <= len(self.blocks):
            raise ValueError(f"there is no block {number}: the model has {len(self.blocks)}, counted from 1")
        return self.blocks[number - 1]

    @property
    def answers(self) -> list[str | None]:
        """The letter that alone scores highest at each position; None where there is none."""
        output = self.variables.output
        return list(self[output.name]) if output.width == self._alphabet.size else []

    # Looking ------------------------------------------------------------------------------------------

    def at(self, position: int) -> dict[str, Any]:
        """The input as "input", and every variable that can be read, at one position, decoded."""
        at = self._position(position)
        return {INPUT: self.tokens[at]} | {name: self[name][at] for name in self.readable}

    @property
    def readable(self) -> list[str]:
        """The names of the variables that stand on lanes; those of the author's first choosing are all among them."""
        found = []
        for variable in self.variables:
            if not variable.constant and (variable.reading is not None or variable is self.variables.output):
                try:
                    self.raw(variable)
                except Unread:
                    continue
                found.append(variable.name)
        return found

    def table(self, *names: str) -> str:
        """The input and these variables over time as text, a row a position [default: all that have names]."""
        chosen = list(names) or [n for n in self.readable if _named(self.variables[n])]
        header = ["", INPUT, *chosen]
        rows = [[str(i), token] for i, token in enumerate(self.tokens)]
        for name in chosen:
            for row, value in zip(rows, self[name], strict=True):
                row.append("·" if value is None else str(int(value)) if isinstance(value, bool) else str(value))
        rows = [[one_line(cell) for cell in row] for row in [header, *rows]]
        widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
        return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)

    def as_dict(self) -> dict[str, Any]:
        """The trace as a JSON value: variables decoded and raw, scores, and how it compares with the circuit."""
        variables = {n: {"values": list(self[n]), "raw": self[n].raw.tolist()} for n in self.readable}
        return {
            "tokens": self.tokens,
            "variables": variables,
            "scores": self.scores.tolist(),
            "agrees": self.agrees,
            "differences": self.differences,
            "overwritten": self.overwritten,
            "outside": self.outside,
        }

    def why(self, position: int) -> Why:
        """Which terms of the output made its answer at a position, and by how much it leads the next."""
        return why(self.compiled, self.lanes[self._position(position)])

    def _position(self, position: int) -> int:
        if not -len(self) <= position < len(self):
            raise IndexError(
                f"position is {position}, and the input has {len(self)}, counted from 0 or, below 0, from its end"
            )
        return position % len(self)

    # Compared with the circuit ------------------------------------------------------------------------

    @cached_property
    def differences(self) -> list[str]:
        """Where the model is not what the circuit gives under the same intervention, a sentence for each variable."""
        found = differences(self.variables, self._run, self.ids[None], self.setting, not self.outside)
        return [str(difference) for difference in found]

    @cached_property
    def overwritten(self) -> list[str]:
        """Variables whose lanes hold a variable that was set instead: where it was set, they show that, so that they
        are not compared with the circuit's.
        """
        found = overwritten(self.variables, self.setting)
        return [variable.name for variable in self.variables if variable in found]

    @property
    def agrees(self) -> bool:
        """Whether every score and every variable that stands on lanes is the circuit's, bit for bit (within its bound
        where it has one). The variables in `overwritten` are not compared.
        """
        return not self.differences


def _named(variable: Variable) -> bool:
    """Whether its author has named it, as a stream or as a variable."""
    return bool(variable.stream.name or variable.called) or OUTPUT in variable.names
