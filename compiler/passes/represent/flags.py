"""Rules of flags: conjunction, disjunction, negation, choice, and whether two symbols are the same."""

from __future__ import annotations

import numpy as np

from compiler.analysis.affine_form import affine_form, constant_levels
from compiler.language import operations as ops
from compiler.language.stream import Stream, constant
from compiler.language.types import Bool
from compiler.lowering.conditions import need_flags, need_one_hot
from compiler.passes.represent.rectifiers import masked
from compiler.passes.represent.rewriter import Rewriter, Rules, rule_of

RULES: Rules = {}


def _always(rewriter: Rewriter, flags: Stream) -> bool | None:
    """Whether all lanes hold at every position, or none ever does, where a comparison was decided; None of others.

    Bounds may say so of other flags too. The checker does not always see that, so they are computed.
    """
    levels = constant_levels(affine_form(flags), flags.width) if rewriter.decides else None
    return bool(levels.all()) if levels is not None and len(np.unique(levels)) == 1 else None


@rule_of(RULES, ops.SameSymbol)
def _same_symbol(rewriter: Rewriter, operation: ops.SameSymbol, a: Stream, b: Stream) -> Stream:
    need_one_hot(rewriter.domains, a, b)
    return (a + b - 1).relu().sum().retyped(Bool())


@rule_of(RULES, ops.And)
def _and(rewriter: Rewriter, operation: ops.And, a: Stream, b: Stream) -> Stream:
    need_flags(rewriter.domains, a, b)
    for flag, other in ((a, b), (b, a)):
        always = _always(rewriter, flag)
        if always is not None and other.width >= flag.width:
            return other if always else constant(0, other.width)
    return rewriter.logic.conjunction(a, b)


@rule_of(RULES, ops.Or)
def _or(rewriter: Rewriter, operation: ops.Or, a: Stream, b: Stream) -> Stream:
    need_flags(rewriter.domains, a, b)
    for flag, other in ((a, b), (b, a)):
        always = _always(rewriter, flag)
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
    always = _always(rewriter, condition)
    if always is not None:
        return yes if always else no
    change = yes - no
    if not rewriter.domains.of(change).step:
        return no + condition * change  # a mask by rectifiers is exact on a lattice only
    return no + masked(rewriter.domains, change, condition)
