"""Rules of flags: conjunction, disjunction, negation, choice, and whether two symbols are the same."""

from __future__ import annotations

from compiler.analysis.domains import Domains
from compiler.analysis.domains.linear import interval_within
from compiler.language import operations as ops
from compiler.language.stream import Stream, constant
from compiler.language.types import Bool
from compiler.passes.conditions import need_flags, need_one_hot
from compiler.passes.represent.rectifiers import masked
from compiler.passes.represent.rewriter import Rewriter, Rules, rule_of

RULES: Rules = {}


def _always(domains: Domains, flags: Stream) -> bool | None:
    """Whether all lanes hold at every position, or none ever does; None where bounds do not say so."""
    low, high = interval_within(flags, domains)
    return True if (low >= 1).all() else False if (high <= 0).all() else None


@rule_of(RULES, ops.SameSymbol)
def _same_symbol(rewriter: Rewriter, operation: ops.SameSymbol, a: Stream, b: Stream) -> Stream:
    need_one_hot(rewriter.domains, a, b)
    return (a + b - 1).relu().sum().retyped(Bool())


@rule_of(RULES, ops.And)
def _and(rewriter: Rewriter, operation: ops.And, a: Stream, b: Stream) -> Stream:
    need_flags(rewriter.domains, a, b)
    for flag, other in ((a, b), (b, a)):
        always = _always(rewriter.domains, flag)
        if always is not None and other.width >= flag.width:
            return other if always else constant(0, other.width)
    return rewriter.logic.conjunction(a, b)


@rule_of(RULES, ops.Or)
def _or(rewriter: Rewriter, operation: ops.Or, a: Stream, b: Stream) -> Stream:
    need_flags(rewriter.domains, a, b)
    for flag, other in ((a, b), (b, a)):
        always = _always(rewriter.domains, flag)
        if always is not None:
            return constant(1, other.width) if always else other
    return rewriter.logic.disjunction(a, b)


@rule_of(RULES, ops.Not)
def _not(rewriter: Rewriter, operation: ops.Not, a: Stream) -> Stream:
    need_flags(rewriter.domains, a)
    return rewriter.logic.negation(a)


@rule_of(RULES, ops.Select)
def _select(rewriter: Rewriter, operation: ops.Select, condition: Stream, yes: Stream, no: Stream) -> Stream:
    need_flags(rewriter.domains, condition)
    always = _always(rewriter.domains, condition)
    if always is not None:
        return yes if always else no
    change = yes - no
    if not rewriter.domains.of(change).step:
        return no + condition * change  # a mask by rectifiers is exact on a lattice only
    return no + masked(rewriter.domains, change, condition)
