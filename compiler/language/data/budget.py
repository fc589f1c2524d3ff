"""What a file may ask for: limits on the sizes that it names, checked before any work that grows with them.

A few bytes can name a stream of 10^12 lanes, and a short list of operations can be weeks of compiling. Both are
refused here, from the JSON alone, in one sentence with the place and the limit. All limits are counts, so that the
same file is read, or refused, on every machine.

The limits on single sizes leave room above what is natural: recall of 4,096 keys in a vocabulary of 128,256 has
165,301 lanes, 132,353 letters, 392,961 letters on its 5 edges, and 16 MB of JSON.

Work is counted in lanes of a simple operation, each about half a millisecond of reading, compiling, packaging and
proving. A checkpoint may ask for `LEAST_WORK` whatever it holds, and for more where its weights are larger: a circuit
that is not one function of the present token needs channels and columns, and these need weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from compiler.language.data.scalars import LARGEST_SIZE, DataError, Json
from compiler.language.operations import Operation, Sees

OPERATIONS = 1 << 14  # streams of a circuit
LANES = LARGEST_SIZE  # of all streams together; no module is wider
LETTERS = 1 << 20  # of an alphabet, and rows of a table
GROUPS = 1 << 14  # of letters that have a name together
EDGES = 1 << 14  # of an input language
LETTERS_ON_EDGES = 1 << 22  # on all edges together: a set of each is made
NUMBERS = 1 << 23  # that one circuit lists, or short forms of matrices stand for
WORDS_SQUARED = 1 << 24  # of the words of a code with each other: 4,096 words
LEAST_WORK = 16_000
BYTES_OF_WEIGHTS = 16  # for one more unit of work
LISTED = 2  # numbers that cost as much as a lane
FEW_INPUTS = 4  # of an operation; each more costs as much as a lane
BENT = 40  # lanes for an operation that needs channels of its own: a rectifier, a product, a sum of the past
BENT_LANE = 4  # lanes for each lane of such an operation
FOLDED = 5  # lanes for each lane of such an operation that is a function of the present token: it becomes a table
_TWICE = {"Compare", "SameSymbol", "Min", "Max", "RunningMax", "Select"}  # which need two rectifiers a lane, or more
_DIGITS_OF_BASE64 = 4  # of a number, at least, where a matrix has many: its columns have two bytes
_SIMPLE = {"Embed", "Constant", "Position", "Numbers", "Shift", "Lti", "Not", "OneHotOf"}  # as linear maps


def check_budget(data: Json, weights: int | None = None) -> None:
    """DataError where a circuit as data asks for more than the limits above; what is no circuit is not looked at.

    weights: bytes of the weights beside it; None for a circuit that stands alone, whose work has no limit.
    """
    streams = data.get("streams") if isinstance(data, dict) else None
    if not isinstance(streams, list):
        return
    _within(len(streams), OPERATIONS, "the circuit", "operations")
    _within(_length(data.get("alphabet")), LETTERS, "the alphabet", "letters")
    _within(_length(data.get("groups")), GROUPS, "the alphabet", "groups")
    books = data.get("codebooks")
    numbers = sum(_checked_book(book, i) for i, book in enumerate(books if isinstance(books, list) else []))
    local: list[bool] = []
    widths: list[int] = []
    lanes, work = 0, numbers // LISTED
    for i, stream in enumerate(streams):
        stream = stream if isinstance(stream, dict) else {}
        attributes, here = stream.get("attributes"), f"stream {i} ({str(stream.get('operation'))[:40]})"
        _within(max(_sizes(attributes), default=0), LANES, here, "lanes or rows in one of its attributes")
        listed, width = _numbers(attributes), _width(stream, books)
        numbers, lanes = numbers + listed, lanes + width
        _within(lanes, LANES, f"{here}: the streams up to it", "lanes")
        _within(numbers, NUMBERS, f"{here}: the streams up to it", "numbers in their attributes")
        if stream.get("operation") == "Decode":
            _within(width**2, WORDS_SQUARED, here, "products of its words with each other")
        local.append(_is_local(stream, local))
        widths.append(width)
        work += _cost(stream, width, local[-1]) + _inner(stream, widths, local[-1]) + listed // LISTED
        work += max(0, _length(stream.get("inputs")) - FEW_INPUTS)
        if weights is not None and work > work_of(weights):
            raise DataError(
                f"{here}: the streams up to it are work for {work} lanes, and beside weights of {weights} bytes "
                f"there may be {work_of(weights)}"
            )


def work_of(weights: int) -> int:
    """How much work a circuit beside weights of so many bytes may ask for."""
    return LEAST_WORK + weights // BYTES_OF_WEIGHTS


def check_language(automaton: Json) -> None:
    """DataError where an input language as data has more edges, or letters on them, than the limits above."""
    edges = automaton.get("edges") if isinstance(automaton, dict) else None
    if isinstance(edges, list):
        last = automaton.get("tokens")
        most = last if type(last) is int else 0  # an id beyond them is refused where the edge is read
        check_edges(len(edges), (_letters_on(edge, most) for edge in edges))


def check_edges(edges: int, letters: Iterable[int]) -> None:
    """The same of a language's counts: how many edges it has, and how many letters each of them."""
    _within(edges, EDGES, "the input language", "edges")
    for i, total in enumerate(accumulate(letters)):
        _within(total, LETTERS_ON_EDGES, f"edge {i} of the input language: the edges up to it", "letters")


