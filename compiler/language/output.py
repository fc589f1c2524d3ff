"""From streams to scores over tokens: the last linear map of a circuit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from scipy import sparse

from compiler.language.alphabet import Alphabet
from compiler.language.arguments import instance, integer, shown
from compiler.language.codebook import Codebook
from compiler.language.graph import inputs_first
from compiler.language.operations import Decide, Emit, Linear, exact_matrix
from compiler.language.stream import Stream, constant, given_stream
from compiler.language.types import Logits

_MOST_RULES = 1000  # 2^1024 is no float64


def _enters(stream: Stream, what: str, alphabet: Alphabet) -> None:
    given_stream(stream, f"the stream of {what}")
    instance(alphabet, Alphabet, f"the alphabet of {what}", "an Alphabet")


def _wide(stream: Stream, what: str, needed: int, reason: str) -> None:
    """Refuse a stream of another width than a readout takes."""
    if stream.width != needed:
        raise ValueError(f"{stream.label} has {stream.width} lanes, and {what} needs {needed}: {reason}")


def _logits(
    alphabet: Alphabet, ids: np.ndarray, *terms: tuple[np.ndarray | sparse.sparray, Stream], kind: type[Linear] = Linear
) -> Stream:
    """Scores Σ matrix·stream for the listed tokens, 0 for all others."""
    place = sparse.csr_array((np.ones(len(ids)), (ids, range(len(ids)))), shape=(alphabet.size, len(ids)))
    matrices = tuple(exact_matrix(place @ exact_matrix(matrix)) for matrix, _ in terms)
    return Stream(kind(matrices, Logits(alphabet.size)), [stream for _, stream in terms], "logits")


def _and_blank(alphabet: Alphabet, members: str | Iterable[str] | None, blank: str, what: str) -> Sequence[int]:
    """The ids of the members and then of the blank. what: the word and its argument that names the blank."""
    word, _ = what.split(": ")
    ids, other = alphabet.once(alphabet.ids(members), word), alphabet.index(blank)
    if other in ids:
        told = "members was left out, so every token is one" if members is None else "it stands in members"
        raise ValueError(
            f"{what} = {blank!r} is a member ({told}), whose score is its own lane; give members without it, one for "
            "each lane"
        )
    return (*ids, other)


def readout(stream: Stream, book: Codebook, alphabet: Alphabet, members: str) -> Stream:
    """logit(token) = <codeword(token), stream>: the nearest codeword wins."""
    _enters(stream, "readout", alphabet)
    instance(book, Codebook, "the book of readout", "a codebook")
    _wide(stream, "readout", book.length, "one lane for each entry of a codeword")
    ids = np.asarray(alphabet.once(alphabet.ids(members), "readout"))
    if len(ids) != book.size:
        raise ValueError(f"the codebook of readout has {book.size} words for {len(ids)} tokens; they must agree")
    return _logits(alphabet, ids, (book.words, stream))


def readout_nearest(stream: Stream, book: Codebook, alphabet: Alphabet, members: str, blank: str) -> Stream:
    """logit(token) = 2(2<c, x> − |c|²) = 2|x|² − 2|x − c|² up to a shared term.

    The blank stands for zeros with logit 1.

    For x a codeword the nearest one, x itself, has logit 2|x|² ≥ 2, above the blank and above
    all others by 2 or more; for x = 0 every codeword has at most −2.
    """
    _enters(stream, "readout_nearest", alphabet)
    instance(book, Codebook, "the book of readout_nearest", "a codebook")
    _wide(stream, "readout_nearest", book.length, "one lane for each entry of a codeword")
    words = np.array(np.asarray(book.words).tolist(), dtype=object)  # squared as Python numbers, never rounded
    own = (words**2).sum(axis=1, keepdims=True)
    ids = np.asarray(_and_blank(alphabet, members, blank, "readout_nearest: blank"))
    if len(ids) - 1 != book.size:
        raise ValueError(f"the codebook of readout_nearest has {book.size} words for {len(ids) - 1} tokens")
    scores = np.vstack([4 * words, np.zeros((1, book.length))])
    return _logits(alphabet, ids, (scores, stream), (np.vstack([-2 * own, [[1.0]]]), constant(1)))


def readout_one_hot(
    stream: Stream, alphabet: Alphabet, members: str | Iterable[str] | None = None, otherwise: str | None = None
) -> Stream:
    """logit(token) = the lane of that token; 0 for what is no member.

    members: the tokens of the lanes, in their order; by default all of the alphabet. otherwise: the token that scores
    highest where no lane is 1 (lanes then count 2, and it scores 1 everywhere). It is no member: name the others by
    members.
    """
    _enters(stream, "readout_one_hot", alphabet)
    ids = alphabet.once(alphabet.ids(members), "readout_one_hot")
    every = ids if otherwise is None else _and_blank(alphabet, members, otherwise, "readout_one_hot: otherwise")
    _wide(stream, "readout_one_hot", len(ids), "one for each token; readout_integer reads a number")
    if otherwise is None:
        return _logits(alphabet, np.asarray(ids), (sparse.eye_array(stream.width), stream))
    lanes, blank = np.vstack([2 * np.eye(stream.width), np.zeros((1, stream.width))]), np.zeros((len(every), 1))
    blank[-1] = 1
    return _logits(alphabet, np.asarray(every), (lanes, stream), (blank, constant(1)))


def readout_or_blank(stream: Stream, present: Stream, alphabet: Alphabet, members: str, blank: str) -> Stream:
    """A one-hot over the members, the blank where it is absent, without any constant.

    `present` is the one-hot of the present token (one of the members), x the stream, s = x − present/2:
    logit(token) = its lane of s, logit(blank) = −Σ s. Where x is absent the lanes of s are at most 0
    and the blank has 1/2; else the token has 1/2 or more, other tokens at most 0 and the blank −1/2.
    """
    _enters(stream, "readout_or_blank", alphabet)
    given_stream(present, "'present' of readout_or_blank")
    ids = np.asarray(_and_blank(alphabet, members, blank, "readout_or_blank: blank"))
    scores = np.vstack([np.eye(stream.width), -np.ones((1, stream.width))])
    return _logits(alphabet, ids, (scores, stream), (-scores / 2, present))


def readout_integer(stream: Stream, alphabet: Alphabet, values: Mapping[str, int]) -> Stream:
    """logit(token with value v) = 2v·x − v² = x² − (x − v)² up to a shared term: the nearest value wins.

    A token without a value scores one less than the one with the least value.
    """
    _enters(stream, "readout_integer", alphabet)
    _wide(stream, "readout_integer", 1, "one number; readout_one_hot reads a lane for each token")
    if not instance(values, Mapping, "the values of readout_integer", "a dict from token to integer"):
        raise ValueError("the values of readout_integer are empty, and at least one token needs a value")
    for token, value in values.items():
        integer(value, f"the value of token {token!r}")
    # Python integers: v² of a large value is no float64, and must be refused rather than rounded.
    v = np.full((alphabet.size, 1), int(min(values.values())), dtype=object)
    penalty = np.ones((alphabet.size, 1), dtype=object)
    for token, value in values.items():
        v[alphabet.index(token)], penalty[alphabet.index(token)] = int(value), 0
    return _logits(alphabet, np.arange(alphabet.size), (2 * v, stream), (-(v**2) - penalty, constant(1)))


def emit(alphabet: Alphabet, *rules: tuple[Stream, str], otherwise: str) -> Stream:
    """The token of the first rule whose flag holds, else `otherwise`; rule i of n weighs 2^(n−i+1)."""
    instance(alphabet, Alphabet, "the alphabet of emit", "an Alphabet")
    for rule in rules:
        if not isinstance(rule, tuple) or len(rule) != 2:
            raise TypeError(f"a rule of emit is {shown(rule)}, and (flag, token) is needed")
        _enters(rule[0], "emit", alphabet)
        _wide(rule[0], "emit", 1, "one flag for each rule")
    if len(rules) > _MOST_RULES:
        raise ValueError(f"emit was given {len(rules)} rules, and weights of powers of two end at {_MOST_RULES} rules")
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
    return _logits(alphabet, distinct, *terms, (column, constant(1)), kind=Emit)


def decide(rules: Sequence[tuple[Stream, str]], otherwise: Stream) -> Stream:
    """The token of the first rule (flag, token) whose flag holds; where none does, what `otherwise` scores highest.

    otherwise: the scores of any readout. Real scores are right within the error bound, so which is the highest is only
        promised where it leads by twice that. A rule costs no block: its weight exceeds whatever the scores are
        proved to be.
    """
    instance(otherwise, Stream, "'otherwise' of decide", "the scores of a readout")
    if not isinstance(otherwise.type, Logits):
        raise TypeError(f"'otherwise' of decide is {otherwise!r}, and the scores of a readout are needed")
    if not isinstance(rules, Sequence) or isinstance(rules, str) or not rules:
        raise TypeError(f"the rules of decide are {shown(rules)}, and a list of at least one (flag, token) is needed")
    for rule in rules:
        if not isinstance(rule, tuple) or len(rule) != 2:
            raise TypeError(f"a rule of decide is {shown(rule)}, and (flag, token) is needed")
        given_stream(rule[0], "the flag of a rule of decide")
        _wide(rule[0], "decide", 1, "one flag for each rule")
    alphabet = _alphabet(otherwise, *(flag for flag, _ in rules))
    tokens = tuple(alphabet.index(token) for _, token in rules)
    return Stream(Decide(tokens), (otherwise, *(flag for flag, _ in rules)), "logits")


def _alphabet(*streams: Stream) -> Alphabet:
    """That of the tokens which some of the streams depend on."""
    for stream in streams:
        for node in inputs_first([stream], lambda node: node.inputs):
            if node.operation.token_alphabet is not None:
                return node.operation.token_alphabet
    raise ValueError("nothing that decide reads depends on a token, so its tokens have no alphabet")
