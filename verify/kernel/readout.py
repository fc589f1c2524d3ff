"""Scores as a matrix times lanes, and letters by their names: what the tasks share."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from verify.kernel.circuit import Circuit
from verify.kernel.floats import Unproved
from verify.kernel.terms import Poly, Terms

_MOST = 1 << 30


def numbered(names: dict[str, int], prefix: str) -> np.ndarray:
    """The ids of prefix0, prefix1, …, of which there must be one, and no other letter that begins so with a digit."""
    count = next(i for i in range(len(names) + 1) if f"{prefix}{i}" not in names)
    if not count or sum(name[: len(prefix)] == prefix and name[len(prefix) :].isdigit() for name in names) != count:
        raise Unproved(f"the letters {prefix}0, {prefix}1, … are not there, or some are left out")
    return np.array([names[f"{prefix}{i}"] for i in range(count)])


def state_scores(terms: Terms, circuit: Circuit) -> tuple[np.ndarray, list[Poly]]:
    """The scores as one matrix (letters, lanes) times lanes; letters beyond it score 0."""
    parts = circuit.scores()
    lanes = [p for _, held in parts for p in held]
    full = np.zeros((terms.language.tokens, len(lanes)))
    found = np.concatenate([m for m, _ in parts], axis=1)
    if found.shape[1] != len(lanes) or full.size * len(full) > _MOST:
        raise Unproved("a readout that the kernel does not go through")
    full[: len(found)] = found
    return full, lanes


def exact_array(numbers: np.ndarray) -> np.ndarray:
    """The same numbers times one power of two that makes them whole: integers of Python."""
    exact = [Fraction(x) for x in numbers.reshape(-1).tolist()]
    below = max((x.denominator for x in exact), default=1)
    return np.array([int(x * below) for x in exact], object).reshape(numbers.shape)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The matrix product, in 64 bits where these hold it."""
    sizes = [max((abs(int(x)) for x in (m.min(initial=0), m.max(initial=0))), default=0) for m in (a, b)]
    if sizes[0] * sizes[1] * max(1, a.shape[1]) < 1 << 62:
        return a.astype(np.int64) @ b.astype(np.int64)
    return a.dot(b)
