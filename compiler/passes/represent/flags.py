"""Rules of flags: conjunction, disjunction, negation, choice, and whether two symbols are the same."""

from __future__ import annotations

from compiler.language import operations as ops
from compiler.language.stream import Stream
from compiler.language.types import Bool
from compiler.passes.conditions import need_flags, need_one_hot
from compiler.passes.represent.rectifiers import masked
from compiler.passes.represent.rewriter import Rewriter, Rules, rule_of

RULES: Rules = {}


@rule_of(RULES, ops.SameSymbol)
def _same_symbol(rewriter: Rewriter, operation: ops.SameSymbol, a: Stream, b: Stream) -> Stream:
    need_one_hot(rewriter.domains, a, b)
    return (a + b - 1).relu().sum().retyped(Bool())


@rule_of(RULES, ops.And)
def _and(rewriter: Rewriter, operation: ops.And, a: Stream, b: Stream) -> Stream:
    need_flags(rewriter.domains, a, b)
    return rewriter.logic.conjunction(a, b)


@rule_of(RULES, ops.Or)
def _or(rewriter: Rewriter, operation: ops.Or, a: Stream, b: Stream) -> Stream:
    need_flags(rewriter.domains, a, b)
    return rewriter.logic.disjunction(a, b)


@rule_of(RULES, ops.Not)
def _not(rewriter: Rewriter, operation: ops.Not, a: Stream) -> Stream:
    need_flags(rewriter.domains, a)
    return rewriter.logic.negation(a)


@rule_of(RULES, ops.Select)
def _select(rewriter: Rewriter, operation: ops.Select, condition: Stream, yes: Stream, no: Stream) -> Stream:
    need_flags(rewriter.domains, condition)
    change = yes - no
    if not rewriter.domains.of(change).step:
        return no + condition * change  # a mask by rectifiers is exact on a lattice only
    return no + masked(rewriter.domains, change, condition)
