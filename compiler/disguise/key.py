"""The key of a disguise: a JSON file with the steps that made it and the plain checkpoint's other files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from compiler.artifact.errors import CheckpointError
from compiler.artifact.json_files import strict_value
from compiler.artifact.plain_files import text_of
from compiler.disguise.errors import DisguiseError
from compiler.disguise.steps import KINDS, Leg, Step, Tensors, undone

Read = TypeVar("Read")
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
        try:
            return undone(self.steps, tensors)
        except (ValueError, IndexError, ArithmeticError) as reason:
            raise DisguiseError(f"the key does not fit these weights: {str(reason).rstrip('.')}.") from reason


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
        steps = [_step(f"step {place}", entry) for place, entry in enumerate(_under("", content, "steps", _list), 1)]
        files = _under("", content, "files", _texts)
        return Key(_under("", content, "level", _integer), _under("", content, "weights", _text), steps, files)
    except ValueError as reason:
        raise DisguiseError(f"--key {path} is damaged: {reason}.") from reason


def _step(place: str, entry: Any) -> Step:
    """A step as `to_json` wrote it; ValueError, in words that say where, for an entry of another kind."""
    if not isinstance(entry, dict) or entry.get("kind") not in list(KINDS):
        raise ValueError(f"{place} has none of the kinds {', '.join(KINDS)}")
    kind = KINDS[entry["kind"]]
    place = f"{place} ({kind.kind}), "
    return kind(**{field.name: _under(place, entry, field.name, _ENTRIES[field.name]) for field in fields(kind)})


def _under(place: str, entry: Mapping[str, Any], name: str, read: Callable[[Any], Any]) -> Any:
    if name not in entry:
        raise ValueError(f"{place}{name} is not there")
    try:
        return read(entry[name])
    except ValueError as reason:
        raise ValueError(f"{place}{name} has {reason}") from reason


def _needed(kind: type[Read], called: str) -> Callable[[Any], Read]:
    def read(value: Any) -> Read:
        if not isinstance(value, kind):
            raise ValueError(f"{value!r:.40}, where {called} is needed")
        return value

    return read


_list, _object, _text = _needed(list, "a list"), _needed(dict, "an object"), _needed(str, "a text")


def _texts(files: Any) -> dict[str, str]:
    return {name: _text(text) for name, text in _object(files).items()}


def _integer(value: Any) -> int:
    if type(value) is not int or abs(value) >= _MOST:
        raise ValueError(f"{value!r:.40}, where a whole number below 2^31 is needed")
    return value


def _natural(value: Any) -> int:
    if _integer(value) < 0:
        raise ValueError(f"{value}, where a number from 0 on is needed")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or abs(value) > _LARGEST:
        raise ValueError(f"{value!r:.40}, where a number of float32 is needed")
    return float(value)


def _each(read: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    def entries(values: Any) -> list[Any]:
        return [read(value) for value in _list(values)]

    return entries


def _order(values: Any) -> list[int]:
    order = _each(_natural)(values)
    if sorted(order) != list(range(len(order))):
        raise ValueError("an order that does not have each place once")
    return order


def _four(values: Any) -> list[Any]:
    if not isinstance(values, list) or len(values) != 4:
        raise ValueError(f"{values!r:.40}, where a list of four is needed")
    return values


def _leg(leg: Any) -> Leg:
    name, axis, first, role = _four(leg)
    return _text(name), _natural(axis), _natural(first), _integer(role)


def _exchanged(entry: Any) -> tuple[str, int, float, float]:
    name, at, old, new = _four(entry)
    return _text(name), _natural(at), _number(old), _number(new)


_MOST, _LARGEST = 1 << 31, 2.0**128
_ENTRIES: Mapping[str, Callable[[Any], Any]] = {
    "legs": _each(_leg),
    "order": _order,
    "exponents": _each(_integer),
    "signs": _each(_integer),
    "to": _natural,
    "of": _natural,
    "factor": _number,
    "what": _object,
    "entries": _each(_exchanged),
}
