"""Letters by name: which ids a task speaks of is read off the names that a person reads and writes.

A proof over ids says nothing of the text if the names may be dealt out anew. So no task is told ids: it finds its keys,
values, digits, separators and end by their names in circuit.json, which are those of the tokenizer (`text`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from verify.checker.formats import Rejected
from verify.checker.tasks.listing import LONG, digest, listed

T = TypeVar("T")
_DIGITS = "0123456789"


@dataclass(frozen=True)
class Stated(Generic[T]):
    """A task, in words with the names of its letters, and the letter that ends a text that is generated, if any.

    known: the letters that have a place in the task, where no other may stand in the language; None: others are passed
    over. needed: letters that the language must hold, for else the words would speak of what never comes.
    """

    task: T
    says: str
    end: str | None = None
    known: np.ndarray | None = None
    needed: np.ndarray | None = None

    def check_letters(self, letters: Sequence[str], used: np.ndarray) -> None:
        """Rejected where the letters of the language are not those of the task."""
        odd = used if self.known is None else used[~np.isin(used, self.known)]
        if self.known is not None and len(odd):
            raise Rejected(f"the letter {letters[odd[0]]!r} stands in the language, and the task has no place for it")
        if self.needed is not None and not np.isin(self.needed, used).all():
            missing = self.needed[~np.isin(self.needed, used)][0]
            raise Rejected(f"the task names {letters[missing]!r}, which no sequence of the language holds")


class Names:
    """The letters of a circuit, by name; Rejected where two have one name, or one cannot be read as it is printed."""

    def __init__(self, letters: Sequence[str]):
        self.letters = letters
        self._ids = {name: i for i, name in enumerate(letters)}
        self._begun: dict[str, list[str]] = {}  # by what stands before their last digits
        for name in letters:
            self._begun.setdefault(name.rstrip(_DIGITS), []).append(name)
        if len(self._ids) < len(letters):
            raise Rejected("two letters of circuit.json have one name")
        for name in letters:
            if not name or not name.isprintable() or any(c.isspace() for c in name):
                raise Rejected(f"the letter {name!r} of circuit.json is empty, or has characters that cannot be seen")

    @property
    def count(self) -> int:
        return len(self.letters)

    def one(self, name: str) -> int:
        """The id of a letter; Rejected where there is none of this name."""
        if name not in self._ids:
            raise Rejected(f"the task needs the letter {name!r}, and circuit.json has none of this name")
        return self._ids[name]

    def these(self, names: Sequence[str]) -> np.ndarray:
        return np.array([self.one(name) for name in names], dtype=np.int64)

    def present(self, names: Sequence[str]) -> np.ndarray:
        """The ids of those of the names that letters have; Rejected where none has."""
        found = [self._ids[name] for name in names if name in self._ids]
        if not found:
            raise Rejected(f"the task needs one of the letters {names[0]} … {names[-1]}, and circuit.json has none")
        return np.array(found, dtype=np.int64)

    def numbered(self, prefix: str, first: int = 0) -> np.ndarray:
        """The ids of prefix0, prefix1, … in this order; Rejected where there are none, or one is left out."""
        count = first
        while f"{prefix}{count}" in self._ids:
            count += 1
        found = self.these([f"{prefix}{i}" for i in range(first, count)])
        if not len(found):
            raise Rejected(f"the task needs letters {prefix}{first}, {prefix}{first + 1}, …, and circuit.json has none")
        like = re.compile(re.escape(prefix) + "(0|[1-9][0-9]*)")
        named = sum(1 for name in self._begun.get(prefix.rstrip(_DIGITS), ()) if like.fullmatch(name))
        if named != len(found):
            raise Rejected(f"of the letters {prefix}{first}, {prefix}{first + 1}, … of circuit.json some are left out")
        return found

    def said(self, i: int) -> str:
        """A letter for people; with its numbers where it may look like another one, or like a quote."""
        name = self.letters[i]
        return name if name.isascii() and "`" not in name else f"{name}(U+{' U+'.join(f'{ord(c):04X}' for c in name)})"

    def shown(self, ids: Sequence[int] | np.ndarray) -> str:
        """These letters for people: `a b c`, or `k0` … `k15` where there are many in a row."""
        said = listed([self.said(i) for i in ids], self.letters)
        if len(said) <= LONG:
            return said
        mark = digest([self.letters[i] for i in ids])
        return f"{len(ids)} letters that stand in construction.json ({mark} of their list in the order of circuit.json)"
