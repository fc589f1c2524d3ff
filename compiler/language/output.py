"""From streams to scores over tokens: the last linear map of a circuit."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import sparse

from compiler.language.alphabet import Alphabet
from compiler.language.codebook import Codebook
from compiler.language.operations import Linear, exact_matrix
from compiler.language.stream import Stream, constant
from compiler.language.types import Logits


def _logits(alphabet: Alphabet, ids: np.ndarray, *terms: tuple[np.ndarray | sparse.sparray, Stream]) -> Stream:
    """Scores Σ matrix·stream for the listed tokens, 0 for all others."""
    place = sparse.csr_array((np.ones(len(ids)), (ids, range(len(ids)))), shape=(alphabet.size, len(ids)))
    matrices = tuple(exact_matrix(place @ exact_matrix(matrix)) for matrix, _ in terms)
    return Stream(Linear(matrices, Logits(alphabet.size)), [stream for _, stream in terms], "logits")


def readout(stream: Stream, book: Codebook, alphabet: Alphabet, members: str) -> Stream:
    """logit(token) = <codeword(token), stream>: the nearest codeword wins."""
    return _logits(alphabet, np.asarray(alphabet.ids(members)), (book.words, stream))


def readout_one_hot(stream: Stream, alphabet: Alphabet, members: str | None = None) -> Stream:
    """logit(token) = the lane of that token."""
    return _logits(alphabet, np.asarray(alphabet.ids(members)), (sparse.eye_array(stream.width), stream))


def readout_integer(stream: Stream, alphabet: Alphabet, values: Mapping[str, int]) -> Stream:
    """logit(token with value v) = 2v·x − v² = x² − (x − v)² up to a shared term: the nearest value wins."""
    v = np.array(list(values.values()), dtype=float)[:, None]
    ids = np.array([alphabet.index(token) for token in values])
    return _logits(alphabet, ids, (2 * v, stream), (-(v**2), constant(1)))


def emit(alphabet: Alphabet, *rules: tuple[Stream, str], otherwise: str) -> Stream:
    """The token of the first rule whose flag holds, else `otherwise`; rule i of n weighs 2^(n−i+1)."""
    weights = [float(2 ** (len(rules) - i)) for i in range(len(rules))]
    ids = np.array([alphabet.index(token) for _, token in rules] + [alphabet.index(otherwise)])
    distinct, rows = np.unique(ids, return_inverse=True)
    terms = []
    for row, weight, (flag, _) in zip(rows, weights, rules, strict=False):
        column = np.zeros((len(distinct), 1))
        column[row] = weight
        terms.append((column, flag))
    column = np.zeros((len(distinct), 1))
    column[rows[-1]] = 1
    return _logits(alphabet, distinct, *terms, (column, constant(1)))
