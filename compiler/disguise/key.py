"""The key of a disguise: a JSON file with the steps that made it and the plain checkpoint's other files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from compiler.artifact.errors import CheckpointError
from compiler.artifact.json_files import strict_value, text_of
from compiler.disguise.errors import DisguiseError
from compiler.disguise.steps import KINDS, Step, Tensors, undone

FORMAT, VERSION = "disguise-key", 1


@dataclass(frozen=True)
class Key:
    """level: of the disguise; weights: SHA-256 of the disguised model.safetensors, and so whose key this is.

    files: text files of the plain checkpoint that the disguised one lacks, by name, and those that differ.
    """

    level: int
    weights: str
    steps: list[Step]
    files: Mapping[str, str]

    def text(self) -> str:
        """The content of the file, the same for the same key."""
        content = {"format": FORMAT, "version": VERSION, "level": self.level, "weights": self.weights}
        steps = ",\n".join(json.dumps(step.to_json(), allow_nan=False) for step in self.steps)
        head = json.dumps(content | {"files": dict(self.files)}, indent=1, sort_keys=True, allow_nan=False)
        return f'{head[:-2]},\n "steps": [\n{steps}\n]\n}}\n'

    def plain(self, tensors: Mapping[str, np.ndarray]) -> Tensors:
        """The weights that were disguised; DisguiseError where the key does not fit."""
        return undone(self.steps, tensors)


def read_key(path: Path) -> Key:
    """DisguiseError, one sentence, where the file is no key."""
    try:
        content = strict_value(text_of(path))
    except OSError as reason:
        raise DisguiseError(f"--key {path} cannot be read: {(reason.strerror or str(reason)).lower()}.") from reason
    except (ValueError, RecursionError, CheckpointError) as reason:
        raise DisguiseError(f"--key {path} is no JSON: {str(reason).rstrip('.')}.") from reason
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DisguiseError(f"--key {path} is no key of a disguise; `construct disguise DIR --key FILE` writes one.")
    if content.get("version") != VERSION:
        raise DisguiseError(f"--key {path} has version {content.get('version')!r:.40}, expected {VERSION}.")
    try:
        steps = [_step(entry) for entry in content["steps"]]
        files = {str(name): str(text) for name, text in content["files"].items()}
        return Key(int(content["level"]), str(content["weights"]), steps, files)
    except (KeyError, TypeError, ValueError, AttributeError) as reason:
        raise DisguiseError(f"--key {path} is damaged: {type(reason).__name__} at {reason}.") from reason


def _step(entry: Mapping[str, Any]) -> Step:
    """A step as `to_json` wrote it."""
    kind = KINDS[entry["kind"]]
    values = {field.name: entry[field.name] for field in fields(kind)}
    values["legs"] = [(str(name), int(axis), int(first), int(role)) for name, axis, first, role in values["legs"]]
    if "entries" in values:
        values["entries"] = [(str(name), int(at), float(old), float(new)) for name, at, old, new in values["entries"]]
    return kind(**values)
