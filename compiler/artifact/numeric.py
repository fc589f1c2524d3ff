"""Package circuits over numbers: a bare stack that takes float lanes instead of tokens.

The lanes, in order: the numbers of each input stream that the circuit reads, and the constant
`one`, which the packing fills in. Everything else (blocks, residual, head) is `package.bare`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from compiler.artifact.package import bare
from compiler.driver import Compiled
from compiler.interpreter import interpret
from compiler.language import operations as ops
from compiler.language.stream import Stream
from compiler.language.types import Bool, OneHot

Inputs = Mapping[Stream, np.ndarray]  # for each numeric input (batch, time, width)


class NumericStack(nn.Module):
    """Blocks and a linear head over float lanes: h ← [h +] block(h), then head(h).

    lanes: names of the input lanes; constant: (d_model,) what every position starts from (`one` = 1).
    seats: for each input stream the lane of each of its numbers, −1 for numbers that nobody reads.
    """

    def __init__(self, compiled: Compiled):
        super().__init__()
        if compiled.source.alphabet is not None:
            raise ValueError("the circuit reads tokens; `package.bare` runs it.")
        stack = bare(compiled)
        self.blocks, self.head, self.residual = stack.blocks, stack.head, stack.residual
        self.register_buffer("constant", stack.embedding.weight.detach()[0].clone())
        self.lanes = compiled.lanes.names[: compiled.lanes.n_inputs]
        seats = {s.operation: at for s, at in compiled.lanes.index.items() if isinstance(s.operation, ops.Numbers)}
        self.seats = {s: seats[s.operation] for s in compiled.source.streams if s.operation in seats}

    def pack(self, inputs: Inputs) -> torch.Tensor:
        """(batch, time, d_model) lanes from the values of the input streams.

        ValueError where one is missing or outside its type.
        """
        shape = next(iter(inputs.values())).shape[:2]
        lanes = self.constant.expand(*shape, -1).clone()
        for stream, seats in self.seats.items():
            if stream not in inputs:
                raise ValueError(f"numeric input {stream.label!r} has no values.")
            values = np.asarray(inputs[stream], dtype=np.float64)
            _check_range(stream, values)
            held = seats >= 0
            lanes[..., seats[held]] = torch.from_numpy(values[..., held]).to(lanes)
        return lanes

    def forward(self, lanes: torch.Tensor) -> torch.Tensor:
        """(batch, time, d_model) to (batch, time, outputs)."""
        for block in self.blocks:
            lanes = lanes + block(lanes) if self.residual else block(lanes)
        return self.head(lanes)

    def run(self, inputs: Inputs) -> np.ndarray:
        """The outputs for input values, as float64: (batch, time, outputs)."""
        with torch.no_grad():
            return self(self.pack(inputs)).double().numpy()


def reference(compiled: Compiled, inputs: Inputs) -> np.ndarray:
    """What the circuit means, in Python integers and Fractions: (batch, time, outputs) objects."""
    return interpret(compiled.source, inputs=inputs)[compiled.source.output]


def _check_range(stream: Stream, values: np.ndarray) -> None:
    """The promises of a circuit hold on the declared types only."""
    flags = isinstance(stream.type, (Bool, OneHot))
    lo, hi = (0, 1) if flags else (stream.type.lo, stream.type.hi)
    wrong = ~np.isfinite(values)
    wrong |= values < (-np.inf if lo is None else lo)
    wrong |= values > (np.inf if hi is None else hi)
    if stream.type.integral:
        wrong |= values != np.round(values)
    if wrong.any():
        raise ValueError(f"numeric input {stream.label!r} holds {values[wrong][0]:g}, which is no {stream.type}.")
