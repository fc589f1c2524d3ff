"""What files may ask of the checker: limits on the sizes that they name, before any work that grows with them.

A few bytes can name 10^12 lanes or a number of 10^9 digits. All limits are counts, so the same file is read, or
rejected, on every machine. Rejecting is always sound: nothing is claimed of what is not read.

Single sizes leave room above what is natural: recall of 4,096 keys in a vocabulary of 128,256 has 165,301 lanes,
132,353 letters, 5 edges with 392,961 letters and a circuit.json of 16 MB. Work is counted in lanes of a simple
operation, each about half a millisecond; a circuit beside larger weights may ask for more of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from verify.checker.formats import Rejected

JSON_BYTES = 1 << 25  # of one file
JSON_OBJECTS = 1 << 17  # in one file, each of which costs as much as some hundred bytes: 8 for each operation
JSON_LISTS = 1 << 20  # in one file
OPERATIONS = 1 << 14  # streams of a circuit
LANES = 1 << 20  # of all streams together
LETTERS = 1 << 20  # of a language
GROUPS = 1 << 14  # of letters that have a name together
EDGES = 1 << 14  # of a language
LETTERS_ON_EDGES = 1 << 22  # on all edges together
LETTERS_BY_EDGES = 1 << 26  # letters × different sets of them on edges: a byte each
NUMBERS = 1 << 23  # that a circuit lists, or that a short form of a matrix stands for
BITS = 4096  # of an integer
MOST_LAG = 1 << 12  # positions that a stream sees back, through all streams that it is made of
LEAST_WORK = 16_000
BYTES_OF_WEIGHTS = 16  # for one more unit of work
_LISTED = 2  # numbers that cost as much as a lane
_FOLDED = 5  # lanes for each lane of such an operation that is a function of the present letter
_DIGITS_OF_BASE64 = 4  # of a number, about
_BEFORE = 32  # positions before the first letter that cost as much as a lane
_FEW_INPUTS = 4  # of an operation; each more costs as much as a lane
_BENT, _BENT_LANE = 40, 4  # lanes for an operation that rectifies, multiplies or remembers, and for each lane of it
_FRACTION = re.compile(r"-?[0-9]{1,1000}/0*[1-9][0-9]{0,999}")
_LINEAR = {"Embed", "Constant", "Position", "Linear", "Emit", "Shift", "Lti", "Not", "OneHotOf"}
_TWICE = {
    "Compare",
    "SameSymbol",
    "Min",
    "Max",
    "RunningMax",
    "Select",
    "Cumsum",
    "SumWhere",
    "Latch",
    "MemoryRead",
    "Permute",
}
_OF_THE_PAST = {"Position", "Shift", "Lti", "Cumsum", "SumWhere", "Latch", "MemoryRead", "Count", "RunningMax"}
_OF_THE_PAST |= {"ScaledSum", "FadingSum", "SelectiveSum", "FadingMemory", "Numbers", "Permute"}


def is_number(data: object) -> bool:
    """Whether JSON holds a number as circuits write it: an integer, or a fraction as a text; neither of many digits."""
    if type(data) is int:
        return data.bit_length() <= BITS
    return isinstance(data, str) and _FRACTION.fullmatch(data) is not None


def check_circuit(circuit: dict, weights: int) -> None:
    """Rejected where a circuit of the known form (`schema`) asks for more than the limits above.

    weights: bytes of the file of weights beside it.
    """
    streams, books = circuit["streams"], circuit["codebooks"]
    within(len(circuit["groups"]), GROUPS, "circuit.json", "groups of letters")
    numbers = 0
    for i, book in enumerate(books):
        height, width = shape_of(book)
        within(max(height, width), LANES, f"circuit.json: codebooks[{i}]", "words or places")
        numbers += height * width
    local: list[bool] = []
    back: list[int] = []
    widths: list[int] = []
    lanes, work = 0, numbers // _LISTED
    for i, stream in enumerate(streams):
        where, name, attributes = f"circuit.json: streams[{i}]", stream["operation"], stream["attributes"]
        within(max(_sizes(attributes), default=0), LANES, where, "lanes or rows in one of its attributes")
        listed, width = _listed(attributes), width_of(stream["type"], books)
        numbers, lanes = numbers + listed, lanes + width
        widths.append(width)
        back.append(_lag(name, attributes) + max((back[k] for k in stream["inputs"]), default=0))
        within(back[-1], MOST_LAG, f"{where}, with the streams before,", "positions seen back")
        within(numbers, NUMBERS, f"{where}, with the streams before,", "numbers in its attributes")
        within(lanes, LANES, f"{where}, with the streams before,", "lanes")
        local.append(name not in _OF_THE_PAST and all(local[k] for k in stream["inputs"]))
        simple = name in _LINEAR and (local[-1] or name != "OneHotOf")  # of a letter a table, else ramps
        bent = _FOLDED * width if local[-1] else _BENT + _BENT_LANE * width * (2 if name in _TWICE else 1)
        work += bent if not simple else 1 + width
        work += _inner(stream, widths, local[-1]) + width * back[-1] // _BEFORE
        work += listed // _LISTED + max(0, len(stream["inputs"]) - _FEW_INPUTS)
        most = LEAST_WORK + weights // BYTES_OF_WEIGHTS
        within(work, most, f"{where}, with the streams before, beside weights of {weights} bytes,", "lanes of work")


def _lag(name: str, attributes: dict) -> int:
    """How many positions an operation sees back."""
    return attributes["k"] if name == "Shift" else len(attributes["kernel"]) - 1 if name == "Lti" else 0


def _inner(stream: dict, widths: list[int], local: bool) -> int:
    """The slots of a memory, a lane of its query each; the bends of a table of a number, two for a lane."""
    name, inputs = stream["operation"], stream["inputs"]
    if name == "Lookup" and not local:
        return _listed(stream["attributes"]) // _LISTED
    return widths[inputs[2]] if name == "MemoryRead" and len(inputs) > 2 else 0


def within(found: int, most: int, what: str, of: str) -> None:
    """Rejected, with the limit, where there are more."""
    if found > most:
        amount = str(found) if found < 1 << 64 else "more than 2^64"
        raise Rejected(f"{what} has {amount} {of}, and the checker reads {most} at most")


def shape_of(matrix: dict) -> tuple[int, int]:
    return (matrix["size"],) * 2 if "size" in matrix else (matrix["shape"][0], matrix["shape"][-1])


def width_of(kind: dict, books: list) -> int:
    """The lanes that a type declares; the reader compares them with those that there are."""
    if "book" in kind:
        return shape_of(books[kind["book"]])[1] if kind["book"] < len(books) else 0
    return kind["n"] if kind["kind"] == "OneHot" else kind["width"]


def _sizes(data: Any) -> Iterator[int]:
    """The integers that stand for sizes in the attributes of a stream."""
    for key, value in _entries(data):
        if key in ("size", "n", "width", "shape"):
            yield from (n for n in (value if isinstance(value, list) else [value]) if type(n) is int)


def _listed(data: Any) -> int:
    """How many numbers the attributes of a stream list, or are short for."""
    found = 0
    for key, value in _entries(data):
        found += len(value) if isinstance(value, list) else 0
        found += value if key == "size" else len(value) // _DIGITS_OF_BASE64 if key == "base64" else 0
    return found


def _entries(data: Any) -> Iterator[tuple[str, Any]]:
    """Every value within a JSON value, with the key that it, or the list that it stands in, has."""
    pending: list[tuple[str, Any]] = [("", data)]
    while pending:
        key, value = pending.pop()
        if isinstance(value, dict):
            pending += value.items()
        elif isinstance(value, list) and value and isinstance(value[0], (dict, list)):
            pending += ((key, part) for part in value)
        if not isinstance(value, dict):
            yield key, value
