"""The page: one HTML file that needs no network."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compiler.artifact.artifact import Artifact
from compiler.artifact.manifest import read_manifest
from compiler.artifact.package import with_a_block
from constructions.checkpoints.built import Built
from constructions.checkpoints.guarantee import proof_of
from constructions.checkpoints.saved import rebuild
from constructions.report.data import page_data
from constructions.report.weights import weights_data

_HERE = Path(__file__).parent


def page_of(directory: Path) -> str:
    """The page of a checkpoint; CheckpointError where it is none. What cannot be stepped through says so."""
    manifest, built = read_manifest(directory), rebuild(directory)
    over_tokens = built.compiled.source.alphabet is not None
    compiled = with_a_block(built.compiled) if over_tokens else built.compiled
    data = page_data(compiled, manifest, f"Proof: {proof_of(built)[1]}.") | {"weights": _weights(built)}
    if over_tokens:
        data["example"] = Artifact.of(built.compiled, None).example[0]
    scripts = {"INTERPRETER": "interpreter.js", "WEIGHTS": "weights.js"}
    return filled("page.html", str(data["title"]), data, scripts)


def _weights(built: Built) -> dict[str, Any]:
    if built.model is None:
        return {"none": "The model is kept as its circuit alone, so there are no tensors to show."}
    try:
        return weights_data(built.model.tensors, built.model.layout)
    except ValueError as reason:
        return {"none": f"The weights are not shown: {reason}. construct show DIR --weight explains any."}


def filled(template: str, title: str, data: Any, scripts: Mapping[str, str]) -> str:
    """A template of this folder with its data and scripts inside: no text of the data ends a script."""
    page = (_HERE / template).read_text("utf-8").replace("@TITLE@", html.escape(title))
    for mark, file in scripts.items():
        page = page.replace(f"@{mark}@", (_HERE / file).read_text("utf-8"))
    return page.replace("@DATA@", json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c"))
