"""Automata whose letters permute the states and commute: the state is what a few counts are modulo numbers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

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
    if any(_behind(a, b) != _behind(b, a) for a in letters for b in letters):
        return None
    identity = tuple(range(table.states))
    generators: list[tuple[int, ...]] = []
    moduli: list[int] = []
    known: dict[tuple[int, ...], tuple[int, ...]] = {identity: ()}
    for letter in sorted(letters, key=_order, reverse=True):
        if letter not in known:
            generators.append(letter)
            moduli.append(_order(letter))
            known = _all(generators, moduli, identity)
            if len(known) > MOST_ELEMENTS:
                return None
    if not generators or len(known) != prod(moduli):  # one number for each element
        return None
    answers = {powers: outputs[element[table.start]] for element, powers in known.items()}
    return Counting(tuple(moduli), tuple(known[letter] for letter in letters), answers)


def _behind(first: tuple[int, ...], then: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(then[s] for s in first)


def _order(element: tuple[int, ...]) -> int:
    power, count, identity = element, 1, tuple(range(len(element)))
    while power != identity:
        power, count = _behind(power, element), count + 1
    return count


def _all(
    generators: list[tuple[int, ...]], moduli: list[int], identity: tuple[int, ...]
) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Every product of powers, with the least powers that make it."""
    found: dict[tuple[int, ...], tuple[int, ...]] = {}
    for powers in product(*map(range, moduli)):
        element = identity
        for generator, power in zip(generators, powers, strict=True):
            for _ in range(power):
                element = _behind(element, generator)
        found.setdefault(element, powers)
        if len(found) > MOST_ELEMENTS:
            break
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
