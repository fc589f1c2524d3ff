"""Rule weights: each rule over scores gets a weight that wins, from the bounds of the scores.

A rule for token r must beat every score: W > max_j high_j − low_r, over all positions of all sequences. The least power
of two above that, taken 2^(n − 1 − i) times for rule i of n, is a weight that every format holds.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from compiler.context import Context
from compiler.errors import CompileError
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.graph import operation_of, rebuilt
from compiler.language.stream import Stream, standing_for
from compiler.lattice.domain import Domain, power_of_two
from compiler.lowering.conditions import need_flags


def rule_weights(circuit: Circuit, context: Context) -> tuple[Circuit, Context]:
    """The same circuit, its rules as linear maps of their flags; itself where there are none."""
    if not any(s.operation.ranks for s in circuit.streams):
        return circuit, context
    kept: dict[Stream, Stream] = {}
    for stream in circuit.streams:
        inputs = tuple(kept[s] for s in stream.inputs)
        decides = stream.operation.ranks
        with standing_for(stream):
            kept[stream] = _weighed(stream, inputs, context) if decides else rebuilt(stream, inputs)
    return replace(circuit, output=kept[circuit.output]), context


def _weighed(stream: Stream, inputs: tuple[Stream, ...], context: Context) -> Stream:
    operation, (scores, *flags) = operation_of(stream, ops.Decide), inputs
    try:
        need_flags(context.domains, *flags)
    except NotImplementedError as reason:
        raise CompileError([(stream, str(reason))]) from reason
    weight = rule_weight(operation.tokens, context.domains.of(scores))
    columns = [ops.exact_matrix(c) for c in ops.rule_columns(operation, scores.width, float(weight))]
    matrices = (ops.scaled_identity(scores.width), *columns)
    return Stream(ops.Linear(matrices, stream.type), inputs, stream.name or "logits")


def rule_weight(tokens: tuple[int, ...], scores: Domain) -> Fraction:
    """The least power of two, at least 1, above every lead of a score over that of a token with a rule."""
    lead = scores.hi - min(Fraction(float(scores.low[token])) for token in tokens)
    weight = power_of_two(max(lead, Fraction(1)))
    return weight if weight > lead else 2 * weight
