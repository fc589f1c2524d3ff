"""JSON values as typed records: a dataclass is the schema, and no later code can meet a wrong type.

Kinds: int, float (an integer will do), str, bool, None, literal strings, `A | B`, list[A], dict[str, A], dataclasses
(fields without a default must be there, others may be, no more are known) and Any.
"""

import dataclasses
from collections.abc import Sequence
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from compiler.artifact.errors import CheckpointError
from compiler.artifact.json_files import shown

Record = TypeVar("Record")
_NAMES = {int: "an integer", float: "a number", str: "a string", bool: "true or false", NoneType: "null"}


def parse(kind: type[Record], value: Any, where: str) -> Record:
    """The value as this kind; CheckpointError in one sentence that names the place (`where` and the keys below it)."""
    return _value(kind, value, where)


def _value(kind: Any, value: Any, where: str) -> Any:
    if kind is Any:
        return value
    if get_origin(kind) is Literal:
        if value not in get_args(kind) or type(value) is not str:
            raise CheckpointError(f"{where} is {shown(value)}, expected one of {', '.join(get_args(kind))}.")
        return value
    if isinstance(kind, UnionType):
        return _one_of(get_args(kind), value, where)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _record(kind, value, where)
    if get_origin(kind) is list:
        (member,) = get_args(kind)
        return [_value(member, item, f"{where}[{i}]") for i, item in enumerate(_container(list, value, where))]
    if get_origin(kind) is dict:
        member = get_args(kind)[1]
        return {key: _value(member, item, _below(where, key)) for key, item in _container(dict, value, where).items()}
    if not _is(kind, value):
        raise CheckpointError(f"{where} is {shown(value)}, expected {_needed([kind], value)}.")
    return value


def _is(kind: type, value: Any) -> bool:
    if kind is float:
        return type(value) in (int, float) and abs(value) < 1 << 1000 and isfinite(value)
    return type(value) is kind


def _needed(kinds: Sequence[type], value: Any) -> str:
    """What these kinds are, and which numbers where it is another that was given."""
    said = " or ".join(_NAMES[kind] for kind in kinds)
    return f"{said} of at most 2^1000 in size" if float in kinds and type(value) in (int, float) else said


def _one_of(kinds: tuple[type, ...], value: Any, where: str) -> Any:
    if value is None and NoneType in kinds:
        return None
    complex_kinds = [kind for kind in kinds if kind not in _NAMES]
    for kind in kinds:
        if kind in _NAMES and _is(kind, value):
            return value
    if complex_kinds:
        return _value(complex_kinds[0], value, where)
    raise CheckpointError(f"{where} is {shown(value)}, expected {_needed(kinds, value)}.")


def _record(kind: type, value: Any, where: str) -> Any:
    content = _container(dict, value, where)
    hints, fields = _hints(kind), {field.name: field for field in dataclasses.fields(kind)}
    for name, field in fields.items():
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if needed and name not in content:
            raise CheckpointError(f"{where} has no entry {name}.")
    for name in content:
        if name not in fields:
            raise CheckpointError(f"{where} has an entry {shown(name)} that no checkpoint of ours has.")
    return kind(**{name: _value(hints[name], item, _below(where, name)) for name, item in content.items()})


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _container(kind: type, value: Any, where: str) -> Any:
    if type(value) is not kind:
        raise CheckpointError(f"{where} is {shown(value)}, expected {'a list' if kind is list else 'an object'}.")
    return value


def _below(where: str, key: str) -> str:
    return f"{where}: {key}" if where.endswith(".json") else f"{where}.{shown(key)[1:-1]}"
