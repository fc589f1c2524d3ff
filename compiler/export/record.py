"""What goes with exported weights: of which checkpoint they are, what is promised, what the reader must know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compiler.artifact.card import compiled_from, promise_sentences
from compiler.artifact.json_files import canonical_json
from compiler.artifact.numbers_config import is_numbers
from compiler.artifact.records import PromiseRecord
from compiler.export.checkpoint import Package
from compiler.export.errors import ExportError
from compiler.language.markdown import prose

FORMAT = "compiled-construction-export"
FORMAT_VERSION = 1

_ALWAYS = (
    "Put no token in front of the input: circuits count positions and look back.",
    "Words that are not in the vocabulary become `<unk>`, for which nothing is promised.",
    "Weights are frozen: a training step of any size, and quantisation, can destroy the circuit.",
)


@dataclass(frozen=True)
class ExportRecord:
    """The typed content of the export.json of a format that `construct verify` runs."""

    format: str
    format_version: int
    kind: str
    circuit: str
    construction: str | None
    theorem: str | None
    params: dict[str, int | float | str | bool | None] | None
    arch: str
    dtype: str
    promise: PromiseRecord
    answers: str | None
    checkpoint: str | None
    warnings: list[str]
    files: dict[str, str]
    max_d_state: int | None
    n_groups: int
    asked: str = ""


def record(package: Package, kind: str, warnings: tuple[str, ...]) -> dict[str, Any]:
    """The record of an export of this kind; `checkpoint`: the manifest's hash, None where nothing was saved yet."""
    manifest = package.manifest
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": kind,
        "circuit": manifest["circuit"],
        "construction": manifest.get("construction"),
        "theorem": manifest.get("theorem"),
        "params": manifest.get("params"),
        "arch": manifest["arch"],
        "dtype": manifest["dtype"],
        "promise": manifest["promise"],
        "answers": (manifest.get("guarantee") or {}).get("answers"),
        "checkpoint": manifest.get("sha256"),
        "warnings": [*warnings, *_ALWAYS],
    }


def record_text(content: Mapping[str, Any]) -> str:
    """Its one text."""
    return canonical_json(content)


def description(package: Package, file: str = "export.json") -> str:
    """The promise in words: of a checkpoint that was saved it is a record, and nothing of it is looked at anew here.

    file: where the export states its input language.
    """
    recorded = "As the checkpoint records it; `construct verify` and `construct prove` look at the checkpoint anew:\n\n"
    said = promise_sentences(package.manifest, package.model.tokens, file)
    return recorded + said if "sha256" in package.manifest else said


def card(package: Package, content: Mapping[str, Any], use: str) -> str:
    """README.md of an export; `use`: how its client reads it, as Markdown."""
    warnings = "\n".join(f"- {line}" for line in content["warnings"])
    name = prose(content["circuit"])
    return (
        f"# {name}\n\n{compiled_from(package.manifest)}\n\n## Promise\n\n{description(package)}\n\n"
        f"## Use\n\n{use}\n\n## Warnings\n\n{warnings}\n"
    )


def need_tokens(package: Package, kind: str) -> None:
    """ExportError for a model over numbers, which has no vocabulary."""
    if is_numbers(package.model.config):
        raise ExportError(f"a circuit over numbers has no vocabulary, and {kind} holds language models.")


def need_mamba(package: Package, reader: str) -> None:
    """ExportError for a model of another mixer than Mamba and Mamba-2."""
    config = package.model.config
    if config["model_type"] not in ("mamba", "mamba2"):
        raise ExportError(
            f"{reader} takes Mamba and Mamba-2 here, and this is an {config['architectures'][0]}; transformers reads "
            "the checkpoint itself, and --format mlx writes one for mlx-lm."
        )


def need_float32(package: Package, reader: str) -> None:
    """ExportError for a promise in a narrower dtype: its norms are exact in that arithmetic only."""
    dtype = package.manifest["dtype"]
    if dtype != "float32":
        raise ExportError(
            f"the promise is for {dtype}, and {reader} computes in float32, where the norms of these weights are not "
            "exact; build it again with --dtype float32."
        )


def need(config: Mapping[str, Any], reader: str, **wanted: Any) -> None:
    """ExportError where an entry of the config is not what a reader takes for granted."""
    for key, value in wanted.items():
        if config.get(key, value) != value:
            raise ExportError(f"{key} is {config[key]!r}, and {reader} takes {value!r} only.")