def _letters_on(edge: Json, most: int) -> int:
    ranges = edge.get("tokens") if isinstance(edge, dict) else None
    parts = [part for part in ranges if isinstance(part, list) and len(part) == 2] if isinstance(ranges, list) else []
    return sum(max(0, min(b, most) - a + 1) for a, b in parts if type(a) is int and type(b) is int)


def _within(found: int, most: int, what: str, of: str) -> None:
    if found > most:
        amount = str(found) if found < 1 << 64 else "more than 2^64"
        raise DataError(f"{what} has {amount} {of}, and there can be {most}".replace("it has", "it have"))


def _cost(stream: dict, width: int, local: bool) -> int:
    """The work of a stream by its width; local: whether it is a function of the present token, which is a table."""
    name = stream.get("operation")
    kind = Operation.known.get(name) if isinstance(name, str) else None
    ramps = name == "OneHotOf" and not local  # of a letter it is a table
    if kind is None or (name in _SIMPLE and not ramps) or kind.sees is Sees.LINEAR:
        return 1 + width
    if local:
        return FOLDED * width
    operands = width if kind.sees is Sees.POINTWISE else 2 * width
    return BENT + BENT_LANE * operands * (2 if name in _TWICE else 1)


def _inner(stream: dict, widths: list[int], local: bool) -> int:
    """The slots of a memory, a lane of its query each; the bends of a table of a number, two for a lane."""
    name, inputs = stream.get("operation"), stream.get("inputs")
    if name == "Lookup" and not local:
        return _numbers(stream.get("attributes")) // LISTED
    query = inputs[2] if name == "MemoryRead" and isinstance(inputs, list) and len(inputs) > 2 else None
    return widths[query] if type(query) is int and 0 <= query < len(widths) else 0


def _is_local(stream: dict, local: list[bool]) -> bool:
    """Whether a stream is a function of the present token alone."""
    name, inputs = stream.get("operation"), stream.get("inputs")
    kind = Operation.known.get(name) if isinstance(name, str) else None
    if kind is None or kind.sees is Sees.PAST or not kind.foldable or name in ("Position", "Numbers"):
        return False
    places = inputs if isinstance(inputs, list) else []
    return all(type(i) is int and 0 <= i < len(local) and local[i] for i in places)


def _width(stream: dict, books: Json) -> int:
    """The lanes of the type that a stream declares; a reader compares it with the type that it has."""
    kind = stream.get("type")
    if not isinstance(kind, dict):
        return 0
    if kind.get("kind") == "Code":
        place = kind.get("book")
        known = isinstance(books, list) and type(place) is int and 0 <= place < len(books)
        return max(_sizes(books[place]), default=0) if known else 0
    width = kind.get("n" if kind.get("kind") == "OneHot" else "width")
    return max(0, width) if type(width) is int else 0


def _checked_book(book: Json, place: int) -> int:
    """The entries of a codebook, which is made dense."""
    sizes = list(_sizes(book))
    _within(max(sizes, default=0), LANES, f"codebook {place}", "words or places")
    entries = sizes[0] * sizes[-1] if sizes else 0
    _within(entries, NUMBERS, f"codebook {place}", "entries")
    return entries


def _sizes(data: Json) -> Iterator[int]:
    """The integers that stand for sizes, anywhere in an attribute."""
    for key, value in _entries(data):
        if key in ("size", "n", "width") and type(value) is int:
            yield value
        elif key == "shape" and isinstance(value, list):
            yield from (n for n in value if type(n) is int)


def _numbers(data: Json) -> int:
    """How many numbers an attribute lists, or is short for."""
    found = 0
    for key, value in _entries(data):
        if isinstance(value, list):
            found += len(value)
        elif key == "size" and type(value) is int:
            found += max(0, value)
        elif key == "base64" and isinstance(value, str):
            found += len(value) // _DIGITS_OF_BASE64
    return found


def _entries(data: Json) -> Iterator[tuple[str, Json]]:
    """Every value within a JSON value, with the key that it, or the list that it stands in, has."""
    pending: list[tuple[str, Json]] = [("", data)]
    while pending:
        key, value = pending.pop()
        if isinstance(value, dict):
            pending += value.items()
        elif isinstance(value, list) and value and isinstance(value[0], (dict, list)):
            pending += ((key, part) for part in value)
        if not isinstance(value, dict):
            yield key, value


def _length(data: Json) -> int:
    return len(data) if isinstance(data, list) else 0
