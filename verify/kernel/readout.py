"""Scores as a matrix times lanes, and letters by their names: what the tasks share."""

from __future__ import annotations

import numpy as np

from verify.kernel import exact
from verify.kernel.circuit import Circuit
from verify.kernel.floats import Unproved
from verify.kernel.terms import Poly, Terms

Array = np.ndarray
_MOST, _AT_ONCE = 1 << 36, 1 << 22  # products of the scores of all columns; scores


def numbered(names: dict[str, int], prefix: str, first: int = 0) -> list[int]:
    """The ids of prefix0, prefix1, … (or from another number on), of which there must be one, and no other letter that
    begins so with a digit.
    """
    count = next(i for i in range(len(names) + 1) if f"{prefix}{first + i}" not in names)
    if not count or sum(name[: len(prefix)] == prefix and name[len(prefix) :].isdigit() for name in names) != count:
        raise Unproved(f"the letters {prefix}{first}, {prefix}{first + 1}, … are not there, or some are left out")
    return [names[f"{prefix}{i}"] for i in range(first, first + count)]


def state_scores(terms: Terms, circuit: Circuit) -> tuple[Array, list[Poly]]:
    """The scores as one matrix (letters, lanes) times lanes; letters beyond it score 0. Of rules over scores a lane is
    the flag, and the matrix has what it adds to the score of its letter (`meaning.check_meaning`).
    """
    parts, decided = circuit.scores, circuit.decided
    if decided is None:
        raise Unproved("the scores are decided by rules over scores, and what these add is not proved")
    letters = np.arange(terms.language.tokens)
    parts = [*parts, *((added * (letters == letter), flag) for letter, added, flag in decided)]
    return np.stack([column for column, _ in parts], axis=1), [p for _, p in parts]


def check_leads(head: Array, codes: Array, right: Array, low: int = 1, others: int = 0) -> None:
    """Of the scores G = head · codes, (letters, columns), in column i and for every letter u but v = right[i]:
    low · (G_vi − G_ui) is larger than `others` times what v and any letter differ by in any column.

    They differ by no more than the most that v scores less the least that any letter does, or the other way around.
    """
    if len(head) * len(right) * len(codes) > _MOST:
        raise Unproved("a readout that the kernel does not go through")
    step, gaps = max(1, _AT_ONCE // len(head)), []
    top = bottom = np.zeros(len(head), np.int64)
    for first in range(0, len(right), step):
        v = right[first : first + step]
        scores = exact.products(head, codes[:, first : first + step])
        if scores.dtype == object and len(head) * len(right) * len(codes) > _MOST >> 10:
            raise Unproved("scores of more than 64 bits, more than the kernel goes through")
        own = scores[v, np.arange(len(v))]
        if others:
            most, least = exact.of_floats(scores.max(axis=1)), exact.of_floats(scores.min(axis=1))
            top, bottom = np.maximum(top, most), np.minimum(bottom, least)
        scores[v, np.arange(len(v))] = scores.min() if others else own - 1  # of whole numbers any lead is 1
        gaps.append(exact.of_floats(own) - exact.of_floats(scores.max(axis=0)))
    noise = np.maximum(top[right] - bottom.min(), top.max() - bottom[right])
    lead = exact.multiply(exact.integers([low]), np.concatenate(exact.alike(*gaps)))
    lead = exact.add(lead, -exact.multiply(exact.integers([others]), noise))
    if (lead <= 0).any():
        raise Unproved(f"another letter may score as high as letter {int(right[np.argmin(lead)])}")
