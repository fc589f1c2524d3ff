"""Input languages as JSON: an automaton whose edges carry ranges of token ids."""

from __future__ import annotations

from compiler.language.alphabet import Alphabet
from compiler.language.data.budget import check_language
from compiler.language.data.scalars import DataError, Json, entry, known_keys, shown
from compiler.language.input_language import EVERY_LENGTH, LARGEST_LENGTH, Edge, InputLanguage


def language_to_data(language: InputLanguage) -> dict:
    """{"language": {"tokens", "start", "edges"}, "length", "description"}; an edge's tokens are inclusive id ranges.

    length: null where there is no longest sequence.
    """
    edges = [
        {"from": edge.source, "to": edge.target, "tokens": _ranges(edge.tokens), "distinct": edge.distinct}
        for edge in language.edges
    ]
    return {
        "language": {"tokens": language.alphabet.size, "start": language.start, "edges": edges},
        "length": None if language.every_length else language.max_length,
        "description": language.description,
    }


def language_from_data(data: Json, alphabet: Alphabet) -> InputLanguage:
    """The input language over this alphabet; DataError where the data is none."""
    automaton, length = entry(data, "language", dict), length_from_data(data)
    if entry(automaton, "tokens", int) != alphabet.size:
        raise DataError(f"it is over {shown(automaton['tokens'])} tokens, and the alphabet has {alphabet.size}")
    check_automaton(automaton)
    edges = tuple(_edge(edge) for edge in automaton["edges"])
    try:
        return InputLanguage(alphabet, automaton["start"], edges, length, entry(data, "description", str))
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"the input language: {error}") from error


def check_automaton(automaton: Json) -> None:
    """DataError where an automaton as data is too large, or is none: before anything is made of it."""
    check_language(automaton)
    size, _ = entry(automaton, "tokens", int), entry(automaton, "start", str)
    known_keys(automaton, "tokens", "start", "edges")
    for i, edge in enumerate(entry(automaton, "edges", list)):
        try:
            _check_edge(edge, size)
        except DataError as error:
            raise DataError(f"edge {i} of the input language: {error}") from error


def length_from_data(promise: Json) -> int:
    """How many tokens a promise covers; EVERY_LENGTH for null. DataError where it says neither."""
    if isinstance(promise, dict) and promise.get("length", 0) is None:
        return EVERY_LENGTH
    length = entry(promise, "length", int)
    if length > LARGEST_LENGTH:
        raise DataError(f"its length is {shown(length)}, and it must be at most {LARGEST_LENGTH}, or null")
    return length


def _ranges(tokens: frozenset[int]) -> list[list[int]]:
    """A set of ids as sorted inclusive ranges [first, last]."""
    ranges: list[list[int]] = []
    for token in map(int, sorted(tokens)):
        if ranges and token == ranges[-1][1] + 1:
            ranges[-1][1] = token
        else:
            ranges.append([token, token])
    return ranges


def _check_edge(data: Json, size: int) -> None:
    for name, kind in (("from", str), ("to", str), ("tokens", list), ("distinct", bool)):
        entry(data, name, kind)
    known_keys(data, "from", "to", "tokens", "distinct")
    last = -2
    for given in data["tokens"]:
        if not isinstance(given, list) or len(given) != 2 or any(type(n) is not int for n in given):
            raise DataError("its tokens must be a list of [first, last] pairs of ids")
        if not last + 1 < given[0] <= given[1] < size:
            raise DataError(
                f"its token ranges must rise, lie apart and end below {size}; {shown(given[0])} does not fit"
            )
        last = given[1]


def _edge(data: Json) -> Edge:
    tokens = frozenset(i for first, last in data["tokens"] for i in range(first, last + 1))
    return Edge(data["from"], data["to"], tokens, data["distinct"])
