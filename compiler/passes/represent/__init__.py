"""Represent: rewrite every operation in the few that a block computes.

After this pass a circuit holds only sources (Embed, Constant), Linear, Shift, Relu,
Multiply, Cumsum, Latch, GateSum and additive MemoryRead, and every value that is stored
in a state is non-negative (silu passes nothing else). How a value is carried is
decided here:

- a function of one token is folded into the embedding, whatever it takes (`token_tables`);
- integers are compared, selected and looked up by differences of rectifiers (`arithmetic`,
  `flags`, `thresholds`);
- ±1 codewords are carried as bits: c = 2·bits − present. The memory is linear in what it
  stores, so the map back is applied behind it, and for a balanced readout the `present`
  lane has weight 0 and is dropped later (`stored`);
- other signed values are carried as the pair relu(x), relu(−x) (`stored`, `memories`).

Each rewriting is an identity of exact arithmetic; `tests/passes/test_represent.py` checks it
against the operation's own definition. Each file of rules holds their side conditions too.
"""

from __future__ import annotations

from dataclasses import replace

from compiler.analysis.exact_matrices import InexactWeight
from compiler.context import Context
from compiler.errors import CompileError, GrowsTooFar, TooLong
from compiler.language.circuit import Circuit
from compiler.language.graph import inputs_first
from compiler.language.stream import Stream
from compiler.passes.fold_masks import MaskFolding
from compiler.passes.represent import arithmetic, digits, flags, memories, thresholds
from compiler.passes.represent.rewriter import Rewriter, Rules

RULES: Rules = {**arithmetic.RULES, **flags.RULES, **thresholds.RULES, **memories.RULES, **digits.RULES}


def represent(circuit: Circuit, context: Context) -> tuple[Circuit, Context]:
    """The same circuit over the core operations, and the context with the domains of the new streams.

    CompileError also where masks are to be folded for their own sake, and there is none to fold.
    """
    domains, choices = context.domains.draft(), context.choices
    masks = MaskFolding(context, domains) if choices.folds_masks else None
    ramps_apart = context.target.step == "linear"  # whether ramps can decide a step in the block that makes them
    options = choices.apart, choices.decides, ramps_apart, context.target.heads
    rewriter = Rewriter(RULES, domains, circuit.alphabet, masks, *options)
    refused: list[tuple[Stream, Exception]] = []
    for stream in circuit.streams:
        try:
            rewriter.rewrite(stream)
        except (NotImplementedError, InexactWeight) as error:
            refused.append((stream, error))
            rewriter.left(stream)
    output = rewriter.core[circuit.output]
    still_read = set(inputs_first([output], lambda stream: stream.inputs))  # a decided flag may leave nothing to read
    refused = [(stream, error) for stream, error in refused if stream in still_read]
    if refused:
        raise _refusal(refused)
    if masks is not None and not masks.any and not choices.apart:
        raise CompileError([(circuit.output, "it is made of no conjunction that would be ready a block earlier")])
    return replace(circuit, output=output), context.knowing(domains)


def _refusal(refused: list[tuple[Stream, Exception]]) -> CompileError:
    """All reasons; of those that a shorter length may do away with the least guess of one."""
    reasons = [(stream, str(error)) for stream, error in refused]
    guesses = [error.guess for _, error in refused if isinstance(error, GrowsTooFar)]
    return TooLong(reasons, lambda: min(guesses)) if guesses else CompileError(reasons)
