"""What a module and its circuit score, in two steps where the second sees one position at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional as F

from compiler.artifact.model import Stack
from compiler.compiled import Compiled
from compiler.interpreter import interpret, needed, token_ids
from compiler.language.operations.traits import Sees
from compiler.runtime.fused import fused
from verify.scores import Scores, Split


def module_scores(stack: Callable[[torch.Tensor], torch.Tensor]) -> Scores:
    """Token ids (batch, length) to the stack's scores as float32 arrays; of our own stack the head is apart."""
    if isinstance(stack, Stack):
        return _of_stack(stack)

    def scores(ids: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return stack(torch.from_numpy(ids)).float().numpy()

    return scores


def _of_stack(stack: Stack) -> Split:
    """The real blocks and the final norm, then the head."""
    weight = stack.head.weight
    read = weight.any(dim=0).nonzero()[:, 0]
    read_weight = weight[:, read].detach()

    @torch.no_grad()
    def rows(ids: np.ndarray) -> np.ndarray:
        with fused():
            return stack.before_head(torch.from_numpy(ids)).float().numpy()

    def through(matrix: torch.Tensor) -> Callable[[np.ndarray], np.ndarray]:
        return lambda found: F.linear(torch.from_numpy(found).to(matrix.dtype), matrix).float().numpy()

    weights = [p for block in stack.blocks for p in block.parameters()]
    widest = max(map(len, weights), default=weight.shape[1])
    products = sum(p.numel() for p in weights)
    return Split(rows, torch.no_grad()(through(weight)), (read.numpy(), through(read_weight)), widest, products)


def reference_scores(compiled: Compiled) -> Scores:
    """What the circuit as written gives: apart where its scores are a wider function of one position."""
    source, domains = compiled.source, compiled.domains
    last, inputs = source.output.operation, source.output.inputs
    dtype = domains.exact_dtype(source)
    widths = [stream.width for stream in inputs]
    if last.sees is Sees.PAST or not inputs or dtype is object or sum(widths) >= source.output.width:
        return compiled.interpret
    cuts = np.cumsum(widths)[:-1]
    smallest = domains.smallest_exact_dtype(needed(set(inputs)))
    of_head = domains.smallest_exact_dtype([source.output])

    def rows(tokens: np.ndarray) -> np.ndarray:
        values = interpret(source, token_ids(tokens, source.token_alphabet.size), keep=set(inputs), dtype=smallest)
        return values[inputs[0]] if len(inputs) == 1 else np.concatenate([values[s] for s in inputs], axis=-1)

    def head(found: np.ndarray) -> np.ndarray:
        return last.evaluate(*np.split(found.astype(of_head, copy=False)[None], cuts, axis=-1))[0]

    return Split(rows, head)
