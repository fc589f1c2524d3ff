"""Word problems of groups with every element as a letter."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from compiler.automata.permutations import behind, swaps
from compiler.automata.table import NO, YES, Table


def group_table(elements: list[tuple[int, ...]]) -> Table:
    """The word problem with *every* element as a letter: the state is the product so far, and so is the answer."""
    place = {g: i for i, g in enumerate(elements)}
    names = tuple(f"g{i}" for i in range(len(elements)))
    following = tuple(tuple(place[behind(g, x)] for x in elements) for g in elements)
    return Table(names, following, 0, names, names)


def whether_one(elements: list[tuple[int, ...]]) -> Table:
    """The same, and the answer is whether the product is the first element, which is 1."""
    table = group_table(elements)
    return replace(table, outputs=(YES, *[NO] * (table.states - 1)))


def symmetric(n: int) -> list[tuple[int, ...]]:
    return list(permutations(range(n)))


def alternating(n: int) -> list[tuple[int, ...]]:
    return [p for p in permutations(range(n)) if len(swaps(p)) % 2 == 0]


def cyclic(n: int) -> list[tuple[int, ...]]:
    return [tuple((i + k) % n for i in range(n)) for k in range(n)]


ALL_LETTERS = {
    "C_2": (cyclic(2), [1]),
    "C_3": (cyclic(3), [2]),
    "C_5": (cyclic(5), [1, 2]),
    "S_3": (symmetric(3), [2]),
    "A_5": (alternating(5), [4]),
    "S_5": (symmetric(5), [4]),
}
