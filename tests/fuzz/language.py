"""Input languages as data, and the sequences on which programs are run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.fuzz.kinds import Draw, shown

LENGTHS = (1, 2, 3, 5, 7, 8, 12, 12, 12, 16, 24, 64, 100, 1000, 65_536, 10**6)
Edge = tuple[str, str, tuple[str, ...], bool]


@dataclass(frozen=True)
class Language:
    """All walks of at most max_length letters from `start` along the edges (source, target, letters, distinct)."""

    letters: tuple[str, ...]
    edges: tuple[Edge, ...]
    max_length: int
    start: str = "s0"

    @property
    def free(self) -> bool:
        """Whether every sequence of letters is a walk."""
        return self.edges == everything(self.letters)

    @property
    def empty(self) -> Walk:
        return (), self.start, frozenset()

    def code(self) -> str:
        if self.free:
            return f"InputLanguage.everything(letters, {self.max_length})"
        edges = ", ".join(f"({a!r}, {b!r}, {shown(members)}, {distinct})" for a, b, members, distinct in self.edges)
        return f"InputLanguage.of(letters, {self.start!r}, [{edges}], {self.max_length}, 'walks')"

    def steps(self, walk: Walk) -> Iterator[Walk]:
        """Every walk that is one letter longer."""
        letters, state, used = walk
        for i, (source, target, members, distinct) in enumerate(self.edges):
            for letter in members if source == state else ():
                if not (distinct and (i, letter) in used):
                    yield (*letters, letter), target, used | {(i, letter)} if distinct else used


Walk = tuple[tuple[str, ...], str, frozenset]


def everything(letters: tuple[str, ...]) -> tuple[Edge, ...]:
    return (("s0", "s0", letters, False),)


def draw_language(draw: Draw) -> Language:
    """A random language over the letters of the draw."""
    length = draw.one(LENGTHS)
    if draw.chance(0.6):
        return Language(draw.letters, everything(draw.letters), length)
    states = [f"s{i}" for i in range(1 + draw.below(3))]
    edges = [(state, draw.one(states), tuple(draw.members()), draw.chance(0.3)) for state in states]
    edges += [
        (draw.one(states), draw.one(states), tuple(draw.members()), draw.chance(0.3)) for _ in range(draw.below(3))
    ]
    return Language(draw.letters, tuple(edges), length)


def sequences(language: Language, draw: Draw, most: int = 40, length: int = 12) -> list[tuple[str, ...]]:
    """Walks: every short one, each continued at random; those of one letter; none longer than `length`.

    What a causal model says of a sequence it says of every beginning, so beginnings are left out.
    """
    length = min(length, language.max_length)
    walks = [language.empty]
    while len(walks[0][0]) < length:
        longer = [step for walk in walks for step in language.steps(walk)]
        if not longer or len(longer) > most:
            break
        walks = longer
    found = {continued(language, draw, walk, length) for walk in walks}
    found |= {continued(language, draw, walk, length, repeat=True) for walk in language.steps(language.empty)}
    return sorted(word for word in found if word)


def continued(language: Language, draw: Draw, walk: Walk, length: int, repeat: bool = False) -> tuple[str, ...]:
    """A random walk from this one; with `repeat`, of the same letter as long as the language lets it."""
    while len(walk[0]) < length:
        options = list(language.steps(walk))
        if not options:
            break
        same = [option for option in options if repeat and option[0][-1:] == walk[0][-1:]]
        walk = draw.one(same or options)
    return walk[0]
