"""A compiled circuit: blocks over named lanes, and what is known of the streams that they compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from compiler.analysis.affine_form import ONE
from compiler.analysis.domains import Domains
from compiler.artifact.formats import HUGGING_FACE, writer_of
from compiler.context import Context
from compiler.exactness.error_bound import error_bound
from compiler.exactness.sums import lane_bounds
from compiler.interpreter import interpret, token_ids
from compiler.ir.block import SelectiveBlock
from compiler.language.arguments import path, truth
from compiler.language.circuit import Circuit
from compiler.passes.allocate import Lanes
from compiler.passes.schedule import Schedule
from compiler.steps import Step

Task: TypeAlias = Callable[[list[str]], str | None] | str | Path | None


@dataclass(frozen=True, eq=False, repr=False)
class Compiled:
    """A compiled circuit, before it is packaged as a module.

    source: the circuit as written (`core` is the one that the blocks compute, stream by stream).
    lanes:  the residual stream; blocks: the block IR, in order.
    head:   (output width × lanes) csr, the last linear map.
    packed: makes of this and a task what the output formats write. It needs torch, and stands above this module.
    steps:  what the passes did.
    """

    source: Circuit
    context: Context
    schedule: Schedule
    lanes: Lanes
    blocks: tuple[SelectiveBlock, ...]
    head: sparse.csr_array
    packed: Callable[[Compiled, Task], Any] = field(repr=False)
    steps: tuple[Step, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        """In one line, for a notebook shows it."""
        count = len(self.blocks)
        size = f"{count} block{'s' * (count != 1)}, {self.lanes.count} lanes"
        return f"<Compiled {self.source.name} for {self.context.target.name} in {self.dtype}: {size}>"

    @property
    def core(self) -> Circuit:
        """The circuit that the blocks compute, behind all passes."""
        return self.schedule.circuit

    @property
    def dtype(self) -> str:
        """The arithmetic of the promise, such as "float32"."""
        return self.context.format.name

    @property
    def max_d_state(self) -> int | None:
        """The columns that a state may have, where the author said so."""
        return self.context.columns.most if self.context.columns.asked else None

    @property
    def domains(self) -> Domains:
        """What is known of each stream of the core: its lattice, bounds and total."""
        return self.context.domains

    @cached_property
    def error_bound(self) -> float | None:
        """How far a float32 module can be from `interpret` in any output, at most: 0 where it is exact, None where no
        bound is known.
        """
        return self.error_bound_within(float("inf"))

    def error_bound_within(self, reach: float) -> float | None:
        """The same where no real input exceeds `reach`: what is declared for them is often far more than is used."""
        return error_bound(self.core, self.domains, self.context.format, self.context.target.chunk, reach)

    def interpret(self, tokens: ArrayLike) -> np.ndarray:
        """What the circuit as written gives, exactly: (batch, time, width) float64 from (batch, time) ids.

        float64 arrays are used where no sum of any stream leaves 2^51 quanta, Python integers and
        Fractions otherwise.
        """
        ids = token_ids(tokens, self.source.token_alphabet.size)
        values = interpret(self.source, ids, dtype=self.domains.exact_dtype(self.source))
        return np.ascontiguousarray(values[self.source.output], dtype=np.float64)

    def lane_values(self, tokens: np.ndarray) -> np.ndarray:
        """What every lane should hold once it is written, by the interpreter: (batch, time, lanes) float64."""
        atoms = [s for s in self.lanes.index if s is not ONE]
        values = interpret(self.core, tokens, keep=atoms, dtype=self.domains.exact_dtype(self.core))
        result = np.ones((*tokens.shape, self.lanes.count))
        for atom in atoms:
            held = self.lanes.index[atom] >= 0
            result[..., self.lanes.index[atom][held]] = values[atom][..., held]
        return result

    def lane_bounds(self) -> np.ndarray:
        """A bound on |value| of every lane at every position: (lanes,)."""
        return lane_bounds(self.schedule, self.lanes, self.domains)

    def save(
        self,
        directory: str | Path,
        overwrite: bool = False,
        format: str = HUGGING_FACE,
        task: Task = None,
    ) -> None:
        """Write the language model: by default as a checkpoint that Hugging Face loads and `construct verify` verifies.

        It holds the circuit as data, its promise and the names in the weights. CompileError where there is no
        language model of the circuit, CheckpointError where it must not be written there, ExportError where another
        format has no place for it.

        task: what the circuit should answer, a function from the tokens so far to the token that must come next (None:
        nobody asks) or "FILE.py:function"; by default the circuit's own. It is asked about many sequences; where the
        circuit answers otherwise nothing is written (CheckpointError), and `construct verify` asks the model the same.
        """
        truth(overwrite, "overwrite of save")
        write, target = writer_of(format), path(directory, "the directory")
        write(self.packed(self, task), target, overwrite)


def run_blocks(compiled: Compiled, tokens: np.ndarray) -> list[np.ndarray]:
    """The residual stream before the first block and after each, by the block IR: (batch, time, lanes) float64."""
    streams = [compiled.lanes.embedding[tokens.reshape(-1)].toarray().reshape(*tokens.shape, -1)]
    for block in compiled.blocks:
        streams.append(streams[-1] + block.run(streams[-1]))
    return streams
