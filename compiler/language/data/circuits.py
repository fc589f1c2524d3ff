"""A circuit as JSON: every stream with its operation, attributes, inputs, type, name and source line.

    {"version": 1, "name": …, "alphabet": [token, …] or null, "groups": [[name, first id, one past the last], …],
     "promise": {"language": {…}, "length": …, "description": …} or {"length": …} over numbers,
     "end": token or null,
     "codebooks": [matrix, …],
     "streams": [{"operation": "Shift", "attributes": {"k": 1}, "inputs": [0], "type": {"kind": "Bool", "width": 1},
                  "name": null, "source": ["count.py", 12]}, …],
     "output": id}

A stream's id is its place in the list; it reads earlier streams only, so data cannot be cyclic. `records` says how
attributes look. An operation from outside this package is found by its class name, once its module is imported.
"""

from __future__ import annotations

import inspect
from types import NoneType

from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.codebook import Codebook
from compiler.language.data.budget import check_budget
from compiler.language.data.languages import language_from_data, language_to_data
from compiler.language.data.matrices import read_matrix, write_matrix
from compiler.language.data.records import Context, read_fields, write_fields, write_type
from compiler.language.data.scalars import DataError, Json, entry, known_keys, shown
from compiler.language.operations import Operation
from compiler.language.stream import Stream

VERSION = 1


def to_data(circuit: Circuit) -> dict:
    """The circuit as a JSON value, the same for the same circuit; DataError where an operation has no data form."""
    context = Context(circuit.alphabet)
    places = {stream: i for i, stream in enumerate(circuit.streams)}
    streams = [_stream_to_data(stream, places, context) for stream in circuit.streams]
    alphabet, language = circuit.alphabet, circuit.language
    if language is not None and language.alphabet != alphabet:
        raise DataError("the input language is over another alphabet than the circuit, so it has no data form")
    return {
        "version": VERSION,
        "name": circuit.name,
        "alphabet": None if alphabet is None else list(alphabet.tokens),
        "groups": [] if alphabet is None else [list(group) for group in alphabet.groups],
        "promise": {"length": circuit.length} if language is None else language_to_data(language),
        "end": circuit.end,
        "codebooks": [write_matrix(book.words) for book in context.books],
        "streams": streams,
        "output": places[circuit.output],
    }


def _stream_to_data(stream: Stream, places: dict[Stream, int], context: Context) -> dict:
    operation = stream.operation
    name = type(operation).__name__
    if Operation.known.get(name) is not type(operation):
        raise DataError(f"operation {name} at {stream.origin} is not the known operation of that name")
    try:
        attributes, type_ = write_fields(operation, context), write_type(stream.type, context)
    except DataError as error:
        raise DataError(f"{stream.label} ({stream.origin}): {error}") from error
    file, _, line = stream.origin.rpartition(":")
    return {
        "operation": name,
        "attributes": attributes,
        "inputs": [places[source] for source in stream.inputs],
        "type": type_,
        "name": stream.name,
        "source": [file, int(line)],
    }


def from_data(data: Json, weights: int | None = None) -> Circuit:
    """The circuit that `to_data` wrote; DataError, one sentence, for anything else, and for what asks for too much.

    weights: bytes of the weights beside it, which limit the work that it may ask for (`budget`); None: no such limit.
    """
    if entry(data, "version", int) != VERSION:
        raise DataError(f"the circuit has version {shown(data['version'])}, and this program reads version {VERSION}")
    known_keys(data, "version", "name", "alphabet", "groups", "promise", "end", "codebooks", "streams", "output")
    check_budget(data, weights)
    context = Context(_alphabet(data))
    context.books += [_book(words, i, context) for i, words in enumerate(entry(data, "codebooks", list))]
    streams: list[Stream] = []
    for i, given in enumerate(entry(data, "streams", list)):
        try:
            streams.append(_stream_from_data(given, streams, context))
        except DataError as error:
            raise DataError(f"stream {i}: {error}") from error
    return _circuit(data, streams, context.alphabet)


