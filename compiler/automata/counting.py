"""Automata whose letters permute the states and commute: the state is what a few counts are modulo numbers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import lcm, prod

from compiler.automata.table import Table
from compiler.language.source import Tokens
from compiler.language.stream import Stream

MOST_ELEMENTS = 1 << 10
MOST_THRESHOLDS = 1 << 10  # of one remainder: each is two ramps


@dataclass(frozen=True)
class Counting:
    """Counts c_j of the letters so far, each weighted, modulo m_j.

    moduli: m_j; weights: for each letter its weight in each count; outputs: by (c_0, c_1, …).
    """

    moduli: tuple[int, ...]
    weights: tuple[tuple[int, ...], ...]
    outputs: Mapping[tuple[int, ...], Hashable]

    @property
    def longest(self) -> int:
        """How many letters may be counted before a remainder takes too many thresholds."""
        tops = [max(w[j] for w in self.weights) for j in range(len(self.moduli))]
        return min(MOST_THRESHOLDS * m // top for m, top in zip(self.moduli, tops, strict=True))


def counting_of(table: Table, outputs: tuple[Hashable, ...]) -> Counting | None:
    """The counts that follow a table, all of whose states are reached; None where letters do not permute or commute."""
    letters = list(zip(*table.following, strict=True))
    if any(len(set(letter)) < table.states for letter in letters):
        return None
    orders = {letter: _order(letter) for letter in dict.fromkeys(letters)}
    identity = tuple(range(table.states))
    generators: dict[tuple[int, ...], int] = {}
    known: dict[tuple[int, ...], tuple[int, ...]] = {identity: ()}
    for letter in sorted(orders, key=orders.__getitem__, reverse=True):
        if letter in known:  # a product of generators, which commute: so it commutes with every letter
            continue
        generators[letter] = orders[letter]
        size = prod(generators.values())
        if size > MOST_ELEMENTS or any(_behind(letter, g) != _behind(g, letter) for g in generators):
            return None
        known = _with_powers(known, letter, orders[letter])
        if len(known) < size:  # one number for each element
            return None
    if not generators:
        return None
    answers = {powers: outputs[element[table.start]] for element, powers in known.items()}
    return Counting(tuple(generators.values()), tuple(known[letter] for letter in letters), answers)


def _behind(first: tuple[int, ...], then: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(then[s] for s in first)


def _order(element: tuple[int, ...]) -> int:
    """How often it stands behind itself until nothing is moved: the least common multiple of its cycles' lengths."""
    order, seen = 1, [False] * len(element)
    for first in range(len(element)):
        length, at = 0, first
        while not seen[at]:
            seen[at], at, length = True, element[at], length + 1
        order = lcm(order, length or 1)
    return order


def _with_powers(
    known: dict[tuple[int, ...], tuple[int, ...]], generator: tuple[int, ...], modulus: int
) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Every product of what is known and a power of one more, with the least powers that make it."""
    found: dict[tuple[int, ...], tuple[int, ...]] = {}
    for element, powers in known.items():
        for power in range(modulus):
            found.setdefault(element, (*powers, power))
            element = _behind(element, generator)
    return found


def remainder_of(counting: Counting, tokens: Tokens, letters: tuple[str, ...]) -> Stream:
    """The remainders as one number: c_0 + m_0·(c_1 + m_1·(…))."""
    total: Stream | None = None
    radix = 1
    for j, modulus in enumerate(counting.moduli):
        weights = {letter: w[j] for letter, w in zip(letters, counting.weights, strict=True) if w[j]}
        count = tokens.number(weights, name=f"turn[{j}]").cumsum().named(f"turns[{j}]")
        remainder = (count % modulus).named(f"remainder[{j}]")
        total = remainder if total is None else total + radix * remainder
        radix *= modulus
    assert total is not None, "an automaton with a group has a letter that turns"
    return total


def outputs_by_number(counting: Counting, entries: Mapping[Hashable, int]) -> list[int]:
    """The table of the output by that number."""
    found = [0] * prod(counting.moduli)
    for powers, output in counting.outputs.items():
        number, radix = 0, 1
        for power, modulus in zip(powers, counting.moduli, strict=True):
            number, radix = number + radix * power, radix * modulus
        found[number] = entries[output]
    return found
