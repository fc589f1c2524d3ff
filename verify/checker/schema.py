"""How circuit.json and the promise are written: the entries that the checker knows, each of its kind, and no others.

What is not known might change what a file means, so it is rejected, also where nothing reads it. A form is a kind, a
range of whole numbers, a condition (a function), a text that stands there, a tuple of forms of which one fits, a list
with the form of its entries, or an object with the form of each entry; a name that ends in ? may be missing.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from verify.checker.budget import OPERATIONS, is_number, within
from verify.checker.formats import Rejected
from verify.checker.meaning.rules import RULES

VERSION, FORMAT_VERSION = 1, 2  # of circuit.json and of construction.json
_NUMBER = is_number
_BOUND = (is_number, None)
_COUNT, _FROM_1 = range(1 << 53), range(1, 1 << 53)
_WIDTHS = (range(1, 3), range(4, 5), range(8, 9))  # bytes of an integer
_EXPONENT = range(-1099, 1100)


def _pair(first: Any, second: Any) -> Any:
    """A list of two, each of its form."""
    forms = first, second
    return lambda data: type(data) is list and len(data) == 2 and all(map(_fits, forms, data))


_ARRAY = {"bytes": _WIDTHS, "base64": str}
_SHAPE, _ENTRY = _pair(_FROM_1, _FROM_1), _pair(_COUNT, _NUMBER)
_MATRIX = (
    {"diagonal": _NUMBER, "size": _FROM_1},
    {"shape": _SHAPE, "rows": [[_ENTRY]]},
    {"shape": _SHAPE, "exponent": _EXPONENT, "counts": _ARRAY, "columns": _ARRAY, "values": _ARRAY},
)
_BOUNDS = {"lo": _BOUND, "hi": _BOUND, "width": _FROM_1}
_TYPE = (
    *({"kind": kind, "width": _FROM_1} for kind in ("Bool", "Logits")),
    {"kind": "Int", **_BOUNDS},
    {"kind": "Real", **_BOUNDS, "gap?": _NUMBER},
    {"kind": "OneHot", "n": _FROM_1},
    {"kind": "Code", "book": _COUNT},
)
_EDGE = {"from": str, "to": str, "tokens": [[int]], "distinct": bool}
_INPUTS = {"language": {"tokens": int, "start": str, "edges": [_EDGE]}, "length": (int, None), "description": str}
_PROMISE = _INPUTS | {"dtype": str, "stop?": (str, None), "level?": ("bit-exact", "bounded-error")}
_PROMISE |= {"error_bound?": (int, float, None), "inputs?": [dict], "error_bounds?": [dict]}
_CIRCUIT = {"version": int, "name": str, "alphabet": [str], "groups": [list], "promise": _INPUTS, "end": (str, None)}
_CIRCUIT |= {"codebooks": [_MATRIX], "output": _COUNT, "streams": [dict]}
_STREAM = {"operation": str, "attributes": dict, "inputs": [_COUNT], "type": _TYPE, "name": (str, None), "source": list}
_LINEAR = {"matrices": [_MATRIX], "type": (*_TYPE, None)}
_ATTRIBUTES: dict[str, Any] = {"Embed": {"table": _MATRIX, "type": _TYPE}, "Linear": _LINEAR, "Emit": _LINEAR}
_ATTRIBUTES |= {"Constant": {"values": [_NUMBER]}, "Shift": {"k": _COUNT}, "Lti": {"kernel": [_NUMBER]}}
_ATTRIBUTES |= {
    "Clip": {"lo": is_number, "hi": is_number},
    "Compare": {"relation": (">", "<", ">=", "<=", "==", "!=")},
    "OneHotOf": {"n": _FROM_1},
}
_ATTRIBUTES |= {"Lookup": {"table": [_NUMBER], "symbols": bool}, "Decode": {"words": _MATRIX}}
_ATTRIBUTES |= dict.fromkeys(("FloorDivide", "Modulo"), {"divisor": _FROM_1})
_ATTRIBUTES |= {
    "MemoryRead": {"policy": str, "writes": (_FROM_1, None), "skip": _NUMBER},
    "Decide": {"tokens": [_COUNT]},
}
_ATTRIBUTES["Permute"] = {"n": _FROM_1, "pairs": [_pair(_COUNT, _COUNT)], "start": (_COUNT, None)}
_ATTRIBUTES |= dict.fromkeys(("FadingSum", "SelectiveSum", "FadingMemory"), {"decay": _NUMBER})


def check_written(circuit: dict, manifest: dict) -> None:
    """Rejected, in one sentence, where circuit.json or the manifest's promise is not written as the checker knows it,
    or where they promise something else.
    """
    for file, version, read in (
        ("circuit.json", circuit.get("version"), VERSION),
        ("construction.json", manifest.get("format_version", FORMAT_VERSION), FORMAT_VERSION),
    ):
        if type(version) is not int or version != read:
            raise Rejected(f"{file} has version {version!r:.60}, and the checker reads version {read}")
    _need(_PROMISE, manifest["promise"], "construction.json: promise")
    _need(_CIRCUIT, circuit, "circuit.json")
    within(len(circuit["streams"]), OPERATIONS, "circuit.json", "operations")
    for i, stream in enumerate(circuit["streams"]):
        where = f"circuit.json: streams[{i}]"
        _need(_STREAM, stream, where)
        known = _ATTRIBUTES.get(stream["operation"], {} if stream["operation"] in RULES else dict)
        _need(known, stream["attributes"], f"{where}: attributes")
        for k in stream["inputs"]:
            if k >= i:
                raise Rejected(f"{where} reads stream {k}, which does not stand before it")
        if stream["attributes"].get("type") not in (None, stream["type"]):
            raise Rejected(f"{where} has two types")
    if circuit["output"] >= len(circuit["streams"]):
        raise Rejected(f"circuit.json has the output {circuit['output']}, and {len(circuit['streams'])} streams")
    for name in _INPUTS:
        if circuit["promise"][name] != manifest["promise"][name]:
            raise Rejected(f"circuit.json promises another {name} than construction.json")


def _need(form: Any, data: object, where: str) -> None:
    place = _misfit(form, data, where)
    if place is not None:
        raise Rejected(f"{place} is missing, or nothing that the checker knows")


def _fits(form: Any, data: object) -> bool:
    return _misfit(form, data, "") is None


def _misfit(form: Any, data: object, where: str) -> str | None:
    """The first place where the data have not this form; None where they have it."""
    if isinstance(form, tuple):
        return None if any(_misfit(each, data, where) is None for each in form) else where
    if isinstance(form, list) and type(data) is list:
        return next((place for i, part in enumerate(data) if (place := _misfit(form[0], part, f"{where}[{i}]"))), None)
    if isinstance(form, dict) and type(data) is dict:
        known = {name.rstrip("?"): each for name, each in form.items() if not name.endswith("?") or name[:-1] in data}
        odd = sorted(map(str, data.keys() ^ known.keys()))
        if odd:
            return f"{where}: {odd[0]:.60}"
        return next((place for name in known if (place := _misfit(known[name], data[name], f"{where}: {name}"))), None)
    if isinstance(form, FunctionType):
        return None if form(data) else where
    if isinstance(form, range):
        return None if type(data) is int and data in form else where
    return None if (data == form if isinstance(form, str | None) else type(data) is form) else where
