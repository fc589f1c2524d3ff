"""Where a model first leaves the interpreter: the stage, the lane and the line of the circuit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from compiler.analysis.affine_form import ONE
from compiler.artifact.model import Stack
from compiler.artifact.package import LanguageModel
from compiler.compiled import Compiled
from compiler.tracing.variables import written_after


def first_divergence(
    stack: Stack, compiled: Compiled, tokens: np.ndarray, packaged: LanguageModel | None = None, named: bool = True
) -> str | None:
    """One sentence on the first lane, after the fewest blocks, that differs from the interpreter's value.

    None if none does.

    stack:  a residual stack whose lane i stands at coordinate i (every language model of ours).
    tokens: (batch, length) ids.
    packaged: the language model that the stack should be; its special tokens' scores then count as well.
    named: whether its lanes are the circuit's. Those of a disguise are not, and only its scores are compared.
    """
    expected = compiled.lane_values(tokens)
    with torch.no_grad():
        scores, streams = stack(torch.from_numpy(tokens), return_stream=True)
    written = written_after(compiled)
    for stage, stream in enumerate(streams if named else ()):
        lanes = np.flatnonzero(written == stage)
        values = stream[..., lanes].double().numpy()
        found = _first(values, expected[..., lanes])
        if found is not None:
            lane = int(lanes[found[2]])
            return _sentence(_stage_name(stage), compiled, lane, values[found], expected[(*found[:2], lane)], found)
    return _scores_sentence(scores.double().numpy(), compiled, tokens, packaged, named)


def _stage_name(stage: int) -> str:
    return "the embedding" if stage == 0 else f"block {stage}"


def _first(values: np.ndarray, expected: np.ndarray) -> tuple[int, int, int] | None:
    """(sequence, position, column) of the first difference, by position."""
    wrong = np.argwhere(values != expected)
    if not len(wrong):
        return None
    sequence, position, column = wrong[np.lexsort((wrong[:, 2], wrong[:, 0], wrong[:, 1]))[0]]
    return int(sequence), int(position), int(column)


def _sentence(
    stage: str, compiled: Compiled, lane: int, value: float, expected: float, at: tuple[int, int, int]
) -> str:
    held = compiled.lanes.coordinates[lane]
    origin = "" if held.stream is ONE or held.stream is None else f" ({held.stream.label}, {held.source})"
    return (
        f"the model first leaves the circuit in {stage}, lane {held.name}{origin}: "
        f"{value:g} instead of {expected:g} at position {at[1]}"
    )


def _scores_sentence(
    scores: np.ndarray, compiled: Compiled, tokens: np.ndarray, packaged: LanguageModel | None, named: bool
) -> str | None:
    expected = compiled.interpret(tokens)
    names: Sequence[str] = compiled.source.token_alphabet.tokens
    if packaged is not None:
        expected, names = packaged.over_vocabulary(expected), packaged.tokens
    found = _first(scores[..., : expected.shape[-1]], expected)
    if found is None:
        return None
    place = "in the head, score" if named else "in a score (its lanes have no names), that"
    return (
        f"the model first leaves the circuit {place} of {names[found[2]]}: "
        f"{scores[found]:g} instead of {expected[found]:g} at position {found[1]}"
    )
