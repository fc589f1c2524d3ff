"""The sets of states that words lead to, and the permutations that words make of each: where groups live.

X and X·w belong to one class where a word leads back from X·w to X. Then every word from X to X·w that leads back
maps X onto X·w, one to one, and the words from X to itself act on X as a group. The automaton is star-free exactly
where all these groups are {1}: a word that permutes a set around a circle is a group of the monoid, and each such
group acts on the set that its words lead to (Schützenberger 1965; holonomy: Zeiger 1967, Eilenberg 1976).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from compiler.automata.table import Table

MOST_SETS = 1 << 12


class CapMet(ValueError):
    """What is asked takes more work than is tried; the sentence says what the cap is."""


@dataclass(frozen=True, eq=False)
class Images:
    """sets: all states first, then what words make of them, then each state alone; moves: [set][letter], the set
    behind a letter; kind: the class of each set.
    """

    table: Table
    sets: tuple[tuple[int, ...], ...]
    moves: tuple[tuple[int, ...], ...]
    kind: tuple[int, ...]

    @cached_property
    def members(self) -> dict[int, list[int]]:
        """The sets of each class; the first is its representative."""
        found: dict[int, list[int]] = {}
        for number, kind in enumerate(self.kind):
            found.setdefault(kind, []).append(number)
        return found

    @cached_property
    def order(self) -> dict[int, tuple[int, ...]]:
        """Each set in the order that a word, the same for all, makes of the sorted representative of its class."""
        found: dict[int, tuple[int, ...]] = {}
        for kind, sets in self.members.items():
            found[sets[0]] = self.sets[sets[0]]
            waiting = [sets[0]]
            for number in waiting:
                for letter, to in enumerate(self.moves[number]):
                    if self.kind[to] == kind and to not in found:
                        found[to] = self._moved(number, letter, found)
                        waiting.append(to)
        return found

    def _moved(self, number: int, letter: int, order: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
        return tuple(self.table.following[s][letter] for s in order[number])

    @cached_property
    def permutations(self) -> dict[int, list[tuple[int, ...]]]:
        """For each class generators of its group: the permutations, other than none at all, of the representative's
        places (Schreier's lemma).
        """
        found: dict[int, dict[tuple[int, ...], None]] = {}
        for number, kind in enumerate(self.kind):
            for letter, to in enumerate(self.moves[number]):
                if self.kind[to] != kind or len(self.sets[number]) == 1:
                    continue
                place = {s: i for i, s in enumerate(self.order[to])}
                moved = tuple(place[s] for s in self._moved(number, letter, self.order))
                if moved != tuple(range(len(moved))):
                    found.setdefault(kind, {})[moved] = None
        return {kind: list(generators) for kind, generators in found.items()}


def images(table: Table, most: int = MOST_SETS) -> Images:
    """The images of all states; CapMet where there are more than `most`."""
    import networkx as nx  # not at the top: commands that need no automaton would wait for it

    first = tuple(range(table.states))
    place: dict[tuple[int, ...], int] = {first: 0}
    sets, moves = [first], []
    alone = [(s,) for s in first]
    for here in sets:
        row = []
        for letter in range(len(table.letters)):
            to = tuple(sorted({table.following[s][letter] for s in here}))
            if to not in place:
                place[to] = len(sets)
                sets.append(to)
            row.append(place[to])
        moves.append(tuple(row))
        if len(moves) == len(sets):  # all behind the first: then the states that no word gives alone
            for single in alone:
                if single not in place:
                    place[single] = len(sets)
                    sets.append(single)
        if len(sets) > most + table.states:
            raise CapMet(f"words lead to more than {most} sets of its {table.states} states")
    graph = nx.DiGraph([(number, to) for number, row in enumerate(moves) for to in row])
    kind = [0] * len(sets)
    for i, component in enumerate(nx.strongly_connected_components(graph)):
        for number in component:
            kind[number] = i
    return Images(table, tuple(sets), tuple(moves), tuple(kind))
