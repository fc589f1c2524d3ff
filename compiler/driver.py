"""The compiler: a circuit in, blocks over named lanes out, by the passes of `compiler.pipeline`."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, overload

from compiler.compiled import Compiled, Task
from compiler.context import Choices, Context
from compiler.errors import CompileError, TooLong
from compiler.formats import format_of
from compiler.language.arguments import instance, integer
from compiler.language.circuit import Circuit
from compiler.machines import compile_for, machine_names
from compiler.passes.schedule import Schedule
from compiler.pipeline import VARIANTS, Lowered
from compiler.run import Run
from compiler.shorter import at_length, fits, naming
from compiler.steps import AS_WRITTEN
from compiler.targets import target_of

_YOUNG = 20_000  # objects

if TYPE_CHECKING:
    from compiler.artifact.artifact import Artifact
    from compiler.machines.fnn_ssm import CompiledNetwork


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
    """Lower a circuit to blocks of a target: "mamba", "mamba2", "s4d", "mamba-delta-t", "gated-deltanet" or
    "gated-deltanet-qwen"; or to the machine "fnn+ssm".

    dtype: the arithmetic that the promise of exactness is made for ("float32", "bfloat16", "float16").
    max_d_state: how many columns the state of a block may use; keyed memories with more slots are kept in two digits.
        A language model of Mamba-2 has up to 3 columns more, which hold nothing: the CUDA kernels take
        whole eights of convolved channels, d_inner + 2·n_groups·d_state.
        None: what the CUDA kernels take (256 of Mamba and of each group of Mamba-2), for memories that can be split.
    n_groups: of Mamba-2, groups of B and C, each with its share of the columns (`targets.mamba2.groups`); a language
        model takes a power of two.

    Raises CompileError with every reason found when the circuit is ill-typed, does not fit
    the target, or could leave the exact range.
    """
    instance(circuit, Circuit, "what is compiled", "a Circuit")
    if isinstance(target, str) and target in machine_names():
        if n_groups != 1:
            raise ValueError(f"n_groups is {n_groups}, and {target} has no groups of B and C; mamba2 takes several")
        return compile_for(target, circuit, dtype, max_d_state)
    return compiled_or_told(circuit, target, dtype, max_d_state, n_groups)


def compiled_or_told(
    circuit: Circuit,
    target: str,
    dtype: str,
    max_d_state: int | None,
    n_groups: int,
    tried: Callable[[int], object] | None = None,
    said: Callable[[int], str] = fits,
) -> Compiled:
    """`compile` to a target. tried: makes what is promised up to another length, and raises ValueError where that is
    refused; None: compiles the same circuit. A refusal names no length but one that was tried. said: how it is named.
    """
    try:
        return compiled_once(circuit, target, dtype, max_d_state, n_groups)
    except TooLong as refusal:
        again = lambda length: compiled_once(at_length(circuit, length), target, dtype, max_d_state, n_groups)
        told = naming(refusal, circuit, tried or again, said)
        told.steps = refusal.steps
        raise told from None


def compiled_once(
    circuit: Circuit, target: str, dtype: str, max_d_state: int | None = None, n_groups: int = 1
) -> Compiled:
    """The same without another try."""
    integer(n_groups, "n_groups", 1)
    mixer, format = target_of(target).in_groups(n_groups), format_of(dtype)
    if max_d_state is not None:
        integer(max_d_state, "max_d_state", 1)
    run = _Compilation()
    try:
        with _rare_collections():
            return run.compiled(circuit, Context.empty(circuit, mixer, format, max_d_state))
    except CompileError as refusal:
        refusal.steps = tuple(run.steps)
        raise


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Let Python look for unreachable cycles once in 20,000 new objects at most: what a compilation makes it keeps, and
    each look goes over all of it.
    """
    young, *older = gc.get_threshold()
    gc.set_threshold(young and max(young, _YOUNG), *older)  # 0: the caller wants none
    try:
        yield
    finally:
        gc.set_threshold(young, *older)


class _Compilation(Run):
    """A run from the circuit as written to its blocks."""

    def compiled(self, circuit: Circuit, context: Context) -> Compiled:
        """The circuit as written, or else as the first strategy makes it that fits. What is compiled is kept with its
        rules' weights, and before any strategy for what comes behind them: so what a file says compiles to the same.
        """
        meant: Circuit
        source: Circuit
        meant, context = self.first("checked", circuit, context)
        source, context = self.first("source", meant, context)

        def lowered(circuit: Circuit, context: Context) -> tuple[Lowered, Context]:
            known = context if circuit is source else context.bounding(circuit)
            return self._fewest_blocks(*self.through("core", circuit, known))

        form, context = self.first("core", source, context, lowered)
        assert form.head is not None, "the pass lower has made it"
        parts = form.plan, form.lanes, form.blocks, form.head
        compiled = Compiled(source, context, *parts, packed=_packed)
        self.through("compared", (compiled, circuit), context)
        return replace(compiled, steps=tuple(self.steps))

    def _fewest_blocks(self, core: Circuit, context: Context) -> tuple[Lowered, Context]:
        """The core as it is lowered plainly, or by a variant that takes fewer blocks than all before it.

        A block that only masks and direct sums together would save is given up: masks are folded in a direct sum where
        one of the two saves blocks by itself. Elsewhere the checker does not follow what is stored and read under
        folded masks (E15).
        """
        attempt, fitted = self.attempt, dict[Choices, tuple[Circuit, Context]]()
        plan, known = self._planned(core, context, fitted)
        plain = best = unsummed = self.through("blocks", plan, known)
        least = plan.least
        for variant in VARIANTS if len(plan.blocks) > 1 else ():
            choices = replace(variant.choices, decides=context.choices.decides)
            if choices.sums and (not context.target.sums or len(unsummed[0].blocks) == least):
                continue
            if choices.sums and choices.folds_masks and best is plain:
                continue
            self.attempt = variant.name if attempt == AS_WRITTEN else f"{attempt}, {variant.name}"
            try:
                plan, known = self._planned(core, replace(context, choices=choices), fitted)
                least = min(least, least if choices.sums else plan.least)
                best = self._better(best, plan, known)
            except CompileError:
                continue
            unsummed = unsummed if choices.sums else best
        self.attempt = attempt
        return best

    def _planned(self, core: Circuit, context: Context, fitted: dict) -> tuple[Schedule, Context]:
        """The blocks of the core under these choices. fitted: what was fitted to the ports under the same ones."""
        choices = replace(context.choices, sums=False)
        if choices not in fitted:
            fitted[choices] = self.through("fitted", core, context)
        circuit, known = fitted[choices]
        return self.through("plan", circuit, replace(known, choices=context.choices))

    def _better(self, best: tuple[Lowered, Context], plan: Schedule, context: Context) -> tuple[Lowered, Context]:
        """The one with fewer blocks; of direct sums with as many, the one with fewer columns.

        What cannot win is not lowered: weights take longer than their plan.
        """
        blocks, sums = len(best[0].blocks), best[0].plan.sums and plan.sums
        if len(plan.blocks) > blocks or (len(plan.blocks) == blocks and not sums):
            self.note("lower", f"left out: {len(plan.blocks)} blocks are no fewer than {blocks}")
            return best
        return min(best, self.through("blocks", plan, context), key=lambda made: _size(made[0]))


def _size(form: Lowered) -> tuple[int, int]:
    return len(form.blocks), max(block.d_state for block in form.blocks)


def _packed(compiled: Compiled, task: Task) -> Artifact:
    from compiler.artifact.artifact import Artifact  # torch is imported where a model is made

    return Artifact.of(compiled, task)
