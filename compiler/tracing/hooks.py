"""Where other libraries find a variable: the module of Hugging Face's model, the lanes of its output, and the decoding.

The output of the module of the embedding (`backbone.embeddings` of Mamba), or of a layer (`backbone.layers.i`), is the
residual stream (batch, time, d_model). Lane i of the circuit is its coordinate i, or, in a disguised model, a sum of
coordinates. So a variable is read from, or set in, one tensor; no part of this package runs the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compiler.tracing.decoding import Decoder
from compiler.tracing.forward import set_lanes
from compiler.tracing.intervention import LaneSetting, lane_bounds
from compiler.tracing.truth import Truth
from compiler.tracing.variables import NoVariable, Variable


@dataclass(frozen=True, eq=False)
class Hook:
    """A variable in the output of a module.

    module: its path in Hugging Face's model; layer: its number among the layers, −1 for the embedding.
    lanes: the coordinates of d_model that it is read from; matrix: of each lag, value(t) = Σ matrix (width × lanes) ·
        lanes(t − lag).
    """

    name: str
    module: str
    layer: int
    lanes: tuple[int, ...]
    matrix: dict[int, np.ndarray]
    _truth: Truth = field(repr=False)
    _variable: Variable = field(repr=False)

    @property
    def transformer_lens(self) -> str:
        """The hook of TransformerLens's bridge at which the same tensor passes."""
        return "embed.hook_out" if self.layer < 0 else f"blocks.{self.layer}.hook_out"

    @property
    def _decoder(self) -> Decoder:
        return self._truth.decoder(self.name)

    def raw(self, hidden: Tensor) -> np.ndarray:
        """The numbers of the variable in the module's output: (batch, time, width) float64."""
        basis, stream = self._truth.basis, hidden.detach().cpu()
        stream = stream if basis is None else basis.lanes(stream)
        lanes = stream[..., : self._truth.compiled.lanes.count].double().numpy()
        found = self._truth.variables.numbers(self._variable, lanes)
        if found is None:
            raise ValueError(f"the numbers of {self.name!r} on lanes do not tell its value, of which one has no lane")
        return found

    def read(self, hidden: Tensor) -> list[list[Any]]:
        """The variable, decoded: for each sequence of the batch a list with one entry a position."""
        return [self._decoder.decode(sequence) for sequence in self.raw(hidden)]

    def write(self, hidden: Tensor, position: int, value: Any) -> Tensor:
        """The module's output with the variable set at a position of every sequence; the tensor itself is not changed.

        value: decoded, or a list of numbers. NotCarried or ValueError for what cannot be set; a variable that is also
        held by others (`Carrier.tables`) cannot be set at one module alone, and says so.
        """
        carrier = self._truth.carriers.of(self._variable)
        if carrier.tables:
            names = ", ".join(repr(table.name) for table in carrier.tables)
            raise ValueError(f"{self.name!r} is held by the embedding together with {names}; set it by model.patch")
        where = np.zeros(hidden.shape[:2], dtype=bool)
        where[:, position] = True
        numbers = np.broadcast_to(self._decoder.encode(value), (*hidden.shape[:2], self._variable.width))
        reading, compiled = self._variable.reading, self._truth.compiled
        assert reading is not None, "what can be set stands on lanes"
        setting = LaneSetting(self.name, reading.parts[0], reading.missing, lane_bounds(compiled), where, numbers)
        with torch.no_grad():
            return set_lanes(hidden, compiled.lanes, [setting], self._truth.basis)


class Hooks(dict[str, Hook]):
    """The hooks by the names of their variables. Other names of a variable find it as well; NoVariable where there is
    no variable, or where it stands on no lanes, with the nearest names or the reason.
    """

    def __init__(self, truth: Truth, found: dict[str, Hook]):
        super().__init__(found)
        self._truth = truth

    def __missing__(self, name: str) -> Hook:
        variable = self._truth.variables[name]
        if variable.name in self:
            return self[variable.name]
        raise NoVariable(f"{name!r} {self._why(variable)}; variables with a hook are {', '.join(map(repr, self))}")

    def _why(self, variable: Variable) -> str:
        if variable.stream is self._truth.compiled.source.output:
            return "is the output, which stands in the model's logits and has no hook"
        if variable.constant:
            return "is the same at every position and has no hook"
        return "is computed within a block and stands on no lane, so no module's output holds it"


def hooks(truth: Truth) -> Hooks:
    """The hooks of all variables that stand on lanes, by name."""
    found = {}
    family = truth.compiled.context.target.family
    assert family is not None, "a language model has one"
    for variable in truth.variables:
        reading = variable.reading
        if reading is None or variable.constant or variable.stream is truth.compiled.source.output:
            continue
        whole = {lag: part.toarray() for lag, part in reading.parts.items()}
        lanes = tuple(reading.lanes.tolist())
        if truth.basis is not None:
            whole = {lag: part @ truth.basis.back[: part.shape[1]] for lag, part in whole.items()}
            lanes = tuple(np.flatnonzero(sum(np.abs(part).sum(axis=0) for part in whole.values())).tolist())
        matrix = {lag: part[:, list(lanes)] for lag, part in whole.items()}
        module = family.stream_name(reading.after)
        found[variable.name] = Hook(variable.name, module, reading.after - 1, lanes, matrix, truth, variable)
    return Hooks(truth, found)
