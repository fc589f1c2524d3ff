"""A shorter length that would do, where a circuit is refused for its length: only one that was compiled is named."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from math import isqrt

from compiler.errors import CompileError, TooLong
from compiler.language.circuit import Circuit
from compiler.language.input_language import LARGEST_LENGTH, Edge, InputLanguage

NONE = "no shorter max_length would do, so make numbers smaller"
_MOST, _WORK, _OF_A_STREAM = 12, 10_000, 20  # tries; widths of streams in all of them; and what a stream adds


def at_length(circuit: Circuit, length: int) -> Circuit:
    """The same circuit, promised for sequences of at most this length; ValueError where no whole one is so short."""
    if circuit.language is None:
        return replace(circuit, length=length)
    least = least_length(circuit.language, circuit.end)
    if length < least:
        raise ValueError(f"max_length is {length}, and the shortest sequence that is whole has {least} tokens")
    return replace(circuit, language=replace(circuit.language, max_length=length))


def least_length(language: InputLanguage, end: str | None) -> int:
    """How many tokens a path has at least that comes to `end`, or else to a whole prompt; 1 where nobody says.

    What a path needs for other reasons, such as an entry for each cell of a table, the language does not tell.
    """
    last = frozenset() if end is None else frozenset(language.alphabet.ids([end]))
    whole = lambda edge: bool(edge.tokens & last) if last else edge.target == language.asked
    leaving: dict[str, list[Edge]] = {}
    for edge in language.edges:
        leaving.setdefault(edge.source, []).append(edge)
    reached, seen, length = {language.start}, {language.start}, 1
    while reached:
        edges = [edge for state in reached for edge in leaving.get(state, ()) if edge.tokens]
        if any(map(whole, edges)):
            return length
        reached = {edge.target for edge in edges} - seen
        seen |= reached
        length += 1
    return 1


def fits(length: int) -> str:
    """The advice of a length that was tried."""
    return f"a max_length of {length} would fit"


def tries(circuit: Circuit) -> int:
    """How many lengths may be tried: fewer of a large circuit, and 0 of a very large one."""
    return min(_MOST, _WORK // sum(stream.width + _OF_A_STREAM for stream in circuit.streams))


def naming(
    refusal: TooLong, circuit: Circuit, tried: Callable[[int], object], said: Callable[[int], str] = fits
) -> TooLong:
    """The refusal with a length that was tried, or with the sentence that none would do; as it is where the tries end
    before.

    said: the advice of a length. tried: compiles what is promised up to a length. CompileError where that is refused;
    another ValueError where it is too short for anything to be made. The guess comes first, then the next one (which
    settles sums that are proportional to the length, and shows whether any length does), then the interval is halved on
    the logarithmic scale. A large circuit is tried less often, or not at all.
    """
    low, high, best = 0, min(circuit.max_length, LARGEST_LENGTH + 1), 0
    left = tries(circuit)
    lengths = itertools.chain((refusal.guess, lambda: low + 1), itertools.repeat(lambda: isqrt(low * high)))
    while left and high - low > 1:
        length = min(max(next(lengths)(), low + 1), high - 1)
        try:
            tried(length)
            low = best = length
        except CompileError:
            high = length
        except ValueError:
            low, left = length, left + 1  # it costs nothing
        left -= 1
    if not best and high - low > 1:
        return refusal
    return refusal.with_advice(_advice(best, said))


def _advice(best: int, said: Callable[[int], str]) -> str:
    """best: the largest length that was tried and would do; 0: none. Of one token, no memory is of use."""
    if best == 1:
        return f"{said(1)}, but of use are smaller numbers"
    return said(best) if best else NONE
