"""The page: one HTML file that needs no network."""

from __future__ import annotations

import html
import json
from pathlib import Path

from compiler.artifact.artifact import Artifact
from compiler.artifact.manifest import read_manifest
from compiler.artifact.package import with_a_block
from constructions.checkpoints.guarantee import proof_of
from constructions.checkpoints.saved import rebuild
from constructions.report.data import page_data

_HERE = Path(__file__).parent


def page_of(directory: Path) -> str:
    """The page of a checkpoint; CheckpointError where it is none, ValueError where a page cannot step through it."""
    manifest, built = read_manifest(directory), rebuild(directory)
    compiled = with_a_block(built.compiled) if built.compiled.source.alphabet is not None else built.compiled
    data = page_data(compiled, manifest, f"Proof: {proof_of(built)[1]}.") | {
        "example": Artifact.of(built.compiled, None).example[0]
    }
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")  # no text ends the script
    page = (_HERE / "page.html").read_text("utf-8").replace("@TITLE@", html.escape(str(data["title"])))
    page = page.replace("@INTERPRETER@", (_HERE / "interpreter.js").read_text("utf-8"))
    return page.replace("@DATA@", text)
