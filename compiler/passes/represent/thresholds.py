"""Rules of piecewise linear functions of an integer: tables, one-hots, division, codewords."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

import numpy as np
from scipy import sparse

from compiler.analysis.domains import Domains
from compiler.analysis.exact_matrices import exact_rows
from compiler.errors import CompileError, GrowsTooFar, TooLong
from compiler.language import operations as ops
from compiler.language.input_language import EVERY_LENGTH
from compiler.language.lanes import placed, repeated, repeats_added
from compiler.language.stream import Stream, constant
from compiler.language.types import OneHot
from compiler.lowering.conditions import need_whole
from compiler.passes.represent.rectifiers import step
from compiler.passes.represent.rewriter import Rewriter, Rules, rule_of

RULES: Rules = {}
MOST_RAMPS = 1 << 14  # of one one-hot
MOST_STEPS = 1 << 12  # thresholds of a division by a constant
CLIP = "clip() its operand"


@rule_of(RULES, ops.Lookup)
def _lookup(rewriter: Rewriter, operation: ops.Lookup, x: Stream) -> Stream:
    """Linear between the integers that can occur: first value + Σ change_j · relu(x − j), change_j that of the slope at
    j; 0 beside the table.
    """
    if operation.symbols:
        return exact_rows([np.array([int(v) for v in operation.table], dtype=object)]) @ x
    need_whole(rewriter.domains, x)
    domain, size = rewriter.domains.of(x), len(operation.table)
    first, last = max(ceil(domain.lo), -1), min(floor(domain.hi), size)
    if first > last:
        return constant(0, 1)
    inside = [int(operation.table[j]) if 0 <= j < size else 0 for j in range(first, last + 1)]
    values = np.array(inside, dtype=object)
    changes = np.diff(np.diff(values, append=values[-1]), prepend=0)
    used = np.flatnonzero(changes)
    if not len(used):
        return constant(int(values[0]))
    breakpoints = np.ones((len(used), 1)) @ x - Stream(ops.Constant(tuple(Fraction(first + int(j)) for j in used)))
    return exact_rows([changes[used]]) @ breakpoints.relu() + int(values[0])


@rule_of(RULES, ops.OneHotOf)
def _one_hot(rewriter: Rewriter, operation: ops.OneHotOf, x: Stream) -> Stream:
    """The second difference of relu(x − j), j = −1 … n; of many values, only about those that x can have."""
    need_whole(rewriter.domains, x)
    domain, first, last = rewriter.domains.of(x), 0, operation.n - 1
    if operation.n > MOST_RAMPS:
        first, last = max(first, ceil(domain.lo)), min(last, floor(domain.hi))
    n = max(0, last - first + 1)
    if n > MOST_RAMPS:
        raise NotImplementedError(
            f"it takes a rectifier for each of the {n} values that its operand can have, and {MOST_RAMPS} are the "
            "most; compare it with those that are needed, or clip() its operand"
        )
    if not n:
        return constant(0, operation.n).retyped(OneHot(operation.n))
    levels = Stream(ops.Constant(tuple(Fraction(j) for j in range(first - 1, last + 2))))
    second = sparse.diags_array([1.0, -2.0, 1.0], offsets=[0, 1, 2], shape=(n, n + 2))
    flags = second @ (np.ones((n + 2, 1)) @ x - levels).relu()
    if n < operation.n:
        flags = placed(flags, np.arange(first, last + 1), operation.n)
    return flags.retyped(OneHot(operation.n))


@rule_of(RULES, ops.FloorDivide)
def _floor_divide(rewriter: Rewriter, operation: ops.FloorDivide, x: Stream) -> Stream:
    """⌊lo/n⌋ + Σ_j [x ≥ j·n] over the multiples of n in (lo, hi]."""
    domain = rewriter.domains.of(x)
    least = ceil((domain.hi - domain.lo) / max(1, MOST_STEPS // x.width))
    return _quotient(rewriter, operation.divisor, x, f"divide by {least} or more, or ")


@rule_of(RULES, ops.Modulo)
def _modulo(rewriter: Rewriter, operation: ops.Modulo, x: Stream) -> Stream:
    return x - operation.divisor * _quotient(rewriter, operation.divisor, x)  # another divisor has other remainders


def _quotient(rewriter: Rewriter, n: int, x: Stream, advice: str = "") -> Stream:
    """x // n; advice: what else would do where it has too many thresholds."""
    need_whole(rewriter.domains, x)
    domain = rewriter.domains.of(x)
    first, last = floor(domain.lo / n), floor(domain.hi / n)
    if (last - first) * x.width > MOST_STEPS:
        raise _too_many(rewriter, n, x, (last - first) * x.width, f"{advice}{CLIP}")
    if first == last:
        return constant(first, x.width)
    spread = repeated(x, last - first)
    multiples = tuple(Fraction(j * n) for j in range(first + 1, last + 1)) * x.width
    levels = Stream(ops.Constant(multiples))
    return repeats_added(step(spread - levels + 1), last - first) + first


def _too_many(rewriter: Rewriter, n: int, x: Stream, steps: int, advice: str) -> NotImplementedError:
    """The refusal of so many thresholds: by their number, unless that only stands for every length."""
    known, length = rewriter.domains, rewriter.domains.max_length
    domain = known.of(x)
    told = f"it takes a threshold for each multiple of {n} that its operand can reach"
    every_length = known.language is not None and known.language.every_length
    if every_length and domain.hi - domain.lo > EVERY_LENGTH // 2:
        told = f"{told}: their number grows with the length, every length was asked for, and {MOST_STEPS} are the most"
        advice = CLIP
    else:
        told = f"{told}, {steps} in all between {floor(domain.lo)} and {ceil(domain.hi)}, and {MOST_STEPS} are the most"
    if not _grows(known, x):
        return NotImplementedError(f"{told}; {advice}")
    return GrowsTooFar(f"{told}; {TooLong.SHORTER}, or {advice}", length * MOST_STEPS // steps)


def _grows(known: Domains, x: Stream) -> bool:
    """Whether the range of a stream is narrower in sequences of one token."""
    language = None if known.language is None else replace(known.language, max_length=1)
    try:
        short = Domains(language, 1).of(x)
    except CompileError:
        return False
    return short.hi - short.lo < known.of(x).hi - known.of(x).lo


@rule_of(RULES, ops.Decode)
def _decode(rewriter: Rewriter, operation: ops.Decode, x: Stream) -> Stream:
    """relu(<c, x> − q + 1): for integers |x_i| ≤ 1 with Σ|x_i| ≤ q, <c, x> reaches q for x = c alone."""
    need_whole(rewriter.domains, x)
    known = rewriter.domains.of(x)
    if known.bound > 1 or known.l1 > operation.norm:
        raise NotImplementedError(
            f"its operand {x.label} can hold numbers up to {known.bound}, Σ over lanes ≤ {known.l1}; a codeword "
            f"has entries −1, 0 and 1, and {operation.norm} of them are not 0"
        )
    return (operation.words @ x - (operation.norm - 1)).relu().retyped(OneHot(operation.words.shape[0]))
