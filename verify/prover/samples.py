"""What terms are on sequences drawn at random: of two that differ there no claim says that they are equal."""

from __future__ import annotations

import random

import numpy as np

from verify.kernel.language import Language
from verify.kernel.terms import Poly, Terms

_SEQUENCES, _MOST_LENGTH = 64, 96


def drawn(language: Language, rng: random.Random) -> np.ndarray:
    """(sequences, positions): paths of the language; -1 behind the end of one."""
    found = np.full((_SEQUENCES, min(language.length, _MOST_LENGTH)), -1)
    for row in found:
        state, used = 0, set()
        for t in range(len(row)):
            ways = [(i, e) for i, e in enumerate(language.edges) if e.source == state]
            rng.shuffle(ways)
            for i, edge in ways:
                letters = [a for a in np.flatnonzero(edge.letters).tolist() if (i, a) not in used]
                if letters:
                    row[t] = rng.choice(letters)
                    state = edge.target
                    used |= {(i, int(row[t]))} if edge.distinct else set()
                    break
            else:
                break
    return found


class Samples:
    """The numbers of atoms and polynomials on the same sequences: (sequences, positions)."""

    def __init__(self, terms: Terms):
        self.terms, self.letters = terms, drawn(terms.language, random.Random(1))
        self._known: dict[int, np.ndarray] = {}
        self._first: dict[bytes, list[int]] = {}
        self._seen = 0

    def equal(self, a: int) -> list[tuple[int | None, int]]:
        """The earlier atoms of the same kind that it looks like, each with its sign (None: it looks like 0)."""
        inside = self.letters >= 0
        for b in range(self._seen, a + 1):
            self._first.setdefault((self.atom(b)[inside] + 0).tobytes(), []).append(b)
        self._seen = max(self._seen, a + 1)
        found = self.atom(a)[inside]
        kind = self.terms.atoms[a].kind
        alike: list[tuple[int | None, int]] = [(None, 1)] if not found.any() else []
        for sign in (1, -1) if kind != "relu" and alike == [] else (1,):
            held = self._first.get((sign * found + 0).tobytes(), ())  # + 0: no −0
            alike += [(b, sign) for b in held if b < a and self.terms.atoms[b].kind == kind]
        return alike

    def of(self, p: Poly) -> np.ndarray:
        found = np.zeros(self.letters.shape)
        for m, c in p.terms.items():
            part = np.full(self.letters.shape, float(c))
            for a, lag in m:
                part *= self._back(self.atom(a), lag)
            found += part
        return found

    def atom(self, a: int) -> np.ndarray:
        if a not in self._known:
            self._known[a] = self._made(a)
        return self._known[a]

    def _back(self, numbers: np.ndarray, lag: int) -> np.ndarray:
        return np.pad(numbers, ((0, 0), (lag, 0)))[:, : numbers.shape[1]]

    def _made(self, a: int) -> np.ndarray:
        atom = self.terms.atoms[a]
        if atom.kind == "table":
            return np.asarray(atom.table)[self.letters].astype(float)
        of = self.of(atom.of)
        if atom.kind == "relu":
            return np.maximum(of, 0)
        if atom.kind == "sum":
            return np.cumsum(of, axis=1)
        flag, held = self.of(atom.flag), np.zeros(len(of))
        found = np.empty_like(of)
        for t in range(of.shape[1]):
            stays = held if atom.kind == "latch" else held + of[:, t]
            held = np.where(flag[:, t] == 1, of[:, t] if atom.kind == "latch" else 0, stays)
            found[:, t] = held
        return found
