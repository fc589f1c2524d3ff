"""Scores as a matrix times lanes, and letters by their names: what the tasks share."""

from __future__ import annotations

import numpy as np

from verify.kernel import exact
from verify.kernel.circuit import Circuit
from verify.kernel.floats import Unproved
from verify.kernel.terms import Poly, Terms

_MOST = 1 << 30


def numbered(names: dict[str, int], prefix: str, first: int = 0) -> list[int]:
    """The ids of prefix0, prefix1, … (or from another number on), of which there must be one, and no other letter that
    begins so with a digit.
    """
    count = next(i for i in range(len(names) + 1) if f"{prefix}{first + i}" not in names)
    if not count or sum(name[: len(prefix)] == prefix and name[len(prefix) :].isdigit() for name in names) != count:
        raise Unproved(f"the letters {prefix}{first}, {prefix}{first + 1}, … are not there, or some are left out")
    return [names[f"{prefix}{i}"] for i in range(first, first + count)]


def state_scores(terms: Terms, circuit: Circuit) -> tuple[np.ndarray, list[Poly]]:
    """The scores as one matrix (letters, lanes) times lanes; letters beyond it score 0. Of rules over scores a lane is
    the flag, and the matrix has what it adds to the score of its letter (`meaning.check_meaning`).
    """
    parts, decided = circuit.scores, circuit.decided
    if decided is None:
        raise Unproved("the scores are decided by rules over scores, and what these add is not proved")
    if (len(parts) + len(decided)) * terms.language.tokens**2 > _MOST:
        raise Unproved("a readout that the kernel does not go through")
    parts = [*parts, *((added * np.eye(terms.language.tokens)[letter], flag) for letter, added, flag in decided)]
    return np.stack([column for column, _ in parts], axis=1), [p for _, p in parts]


def check_leads(scores: np.ndarray, right: np.ndarray, low: int = 1, others: int = 0) -> None:
    """In column i of G, the scores, and for every letter u but v = right[i]: low · (G_vi − G_ui) is larger than
    `others` times what v and u differ by in any column, max_j |G_vj − G_uj|."""
    top, bottom = scores.max(axis=1), scores.min(axis=1)
    near, far = exact.integers([low]), exact.integers([others])
    for i, v in enumerate(right.tolist()):
        noise = np.maximum(top[v] - bottom, top - bottom[v])
        lead = exact.add(exact.multiply(near, scores[v, i] - scores[:, i]), -exact.multiply(far, noise))
        lead[v] = 1
        if (lead <= 0).any():
            raise Unproved(f"letter {int(np.argmin(lead))} may score as high as letter {v}")
