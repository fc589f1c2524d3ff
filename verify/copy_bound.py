"""Theorem 1 of paper B as numbers: the bound on the error of an approximate COPY, the error itself, and which
assumption fails.

y_i = Σ_{j≤i} α_j (c_i·b_j) v_j with α_j = Π_{k=j+1}^{i} a_k and v_j = Δ_j ⊙ x_j is to equal v_p, p = pos(i). With S =
{j : i − L < j ≤ i, |c_i·b_j| ≥ δ} and |x| ≤ M, Assumption 1 is (S and the operation as we restore them: the display
that defines them is lost, and what we write follows the words below it and the proof, from which M is): p ∈ S and
c_i·b_p ≥ ρ ≥ δ; |c_i·b_j| < δ outside of S; Σ_{j∈S} α_j |c_i·b_j| < 1; its proof uses ≤ 1, and that is what is checked
here. Then Σ_{j∈S, j≠p} α_j |c_i·b_j| ≤ 1 − α_p ρ, and so is |α_p c_i·b_p − 1|, hence

    |y_i − v_p| ≤ M‖Δ‖ · [2(1 − α_p ρ) + δ Σ_{j∉S} α_j]                                              (`bound`)
                ≤ M‖Δ‖ · [2(1 − α_p ρ) + δ α_p · (a/(1 − a) + (ā^−(L−1) − 1)/(1 − ā))]               (`theorem`)

with a = max over 2 ≤ k ≤ p and ā = min over p < k ≤ i of a_k. `theorem` ≤ ε is the condition of Theorem 1, solved for
ε. The paper has the maximum over 1 ≤ j < p: that leaves out a_p, which every earlier weight holds (α_{p−1} = a_p·α_p),
and is false (`paper`). A quotient without a k in its range is 0; for a = 1 the first is p − 1, for ā = 1 the second is
L − 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verify.arguments import at_least

ASSUMPTIONS = {
    "decay": "every a_k lies in (0, 1]",
    "position": "pos(i) lies in the window: i − L < pos(i) ≤ i",
    "match": "c_i·b_pos(i) ≥ ρ ≥ δ",
    "mismatch": "|c_i·b_j| < δ for every j that does not match",
    "sum": "Σ_{j∈S} α_j |c_i·b_j| < 1 (for the bound ≤ 1 is enough)",
    "values": "|x| ≤ M (of the proof)",
}


@dataclass(frozen=True)
class CopyReport:
    """For each of n instances, arrays (n,): the true error, the bounds on it, and which assumptions hold."""

    error: np.ndarray
    bound: np.ndarray
    theorem: np.ndarray
    paper: np.ndarray
    assumptions: dict[str, np.ndarray]

    @property
    def holds(self) -> np.ndarray:
        """Whether every assumption does."""
        return np.logical_and.reduce(list(self.assumptions.values()))

    def fails(self, instance: int) -> list[str]:
        """The assumptions that fail, in words; none where the bounds are promised."""
        return [ASSUMPTIONS[name] for name, held in self.assumptions.items() if not held[instance]]


def copy_report(a, b, c, x, step, pos, rho, delta: float, window: int, largest: float = 1.0) -> CopyReport:
    """Theorem 1 at the last position i = T of n sequences.

    a: (n, T) decays, a[:, 0] is not read; b: (n, T, N); c: (n, N) of position i; x, step: (n, T, d), step = Δ;
    pos: (n,) in 1 … T; rho: (n,) or a number; delta: δ; window: L; largest: M.
    """
    at_least("window", window, 1, "the window holds the present position")
    a, b, c, x, step = (np.asarray(part, dtype=float) for part in (a, b, c, x, step))
    pos, count, length = np.asarray(pos), len(a), a.shape[1]
    rho = np.broadcast_to(np.asarray(rho, dtype=float), (count,))
    place = np.arange(1, length + 1)
    weight = _weights(a)  # α_j
    score = np.einsum("nts,ns->nt", b, c)
    rows, value = np.arange(count), step * x
    inside = (place > length - window)[None, :] & (np.abs(score) >= delta)
    is_pos = place[None, :] == pos[:, None]
    met, kept = score[rows, pos - 1], weight[rows, pos - 1]

    error = np.abs(np.einsum("nt,ntd->nd", weight * score, value) - value[rows, pos - 1]).max(axis=1)
    scale = largest * np.abs(step).max(axis=(1, 2))
    missed = 2 * (1 - kept * rho)
    bound = scale * (missed + delta * np.where(inside, 0, weight).sum(axis=1))
    before, after = place[None, :] <= pos[:, None], place[None, :] > pos[:, None]
    late = _backward(np.where(after, a, np.inf).min(axis=1), window)
    theorem, paper = (
        scale * (missed + delta * kept * (_forward(np.where(held, a, -np.inf).max(axis=1), pos) + late))
        for held in (before & (place[None, :] > 1), before & ~is_pos)
    )
    assumptions = {
        "decay": ((a[:, 1:] > 0) & (a[:, 1:] <= 1)).all(axis=1),
        "position": (pos > length - window) & (pos <= length),
        "match": (met >= rho) & (rho >= delta),
        "mismatch": (inside | (np.abs(score) < delta)).all(axis=1),
        "sum": (np.where(inside, weight * np.abs(score), 0).sum(axis=1)) <= 1 + 1e-12,
        "values": (np.abs(x) <= largest).all(axis=(1, 2)),
    }
    return CopyReport(error, bound, theorem, paper, assumptions)


def _weights(a: np.ndarray) -> np.ndarray:
    """α_j = Π_{k=j+1}^{T} a_k: (n, T), the last is 1."""
    after = np.concatenate([a[:, 1:], np.ones((len(a), 1))], axis=1)
    return np.cumprod(after[:, ::-1], axis=1)[:, ::-1]


def _forward(a: np.ndarray, pos: np.ndarray) -> np.ndarray:
    """Σ_{k≥1} a^k, or pos − 1 of its terms where a = 1; 0 where nothing came before (a = −∞)."""
    some, inner = np.isfinite(a), np.where(np.isfinite(a) & (a < 1), a, 0.5)
    return np.where(some, np.where(a < 1, inner / (1 - inner), pos - 1), 0.0)


def _backward(a: np.ndarray, window: int) -> np.ndarray:
    """(a^−(L−1) − 1)/(1 − a), or L − 1 where a = 1; 0 where nothing came after (a = ∞)."""
    some, inner = np.isfinite(a), np.where(np.isfinite(a) & (a < 1), a, 0.5)
    with np.errstate(over="ignore", divide="ignore"):
        sums = (inner ** -(window - 1.0) - 1) / (1 - inner)
    return np.where(some, np.where(a < 1, sums, window - 1), 0.0)
