"""The layouts of whole models: of the blocks, and of the embedding, norms and head around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from compiler.compiled import Compiled
from compiler.ir.coordinate import Coordinate, numbered
from compiler.layout import Axis, Emission, Layout, MadeWhenRead, axis
from compiler.targets.family import EMBEDDING, FINAL_NORM, HEAD, mixer_prefix, norm_name


def bare_layout(
    compiled: Compiled, emitted: Sequence[Emission], d_model: int, lane_in: np.ndarray, lane_out: np.ndarray
) -> Layout:
    """The layout of a stack without norms, by the names of its state dict."""
    lanes = compiled.lanes.coordinates
    before, after = axis("lane", d_model, lanes, lane_in), axis("lane", d_model, lanes, lane_out)
    rows = _tokens(compiled.source.alphabet.tokens if compiled.source.alphabet else ("every position",))
    layout = Layout({"embedding.weight": (rows, before), "head.weight": (_scores(compiled), after)})
    for number, emission in enumerate(emitted):
        layout |= emission.layout.prefixed(f"blocks.{number}.")
    return layout


def language_model_layout(
    compiled: Compiled, emitted: Sequence[Emission], d_model: int, tokens: Sequence[str], ballast: int
) -> Layout:
    """The layout of a language model, by Hugging Face's names of its tensors.

    ballast: how many lanes its norms have.
    """
    lanes = axis("lane", d_model, compiled.lanes.coordinates)
    held = {
        d_model - ballast + i: Coordinate(f"ballast[{i}]", text="a constant that makes every norm the identity")
        for i in range(ballast)
    }
    lanes = replace(lanes, places={**lanes.places, **held})
    vocabulary, letters = _tokens(tokens), _scores(compiled).places
    scored = MadeWhenRead(len(tokens), lambda i: letters.get(i) or vocabulary.places[i])
    scores = replace(vocabulary, kind="score", places=scored)
    layout = Layout(
        {
            EMBEDDING: (vocabulary, lanes),
            FINAL_NORM: (lanes,),
            HEAD: (scores, lanes),
        }
    )
    for number, emission in enumerate(emitted):
        prefix = mixer_prefix(number)
        layout |= Layout({norm_name(number): (lanes,)}) | emission.layout.prefixed(prefix)
    return layout


def _tokens(tokens: Sequence[str]) -> Axis:
    made = lambda i: Coordinate(f"token {tokens[i]}", text="what the token writes")
    return Axis("token", len(tokens), MadeWhenRead(len(tokens), made))


def _scores(compiled: Compiled) -> Axis:
    """The rows of the head: a score for each token where there is one, else a number of the output."""
    output, alphabet = compiled.core.output, compiled.source.alphabet
    if alphabet is not None and output.width == alphabet.size:
        made = lambda i: Coordinate(f"score of {alphabet.tokens[i]}", output, i, text="what the head answers")
        return Axis("score", output.width, MadeWhenRead(output.width, made))
    return axis("score", output.width, numbered(output, range(output.width)))
