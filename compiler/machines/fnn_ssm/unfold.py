"""Pass of fnn+ssm, unfold: what is left after `represent` as linear maps, rectifiers, delays and running sums.

The machine has linear filters over the past and ReLU networks at each position; nothing of it erases, and nothing
multiplies two numbers. So

- a gate is a rectifier: relu(x + M(flag − 1)) is x ≥ 0 where the flag is 1, and 0 where it is 0, for M ≥ x;
- an additive memory is a running sum of each key's gated values, gated by the query;
- whether a flag ever held is min(running sum, 1);
- a latch keeps every value that was written, each under the number of its write, and gates the latest out;
- a product of integers is (a + b)²/4 − (a − b)²/4, squares being linear between the integers.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import floor

import numpy as np
from scipy import sparse

from compiler.analysis.affine_form import affine_form, constant_levels
from compiler.analysis.exact_matrices import exact_rows
from compiler.context import Context
from compiler.errors import CompileError
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.lanes import copies_added, in_groups, repeated, tiled
from compiler.language.stream import Stream
from compiler.language.types import Bool
from compiler.passes.represent.rectifiers import masked
from compiler.passes.represent.rewriter import Rewriter, Rules, rule_of

RULES: Rules = {}
MOST_KINKS = 1 << 12  # of one square: a rectifier each
MOST_KEPT = 1 << 14  # lanes of the writes that a latch keeps

_FADES = "its filters are cosines over a window, and none of them fades; use mamba or mamba2"


def unfold(circuit: Circuit, context: Context) -> tuple[Circuit, Context]:
    """The same circuit over Embed, Constant, Linear, Shift, Relu and Cumsum; CompileError with every reason."""
    rewriter = Rewriter(RULES, context.domains.draft(), circuit.alphabet)
    reasons: list[tuple[Stream | None, str]] = []
    for stream in circuit.streams:
        try:
            rewriter.rewrite(stream)
        except NotImplementedError as error:
            reasons.append((stream, str(error)))
            rewriter.left(stream)
    if reasons:
        raise CompileError(reasons)
    return replace(circuit, output=rewriter.core[circuit.output]), context.knowing(rewriter.domains)


@rule_of(RULES, ops.Embed, ops.Constant, ops.Linear, ops.Emit, ops.Shift, ops.Relu, ops.Cumsum)
def _as_it_is(rewriter: Rewriter, operation: ops.Operation, *inputs: Stream) -> Stream:
    return Stream(operation, inputs)


@rule_of(RULES, ops.Settled)
def _settled(rewriter: Rewriter, operation: ops.Settled, x: Stream) -> Stream:
    return x.relu()


@rule_of(RULES, ops.Numbers)
def _numbers(rewriter: Rewriter, operation: ops.Numbers) -> Stream:
    raise NotImplementedError("fnn+ssm embeds tokens, and this is a numeric input; use Tokens(alphabet).number(…)")


@rule_of(RULES, ops.FadingSum, ops.SelectiveSum, ops.FadingMemory)
def _fading(rewriter: Rewriter, operation: ops.Operation, *inputs: Stream) -> Stream:
    raise NotImplementedError(f"fnn+ssm has no lowering of {operation.symbol}: {_FADES}")


@rule_of(RULES, ops.SiluProduct)
def _silu_product(rewriter: Rewriter, operation: ops.SiluProduct, a: Stream, b: Stream) -> Stream:
    raise NotImplementedError("fnn+ssm has ReLU and no SiLU; a * b is exact there")


# Memories --------------------------------------------------------------------------------------------


@rule_of(RULES, ops.MemoryRead)
def _memory(rewriter: Rewriter, operation: ops.MemoryRead, value: Stream, key: Stream, query: Stream) -> Stream:
    """Lane (n, i) of the bank is the running sum of value_i where key_n; the query gates the bank."""
    domains, keys, lanes = rewriter.domains, key.width, value.width
    sums = _product(rewriter, tiled(value, keys), repeated(key, lanes)).cumsum()
    domains.bounded(sums, np.tile(domains.cells(Stream(operation, (value, key, query))), keys))
    return copies_added(_product(rewriter, sums, repeated(query, lanes)), keys)


@rule_of(RULES, ops.GateSum)
def _gate_sum(rewriter: Rewriter, operation: ops.GateSum, bank: Stream, gate: Stream) -> Stream:
    lanes = bank.width // gate.width
    return copies_added(_product(rewriter, bank, repeated(gate, lanes)), gate.width)


@rule_of(RULES, ops.SumWhere)
def _sum_where(rewriter: Rewriter, operation: ops.SumWhere, value: Stream, when: Stream) -> Stream:
    return _product(rewriter, tiled(value, when.width), repeated(when, value.width)).cumsum()


@rule_of(RULES, ops.Latch)
def _latch(rewriter: Rewriter, operation: ops.Latch, value: Stream, when: Stream) -> Stream:
    """The last value under each flag: as a sum where there is one write at most, else by the number of the write."""
    most = floor(rewriter.domains.of(when).total)
    levels = constant_levels(affine_form(value), value.width)
    if levels is not None:
        seen = when.cumsum()
        return in_groups(levels, seen if most <= 1 else _at_most_one(seen))
    if most <= 1:
        return _sum_where(rewriter, ops.SumWhere(), value, when)
    flags, lanes = when.width, value.width
    if flags * lanes * most > MOST_KEPT:
        raise NotImplementedError(
            f"fnn+ssm forgets nothing, so a latch keeps each of up to {most} writes under {flags} flag(s), "
            f"{flags * lanes * most} lanes in all, and {MOST_KEPT} is the most; "
            f"a promise of {max(1, MOST_KEPT // (flags * lanes))} positions works"
        )
    number = _one_hots(when.cumsum(), most)
    stored = _gated(
        rewriter, tiled(value, flags * most), repeated(number, lanes), repeated(repeated(when, most), lanes)
    )
    kept = stored.cumsum()
    bounds = np.tile(rewriter.domains.of(value).bounds, flags * most)
    rewriter.domains.bounded(kept, bounds)
    read = _product(rewriter, kept, repeated(number, lanes))
    return in_groups(sparse.kron(np.ones((1, most)), sparse.eye_array(lanes)), read)


@rule_of(RULES, ops.Count)
def _count(rewriter: Rewriter, operation: ops.Count, when: Stream, reset: Stream) -> Stream:
    """The running sum, less what it was at the last reset."""
    total = when.cumsum()
    return total - _latch(rewriter, ops.Latch(), total, reset)


# Products --------------------------------------------------------------------------------------------


@rule_of(RULES, ops.Multiply)
def _multiply(rewriter: Rewriter, operation: ops.Multiply, a: Stream, b: Stream) -> Stream:
    width = max(a.width, b.width)
    return _product(
        rewriter, a if a.width == width else repeated(a, width), b if b.width == width else repeated(b, width)
    )


@rule_of(RULES, ops.Dot)
def _dot(rewriter: Rewriter, operation: ops.Dot, a: Stream, b: Stream) -> Stream:
    return _product(rewriter, a, b).sum()


@rule_of(RULES, ops.ScaledSum)
def _scaled_sum(rewriter: Rewriter, operation: ops.ScaledSum, value: Stream, weight: Stream, gate: Stream) -> Stream:
    sums = _product(rewriter, value, weight).cumsum()
    rewriter.domains.bounded(
        sums, np.full(sums.width, float(rewriter.domains.sum_bound(Stream(operation, (value, weight, gate)))))
    )
    return _product(rewriter, gate, sums)


def _product(rewriter: Rewriter, a: Stream, b: Stream) -> Stream:
    """a · b, lane by lane: a constant scales, a flag gates, other lattice points are squared."""
    for x, factor in ((a, b), (b, a)):
        levels = constant_levels(affine_form(factor), factor.width)
        if levels is not None:
            return sparse.diags_array(levels[:, 0]) @ x
    for x, flag in ((a, b), (b, a)):
        if rewriter.domains.of(flag).is_flag:
            return masked(rewriter.domains, x, flag)
    if a is b:
        return _square(rewriter, a)
    return (_square(rewriter, a + b) - _square(rewriter, a - b)) / 4


def _square(rewriter: Rewriter, x: Stream) -> Stream:
    """(u·m)² = u²·(r(m) + r(−m)) for integers m, r(m) = relu(m) + 2·Σ_{j≥1} relu(m − j)."""
    domain = rewriter.domains.of(x)
    unit = domain.step
    if not unit:
        raise NotImplementedError("fnn+ssm multiplies multiples of a step, and its operands are real numbers")
    ends = [-domain.lo / unit, domain.hi / unit]
    kinks = sum(max(0, floor(end)) for end in ends)
    if kinks > MOST_KINKS:
        raise NotImplementedError(
            f"fnn+ssm takes a rectifier for each of the {kinks} steps of a square between {domain.lo} and {domain.hi}, "
            f"and {MOST_KINKS} is the most; clip() its operands"
        )
    parts = [_half_square(sign * x / unit, floor(end)) for sign, end in zip((-1, 1), ends, strict=True) if end > 0]
    return unit**2 * sum(parts[1:], start=parts[0]) if parts else 0 * x


def _half_square(m: Stream, most: int) -> Stream:
    """r(m) for integers m ≤ most."""
    steps = Stream(ops.Constant(tuple(Fraction(j) for j in range(most)) * m.width))
    ramps = (repeated(m, most) - steps).relu()
    return in_groups(exact_rows([[1] + [2] * (most - 1)]), ramps)


# Parts -----------------------------------------------------------------------------------------------


def _gated(rewriter: Rewriter, x: Stream, *flags: Stream) -> Stream:
    """x ≥ 0 where all flags hold, else 0: one rectifier for each lane, as their sum is short by 1 elsewhere."""
    missing = sum(flags[1:], start=flags[0]) - (len(flags) - 1)
    return masked(rewriter.domains, x, missing)


def _at_most_one(x: Stream) -> Stream:
    """min(x, 1) of integers of at least 0."""
    return (1 - (1 - x).relu()).retyped(Bool(x.width))


def _one_hots(count: Stream, most: int) -> Stream:
    """For each lane, which of 1 … most a number is; the number's lane outermost."""
    n = count.width
    levels = Stream(ops.Constant(tuple(Fraction(j) for j in range(most + 1)) * n))
    ramps = (repeated(count, most + 1) - levels).relu()
    second = np.eye(most, most + 1) - 2 * np.eye(most, most + 1, 1) + np.eye(most, most + 1, 2)
    return in_groups(exact_rows(second), ramps).retyped(Bool(n * most))
