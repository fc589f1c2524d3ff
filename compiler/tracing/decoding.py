"""The numbers of a variable as letters and numbers, and back.

a flag                True or False
OneHot, Code          the letter that it stands for, or the number of the alternative where no letter does; None
                      where it is absent (all zeros)
integers, reals       int or float
scores                the letter that alone scores highest, None where two do
several numbers       a tuple of them; so is a one-hot that holds what is none
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from compiler.language.alphabet import Alphabet
from compiler.language.arguments import close_to, number, shown
from compiler.language.operations import LaneWise
from compiler.language.stream import Stream
from compiler.language.types import Bool, Code, Logits, OneHot

Names = tuple["str | int", ...]


class Decoder:
    """Values of one stream, decoded and encoded."""

    def __init__(self, stream: Stream, name: str, alphabet: Alphabet | None):
        self.stream, self.name, self.alphabet = stream, name, alphabet

    @cached_property
    def words(self) -> np.ndarray | None:
        """The value of each alternative: (alternatives, width); None where the stream has no alternatives."""
        if isinstance(self.stream.type, Code):
            return self.stream.type.book.words.astype(np.float64)
        return np.eye(self.stream.width) if isinstance(self.stream.type, OneHot) else None

    @cached_property
    def names(self) -> Names:
        """What the alternatives stand for: a letter, or their number where no letter of the alphabet does."""
        assert self.words is not None, "only a stream of alternatives names them"
        table = None if self.alphabet is None else _letters(self.stream, self.alphabet, {})
        if table is None or self.alphabet is None:
            return tuple(range(len(self.words)))
        rows: dict[bytes, list[str]] = {}
        for token, row in zip(self.alphabet.tokens, table, strict=True):
            rows.setdefault(row.tobytes(), []).append(token)
        found = [rows.get(word.tobytes(), []) for word in self.words]
        return tuple("|".join(tokens) if tokens else i for i, tokens in enumerate(found))

    def decode(self, raw: np.ndarray) -> list[Any]:
        """One entry for each row of (positions, width)."""
        if isinstance(self.stream.type, Logits):
            return self._answers(raw)
        if self.words is not None:
            return self._alternatives(raw, self.words)
        convert = bool if isinstance(self.stream.type, Bool) else _plain
        flag = isinstance(self.stream.type, Bool) and np.isin(raw, (0, 1)).all()
        cast = convert if flag or convert is _plain else _plain
        if raw.shape[1] == 1:
            return [cast(value) for value in raw[:, 0].tolist()]
        return [tuple(cast(value) for value in row) for row in raw.tolist()]

    def _answers(self, raw: np.ndarray) -> list[Any]:
        best = raw.argmax(axis=1)
        alone = (raw == raw.max(axis=1, keepdims=True)).sum(axis=1) == 1
        tokens: Sequence[str | int] = range(raw.shape[1])
        if self.alphabet is not None and self.alphabet.size == raw.shape[1]:
            tokens = self.alphabet.tokens
        return [tokens[i] if sure else None for i, sure in zip(best.tolist(), alone.tolist(), strict=True)]

    def _alternatives(self, raw: np.ndarray, words: np.ndarray) -> list[Any]:
        if isinstance(self.stream.type, OneHot):
            place, size = raw.argmax(axis=1), raw.max(axis=1)
            good = (size == 1) & ((raw != 0).sum(axis=1) == 1)
            at = np.where(good, place, -1)
        else:
            known = {word.tobytes(): i for i, word in enumerate(words)}
            at = np.array([known.get(row.tobytes(), -1) for row in raw + 0.0], dtype=np.int64)
        empty: list[bool] = [not row.any() for row in raw]
        found = []
        for i, absent, row in zip(at.tolist(), empty, raw, strict=True):
            found.append(self.names[i] if i >= 0 else None if absent else tuple(map(_plain, row.tolist())))
        return found

    def completed(self, raw: np.ndarray, missing: np.ndarray) -> np.ndarray | None:
        """Values of which each may have `missing` (width,) added once or not, as the one of the two that is an
        alternative or absent; None where that does not tell.

        raw: (positions, width), without it.
        """
        if self.words is None:
            return None
        valid = {word.tobytes() for word in self.words} | {np.zeros(self.stream.width).tobytes()}
        result = raw + 0.0
        for i, row in enumerate(result):
            with_it = row + missing
            choices = [choice for choice in (row, with_it) if (choice + 0.0).tobytes() in valid]
            if len(choices) != 1:
                return None
            result[i] = choices[0]
        return result

    def encode(self, value: Any) -> np.ndarray:
        """The numbers (width,) of a decoded value, or of a sequence of as many numbers as the stream has.

        ValueError, one sentence, for a value that the stream cannot be given.
        """
        if isinstance(value, (list, tuple, np.ndarray)) or (hasattr(value, "tolist") and np.ndim(value) == 1):
            return self._numbers(list(value))
        if value is None:
            return np.zeros(self.stream.width)
        if self.words is not None:
            return self._alternative(value, self.words)
        if isinstance(self.stream.type, Logits):
            raise ValueError(f"{self.name!r} holds scores; give it {self.stream.width} numbers, not {shown(value)}")
        return self._numbers([value])

    def _alternative(self, value: Any, words: np.ndarray) -> np.ndarray:
        if hasattr(value, "item"):
            value = value.item()
        if value in self.names and not isinstance(value, bool):
            return words[self.names.index(value)].copy()
        near = close_to(value, [name for name in self.names if isinstance(name, str)])
        some = ", ".join(map(repr, self.names[:12])) + (", …" if len(self.names) > 12 else "")
        near += " It" if near else "; it"
        raise ValueError(
            f"{self.name!r} cannot hold {shown(value)}{near} holds one of {some}, or None where it is absent"
        )

    def _numbers(self, values: Sequence[Any]) -> np.ndarray:
        if len(values) != self.stream.width:
            raise ValueError(
                f"{self.name!r} was given {len(values)} number{'s' * (len(values) != 1)}, and it has "
                f"{self.stream.width} at each position"
            )
        plain = [int(v) if isinstance(v, (bool, np.bool_)) else v for v in values]
        return np.array([float(number(v, f"a number for {self.name!r}")) for v in plain])


def _plain(value: float) -> int | float:
    return int(value) if value == int(value) else value


_DEEPEST = 100  # operations, one inside the other, through which a letter is followed


def _letters(
    stream: Stream, alphabet: Alphabet, known: dict[Stream, np.ndarray | None], depth: int = 0
) -> np.ndarray | None:
    """(tokens × width), what the stream would hold for each letter that it passes on; None where it passes on none.

    A memory, a latch or a select hands on letters that it was given; a number becomes no letter.
    """
    if depth > _DEEPEST:
        return None
    if stream not in known:
        known[stream] = None
        known[stream] = _found_letters(stream, alphabet, known, depth + 1)
    return known[stream]


def _found_letters(
    stream: Stream, alphabet: Alphabet, known: dict[Stream, np.ndarray | None], depth: int
) -> np.ndarray | None:
    operation = stream.operation
    if operation.token_table is not None:
        return operation.token_table.toarray()
    columns: list[np.ndarray] = []
    for i in range(stream.width):
        carried = operation.carries(i, *(s.width for s in stream.inputs))
        table = None if carried is None else _letters(stream.inputs[carried[0]], alphabet, known, depth)
        if carried is None or table is None:
            columns = []
            break
        columns.append(table[:, carried[1]])
    if columns:
        return np.stack(columns, axis=1)
    if operation.lane_wise is not LaneWise.EACH:
        return None
    tables = [_letters(s, alphabet, known, depth) for s in stream.inputs if s.width == stream.width > 1]
    given = [table for table in tables if table is not None]
    return given[0] if given and all(np.array_equal(table, given[0]) for table in given) else None
