"""Where a circuit's data comes from: tokens, numbers, positions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import numpy as np
from scipy import sparse

from compiler.language import operations as ops
from compiler.language.alphabet import Alphabet
from compiler.language.arguments import instance, integer
from compiler.language.codebook import Codebook
from compiler.language.declared import of_input
from compiler.language.given_matrix import given_matrix
from compiler.language.stream import Stream
from compiler.language.types import Bool, Code, Int, OneHot, Real, Type

_MOST_NAMED = 3  # tokens of a list that its stream is named after
Members = str | Iterable[str] | None


class Tokens:
    """The input tokens of a circuit; each method gives a stream that is a function of the present token."""

    def __init__(self, alphabet: Alphabet):
        instance(alphabet, Alphabet, "the alphabet of Tokens", "an Alphabet")
        self.alphabet = alphabet

    def _embed(
        self, rows: Iterable[int], lanes: Iterable[int], values: Iterable[float], type: Type, name: str
    ) -> Stream:
        entries = list(values)
        exact = np.asarray(entries, dtype=float)
        for given, held in zip(entries, exact.tolist(), strict=True):
            if given != held:
                raise ValueError(
                    f"{name!r} holds {given}, which no float64 holds exactly; use k/2^n with k of at most 53 bits"
                )
        table = sparse.csr_array((exact, (list(rows), list(lanes))), shape=(self.alphabet.size, type.width))
        return Stream(ops.Embed(self.alphabet, ops.exact_matrix(table), type), (), name)

    def one_hot(self, *tokens: Members, name: str | None = None) -> Stream:
        """Which of these tokens the present one is (absent for any other): OneHot.

        tokens: the name of a group, tokens, or a list of them; the whole alphabet where there is none.
        """
        members = _members(tokens)
        ids = self.alphabet.once(_some(self.alphabet.ids(members), "one_hot"), "one_hot")
        return self._embed(ids, range(len(ids)), [1] * len(ids), OneHot(len(ids)), name or self._name(members, "token"))

    def is_in(self, *tokens: Members, name: str | None = None) -> Stream:
        """Whether the present token is one of these (a group's name, tokens, or a list of them): Bool."""
        if not tokens:
            raise ValueError("is_in was given no tokens, and at least one, or the name of a group, is needed")
        members = _members(tokens)
        ids = tuple(dict.fromkeys(self.alphabet.ids(members)))
        if not isinstance(members, str):  # a group may have been made empty, and then it never comes
            _some(ids, "is_in")
        return self._embed(ids, [0] * len(ids), [1] * len(ids), Bool(), name or f"is_{self._name(members, 'token')}")

    def code(self, members: Members, book: Codebook, name: str | None = None) -> Stream:
        """The codeword of the present token, by its rank among these tokens; zeros for any other: Code."""
        instance(book, Codebook, "book", "a codebook")
        ids = np.asarray(self.alphabet.once(self.alphabet.ids(members), "code"))
        if len(ids) != book.size:
            raise ValueError(f"the codebook has {book.size} words for {len(ids)} tokens; they must agree")
        rows = np.repeat(ids, book.length)
        lanes = np.tile(np.arange(book.length), len(ids))
        table = sparse.csr_array(
            (book.words.reshape(-1).astype(float), (rows, lanes)), shape=(self.alphabet.size, book.length)
        )
        return Stream(
            ops.Embed(self.alphabet, ops.exact_matrix(table), Code(book)),
            (),
            name or f"{self._name(members, 'token')}.code",
        )

    def number(self, values: Mapping[str, int], name: str | None = None) -> Stream:
        """An integer for each listed token, 0 for any other: Int."""
        ids = [
            self.alphabet.index(token) for token in instance(values, Mapping, "values", "a dict from token to integer")
        ]
        _some(ids, "number")
        values = {token: integer(value, f"the number of token {token!r}") for token, value in values.items()}
        lo, hi = min([0, *values.values()]), max([0, *values.values()])
        return self._embed(ids, [0] * len(ids), values.values(), Int(lo, hi), name or "number")

    def rows(self, members: Members, matrix: sparse.sparray | np.ndarray, name: str) -> Stream:
        """Block level: row i of a matrix of dyadic numbers for the i-th of these tokens, zeros for any other."""
        ids = np.asarray(self.alphabet.once(_some(self.alphabet.ids(members), "rows"), "rows"))
        matrix = given_matrix(matrix, "the matrix of rows", (str(len(ids)), "lanes"))
        if matrix.shape[0] != len(ids):
            raise ValueError(f"the matrix has {matrix.shape[0]} rows for {len(ids)} tokens; they must agree")
        place = sparse.csr_array((np.ones(len(ids)), (ids, range(len(ids)))), shape=(self.alphabet.size, len(ids)))
        table = ops.exact_matrix(place @ matrix)
        whole = bool((table.data == np.round(table.data)).all())
        type = Int(width=table.shape[1]) if whole else Real(width=table.shape[1])
        return Stream(ops.Embed(self.alphabet, table, type), (), name)

    @staticmethod
    def _name(members: Members, otherwise: str) -> str:
        if isinstance(members, (list, tuple)) and 0 < len(members) <= _MOST_NAMED:
            return "|".join(members)
        return members if isinstance(members, str) else otherwise


def numbers(type: Type, name: str = "x") -> Stream:
    """A numeric input of the declared type (for circuits without tokens)."""
    return Stream(ops.Numbers(of_input(type, "numbers")), (), name)


def position() -> Stream:
    """The position, 1 at the first token."""
    return Stream(ops.Position(), (), "position")


def _some(ids: Sequence[int], what: str) -> Sequence[int]:
    """The ids; ValueError where there is none."""
    if not ids:
        raise ValueError(f"{what} was given no tokens, and at least one is needed")
    return ids


def _members(tokens: tuple[Members, ...]) -> Members:
    """The one argument as it is, several as a list of tokens, none as the whole alphabet."""
    return tokens[0] if len(tokens) == 1 else cast("tuple[str, ...]", tokens) or None
