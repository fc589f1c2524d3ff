"""Theorems 4.5 and 4.6 of paper D as numbers: how well piecewise γ-smooth functions are approximated and estimated.

A function on [0, 1]^∞ is a sum of waves ψ_r (√2·cos 2πrx, √2·sin 2πrx, 1 in each coordinate); those with ⌊2^(s−1)⌋ ≤
|r| < 2^s in each coordinate form its part δ_s f, and |f|_γ² = Σ_s 2^(2γ(s))·|δ_s f|². γ(s) = Σ a_i·s_i (mixed) or max
a_i·s_i (anisotropic), a~ the smoothness sorted upwards. Dropping every s with γ(s) > T costs at most 2^−T·|f|_γ, and
what is kept has about 2^(T/a⁺) waves, a⁺ = a~_1 (mixed, a~_1 < a~_2) or (Σ 1/a~_i)^−1.

Theorem 4.5: error 2^−T by a model with parameters ~ 2^(T/a⁺) up to powers of T. Theorem 4.6: T = a⁺/(2a⁺ + 1)·log2 n
balances 2^(−2T) with 2^(T/a⁺)/n: mean squared error n^(−2a⁺/(2a⁺ + 1)) up to powers of log n.

The text of the paper that we read has lost every formula of the class (Definitions 4.1 and 4.2) and of these, so all of
the above is RECONSTRUCTED from its words, and so are Proposition J.2 and Lemma F.1 below; the constants and the log
power of 4.6 are not recovered, and `sizes` has constant 1. Two conditions are added. The importances must be a gap δ
apart, for a soft maximum picks the most important token only then (`pick_error`); item (i) of Assumption 4.3, three or
four lost formulas, may say so. And a filter that isolates a position j has about j states (verify.obstructions): sizes
are for important tokens at recent places only.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, floor, log, log2

from verify.arguments import at_least, one_of

KINDS = ("mixed", "anisotropic")
RECONSTRUCTED = (
    "the class: waves ψ_r, parts δ_s, the norm |f|_γ, mixed and anisotropic γ (Definitions 4.1 and 4.2)",
    "the weak norm of Assumption 4.3, and that it is at most 1",
    "a⁺, the error 2^−T and the sizes of Theorem 4.5, with constants 1",
    "T and the exponent of Theorem 4.6, without its powers of log n",
    "the form of Proposition J.2, with constant 1",
    "the form of Theorem J.3, with the constant 57",
    "the form of Lemma F.1",
)


def effective_smoothness(smoothness: Sequence[float], kind: str) -> float:
    """a⁺: the least of the a_i (mixed), or one over the sum of their inverses (anisotropic)."""
    one_of("kind", kind, KINDS)
    ordered = sorted(smoothness)
    if not ordered or not ordered[0] > 0:
        raise ValueError(f"smoothness = {list(smoothness)}: each coordinate has a smoothness above 0.")
    if kind == "anisotropic":
        return 1 / sum(1 / a for a in ordered)
    if len(ordered) > 1 and ordered[0] == ordered[1]:
        raise ValueError(
            f"smoothness = {list(smoothness)}: of mixed smoothness the least, {ordered[0]}, may occur once only; "
            "raise one of the two."
        )
    return ordered[0]


def weak_norm(smoothness: Sequence[float], alpha: float) -> float:
    """sup_j j^α/a~_j, which Assumption 4.3, as we read it, wants to be at most 1."""
    return max((j + 1) ** alpha / a for j, a in enumerate(sorted(smoothness)))


def kept_waves(terms: float, smoothness: Sequence[float], kind: str) -> int:
    """How many waves have γ(s) ≤ T = terms: exactly."""
    one_of("kind", kind, KINDS)
    if kind == "anisotropic":
        count = 1
        for a in smoothness:
            count *= _waves_up_to(floor(terms / a))
        return count
    if not smoothness:
        return 1
    first, rest = smoothness[0], smoothness[1:]
    return sum(_waves_at(s) * kept_waves(terms - first * s, rest, kind) for s in range(floor(terms / first) + 1))


def _waves_at(s: int) -> int:
    """Waves of one coordinate with ⌊2^(s−1)⌋ ≤ |r| < 2^s: r = 0 for s = 0, else 2^s."""
    return 2**s if s else 1


def _waves_up_to(s: int) -> int:
    return 2 ** (s + 1) - 1


def sizes(terms: float, alpha: float, a_plus: float) -> dict[str, float]:
    """Theorem 4.5 for the error 2^−T, constants 1: log2 U, M, L, W, S, log2 B."""
    at_least("terms", terms, 1, "an error of at most a half is asked for")
    depth, waves = max(terms ** (2 / alpha), terms**2), 2 ** (terms / a_plus)
    return {
        "log2_U": terms,
        "M": terms ** (1 / alpha),
        "L": depth,
        "W": terms ** (1 / alpha) * waves,
        "S": terms ** (2 / alpha) * depth * waves,
        "log2_B": max(terms ** (1 / alpha), terms),
    }


def exponent(a_plus: float) -> float:
    """2a⁺/(2a⁺ + 1): the mean squared error falls like n to minus this, up to powers of log n."""
    return 2 * a_plus / (2 * a_plus + 1)


def terms_for(samples: float, a_plus: float) -> float:
    """T = a⁺/(2a⁺ + 1)·log2 n: then 2^(−2T) = 2^(T/a⁺)/n."""
    at_least("samples", samples, 1, "an estimate is made from a sample")
    return a_plus / (2 * a_plus + 1) * log2(samples)


def rate(samples: float, a_plus: float) -> float:
    """n^(−2a⁺/(2a⁺ + 1)), without powers of log n."""
    return float(samples) ** -exponent(a_plus)


def risk(
    approximation: float, log_covering: float, samples: float, delta: float, noise: float, largest: float
) -> float:
    """Proposition J.2 as reconstructed, with constant 1: |F − F*|² + (σ² + F0²)·ln N(δ)/n + (σ + F0)·δ."""
    spread = noise**2 + largest**2
    return approximation**2 + spread * log_covering / samples + (noise + largest) * delta


def pick_sharpness(tokens: int, gap: float, error: float) -> float:
    """χ = ln(n/ε)/δ: weights exp(χμ_j) then pick the most important token within ε·(max v − min v)."""
    return log(tokens / error) / gap


def pick_error(tokens: int, gap: float, chi: float) -> float:
    """(n − 1)·e^(−χδ), times max v − min v: Lemma F.1's for importances with a gap δ, as reconstructed."""
    return (tokens - 1) * exp(-chi * gap)


def peeled_rest(gap: float, chi: float) -> float:
    """e^(−χδ): after e^(χμ_1)·v_1 is subtracted with a relative error above it, nothing of the second token is left.

    The second token is found by leaving the first out of the sums, not by subtracting: 1 − Σ_r [p = p_r] is linear.
    """
    return exp(-chi * gap)
