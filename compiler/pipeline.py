"""What the compiler does, as data: the passes in order, the strategies for a refused circuit, and the variants that may
take fewer blocks.

The driver reads these three tuples and knows nothing else of what a pass does. A pass takes a *form* of the circuit and
the context to the next ones and changes neither: circuits up to the pass `schedule`, then the forms of this file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, Literal, TypeAlias

from scipy import sparse

import compiler.gadgets.core  # noqa: F401 (fails here where an operation has no gadget)
from compiler.compiled import Compiled
from compiler.context import Choices, Context
from compiler.errors import CompileError
from compiler.exactness.columns import check_columns
from compiler.exactness.compare import compare
from compiler.exactness.decisions import check_decisions
from compiler.exactness.sums import check_exact
from compiler.ir.block import SelectiveBlock
from compiler.language.circuit import Circuit
from compiler.passes.allocate import Lanes, allocate
from compiler.passes.check import check
from compiler.passes.common_subexpressions import common_subexpressions
from compiler.passes.dead_code import dead_code
from compiler.passes.fit_ports import fit_ports
from compiler.passes.lower import lower
from compiler.passes.offsets import offsets
from compiler.passes.once import once
from compiler.passes.represent import represent
from compiler.passes.rings import rings
from compiler.passes.rule_weights import rule_weights
from compiler.passes.schedule import Schedule, schedule
from compiler.passes.skip_path import use_skip_path
from compiler.passes.split_reals import split_reals
from compiler.passes.two_digits import two_digits
from compiler.passes.type_splitting import type_splitting
from compiler.passes.zeros import zeros

Stage: TypeAlias = Literal["checked", "source", "core", "fitted", "plan", "blocks", "compared"]
"""What a pass works towards. A refused circuit is tried again from the beginning of "checked", "source" or "core"."""


@dataclass(frozen=True)
class Pass:
    """One pass: (form, context) → (form, context). does: one sentence, which the pages and the command print."""

    name: str
    stage: Stage
    run: Callable[[Any, Context], tuple[Any, Context]]
    does: str


@dataclass(frozen=True)
class Strategy:
    """What is tried when a circuit is refused: (circuit, context, refusal) → what to try, or the same where it has
    nothing to try.

    answers: the stage from which the circuit is tried again.
    """

    name: str
    answers: Stage
    run: Callable[[Circuit, Context, CompileError], tuple[Circuit, Context]]
    does: str


@dataclass(frozen=True)
class Variant:
    """What is tried where it may take fewer blocks: the choices that the passes then make."""

    name: str
    choices: Choices
    does: str


@dataclass(frozen=True, eq=False)
class Lowered:
    """A planned circuit with its lanes, and behind the pass `lower` with its blocks and its last linear map."""

    plan: Schedule
    lanes: Lanes
    blocks: tuple[SelectiveBlock, ...] = ()
    head: sparse.csr_array | None = None


def _checked(circuit: Circuit, context: Context) -> tuple[Circuit, Context]:
    check(circuit)
    return circuit, context


def _bounded(circuit: Circuit, context: Context) -> tuple[Circuit, Context]:
    return circuit, context.bounding(circuit)


def _scheduled(circuit: Circuit, context: Context) -> tuple[Schedule, Context]:
    return schedule(circuit, context, context.choices.sums), context


def _skipping(plan: Schedule, context: Context) -> tuple[Schedule, Context]:
    return use_skip_path(plan, context), context


def _allocated(plan: Schedule, context: Context) -> tuple[Lowered, Context]:
    return Lowered(plan, allocate(plan)), context


def _lowered(form: Lowered, context: Context) -> tuple[Lowered, Context]:
    blocks, head = lower(form.plan, form.lanes, context)
    for block in blocks:
        context.target.verify(block)  # S4D is printed as a Mamba, too, which has a place for more than an S4D
    return replace(form, blocks=blocks, head=head), context


def _exact(form: Lowered, context: Context) -> tuple[Lowered, Context]:
    check_exact(form.plan, form.lanes, form.blocks, context)
    return form, context


def _with_columns(form: Lowered, context: Context) -> tuple[Lowered, Context]:
    check_columns(form.blocks, context)
    return form, context


def _decided(form: Lowered, context: Context) -> tuple[Lowered, Context]:
    check_decisions(form.plan.circuit, context)
    return form, context


def _compared(form: tuple[Compiled, Circuit], context: Context) -> tuple[tuple[Compiled, Circuit], Context]:
    compare(*form)
    return form, context


PASSES: tuple[Pass, ...] = (
    Pass("check", "checked", _checked, "Refuses ill-typed and non-causal circuits, with all reasons at once."),
    Pass(
        "domains",
        "source",
        _bounded,
        "Finds for every stream its quantum, its bounds, and how much one position and a whole sequence can hold.",
    ),
    Pass("rule weights", "source", rule_weights, "Gives each rule over scores a weight that wins."),
    Pass(
        "type splitting",
        "core",
        type_splitting,
        "Takes streams apart that hold real numbers and integers side by side.",
    ),
    Pass("common subexpressions", "core", common_subexpressions, "Makes equal streams one."),
    Pass(
        "two digits",
        "core",
        two_digits,
        "Keeps a memory with more slots than a state may have columns by a high digit over channels and a low one over "
        "columns.",
    ),
    Pass(
        "rings",
        "core",
        rings,
        "Reads what lies far back from a ring of places, where a chain of blocks would be longer.",
    ),
    Pass(
        "represent",
        "fitted",
        represent,
        "Rewrites every operation into the few that a block computes; functions of one token fold into the embedding.",
    ),
    Pass("common subexpressions", "fitted", common_subexpressions, "Makes equal streams one, among the new ones, too."),
    Pass(
        "zeros",
        "fitted",
        zeros,
        "Puts the constant zero for lanes that are zero by their bounds, and would be computed of real numbers.",
    ),
    Pass("split reals", "fitted", split_reals, "Lets real numbers through silu as the pair silu(x) − silu(−x) = x."),
    Pass(
        "fit ports",
        "fitted",
        fit_ports,
        "Brings every operand into the shape that its port takes on the target, by blocks of its own where it must.",
    ),
    Pass(
        "schedule",
        "plan",
        _scheduled,
        "Puts each operation into the earliest block that has its operands; a block holds one group of state columns.",
    ),
    Pass(
        "skip path",
        "plan",
        _skipping,
        "Spares a single block its residual, where its own D path can put out what the head reads of the input.",
    ),
    Pass(
        "allocate",
        "blocks",
        _allocated,
        "Gives a named lane to each number that the residual stream must hold.",
    ),
    Pass("lower", "blocks", _lowered, "Asks each operation's gadget for its channels and columns in the block IR."),
    Pass(
        "check exact",
        "blocks",
        _exact,
        "Bounds every sum that a block forms, and refuses what leaves the integers of the dtype.",
    ),
    Pass("check columns", "blocks", _with_columns, "Refuses states with more columns than the author allowed."),
    Pass("check decisions", "blocks", _decided, "Refuses flags of real numbers that may be off by more than the gap."),
    Pass(
        "compare",
        "compared",
        _compared,
        "Runs the blocks beside the circuit as written, on short strings and random walks, and lets no difference out.",
    ),
)


def _small_constants(circuit: Circuit, context: Context, refusal: CompileError) -> tuple[Circuit, Context]:
    """Without constants that no float holds, where nothing needs them: whether something does shows once all else is
    right, so until then the other reasons are told alone.
    """
    others = [(s, reason) for s, reason in refusal.reasons if s is None or s.operation.constants is None]
    if others:
        raise CompileError(others)
    return offsets(dead_code(circuit)), context


def _read(circuit: Circuit, context: Context, refusal: CompileError) -> tuple[Circuit, Context]:
    return dead_code(circuit), context


def _summed(circuit: Circuit, context: Context, refusal: CompileError) -> tuple[Circuit, Context]:
    return offsets(dead_code(circuit)), replace(context, choices=replace(context.choices, decides=True))


def _written_once(circuit: Circuit, context: Context, refusal: CompileError) -> tuple[Circuit, Context]:
    return once(circuit), context


STRATEGIES: tuple[Strategy, ...] = (
    Strategy(
        "small constants",
        "checked",
        _small_constants,
        "Leaves out constants that no float holds, where the output is not made of them or they cancel.",
    ),
    Strategy("dead code", "source", _read, "Leaves out what no number of the output is made of."),
    Strategy(
        "offsets",
        "core",
        _summed,
        "Leaves out dead code, sums numbers that are added exactly, and makes constants of what bounds decide.",
    ),
    Strategy(
        "once",
        "core",
        _written_once,
        "On top of that, bounds additive memories by one write, where no slot can be written twice.",
    ),
)

VARIANTS: tuple[Variant, ...] = (
    Variant("fold masks", Choices(folds_masks=True), "Puts conditions into the ramps of what they mask."),
    Variant("direct sums", Choices(sums=True), "Lets one block hold several groups of state columns."),
    Variant("direct sums, masks folded", Choices(sums=True, folds_masks=True), "Does both."),
    Variant(
        "direct sums, keys apart",
        Choices(sums=True, folds_masks=True, apart=True),
        "Does both, with keys that are zero where nothing is written, so that memories leave each other alone.",
    ),
)


@singledispatch
def measured(form: object) -> str:
    """How large a form of the circuit is, in words."""
    raise TypeError(f"a {type(form).__name__} is no form of a circuit")


@measured.register
def _(form: Circuit) -> str:
    return f"{len(form.streams)} streams"


@measured.register
def _(form: Schedule) -> str:
    return _counted(len(form.blocks), "block")


@measured.register
def _(form: Lowered) -> str:
    channels = sum(len(block.channels.names) for block in form.blocks)
    columns = max((block.d_state for block in form.blocks), default=0)
    lanes = _counted(form.lanes.count, "lane")
    return lanes if form.head is None else f"{lanes}, {_counted(channels, 'channel')}, {_counted(columns, 'column')}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
