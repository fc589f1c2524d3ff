"""Random small automata, and what they do, by definition."""

from __future__ import annotations

import random

from compiler.automata.table import NO, YES, Table


def random_table(seed: int, states: int, letters: str = "ab") -> Table:
    draw = random.Random(f"{seed} {states} {letters}")
    following = tuple(tuple(draw.randrange(states) for _ in letters) for _ in range(states))
    outputs = tuple(draw.choice((NO, YES)) for _ in range(states))
    return Table(tuple(letters), following, draw.randrange(states), outputs, tuple(f"s{i}" for i in range(states)))


def answers(table: Table, word: list[int]) -> list[str]:
    """What a walk through the table says behind each letter."""
    state, found = table.start, []
    for letter in word:
        state = table.following[state][letter]
        found.append(table.outputs[state])
    return found


def maps(table: Table) -> set[tuple[int, ...]]:
    """All maps of states that words make, one composition at a time."""
    found = {tuple(range(table.states))}
    waiting = list(found)
    while waiting:
        word = waiting.pop()
        for letter in range(len(table.letters)):
            longer = tuple(table.following[s][letter] for s in word)
            if longer not in found:
                found.add(longer)
                waiting.append(longer)
    return found


def composed(e: tuple[int, ...], f: tuple[int, ...]) -> tuple[int, ...]:
    """First e, then f."""
    return tuple(f[s] for s in e)


def group_orders(table: Table) -> set[int]:
    """The orders of the maximal subgroups: of each idempotent e, how many m with e·m·e = m have an inverse there."""
    elements, orders = maps(table), set()
    for e in elements:
        if composed(e, e) == e:
            inside = [m for m in elements if composed(composed(e, m), e) == m]
            orders.add(sum(any(composed(m, n) == e and composed(n, m) == e for n in inside) for m in inside))
    return orders - {1}
