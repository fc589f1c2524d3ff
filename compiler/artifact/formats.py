"""The output formats: how an artifact becomes files.

One line for each; a writer is imported when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

# What is written (an Artifact; for those of `compiler.export` any Package), where to, whether to replace what is there.
Writer = Callable[[Any, Path, bool], None]

HUGGING_FACE = "hugging-face"
_FORMATS: dict[str, str | Writer] = {
    HUGGING_FACE: "compiler.artifact.save:save",
    "gguf": "compiler.export.gguf:write",
    "mamba-ssm": "compiler.export.mamba_ssm:write",
    "mamba-ssm-mlp": "compiler.export.mamba_ssm_mlp:write",
    "mlx": "compiler.export.mlx:write",
    "onnx": "compiler.export.onnx:write",
    "safetensors-bare": "compiler.export.bare:write",
}


def format_names() -> tuple[str, ...]:
    """The names of all output formats."""
    return tuple(_FORMATS)


def writer_of(name: str, without: str | None = None) -> Writer:
    """What writes a format; ValueError for a name that is none. without: one that its caller does not take."""
    if name not in _FORMATS:
        known = [other for other in _FORMATS if other != without]
        raise ValueError(f"format {name!r} is unknown; it must be one of {', '.join(known)}")
    found = _FORMATS[name]
    if not isinstance(found, str):
        return found
    module, _, function = found.partition(":")
    return getattr(import_module(module), function)


def register(name: str, writer: str | Writer) -> None:
    """Add a format: a writer, or "module:function". ValueError for a name that is taken."""
    if name in _FORMATS:
        raise ValueError(f"there is a format {name!r} already; choose another name")
    _FORMATS[name] = writer
