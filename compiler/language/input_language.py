"""Input languages: which token sequences a circuit is promised to see.

An alphabet and a length alone prove too little (a key could be written at every
position); a small automaton whose edges carry token sets, some of them used up
without repetition, proves what the exactness of a circuit rests on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from compiler.language.alphabet import Alphabet
from compiler.language.arguments import instance, integer, listed, shown
from compiler.language.edge import Edge
from compiler.language.markdown import one_line

LARGEST_LENGTH = 1 << 53  # of a sequence: its positions are still exact in float64
EVERY_LENGTH = 1 << 54  # no sequence is too long: no format adds so many numbers exactly, so what counts is refused
Paths: TypeAlias = frozenset[tuple[str, frozenset[tuple[int, int]]]]  # (state, (distinct edge, token) used)
_LONGEST_SPELLED = 1 << 16  # of `strings`, which copies a prefix for each of its tokens
_MOST_DRAWN = 1 << 24  # tokens of one sample
_DRAWN_AT_ONCE = 1 << 12  # steps of a walk
_MOST_SAID = 12  # tokens that a description names
_MOST_PATHS = 1 << 17  # that are followed at a time


@dataclass(frozen=True, repr=False)
class InputLanguage:
    """All sequences of at most max_length tokens that a path from `start` along the edges spells.

    max_length: EVERY_LENGTH where there is no longest sequence; then the compiler refuses what grows with the length.
    asked: the state to which a whole prompt leads, and behind which the model writes; "" where nobody says.
    """

    alphabet: Alphabet
    start: str
    edges: tuple[Edge, ...]
    max_length: int
    description: str
    asked: str = ""

    def __post_init__(self) -> None:
        instance(self.alphabet, Alphabet, "the alphabet of an input language", "an Alphabet")
        instance(self.start, str, "the start state of an input language", "a text")
        instance(self.description, str, "the description of an input language", "a text")
        if self.max_length != EVERY_LENGTH:
            integer(self.max_length, "max_length", 1, LARGEST_LENGTH)
        instance(self.asked, str, "the asked state of an input language", "a text")
        for edge in instance(self.edges, tuple, "the edges of an input language", "a tuple of Edge"):
            instance(edge, Edge, "an edge of an input language", "an Edge")
            if edge.tokens and not 0 <= min(edge.tokens) <= max(edge.tokens) < self.alphabet.size:
                wrong = next(token for token in sorted(edge.tokens) if not 0 <= token < self.alphabet.size)
                raise ValueError(
                    f"the edge {edge.source!r} → {edge.target!r} carries token id {wrong}, and "
                    f"ids are 0 … {self.alphabet.size - 1}"
                )
        if self.asked and all(self.asked not in (edge.source, edge.target) for edge in self.edges):
            raise ValueError(f"asked is {shown(self.asked)}, and no edge of the input language touches that state")

    def __repr__(self) -> str:
        """In one line, for a notebook shows it."""
        size = f"{len(self.edges)} edge{'s' * (len(self.edges) != 1)}, {length_said(self.max_length)}"
        return f"<InputLanguage {one_line(self.description)}: {size}>"

    @classmethod
    def everything(
        cls, alphabet: Alphabet, max_length: int | None, members: str | Iterable[str] | None = None
    ) -> InputLanguage:
        """Every sequence of at most this length, or of every length (None), of these tokens.

        members: a group's name, or a list; all tokens where there is none.
        """
        instance(alphabet, Alphabet, "the alphabet of an input language", "an Alphabet")
        ids = frozenset(alphabet.ids(members))
        names = [alphabet.tokens[i] for i in sorted(ids)]
        few = members is not None and len(names) <= _MOST_SAID
        said = f"every sequence of {' '.join(names) if few else f'the {len(names)} tokens'}"
        return cls(alphabet, "any", (Edge("any", "any", ids),), _given(max_length), said)

    @classmethod
    def of(
        cls,
        alphabet: Alphabet,
        start: str,
        edges: Iterable[tuple],
        max_length: int | None,
        description: str,
        asked: str = "",
    ) -> InputLanguage:
        """Edges as (source, target, members of the alphabet[, True for distinct]); max_length None is every length."""
        instance(alphabet, Alphabet, "the alphabet of an input language", "an Alphabet")
        built = []
        for edge in listed(edges, "the edges of an input language", "a list of edges"):
            if not isinstance(edge, (tuple, list)) or len(edge) not in (3, 4):
                raise ValueError(f"an edge is {shown(edge)}, and (state, next state, members[, distinct]) is needed")
            built.append(Edge(edge[0], edge[1], frozenset(alphabet.ids(edge[2])), *edge[3:]))
        return cls(alphabet, start, tuple(built), _given(max_length), description, asked)

    def with_length(self, max_length: int | None) -> InputLanguage:
        """The same paths, of at most this many tokens, or of every length (None)."""
        return replace(self, max_length=_given(max_length))

    @property
    def every_length(self) -> bool:
        """Whether there is no longest sequence."""
        return self.max_length == EVERY_LENGTH

    @cached_property
    def _repeatable(self) -> tuple[bool, ...]:
        """For each edge, whether a path can take it more than once (both ends in one strong component)."""
        from scipy.sparse import coo_array  # not at the top: `construct list` would wait for it
        from scipy.sparse.csgraph import connected_components

        ends = [(e.source, e.target) for e in self.edges]
        number = {state: i for i, state in enumerate({state for both in ends for state in both})}
        source, target = np.array([(number[a], number[b]) for a, b in ends], dtype=np.int64).reshape(-1, 2).T
        graph = coo_array((np.ones(len(source)), (source, target)), shape=(len(number), len(number)))
        component = connected_components(graph, connection="strong")[1]
        return tuple((component[source] == component[target]).tolist())

    def is_repeatable(self, edge: int) -> bool:
        """Whether a path can take the edge of this number more than once."""
        return self._repeatable[integer(edge, "edge", 0, len(self.edges) - 1)]

    @cached_property
    def occurrences(self) -> np.ndarray:
        """For each token id, a bound on how often it stands in a sequence of the language: (vocabulary,) int64."""
        bound = np.zeros(self.alphabet.size, dtype=np.int64)
        for edge, repeatable in zip(self.edges, self._repeatable, strict=True):
            ids = np.fromiter(edge.tokens, dtype=np.int64)
            more = self.max_length if repeatable and not edge.distinct else 1
            bound[ids] = np.minimum(bound[ids] + more, self.max_length)
        return bound

    @cached_property
    def used(self) -> np.ndarray:
        """The tokens that edges carry, as ids in order."""
        return np.array(sorted({token for edge in self.edges for token in edge.tokens}), dtype=np.int64)

    def max_count(self, ids: np.ndarray) -> int:
        """A bound on how many positions of a sequence hold one of these tokens."""
        known = isinstance(ids, np.ndarray) and ids.dtype.kind in "iu"
        wanted = frozenset(
            ids.tolist() if known else (integer(i, "a token id") for i in listed(ids, "ids", "a list of token ids"))
        )
        total = 0
        for edge, repeatable in zip(self.edges, self._repeatable, strict=True):
            shared = len(edge.tokens & wanted)
            if shared:
                total += 1 if not repeatable else shared if edge.distinct else self.max_length
        return min(total, self.max_length)

    def strings(self, length: int) -> Iterator[tuple[int, ...]]:
        """Every sequence of exactly this length, each once, in lexicographic order of the ids.

        ValueError for more than `max_length` tokens, and above 65536, for a prefix is copied at every token.
        """
        return self._strings(integer(length, "length of strings", 0, min(self.max_length, _LONGEST_SPELLED)))

    def _strings(self, length: int) -> Iterator[tuple[int, ...]]:
        stack: list[tuple[tuple[int, ...], Paths]] = [((), self._beginning)]
        while stack:
            prefix, paths = stack.pop()
            if len(prefix) == length:
                yield prefix
            else:
                following = self._following(paths)
                stack += (((*prefix, token), frozenset(following[token])) for token in sorted(following, reverse=True))

    def short_strings(self, longest: int, most: int) -> Iterator[list[tuple[int, ...]]]:
        """Every sequence of 1, 2, … tokens, length by length, as long as there are at most `most` of a length.

        It ends as well where too many paths spell them.
        """
        longest, most = integer(longest, "longest of short_strings", 0), integer(most, "most of short_strings", 1)
        level: dict[tuple[int, ...], Paths] = {(): self._beginning}
        for _ in range(min(longest, self.max_length)):
            longer: dict[tuple[int, ...], Paths] = {}
            steps = 0
            for word, paths in level.items():
                following = self._following(paths)
                longer |= {(*word, token): frozenset(after) for token, after in following.items()}
                steps += sum(map(len, following.values()))
                if len(longer) > most or steps > _MOST_PATHS:
                    return
            if not longer:
                return
            yield sorted(longer)
            level = longer

    @cached_property
    def _leaving(self) -> dict[str, list[tuple[int, Edge, list[int]]]]:
        """Of each state the edges with tokens that leave it, by their numbers, each with its tokens in rising order."""
        found: dict[str, list[tuple[int, Edge, list[int]]]] = {}
        for i, edge in enumerate(self.edges):
            if edge.tokens:
                found.setdefault(edge.source, []).append((i, edge, sorted(edge.tokens)))
        return found

    @property
    def _beginning(self) -> Paths:
        return frozenset({(self.start, frozenset())})

    def _following(self, paths: Paths) -> dict[int, set]:
        """For each token that may come next the paths that take it."""
        found: dict[int, set] = {}
        for state, used in paths:
            for i, edge, tokens in self._leaving.get(state, ()):
                for token in tokens:
                    if not edge.distinct:
                        found.setdefault(token, set()).add((edge.target, used))
                    elif (i, token) not in used:
                        found.setdefault(token, set()).add((edge.target, used | {(i, token)}))
        return found

    def accepts(self, tokens: Iterable[int]) -> bool:
        """Whether some path spells the sequence and it is not too long."""
        word = tuple(integer(token, "a token id") for token in listed(tokens, "tokens", "a list of ids"))
        return len(word) <= self.max_length and bool(self.paths(word))

    def runs(self, most: int) -> Iterator[list[int]]:
        """Of each letter the longest sequence of it alone, of at most so many."""
        for letter in range(self.alphabet.size):
            length, paths = 0, self.paths([letter])
            while paths and length < most:
                length, paths = length + 1, self.paths([letter], paths)
            if length:
                yield [letter] * length

    def paths(self, tokens: Iterable[int], before: Paths | None = None) -> Paths:
        """The paths that spell these token ids, of any length, behind what `before` spelled [default: nothing].

        ValueError where there are too many to follow.
        """
        paths = self._beginning if before is None else before
        for token in tokens:
            paths = frozenset(
                (edge.target, used | {(i, token)} if edge.distinct else used)
                for state, used in paths
                for i, edge, _ in self._leaving.get(state, ())
                if token in edge.tokens and not (edge.distinct and (i, token) in used)
            )
            if len(paths) > _MOST_PATHS:
                raise ValueError(f"more than {_MOST_PATHS} paths of the input language spell the same tokens")
        return paths

    @cached_property
    def written(self) -> frozenset[str]:
        """The states in which the model writes: `asked`, and all that come after it; none where nobody says."""
        import networkx as nx  # not at the top: `construct list` would wait for it

        if not self.asked:
            return frozenset()
        graph = nx.DiGraph((edge.source, edge.target) for edge in self.edges)
        return frozenset({self.asked, *nx.descendants(graph, self.asked)})

    def sample(self, count: int, length: int, seed: int) -> np.ndarray:
        """`count` random sequences of exactly this length: (count, length) int64.

        At each step an edge is drawn, then a token of it, uniformly among those behind which the rest can follow.
        ValueError where the language has no sequence of this length.
        """
        from compiler.language.random_strings import RandomStrings  # it imports networkx

        count, length = integer(count, "count of sample", 0), integer(length, "length of sample", 0, self.max_length)
        if count * length > _MOST_DRAWN or count > _MOST_DRAWN:
            raise ValueError(
                f"count of sample is {shown(count)} and its length {length}, and at most {_MOST_DRAWN} tokens are drawn"
            )
        rng = np.random.default_rng(integer(seed, "seed of sample", 0))
        strings = RandomStrings(self.start, self.edges, self._leaving, length)
        return np.array([strings.draw(rng) for _ in range(count)], dtype=np.int64).reshape(count, length)

    def walks(self, length: int, count: int) -> list[list[int]]:
        """The sequence that `sample` draws of each seed 0 … count − 1, up to the first that it does not find: a length
        that one seed does not find, or not within its budget, the others do not find either.
        """
        found = []
        for seed in range(count):
            try:
                found.append(self.sample(1, length, seed)[0].tolist())
            except ValueError:
                break
        return found

    def longest(self, most: int) -> int:
        """The length of its longest sequences of at most `most` tokens, as far as `sample` finds them."""
        for length in range(min(integer(most, "most of longest", 0), self.max_length), 0, -1):
            try:
                self.sample(1, length, 0)
            except ValueError:
                continue
            return length
        return 0

    def walk(self, seed: int) -> Iterator[int]:
        """The tokens of one random walk, for as long as there is one, in constant memory; it is none of `sample`'s.

        Edges and tokens are drawn uniformly.
        """
        rng, state, used = np.random.default_rng(integer(seed, "seed of walk", 0)), self.start, set[tuple[int, int]]()
        drawn: Iterator[tuple[int, int]] = iter(())
        while options := [
            (i, edge, free)
            for i, edge, ids in self._leaving.get(state, ())
            if (free := [t for t in ids if (i, t) not in used] if edge.distinct else ids)
        ]:
            first, second = next(drawn, (None, 0))
            if first is None:  # many at once take a tenth of the time
                drawn = iter(rng.integers(1 << 62, size=(_DRAWN_AT_ONCE, 2)).tolist())
                first, second = next(drawn)
            i, edge, free = options[first % len(options)]
            token = free[second % len(free)]
            if edge.distinct:
                used.add((i, token))
            yield token
            state = edge.target


def length_said(length: int | None, unit: str = "tokens") -> str:
    """The length of a promise in words; None where no sequence is too long."""
    return "of every length" if length is None else f"up to {length} {unit}"


def _given(max_length: int | None) -> int:
    return EVERY_LENGTH if max_length is None else max_length
