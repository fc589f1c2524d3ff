"""Sizes by explicit formulas: the theorem's where it has numbers, else its order with constants of ours.

Source: "Understanding Input Selectivity in Mamba" (ICML 2025), Theorems 2-4, which state orders but for N, and Lemma 3,
    which has numbers; the constants are those of the constructions. `bound_source` says whose a bound is.
Units: d_model in lanes, d_state in columns per channel, information in bits.
"""

from dataclasses import dataclass
from math import ceil, comb, log2

from verify import covering, estimation, lemma_bounds, obstructions  # noqa: F401  (bounds too, in files of their own)
from verify.arguments import at_least
from verify.generalization import generalization  # noqa: F401  (a bound like the others, in a file of its own)
from verify.task_states import induction_heads_states, keep_nth_states


@dataclass(frozen=True)
class SizeBound:
    """Lanes and columns of a module, by a formula."""

    d_model: int
    d_state: int


def code_length(count: int) -> int:
    """The least even p >= 2 such that C(p, p/2) >= count: balanced +-1 codes of length p for `count` symbols.

    Two balanced codes differ in two lanes or more, so <c, c> = p >= <c', c> + 4. One symbol still gets two lanes, so
    that it differs from nothing at all.
    """
    at_least("count", count, 1, "a code is for at least one symbol")
    length = 2
    while comb(length, length // 2) < count:
        length += 2
    return length


def code_length_upper(count: int) -> float:
    """ceil(log2 count) + log2(log2 count) / 2 + 3, which code_length never exceeds; log2 log2 1 is read as 0."""
    at_least("count", count, 1, "a code is for at least one symbol")
    bits = log2(count)
    return ceil(bits) + (log2(bits) / 2 if bits else 0) + 3


def mqar_theorem2(kappa: int, vocab: int) -> SizeBound:
    """Theorem 2 (Mamba, no gate): d_model <= kappa + p + 1, d_state = kappa, p = code_length(vocab).

    The paper has d = O(kappa + log V), N = kappa. Lanes: one per key, the value code, one constant.
    """
    _at_least_one(kappa, vocab)
    return SizeBound(kappa + code_length(vocab) + 1, kappa)


def mqar_theorem4(kappa: int, vocab: int) -> SizeBound:
    """Theorem 4 (S4D mixer with gate): d_model <= kappa * p + 1, d_state = 1, p = code_length(vocab).

    The paper has d = O(kappa log V), N = 1. Lanes: one value code per key, one constant; the embedding has key, value
    code and constant beside each other, which for one key is a lane more.
    """
    _at_least_one(kappa, vocab)
    p = code_length(vocab)
    return SizeBound(max(kappa * p, kappa + p) + 1, 1)


@dataclass(frozen=True)
class LayerBound:
    """So many layers, each with at most these sizes."""

    d_model: int
    d_inner: int
    d_state: int
    layers: int


def induction_heads_bound(vocab: int) -> LayerBound:
    """Lemma 3, induction heads over `vocab` tokens on one Mamba-Δᵀ layer: d = 2 vocab, N = vocab; one token still has
    a lane for the blank.
    """
    at_least("vocab", vocab, 1, "a sequence needs a token")
    return LayerBound(max(2 * vocab, vocab + 1), 2 * vocab, vocab, 1)


def induction_heads_information_bits(vocab: int, length: int | None = None) -> float:
    """log2 of the number of states that induction heads need: about V·log2 V, for followers form a tree."""
    return log2(induction_heads_states(vocab, length))


def keep_nth_information_bits(n: int, vocab: int, length: int | None = None) -> float:
    """log2 of the number of states that KEEP n-th needs: a count below n or a token, never both."""
    return log2(keep_nth_states(n, vocab, length))


def repeated_ngram_bound(length: int, vocab: int, n: int) -> float:
    """N² V^(−n) / 2: at most so often do n uniform tokens stand twice in a string of N (overlapping ones too)."""
    at_least("length", length, 1, "a string has a token")
    at_least("vocab", vocab, 1, "there must be a token")
    at_least("n", n, 1, "an n-gram has a token")
    return min(1.0, length**2 * float(vocab) ** -n / 2)


def information_bound_bits(kappa: int, vocab: int, length: int | None = None) -> float:
    """min(kappa, (length − 1)/2)·log2(vocab): the bits that any state must hold before the first query, by counting
    value assignments; so many pairs and a query fit in `length` tokens.
    """
    _at_least_one(kappa, vocab)
    pairs = kappa if length is None else min(kappa, max(0, length - 1) // 2)
    return pairs * log2(vocab)


def _at_least_one(kappa: int, vocab: int) -> None:
    """Raise ValueError unless there is a key and a value."""
    at_least("kappa", kappa, 1, "a pair needs a key")
    at_least("vocab", vocab, 1, "a pair needs a value")
