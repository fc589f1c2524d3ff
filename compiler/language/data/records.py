"""Values as JSON and back, exactly: numbers, names, matrices, types, codebooks.

What a value looks like follows from the annotation of the dataclass field that holds it, so a new operation needs no
entry here:

    int, float, Fraction    an integer, or "p/q" in lowest terms
    bool, str               as they are
    X | None                null for None
    tuple[X, ...]           a list
    csr_array               {"shape": [rows, columns], "rows": [[[column, value], …], …]};
                            w equal weights on a diagonal: {"diagonal": value, "size": w};
                            a large one: {"shape", "exponent", "counts", "columns", "values"}, see `_compact`
    np.ndarray              a matrix of the same forms, for two axes
    a stream type           {"kind": "Int", "lo": 0, "hi": null, "width": 1}, its fields by name
    Codebook                its place in the list of the circuit's codebooks
    Alphabet                nothing: a circuit has one alphabet, which is written once
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from scipy import sparse

from compiler.language.alphabet import Alphabet
from compiler.language.codebook import Codebook
from compiler.language.data.budget import NUMBERS
from compiler.language.data.matrices import read_matrix, write_matrix
from compiler.language.data.scalars import (
    KINDS,
    LARGEST_SIZE,
    DataError,
    Json,
    entry,
    known_keys,
    read_float,
    read_integer,
    read_number,
    shown,
    within,
    write_integer,
    write_number,
)
from compiler.language.types import Type

_STREAM_TYPES = {kind.__name__: kind for kind in get_args(Type)}


@dataclass
class Context:
    """What values share: the circuit's alphabet and codebooks, and how many entries short forms may still stand for."""

    alphabet: Alphabet | None = None
    books: list[Codebook] = field(default_factory=list)
    room: int = NUMBERS

    def place(self, book: Codebook) -> int:
        """The place of a codebook in the list; equal words share one."""
        for i, known in enumerate(self.books):
            if known is book or np.array_equal(known.words, book.words):
                return i
        self.books.append(book)
        return len(self.books) - 1

    def take(self, entries: int) -> None:
        self.room -= entries
        if self.room < 0:
            raise DataError(f"its short forms stand for more than {NUMBERS} entries")


@dataclass(frozen=True)
class Codec:
    """Both directions of one kind of value; for one of another kind `write` may raise anything, `read` DataError."""

    write: Callable[[Any, Context], Any]
    read: Callable[[Any, Context], Any]


def _as_it_is(kind: type) -> Codec:
    def same(value: object, context: Context) -> object:
        if not isinstance(value, kind):
            raise DataError(f"it is {shown(value)}, and {KINDS[kind]} is needed")
        return value

    return Codec(same, same)


_NUMBERS = {
    int: Codec(lambda value, _: write_integer(value), lambda data, _: read_integer(data)),
    float: Codec(lambda value, _: write_number(value), lambda data, _: read_float(data)),
    Fraction: Codec(lambda value, _: write_number(value), lambda data, _: Fraction(read_number(data))),
}


def _mixed_numbers(kinds: set[type]) -> Codec:
    """A union of number types: whole numbers are integers where the union has them."""

    def read(data: Json, context: Context) -> int | float | Fraction:
        whole = isinstance(data, int) and int in kinds
        return _NUMBERS[int if whole else Fraction if Fraction in kinds else float].read(data, context)

    return Codec(lambda value, _: write_number(value), read)


def write_fields(record: object, context: Context) -> dict:
    """The fields of a dataclass by name."""
    kind: type = type(record)
    found = {}
    for name in alphabet_fields(kind):
        if getattr(record, name) != context.alphabet:
            raise DataError(f"attribute {name!r} of {kind.__name__} is another alphabet than the circuit's")
    for name, codec in codecs(kind).items():
        if name in _left_out(kind) and getattr(record, name) == _left_out(kind)[name]:
            continue
        try:
            found[name] = codec.write(getattr(record, name), context)
        except Exception as error:  # a field may hold anything, whatever its annotation says
            reason = error if isinstance(error, DataError) else f"it is {shown(getattr(record, name))}"
            raise DataError(f"attribute {name!r} of {kind.__name__} cannot be written: {reason}") from error
    return found


