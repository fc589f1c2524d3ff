"""JSON as checkpoints hold it: one text for each value, and readers that nothing hostile can stop or fool."""

import itertools
import json
import re
import sys
from math import isfinite
from pathlib import Path
from typing import Any

from compiler.artifact.errors import CheckpointError
from compiler.artifact.plain_files import LARGEST_FILE, check_plain

MOST_OBJECTS = 1 << 17  # of one JSON value, each of which costs as much as some hundred bytes: 8 for each operation
MOST_LISTS = 1 << 20


def canonical_json(content: Any) -> str:
    """The one text of a JSON value: sorted keys, no NaN or infinity; raises CheckpointError if it has none."""
    try:
        return json.dumps(content, sort_keys=True, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    except (TypeError, ValueError, RecursionError) as reason:
        raise CheckpointError(f"the manifest or config cannot be written as JSON: {reason}.") from reason


_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # of a surrogate pair, which JSON may hold alone and UTF-8 may not


def read_json(path: Path) -> Any:
    """Parse a JSON file; CheckpointError in one sentence for what is none.

    Refused as well: NaN and infinities, 1e999 among them, -0, a key that stands twice (programs differ in which one
    they take), files beyond 2^25 bytes, and nesting deeper than Python's own limit.
    """
    try:
        return strict_value(_text(path))
    except OSError as reason:
        raise CheckpointError(f"{path} cannot be read: {reason.strerror}.") from reason
    except CheckpointError:
        raise
    except RecursionError as reason:
        raise CheckpointError(f"{path} is nested too deeply to be a file of ours.") from reason
    except ValueError as reason:
        raise CheckpointError(f"{path} is not JSON: {_one_sentence(reason)}.") from reason


def strict_value(text: str) -> Any:
    """The JSON value of a text; ValueError also for NaN, infinities, -0 (0 or -0.0, as the reader has it), a key that
    stands twice in one object, and more than 2^20 lists or 2^17 objects, as soon as they are passed.
    """
    if text.count("[") > MOST_LISTS:
        raise ValueError(f"it has more than {MOST_LISTS} lists, and JSON files of ours have no more")
    count = itertools.count(1)

    def counted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if next(count) > MOST_OBJECTS:
            raise ValueError(f"it has more than {MOST_OBJECTS} objects, and JSON files of ours have no more")
        return _object(pairs)

    try:
        numbers: Any = {"parse_constant": _no_constant, "parse_float": _finite, "parse_int": _whole}
        found = json.loads(text, object_pairs_hook=counted, **numbers)
        if _HALF.search(text):
            json.dumps(found, ensure_ascii=False).encode()
        return found
    except UnicodeEncodeError as reason:
        raise ValueError("it has half of a character, such as \\ud800, without the other") from reason
    except ValueError as reason:
        if "int_max_str_digits" in str(reason):  # Python's own words speak to programmers
            raise ValueError(f"it has an integer of more than {sys.get_int_max_str_digits():,} digits") from reason
        raise


def same_json(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same, types included (Python holds 1, 1.0 and True to be equal)."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_json(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return one == other


def shown(value: Any, most: int = 60) -> str:
    """A JSON value for a message: no longer than `most` characters, on one line."""
    if isinstance(value, (dict, list)) and value:
        kind, entries = "an object" if isinstance(value, dict) else "a list", "entries" if len(value) > 1 else "entry"
        return f"{kind} with {len(value)} {entries}"
    if isinstance(value, int) and abs(value) > 1 << 64:
        return "an integer beyond 2^64"
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}…"


def _text(path: Path) -> str:
    check_plain(path)
    check_size(path)
    return path.read_text("utf-8")


def check_size(path: Path) -> None:
    """CheckpointError where a JSON file is larger than any of ours."""
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise CheckpointError(f"{path} has {size} bytes, and JSON files of ours have at most {LARGEST_FILE}.")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _whole(text: str) -> int:
    if text == "-0":
        raise ValueError("-0 is no whole number for other readers")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{shown(text)[1:-1]} is beyond all float64 numbers")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {shown(twice)} stands in one object twice")
    return content


def _one_sentence(reason: ValueError) -> str:
    return str(reason).splitlines()[0].rstrip(".")
