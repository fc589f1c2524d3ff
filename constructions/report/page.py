"""The page: one HTML file that needs no network."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from compiler.artifact.artifact import Artifact
from compiler.artifact.files import GENERATOR
from compiler.artifact.manifest import read_manifest
from compiler.artifact.package import with_a_block
from compiler.compiled import Compiled
from constructions.checkpoints.built import Built
from constructions.checkpoints.saved import same
from constructions.report.data import page_data
from constructions.report.weights import weights_data

_LENGTHS, _WALKS = (8, 12), 8
_HERE = Path(__file__).parent


def page_of(directory: Path) -> str:
    """The page of a checkpoint; CheckpointError where it is none, or not what its circuit compiles to. What cannot be
    stepped through says so.
    """
    manifest, (built, proof) = read_manifest(directory), same(directory, prove=True)
    over_tokens = built.compiled.source.alphabet is not None
    compiled = with_a_block(built.compiled) if over_tokens else built.compiled
    data = page_data(compiled, manifest, f"Proof: {proof[1]}.") | {"weights": _weights(built)}
    if over_tokens:
        data["example"] = example(built.compiled)
    scripts = {"INTERPRETER": "interpreter.js", "WEIGHTS": "weights.js"}
    return filled("page.html", str(data["title"]), data, scripts)


def example(compiled: Compiled) -> str:
    """An input to begin with: of some walks of the language the one with most answers, and of these with most letters.
    What the model card shows is among them.
    """
    language, tokens = compiled.source.token_language, compiled.source.token_alphabet.tokens
    found = [Artifact.of(compiled, None).example[0]]
    for length in (n for n in _LENGTHS if n <= language.max_length):
        found += [" ".join(tokens[i] for i in walk) for walk in language.walks(length, _WALKS)]

    def told(text: str) -> tuple[int, int]:
        scores = compiled.interpret(np.array([compiled.source.token_alphabet.encode(text)]))[0]
        return len(set(scores.argmax(axis=-1).tolist())), len(set(text.split()))

    return max(found, key=told)


def _weights(built: Built) -> dict[str, Any]:
    if built.model is None:
        return {"none": "The model is kept as its circuit alone, so there are no tensors to show."}
    try:
        return weights_data(built.model.tensors, built.model.layout)
    except ValueError as reason:
        return {"none": f"The weights are not shown: {reason}. construct show DIR --weight explains any."}


def filled(template: str, title: str, data: Any, scripts: Mapping[str, str]) -> str:
    """A template of this folder with its data and scripts inside: no text of the data ends a script."""
    page = (_HERE / template).read_text("utf-8").replace("@GENERATOR@", html.escape(GENERATOR))
    page = page.replace("@TITLE@", html.escape(title))
    for mark, file in scripts.items():
        page = page.replace(f"@{mark}@", (_HERE / file).read_text("utf-8"))
    return page.replace("@DATA@", json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c"))
