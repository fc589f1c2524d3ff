"""Rules of operations over the past: sums, latches, running maxima, keyed memories."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from compiler.language import operations as ops
from compiler.language.stream import Stream, constant
from compiler.language.types import Bool
from compiler.language.words import concatenate
from compiler.lowering.conditions import is_one_hot, need_flags, need_one_hot, need_whole
from compiler.passes.represent.rectifiers import masked, step
from compiler.passes.represent.rewriter import Rewriter, Rules, rule_of
from compiler.passes.represent.stored import ramps_apart, storable
from compiler.passes.represent.token_tables import shifted

RULES: Rules = {}
MOST_LEVELS = 1 << 12  # of a running maximum: a latch and a lane each


@rule_of(RULES, ops.FadingSum, ops.Cumsum)
def _sum(rewriter: Rewriter, operation: ops.Operation, x: Stream) -> Stream:
    back, stored = storable(rewriter.domains, x)
    return back(Stream(operation, (stored,)))


@rule_of(RULES, ops.SelectiveSum)
def _selective_sum(rewriter: Rewriter, operation: ops.SelectiveSum, value: Stream, level: Stream) -> Stream:
    need_whole(rewriter.domains, level)
    back, stored = storable(rewriter.domains, value)
    return back(Stream(operation, (stored, level)))


@rule_of(RULES, ops.Latch, ops.SumWhere)
def _latch(rewriter: Rewriter, operation: ops.Operation, value: Stream, when: Stream) -> Stream:
    need_flags(rewriter.domains, when)
    apart = ramps_apart(value, when) if rewriter.ramps_apart else None
    back, stored = apart or storable(rewriter.domains, value)
    return back(Stream(operation, (stored, when)))


@rule_of(RULES, ops.RunningMax)
def _running_max(rewriter: Rewriter, operation: ops.RunningMax, value: Stream, when: Stream) -> Stream:
    """Lane by lane: lo, if anything was seen, and the levels above it that were reached."""
    need_flags(rewriter.domains, when)
    need_whole(rewriter.domains, value)
    if value.width == 1:
        return _largest_so_far(rewriter, value, when)
    whens = list(when) if when.width > 1 else [when] * value.width
    return concatenate(*(_largest_so_far(rewriter, v, f) for v, f in zip(value, whens, strict=True)))


def _largest_so_far(rewriter: Rewriter, value: Stream, when: Stream) -> Stream:
    """lo · [was anything seen] + Σ_v [was a value > v seen] over lo ≤ v < hi, one latch per level (unary).

    lo is 0 where no value is negative: 0 is what stands before there is a value.
    """
    domain = rewriter.domains.of(value)
    lo, hi = min(domain.lo, Fraction(0)), domain.hi
    if hi - lo > MOST_LEVELS:
        raise NotImplementedError(
            f"it keeps a latch for each value from {lo} up to {hi}, and {MOST_LEVELS} is the most; clip() its value"
        )
    parts = [int(lo) * Stream(ops.Latch(), (constant(1), when))] if lo else []
    if hi > lo:
        levels = Stream(ops.Constant(tuple(Fraction(v) for v in range(int(lo), int(hi)))))
        reached = step(np.ones((levels.width, 1)) @ value - levels).retyped(Bool(levels.width))
        parts.append(Stream(ops.Latch(), (constant(1), rewriter.logic.conjunction(reached, when))).sum())
    return sum(parts[1:], start=parts[0]) if parts else 0 * value


@rule_of(RULES, ops.Permute)
def _permute(rewriter: Rewriter, operation: ops.Permute, swaps: Stream, *reset: Stream) -> Stream:
    """A reset swaps the state from its start, where it was put back, to its place; the start has what no other has.

    A state without a start begins on one more place, which nothing reads and only resets leave.
    """
    need_one_hot(rewriter.domains, swaps, *reset)
    n, start, pairs = operation.n, operation.start, operation.pairs
    if start is None:
        n, start = n + 1, n
    others = [place for place in range(n) if place != start]
    touched, restart = _touches(n, pairs) @ swaps, constant(0)
    if reset:
        (places,) = reset
        restart = places.sum().retyped(Bool())
        swaps, left = _absorb(rewriter, swaps, [rewriter.logic.negation(restart)])
        swaps = rewriter.logic.conjunction(swaps, *left) if left else swaps
        put = [(start, place) for place in others]
        touched = _touches(n, pairs) @ swaps + _touches(n, put) @ places[others]
        pairs = tuple(dict.fromkeys((*pairs, *put)))
    if not any(start in pair for pair in pairs):  # no swap moves it, and no reset
        return Stream(ops.Constant(tuple(Fraction(place == start) for place in range(n))))
    core = ops.Moved(n, pairs, start)
    moved = Stream(core, (touched, restart))
    if core.odd:
        moved = moved.relu() + (-1 * moved).relu()
    spread = np.zeros((n, len(others)))
    spread[others, range(len(others))], spread[start] = 1, -1
    state = spread @ moved + np.eye(n)[:, [start]] @ constant(1)
    state = state[: operation.n]
    ones = np.ones(operation.n)
    rewriter.domains.meet(state, rewriter.domains.lanes(ones, 0 * ones, ones, Fraction(1)))
    return state


def _touches(n: int, pairs: Sequence[tuple[int, ...]]) -> np.ndarray:
    """(n × pairs): the two places of each pair."""
    found = np.zeros((n, len(pairs)))
    for lane, pair in enumerate(pairs):
        found[list(pair), lane] = 1
    return found


@rule_of(RULES, ops.FadingMemory)
def _fading_memory(
    rewriter: Rewriter, operation: ops.FadingMemory, value: Stream, key: Stream, query: Stream
) -> Stream:
    back, stored = storable(rewriter.domains, value)
    return back(Stream(operation, (stored, key, query)))


@rule_of(RULES, ops.MemoryRead)
def _memory(
    rewriter: Rewriter, operation: ops.MemoryRead, value: Stream, key: Stream, query: Stream, *when: Stream
) -> Stream:
    need_flags(rewriter.domains, *when)
    if operation.policy != "sum":
        need_one_hot(rewriter.domains, *((key,) if operation.policy == "once" else (key, query)))
    literals = [flag for w in when for flag in rewriter.logic.conjuncts(w)]
    key, literals = _absorb(rewriter, key, literals)
    once = operation.policy == "once" and rewriter.overwrites and is_one_hot(rewriter.domains, query)
    if operation.policy == "last" or once:
        gate = rewriter.logic.conjunction(key, *literals)
        back, stored = storable(rewriter.domains, value)
        return back(Stream(ops.GateSum(), (Stream(ops.Latch(), (stored, gate)), query)))
    if operation.policy in ("sum", "once"):
        value, left = _absorb(rewriter, value, literals)
        apart = rewriter.apart and rewriter.domains.of(key).is_flag
        value, key = _conditioned(rewriter, value, key, literals if apart else left)
    back, stored = storable(rewriter.domains, value)
    writes = 1 if operation.policy == "once" else operation.writes
    if operation.policy == "first":
        stored, writes = _first_only(rewriter, stored, key, literals), 1
    return back(Stream(ops.MemoryRead("sum", writes), (stored, key, query)))


def _conditioned(rewriter: Rewriter, value: Stream, key: Stream, literals: list[Stream]) -> tuple[Stream, Stream]:
    """(value, key) of which one is 0 where a condition fails; flags take it for free, integers by a mask."""
    domains, conjunction = rewriter.domains, rewriter.logic.conjunction
    if not literals:
        return value, key
    if domains.of(key).is_flag:
        return value, conjunction(key, *literals)
    if domains.of(value).is_flag:
        return conjunction(value, *literals, rectified=True), key
    condition = conjunction(*literals)
    if domains.of(value).step:
        return masked(domains, value, condition), key
    if domains.of(key).step:
        return value, masked(domains, key, condition)
    return condition * value, key


def _first_only(rewriter: Rewriter, value: Stream, key: Stream, literals: list[Stream]) -> Stream:
    """The value at the first write under its key, else 0.

    n counts the writes under the present key, this one included, so 2w − n is 1 at the
    first write (w = 1) and at most 0 elsewhere: at later writes and where nothing is written.
    (With w = 1 and no key it is 2; what is stored then goes under a column that is 0.)
    """
    write = rewriter.logic.conjunction(*literals) if literals else constant(1)
    n = Stream(ops.MemoryRead("sum"), (write, key, key), "writes_so_far")
    return masked(rewriter.domains, value, 2 * write - n)


def _absorb(rewriter: Rewriter, port: Stream, literals: list[Stream]) -> tuple[Stream, list[Stream]]:
    """Drop each condition that the port's own support implies; mask the port by one of its own token.

    A write is a product over its ports, so a condition on the token that a port reads
    belongs to that port.
    """
    tokens, left = rewriter.tokens, []
    for literal in literals:
        table, lag = tokens.window(port)
        flag, flag_lag = tokens.window(literal)
        if table is None or flag is None or lag != flag_lag or (flag.data != 1).any():
            left.append(literal)
            continue
        if (ops.exact_matrix(table.multiply(flag)) != table).nnz:
            port = shifted(tokens.masked(port.inputs[0] if lag else port, flag), lag)
    return port, left
