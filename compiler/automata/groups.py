"""The groups of an automaton by name, and whether they can be solved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np

from compiler.automata.images import Images
from compiler.automata.monoid import Monoid

_LARGEST_LISTED = 1 << 10  # elements that are gone through for a name
_LARGEST_DEGREE = 6  # of a symmetric or alternating group that is known by its elements


@dataclass(frozen=True, order=True)
class Group:
    """order: how many elements; name: such as "C_2×C_2", "S_3" or "a group of order 20"; solvable: whether it is made
    of cyclic groups, one on the other.
    """

    order: int
    name: str
    solvable: bool


def groups(images: Images, monoid: Monoid | None = None) -> list[Group]:
    """The groups, other than {1}, the largest first, each isomorphism type that has a name once.

    With a whole monoid these are its maximal subgroups: those of classes with an idempotent. Else all groups that act
    on sets of states; the others among these are quotients of maximal subgroups.
    """
    regular = _regular(monoid) if monoid is not None and monoid.whole else None
    found = set()
    for kind, generators in images.permutations.items():
        if regular is None or any(images.sets[number] in regular for number in images.members[kind]):
            found.add(named(generators))
    return sorted(found, reverse=True)


def _regular(monoid: Monoid) -> set[tuple[int, ...]]:
    """The images of idempotents: those e for which e·e reaches as many states as e."""
    found = set()
    twice = np.take_along_axis(monoid.elements, monoid.elements, axis=1)
    for e, square in zip(np.sort(monoid.elements, axis=1), np.sort(twice, axis=1), strict=True):
        if (np.diff(e) != 0).sum() == (np.diff(square) != 0).sum():
            found.add(tuple(np.unique(e).tolist()))
    return found


def named(generators: Sequence[tuple[int, ...]]) -> Group:
    """The group that permutations generate."""
    from sympy.combinatorics import Permutation, PermutationGroup

    group = PermutationGroup([Permutation(list(g)) for g in generators])
    order = int(group.order())
    return Group(order, _name(group, order), bool(group.is_solvable))


def _name(group: Any, order: int) -> str:
    if group.is_abelian:
        return "×".join(f"C_{n}" for n in _factors([int(n) for n in group.abelian_invariants()]))
    for n in range(3, group.degree + 1):
        if group.degree == n and order == factorial(n):
            return f"S_{n}"
        if group.degree == n and 2 * order == factorial(n):
            return f"A_{n}"
    if order > _LARGEST_LISTED:
        return f"a group of order {order}"
    orders = Counter(int(g.order()) for g in group.elements)
    return _by_orders(orders, order) or f"a group of order {order}"


def _factors(invariants: list[int]) -> list[int]:
    """Prime powers as the fewest cyclic groups: 2, 2, 3 as 6, 2."""
    factors: list[int] = []
    for prime in sorted({next(p for p in range(2, n + 1) if n % p == 0) for n in invariants}):
        for i, power in enumerate(sorted((n for n in invariants if n % prime == 0), reverse=True)):
            factors[i : i + 1] = [power * (factors[i] if i < len(factors) else 1)]
    return factors


def _by_orders(orders: Counter[int], order: int) -> str | None:
    """S_n and A_n up to 6, and dihedral groups, by how many elements have each order."""
    for n in range(3, _LARGEST_DEGREE + 1):
        for letter, even in (("S", False), ("A", True)):
            if order == factorial(n) // (1 + even) and orders == _of_cycles(n, even):
                return f"{letter}_{n}"
    half = order // 2
    if order % 2 == 0 and orders[half] and orders[2] >= half + (half % 2 == 0):
        return f"D_{half}"  # a circle of half of them, and every other element turns back
    return None


def _of_cycles(n: int, even: bool) -> Counter[int]:
    from sympy.combinatorics import AlternatingGroup, SymmetricGroup

    return Counter(int(g.order()) for g in (AlternatingGroup if even else SymmetricGroup)(n).elements)
