"""Alphabets: the finite, named token sets that circuits read and write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral

from compiler.language.arguments import MOST_LANES, close_to, instance, integer, listed, shown

_MOST_COMPARED = 10_000  # names that a misspelt one is compared with


@dataclass(frozen=True)
class Alphabet:
    """A finite list of distinct token names, some of them gathered in named groups.

    tokens: every name, in id order.
    groups: (group name, first id, one past the last id) triples.
    """

    tokens: tuple[str, ...]
    groups: tuple[tuple[str, int, int], ...] = ()

    @classmethod
    def of(cls, *singles: str, **groups: int | Iterable[str]) -> Alphabet:
        """Build an alphabet: single tokens first, then each group in order.

        A group given as a number n is named after itself: `k=3` is `k0 k1 k2`;
        a group given as strings holds just these names.
        """
        tokens, spans = list(singles), []
        for group, members in groups.items():
            if isinstance(members, Integral):
                size = integer(members, f"the size of group {group!r}", 0, MOST_LANES)
                names = [f"{group}{i}" for i in range(size)]
            else:
                names = listed(members, f"group {group!r}", "a number or a list of tokens")
            spans.append((group, len(tokens), len(tokens) + len(names)))
            tokens += names
        return cls(tuple(tokens), tuple(spans))

    def __post_init__(self) -> None:
        if not instance(self.tokens, tuple, "the tokens of the alphabet", "a tuple of names (Alphabet.of takes them)"):
            raise ValueError("an alphabet needs at least one token, and this one has none")
        for name in self.tokens:
            instance(name, str, "a token of the alphabet", "a text")
        if len(self._positions) < len(self.tokens):
            ((name, times),) = Counter(self.tokens).most_common(1)
            raise ValueError(f"token {name!r} stands {times} times in the alphabet; names must be distinct")
        for name in self.tokens:
            if name.split() != [name]:
                raise ValueError(f"token {name!r} is empty or holds white space, so no tokenizer could split it off")
            if not name.isascii() and any("\ud800" <= c <= "\udfff" for c in name):
                raise ValueError(f"token {name!r} holds a lone surrogate, which UTF-8 cannot write to a file")
        for group in instance(
            self.groups, tuple, "the groups of the alphabet", "a tuple of (name, first id, last + 1)"
        ):
            self._check_group(group)

    def _check_group(self, group: object) -> None:
        """TypeError or ValueError for what names no span of the tokens."""
        if not isinstance(group, (tuple, list)) or len(group) != 3 or not isinstance(group[0], str):
            raise TypeError(f"a group of the alphabet is {shown(group)}, and (name, first id, last id + 1) is needed")
        start, stop = (integer(group[i], f"an end of group {group[0]!r}", 0, len(self.tokens)) for i in (1, 2))
        if start > stop:
            raise ValueError(f"group {group[0]!r} begins at {start} and ends before {stop}, and it must begin first")

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.tokens)}

    @property
    def size(self) -> int:
        """How many tokens there are."""
        return len(self.tokens)

    def index(self, token: str) -> int:
        """The id of a token; ValueError when it is not in the alphabet."""
        instance(token, str, "a token", "its name")
        if token not in self._positions:
            self._check_no_group(token)
            names = [*self._positions, *(group for group, *_ in self.groups)] if self.size <= _MOST_COMPARED else []
            raise ValueError(
                f"token {token!r} is not in the alphabet of {self.size} tokens ({self.tokens[0]} … {self.tokens[-1]})"
                f"{self._in_group(token) or close_to(token, names)}"
            )
        return self._positions[token]

    def _in_group(self, token: str) -> str:
        """Which tokens there are of the group that a name with a number seems to mean; "" where none has its name."""
        for group, start, stop in self.groups:
            if start < stop and token.lower().startswith(group.lower()) and token[len(group) :].isdigit():
                return f"; there are {self.tokens[start]} … {self.tokens[stop - 1]}"
        return ""

    def _check_no_group(self, token: str) -> None:
        """ValueError for the name of a group, where one token is needed."""
        for group, start, stop in self.groups:
            if group == token and start < stop:
                raise ValueError(
                    f"{token!r} is no token, but the group of {self.tokens[start]} … {self.tokens[stop - 1]}: name one "
                    f"of these, or give {token!r} alone where a group may stand"
                )

    def ids(self, members: str | Iterable[str] | None = None) -> range | tuple[int, ...]:
        """The ids of a group (by its name), of listed tokens, or of the whole alphabet (None)."""
        if members is None:
            return range(self.size)
        if isinstance(members, str):
            for group, start, stop in self.groups:
                if group == members:
                    return range(start, stop)
            return (self.index(members),)
        named = listed(members, "members", "the name of a group, a list of tokens or None")
        return tuple(self.index(token) for token in named)

    def once(self, ids: Sequence[int], what: str) -> Sequence[int]:
        """The ids; ValueError, which names `what` was given them, where a token stands twice among them."""
        seen: set[int] = set()
        for token in ids:
            if token in seen:
                raise ValueError(f"{what} was given the token {self.tokens[token]!r} twice; once is enough")
            seen.add(token)
        return ids

    def encode(self, text: str) -> list[int]:
        """Token ids of a white-space separated string."""
        return [self.index(token) for token in instance(text, str, "text", "tokens with spaces between").split()]

    def decode(self, ids: Iterable[int]) -> str:
        """The names of these ids with spaces between; ValueError for an id that no token has."""
        entries = listed(ids, "ids", "a list of token ids")
        whole = (i.__index__() if hasattr(i, "__index__") else i for i in entries)  # entries of a tensor too
        return " ".join(self.tokens[integer(i, "a token id", 0, self.size - 1)] for i in whole)