def read_fields(kind: type, data: dict, context: Context) -> Any:
    """The dataclass with these fields."""
    known = codecs(kind)
    known_keys(data, *known)
    if alphabet_fields(kind) and context.alphabet is None:
        raise DataError("it reads tokens, and there is no alphabet")
    values = {}
    for name, codec in known.items():
        if name not in data and name in _left_out(kind):
            continue
        if name not in data:
            raise DataError(f"the attribute {name!r} is missing")
        try:
            values[name] = codec.read(data[name], context)
        except DataError as error:
            raise DataError(f"attribute {name!r}: {error}") from error
    try:
        return kind(**values, **dict.fromkeys(alphabet_fields(kind), context.alphabet))
    except (TypeError, ValueError) as error:
        raise DataError(f"it is no {kind.__name__}: {error}") from error


@cache
def _left_out(kind: type) -> dict[str, Any]:
    """The default of each field that is not written where it has it."""
    return {item.name: item.default for item in fields(kind) if item.metadata.get("left out")}


def _read_array(data: Json, context: Context) -> np.ndarray:
    matrix = read_matrix(data, context.take)
    context.take(matrix.shape[0] * matrix.shape[1])
    return matrix.toarray()


@cache
def codecs(kind: type) -> dict[str, Codec]:
    """The codec of each written field of a dataclass."""
    if not is_dataclass(kind):
        raise DataError(f"{kind.__name__} has no data form; make it a dataclass, so that its attributes are known")
    hints = get_type_hints(kind)
    found = {}
    for item in fields(kind):
        if item.init and hints[item.name] is not Alphabet:
            found[item.name] = codec_for(hints[item.name], f"attribute {item.name!r} of {kind.__name__}")
    return found


@cache
def alphabet_fields(kind: type) -> tuple[str, ...]:
    """The fields that hold the circuit's alphabet."""
    return tuple(name for name, hint in get_type_hints(kind).items() if hint is Alphabet)


def codec_for(hint: Any, what: str) -> Codec:
    """The codec that an annotation asks for."""
    if hint in _NUMBERS:
        return _NUMBERS[hint]
    if hint in (bool, str):
        return _as_it_is(hint)
    if hint is Codebook:
        return Codec(lambda book, context: context.place(book), _read_book)
    if hint in (sparse.csr_array, sparse.sparray):
        return Codec(lambda value, _: write_matrix(value), lambda data, context: read_matrix(data, context.take))
    if hint is np.ndarray:
        return Codec(lambda value, _: write_matrix(value), _read_array)
    if hint in _STREAM_TYPES.values():
        return Codec(write_type, read_type)
    arguments = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return _union(set(arguments), what)
    if get_origin(hint) is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return _list_of(codec_for(arguments[0], what))
    raise DataError(
        f"{what} has the type {hint}, which has no data form; use int, float, Fraction, bool, str, a stream type, "
        f"csr_array, Codebook, or a tuple[…, ...] of these"
    )


def _union(kinds: set[Any], what: str) -> Codec:
    if NoneType in kinds:
        rest = _union(kinds - {NoneType}, what)
        return Codec(
            lambda value, context: None if value is None else rest.write(value, context),
            lambda data, context: None if data is None else rest.read(data, context),
        )
    if len(kinds) == 1:
        return codec_for(kinds.pop(), what)
    if kinds <= set(_STREAM_TYPES.values()):
        return Codec(write_type, read_type)
    if kinds <= set(_NUMBERS):
        return _mixed_numbers(kinds)
    raise DataError(f"{what} may be of several types, which have no common data form")


def _list_of(each: Codec) -> Codec:
    def read(data: Json, context: Context) -> tuple:
        if not isinstance(data, list):
            raise DataError(f"it is {shown(data)}, and a list is needed")
        return tuple(each.read(item, context) for item in data)

    return Codec(lambda value, context: [each.write(item, context) for item in value], read)


def write_type(type_: Type, context: Context) -> dict:
    """A stream type by its kind and fields."""
    return {"kind": type(type_).__name__, **write_fields(type_, context)}


def read_type(data: Json, context: Context) -> Type:
    kind = entry(data, "kind", str)
    if kind not in _STREAM_TYPES:
        raise DataError(f"the type {shown(kind)} is unknown; there are {', '.join(_STREAM_TYPES)}")
    found = read_fields(_STREAM_TYPES[kind], {k: v for k, v in data.items() if k != "kind"}, context)
    within("width", found.width, LARGEST_SIZE)
    return found


def _read_book(data: Json, context: Context) -> Codebook:
    place = read_integer(data)
    if not 0 <= place < len(context.books):
        raise DataError(f"it is codebook {place}, and there are {len(context.books)}")
    return context.books[place]
