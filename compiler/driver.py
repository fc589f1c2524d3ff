"""The compiler: a circuit in, blocks over named lanes out, pass by pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

import compiler.gadgets.core  # noqa: F401 (fails here where an operation has no gadget)
from compiler.analysis.domains import Domains
from compiler.analysis.linear_form import ONE
from compiler.artifact.formats import HUGGING_FACE, writer_of
from compiler.context import Context
from compiler.errors import CompileError
from compiler.exactness.columns import check_columns
from compiler.exactness.compare import compare
from compiler.exactness.decisions import check_decisions
from compiler.exactness.error_bound import error_bound
from compiler.exactness.sums import check_exact, lane_bounds
from compiler.formats import Format, format_of
from compiler.interpreter import interpret, token_ids
from compiler.ir.block import SelectiveBlock
from compiler.language.arguments import instance, integer, path, truth
from compiler.language.circuit import Circuit
from compiler.machines import compile_for, machine_names
from compiler.passes.allocate import Lanes, allocate
from compiler.passes.check import checked
from compiler.passes.common import common
from compiler.passes.fit_ports import fit_ports
from compiler.passes.fold_masks import MaskFolding
from compiler.passes.lower import lower
from compiler.passes.offsets import offsets
from compiler.passes.once import once
from compiler.passes.real_lanes import real_lanes
from compiler.passes.represent import represent
from compiler.passes.rings import rings
from compiler.passes.schedule import Schedule, schedule
from compiler.passes.skip_path import use_skip_path
from compiler.passes.split_reals import split_reals
from compiler.passes.two_digits import two_digits
from compiler.passes.wanted import wanted
from compiler.passes.weigh_rules import weigh_rules
from compiler.targets import target_of
from compiler.targets.target import Target

if TYPE_CHECKING:
    from compiler.machines.fnn_ssm import CompiledNetwork

_Result = TypeVar("_Result")


@dataclass(frozen=True, eq=False)
class Compiled:
    """A compiled circuit, before it is packaged as a module.

    source: the circuit as written (`core` is the one that the blocks compute, stream by stream).
    lanes:  the residual stream; blocks: the block IR, in order.
    head:   (output width × lanes) csr, the last linear map.
    """

    source: Circuit
    context: Context
    schedule: Schedule
    lanes: Lanes
    blocks: tuple[SelectiveBlock, ...]
    head: sparse.csr_array

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
        """What is known of each stream of the core: its lattice, bounds and mass."""
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
        task: Callable[[list[str]], str | None] | str | Path | None = None,
    ) -> None:
        """Write the language model: by default as a checkpoint that Hugging Face loads and `construct verify` verifies.

        It holds the circuit as data, its promise and the names in the weights. CompileError where there is no
        language model of the circuit, CheckpointError where it must not be written there, ExportError where another
        format has no place for it.

        task: what the circuit should answer, a function from the tokens so far to the token that must come next (None:
        nobody asks) or "FILE.py:function"; by default the circuit's own. It is asked about many sequences; where the
        circuit answers otherwise nothing is written (CheckpointError), and `construct verify` asks the model the same.
        """
        from compiler.artifact.artifact import Artifact  # they stand above this module

        truth(overwrite, "overwrite of save")
        write, target = writer_of(format), path(directory, "the directory")
        write(Artifact.of(self, task), target, overwrite)


@overload
def compile(  # type: ignore[overload-overlap]  # a name that is known where it is written tells what comes back
    circuit: Circuit, target: Literal["fnn+ssm"], dtype: str = ..., max_d_state: int | None = ...
) -> CompiledNetwork: ...


@overload
def compile(
    circuit: Circuit, target: str = ..., dtype: str = ..., max_d_state: int | None = ..., n_groups: int = ...
) -> Compiled: ...


def compile(
    circuit: Circuit,
    target: str = "mamba",
    dtype: str = "float32",
    max_d_state: int | None = None,
    n_groups: int = 1,
) -> Compiled | CompiledNetwork:
    """Lower a circuit to blocks of a target: "mamba", "mamba2", "s4d" or "mamba-delta-t"; or to the machine "fnn+ssm".

    dtype: the arithmetic that the promise of exactness is made for ("float32", "bfloat16", "float16").
    max_d_state: how many columns the state of a block may use; keyed memories with more slots are kept in two digits.
        A language model of Mamba-2 has up to 3 columns more, which hold nothing: the CUDA kernels take whole eights.
        None: what the CUDA kernels take (256 of Mamba and of each group of Mamba-2), for memories that can be split.
    n_groups: of Mamba-2, groups of B and C, each with its share of the columns (`targets.mamba2.groups`); a language
        model takes a power of two.

    Raises CompileError with every reason found when the circuit is ill-typed, does not fit
    the target, or could leave the exact range.
    """
    instance(circuit, Circuit, "what is compiled", "a Circuit")
    integer(n_groups, "n_groups", 1)
    if isinstance(target, str) and target in machine_names():
        if n_groups != 1:
            raise ValueError(f"n_groups is {n_groups}, and {target} has no groups of B and C; mamba2 takes several")
        return compile_for(target, circuit, dtype, max_d_state)
    mixer, format = target_of(target).in_groups(n_groups), format_of(dtype)
    meant = checked(circuit)
    if max_d_state is not None:
        integer(max_d_state, "max_d_state", 1)
    compiled = _first_that_fits(meant, mixer, format, max_d_state)
    compare(compiled, circuit)
    return compiled


def _first_that_fits(circuit: Circuit, mixer: Target, format: Format, max_d_state: int | None) -> Compiled:
    """The circuit as written; else what is wanted of it, its constants summed, where bounds decide what they can; else
    that with memories that are written once. CompileError with the reasons of the last.

    Rules get their weights before, and what is compiled is kept with them: so what a file says compiles to the same.
    """
    context = partial(Context.of, target=mixer, format=format, max_d_state=max_d_state)
    try:
        weighed = weigh_rules(circuit, known := context(circuit))
    except CompileError:
        circuit = wanted(circuit)
        weighed = weigh_rules(circuit, known := context(circuit))
    try:
        return _compiled(weighed, weighed, known)
    except CompileError:
        less = offsets(wanted(weighed))
    try:
        return _compiled(weighed, less, context(less, decides=True))
    except CompileError:
        proved = once(less)
        if proved is less:
            raise
    return _compiled(weighed, proved, context(proved, decides=True))


def _compiled(source: Circuit, circuit: Circuit, context: Context) -> Compiled:
    """circuit: the source, or what was proved to equal it."""
    core = common(real_lanes(circuit, context), context)
    core = two_digits(core, context)
    core = rings(core, context)
    return _fewest_blocks(source, core, context)


def _fewest_blocks(weighed: Circuit, core: Circuit, context: Context) -> Compiled:
    """As it is lowered with no mask folded, or with masks folded, or with direct sums of column groups, each where that
    takes fewer blocks than what comes before it.

    A block that only both together would save is given up: masks are folded in a direct sum where one of the two saves
    blocks by itself. Elsewhere the checker does not follow what is stored and read under folded masks (E15).
    """
    fitted = lambda *masks, **options: _fitted(represent(core, context, *masks, **options), context)
    plan = lambda circuit, sums=False: use_skip_path(schedule(circuit, context, sums), context)
    lowering = partial(_lowered, weighed, context)
    plain = fitted()
    unfolded = best = lowering(plan(plain))
    if len(best.blocks) < 2:
        return best
    masks = MaskFolding(context)
    folded = _attempt(lambda: fitted(masks))
    masked = _attempt(lambda: plan(folded)) if folded is not None and masks.any else None
    least = min(found.least for found in (best.schedule, masked) if found is not None)
    best = _fewer(best, masked, lowering)
    if not context.target.sums or least == len(best.blocks):
        return best
    apart = lambda: fitted(MaskFolding(context), apart=True)
    for variant in (lambda: plain, lambda: folded, apart):
        circuit = _attempt(variant)
        joined = _attempt(partial(plan, circuit, True)) if circuit else None
        best = _fewer(best, joined, lowering)
        if best is unfolded:
            return best
    return best


def _attempt(lowering: Callable[[], _Result]) -> _Result | None:
    """None where a circuit cannot be lowered so, such as a ramp that leaves the exact range with its mask."""
    try:
        return lowering()
    except CompileError:
        return None


def _fewer(best: Compiled, plan: Schedule | None, lowering: Callable[[Schedule], Compiled]) -> Compiled:
    """The one with fewer blocks; of direct sums with as many, the one with fewer columns.

    What cannot win is not lowered: weights take longer than their plan.
    """
    if plan is None or len(plan.blocks) > len(best.blocks):
        return best
    if len(plan.blocks) == len(best.blocks) and not (best.schedule.sums and plan.sums):
        return best
    other = _attempt(partial(lowering, plan))
    size = lambda compiled: (len(compiled.blocks), max(block.d_state for block in compiled.blocks))
    return min(best, other, key=size) if other is not None else best


def _fitted(represented: Circuit, context: Context) -> Circuit:
    return fit_ports(split_reals(common(represented, context), context), context)


def _lowered(weighed: Circuit, context: Context, plan: Schedule) -> Compiled:
    lanes = allocate(plan)
    blocks, head = lower(plan, lanes, context)
    for block in blocks:
        context.target.verify(block)  # S4D is printed as a Mamba, too, which has a place for more than an S4D
    check_exact(plan, lanes, blocks, context)
    check_columns(blocks, context)
    check_decisions(plan.circuit, context)
    return Compiled(weighed, context, plan, lanes, blocks, head)


def run_blocks(compiled: Compiled, tokens: np.ndarray) -> list[np.ndarray]:
    """The residual stream before the first block and after each, by the block IR: (batch, time, lanes) float64."""
    streams = [compiled.lanes.embedding[tokens.reshape(-1)].toarray().reshape(*tokens.shape, -1)]
    for block in compiled.blocks:
        streams.append(streams[-1] + block.run(streams[-1]))
    return streams