def _circuit(data: dict, streams: list[Stream], alphabet: Alphabet | None) -> Circuit:
    output = entry(data, "output", int)
    if not 0 <= output < len(streams):
        raise DataError(f"the output is stream {shown(output)}, and there are {len(streams)}")
    promise = entry(data, "promise", dict)
    if "language" in promise:
        known_keys(promise, "language", "length", "description")
        if alphabet is None:
            raise DataError("there is an input language and no alphabet")
        language, length = language_from_data(promise, alphabet), 0
    else:
        known_keys(promise, "length")
        language, length = None, entry(promise, "length", int)
    try:
        circuit = Circuit(
            entry(data, "name", str), streams[output], language, length, entry(data, "end", (str, NoneType))
        )
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"the circuit: {error}") from error
    unread = set(streams) - set(circuit.streams)
    if unread:
        place = next(i for i, stream in enumerate(streams) if stream in unread)
        raise DataError(f"stream {place} is not read on any way to the output")
    if circuit.alphabet != alphabet:
        raise DataError("there is an alphabet, and no stream and no input language uses it")
    return circuit


def _alphabet(data: dict) -> Alphabet | None:
    tokens, groups = entry(data, "alphabet", (list, NoneType)), entry(data, "groups", list)
    if tokens is None and not groups:
        return None
    if not all(isinstance(token, str) for token in tokens or [0]):
        raise DataError("the alphabet must be a list of token names")
    for group in groups:
        if not isinstance(group, list) or [type(part) for part in group] != [str, int, int]:
            raise DataError("the groups must be a list of [name, first id, one past the last id]")
        if not 0 <= group[1] <= group[2] <= len(tokens):
            raise DataError(f"the group {shown(group[0])} reaches beyond the {len(tokens)} tokens")
    try:
        return Alphabet(tuple(tokens), tuple(tuple(group) for group in groups))
    except ValueError as error:
        raise DataError(f"the alphabet is none: {error}") from error


def _book(data: Json, place: int, context: Context) -> Codebook:
    try:
        words = read_matrix(data, context.take)
        context.take(words.shape[0] * words.shape[1])
        if set(words.data.tolist()) <= {-1.0, 1.0}:
            return Codebook(words.toarray().astype("int8"))
        raise DataError("its entries must be −1, 0 and 1")
    except ValueError as error:
        raise DataError(f"codebook {place}: {error}") from error


def _stream_from_data(data: Json, earlier: list[Stream], context: Context) -> Stream:
    name, attributes, inputs = (
        entry(data, "operation", str),
        entry(data, "attributes", dict),
        entry(data, "inputs", list),
    )
    known_keys(data, "operation", "attributes", "inputs", "type", "name", "source")
    if name not in Operation.known:
        raise DataError(f"the operation {shown(name)} is unknown; import the module that defines it")
    for source in inputs:
        if type(source) is not int or not 0 <= source < len(earlier):
            raise DataError(f"it reads stream {shown(source)}, and it can read 0 to {len(earlier) - 1}")
    operation = read_fields(Operation.known[name], attributes, context)
    stream = _built(operation, [earlier[source] for source in inputs], entry(data, "name", (str, NoneType)))
    if stream.width < 1:
        raise DataError(f"it has {shown(stream.width)} lanes, and 1 or more are possible")
    if write_type(stream.type, context) != entry(data, "type", dict):
        raise DataError(f"its type is {stream.type}, and the data says {shown(str(data['type']))}")
    stream.origin = origin_of(entry(data, "source", list))
    return stream


def _built(operation: Operation, inputs: list[Stream], name: str | None) -> Stream:
    """The stream, where the operation takes inputs of these types."""
    word, types = type(operation).__name__, [stream.type for stream in inputs]
    try:
        inspect.signature(operation.problems).bind(*types)
        problems = operation.problems(*types)
        stream = Stream(operation, inputs, name)
    except Exception as error:  # operations may be anyone's, and attributes anything
        raise DataError(f"{word} cannot take {len(inputs)} inputs of these types: {error}") from error
    if problems:
        raise DataError(problems[0])
    return stream


def origin_of(source: list[Json]) -> str:
    """The line of a program that a stream was written on; DataError where the data tells of none."""
    if len(source) != 2 or type(source[0]) is not str or type(source[1]) is not int:
        raise DataError("its source must be [file name, line]")
    if len(source[0]) > 255 or "/" in source[0] or "\\" in source[0] or not 0 <= source[1] < 1 << 31:
        raise DataError(f"its source must be a file name without directories and a line, not {shown(source[0])}")
    return f"{source[0]}:{source[1]}"
