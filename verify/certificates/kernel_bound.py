"""The worst that other writes can do to an answer: the arithmetic of the kernel certificate.

Let r be the reading window, w the one that stored the answer v, u a competitor. The logits' difference is

    D(v, u) = own_v − own_u + K(w, r)_v − K(w, r)_u + Σ_{s other} (K(w_s, r)_v − K(w_s, r)_u).

The others are neither r nor w and store nothing in the slot asked for. Sort them by the token at one lag l: the windows
with token a there are at most cap(a), how often the language lets a stand at positions before t − l, which the tokens
of r at lags 0 … l and that of w at lag l are not among. So the last sum is at least −Σ_a cap(a) · max_s (K(w_s, r)_u −
K(w_s, r)_v)⁺, the maximum over windows with a at lag l, and at least −(number of positions) times the largest of these
maxima. Any lag gives a sound bound; the one with the least total is taken. It is attained when the worst windows of all
groups fit into one sequence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compiler.language.input_language import InputLanguage
from verify.certificates.ask import BEFORE
from verify.certificates.kernel_scan import Read, Scan
from verify.certificates.lattice import FLOAT64, Lattice
from verify.certificates.mixer import Mixer


@dataclass(frozen=True)
class Worst:
    """The least margin of one read: the answer, its competitor, signal and interference, and an example of r and w."""

    margin: float
    answer: int
    competitor: int
    signal: float
    interference: float
    read: tuple[int, ...]
    stored: tuple[int, ...]


def occurrences(language: InputLanguage, lag: int) -> np.ndarray:
    """How many windows of a sequence can have each token at this lag: (tokens + 1,), first the place before the
    start.
    """
    return np.concatenate([[lag], language.occurrences]).astype(np.float64)


class KernelBound:
    """Worst margins, read by read; what equal reads share is computed once."""

    def __init__(self, mixer: Mixer, found: Scan, head: np.ndarray, language: InputLanguage):
        self.found, self.head, self.language = found, head, language
        self._effect_of, effects = _effects(mixer, found)
        self.logits = effects @ head.T  # (effects, vocabulary), row 0 for no effect
        self._spread = self.logits.max(axis=1) - self.logits.min(axis=1)
        self._tables: dict[tuple, np.ndarray] = {}
        self._known: dict[tuple, tuple[float, int, int, float, float]] = {}
        self._exponent = self._unit(mixer, effects)

    def _unit(self, mixer: Mixer, effects: np.ndarray) -> int:
        """The exponent of the lattice on which all sums below lie, after checking the products that they are
        made of.
        """
        products = mixer.lattices.read.times(mixer.lattices.write)
        alpha = Lattice(products.bound.sum(keepdims=True), products.exponent.min(keepdims=True)).exact("C·B", FLOAT64)
        logit = Lattice.of(effects).through(self.head).exact("the logit of a write,", FLOAT64)
        own = (
            Lattice.of(np.array([read.own for read in self.found.reads]))
            .through(self.head)
            .exact("the logit of a read,", FLOAT64)
        )
        return int(min(alpha.exponent.min() + logit.exponent.min(), own.exponent.min()))

    def _exact(self, numbers: np.ndarray) -> np.ndarray:
        """The numbers, after checking that as sums of positive or of three numbers on that lattice they are exact in
        float64.
        """
        Lattice(np.array([np.abs(numbers).max(initial=0)]), np.array([self._exponent])).exact("the bound", FLOAT64 - 2)
        return numbers

    def worst(self, read: Read) -> Worst | None:
        """The least margin over everything that the language lets stand before the read; None if it asks in vain."""
        stores = self.found.stores.get(read.slot, [])
        if not stores:
            return None
        effect = self._effect_of[read.gate.tobytes()]
        alpha = self.found.writes.columns @ read.columns
        signals, examples = _signals(read, stores, alpha, effect)
        others = np.flatnonzero((alpha != 0) & (effect > 0) & (self.found.writes.slot != read.slot))
        lag = self._best_lag(others, alpha, effect)
        groups = self._groups(others, alpha, effect, lag)
        stored = {window[lag] for window, _, _ in stores} if read.answer is None else set()
        results = []
        for caps, window in _caps(read, groups, occurrences(self.language, lag), lag, stored).items():
            result = self._least(read, signals, groups, caps)
            results.append(Worst(*result[:5], window, examples.get(result[1], window)))
        return min(results, key=lambda worst: worst.margin)

    def _best_lag(self, others: np.ndarray, alpha: np.ndarray, effect: np.ndarray) -> int:
        """The lag whose groups promise the least damage."""
        windows, damage = self.found.writes.windows, np.abs(alpha) * self._spread[effect]
        totals = []
        for lag in range(windows.shape[1]):
            caps = occurrences(self.language, lag)
            worst = np.zeros(len(caps))
            np.maximum.at(worst, windows[others, lag] + 1, damage[others])
            totals.append(float(caps @ worst))
        return int(np.argmin(totals))

    def _groups(
        self, others: np.ndarray, alpha: np.ndarray, effect: np.ndarray, lag: int
    ) -> dict[int, tuple[float, tuple]]:
        """Token at the lag → (scale, set of distinct (sign or α, effect)); sets equal up to scale get equal keys."""
        tokens = self.found.writes.windows[others, lag]
        groups = {}
        for token in np.unique(tokens):
            rows = others[tokens == token]
            weights = np.unique(alpha[rows])
            scale = float(abs(weights[0])) if len(weights) == 1 else 1.0
            pairs = np.unique(np.column_stack([alpha[rows] / scale, effect[rows]]), axis=0)
            groups[int(token)] = (scale, (pairs.tobytes(), len(pairs)))
        return groups

    def _least(
        self, read: Read, signals: np.ndarray, groups: dict, caps: tuple
    ) -> tuple[float, int, int, float, float]:
        """(margin, answer, competitor, signal, interference), remembered for reads with the same numbers."""
        counted = [
            (cap * scale, scale, key) for cap, (scale, key) in zip(caps, groups.values(), strict=True) if cap > 0
        ]
        own = self.head @ read.own
        positions = self.language.max_length - (1 if read.answer is not None else 2)
        known = (signals.tobytes(), own.tobytes(), positions, tuple(sorted(counted)))
        if known not in self._known:
            answers = np.unique(signals[:, 0]).astype(np.int64)
            harm = self._harm(answers, counted, positions)
            self._known[known] = self._compare(signals, own, answers, harm)
        return self._known[known]

    def _harm(self, answers: np.ndarray, counted: list[tuple], positions: int) -> np.ndarray:
        """The most that other writes take from each answer in favour of each competitor: (answers, vocabulary)."""
        total = np.zeros((len(answers), len(self.head)))
        largest = np.zeros_like(total)
        for weight, scale, key in counted:
            table = self._table(answers, key)
            total += weight * table
            np.maximum(largest, scale * table, out=largest)
        return np.minimum(self._exact(total), self._exact(max(positions, 0) * largest))

    def _table(self, answers: np.ndarray, key: tuple) -> np.ndarray:
        """max over a set of (α, effect) of α·(logit_u − logit_v), at least 0."""
        known = (answers.tobytes(), key)
        if known not in self._tables:
            table = np.zeros((len(answers), len(self.head)))
            for alpha, effect in np.frombuffer(key[0]).reshape(key[1], 2):
                logit = alpha * self.logits[int(effect)]
                np.maximum(table, logit - logit[answers][:, None], out=table)
            self._tables[known] = table
        return self._tables[known]

    def _compare(self, signals: np.ndarray, own: np.ndarray, answers: np.ndarray, harm: np.ndarray) -> tuple:
        answer = signals[:, 0].astype(np.int64)
        logit = signals[:, 1:2] * self.logits[signals[:, 2].astype(np.int64)] + own
        signal = self._exact(logit)[np.arange(len(answer)), answer][:, None] - logit
        taken = harm[np.searchsorted(answers, answer)]
        margin = signal - taken
        margin[np.arange(len(answer)), answer] = np.inf
        i, u = np.unravel_index(int(margin.argmin()), margin.shape)
        return float(margin[i, u]), int(answer[i]), int(u), float(signal[i, u]), float(taken[i, u])


def _effects(mixer: Mixer, found: Scan) -> tuple[dict[bytes, np.ndarray], np.ndarray]:
    """(gate → the effect of each write behind it, the distinct effects on the head's input); effect 0 is none."""
    ids: dict[bytes, int] = {np.zeros(len(mixer.out)).tobytes(): 0}
    rows = [np.zeros(len(mixer.out))]
    effect_of = {}
    for read in found.reads:
        if read.gate.tobytes() in effect_of:
            continue
        added = found.writes.charge.multiply(read.gate).tocsr() @ mixer.out.T + 0.0
        effect = np.zeros(len(added), dtype=np.int64)
        for i in np.flatnonzero(added.any(axis=1)):
            key = added[i].tobytes()
            if key not in ids:
                ids[key] = len(rows)
                rows.append(added[i])
            effect[i] = ids[key]
        effect_of[read.gate.tobytes()] = effect
    return effect_of, np.array(rows)


def _signals(read: Read, stores: list, alpha: np.ndarray, effect: np.ndarray) -> tuple[np.ndarray, dict[int, tuple]]:
    """The distinct (answer, α, effect) that the slot's one write can have, and a window for each answer."""
    if read.answer is not None:
        return np.array([[read.answer, 0.0, 0.0]]), {}
    rows = [(answer, alpha[row], effect[row]) if row >= 0 else (answer, 0.0, 0) for _, answer, row in stores]
    return np.unique(np.array(rows, dtype=np.float64), axis=0), {answer: window for window, answer, _ in stores}


def _caps(read: Read, groups: dict, caps: np.ndarray, lag: int, stored: set[int]) -> dict[tuple, tuple[int, ...]]:
    """How many other windows each group can have → a reading window for which that is so."""
    found: dict[tuple, tuple[int, ...]] = {}
    for window in read.windows:
        taken = [*window[: lag + 1], *(stored if len(stored) == 1 else ())]
        left = tuple(caps[a + 1] - (taken.count(a) if a != BEFORE else 0) for a in groups)
        found.setdefault(left, window)
    return found
