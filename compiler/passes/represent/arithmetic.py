"""Rules of sources, linear maps, delays, and the order of integers."""

from __future__ import annotations

from compiler.analysis.affine_form import affine_form
from compiler.exactness.saturation import rising_count
from compiler.language import operations as ops
from compiler.language.stream import Stream, constant
from compiler.language.types import Bool, Code
from compiler.passes.represent.rectifiers import decided, rectified
from compiler.passes.represent.rewriter import Rewriter, Rules, rule_of
from compiler.passes.represent.stored import as_bits, holds_signs

RULES: Rules = {}


@rule_of(RULES, ops.Linear, ops.Emit, ops.Constant, ops.Numbers)
def _as_it_is(rewriter: Rewriter, operation: ops.Operation, *inputs: Stream) -> Stream:
    return Stream(operation, inputs)


@rule_of(RULES, ops.Embed)
def _embed(rewriter: Rewriter, operation: ops.Embed, *inputs: Stream) -> Stream:
    if isinstance(operation.type, Code) and holds_signs(operation.table):
        return as_bits(operation)
    return Stream(operation, inputs)


@rule_of(RULES, ops.Position)
def _position(rewriter: Rewriter, operation: ops.Position, *inputs: Stream) -> Stream:
    """Stock models have no lane for it, so it is counted."""
    return constant(1).cumsum()


@rule_of(RULES, ops.Shift)
def _shift(rewriter: Rewriter, operation: ops.Shift, x: Stream) -> Stream:
    if x.operation.delay is not None:
        return rewriter.delayed(x.inputs[0], operation.k + x.operation.delay)
    return rewriter.delayed(x, operation.k)


@rule_of(RULES, ops.Lti)
def _lti(rewriter: Rewriter, operation: ops.Lti, x: Stream) -> Stream:
    reach = [(k, tap) for k, tap in enumerate(operation.kernel[: rewriter.domains.max_length]) if tap]
    if not reach:
        return constant(0, x.width)
    taps = tuple(ops.scaled_identity(x.width, ops.exact_number(tap)) for _, tap in reach)
    return Stream(ops.Linear(taps), tuple(rewriter.delayed(x, k) for k, _ in reach))


@rule_of(RULES, ops.Clip)
def _clip(rewriter: Rewriter, operation: ops.Clip, x: Stream) -> Stream:
    lo, hi = constant(operation.lo, x.width), constant(operation.hi, x.width)
    if rising_count(affine_form(x), rewriter.domains):  # falling ramps stay exact where the count saturates
        return hi - rectified(rewriter, hi, x) + rectified(rewriter, lo, x)
    return rectified(rewriter, x, lo) - rectified(rewriter, x, hi) + operation.lo


@rule_of(RULES, ops.Min)
def _min(rewriter: Rewriter, operation: ops.Min, a: Stream, b: Stream) -> Stream:
    falls = rising_count(affine_form(a), rewriter.domains)
    return b - rectified(rewriter, b, a) if falls else a - rectified(rewriter, a, b)


@rule_of(RULES, ops.Max)
def _max(rewriter: Rewriter, operation: ops.Max, a: Stream, b: Stream) -> Stream:
    return b + rectified(rewriter, a, b)


@rule_of(RULES, ops.Compare)
def _compare(rewriter: Rewriter, operation: ops.Compare, a: Stream, b: Stream) -> Stream:
    above, below = lambda: decided(rewriter, a, b), lambda: decided(rewriter, b, a)
    flags = {
        ">": above,
        "<": below,
        ">=": lambda: 1 - below(),
        "<=": lambda: 1 - above(),
        "==": lambda: 1 - above() - below(),
        "!=": lambda: above() + below(),
    }[operation.relation]
    return flags().retyped(Bool(a.width))


@rule_of(RULES, ops.Relu)
def _relu(rewriter: Rewriter, operation: ops.Relu, x: Stream) -> Stream:
    return rectified(rewriter, x)
