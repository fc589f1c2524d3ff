"""Sizes by explicit formulas: the theorem's where it has numbers, else its order with constants of ours, or ours.

Source: "Understanding Input Selectivity in Mamba" (ICML 2025), Theorems 2-4, which state orders but for N, and Lemma 3,
    which has numbers; the constants are those of the constructions. `bound_source` says whose a bound is.
Units: d_model in lanes, d_state in columns per channel, information in bits.
"""

from dataclasses import dataclass
from math import ceil, comb, log2

from verify import covering, estimation, lemma_bounds, obstructions  # noqa: F401  (bounds too, in files of their own)
from verify.arguments import at_least, one_of
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


def mqar_theorem3(kappa: int, vocab: int, key_code: int | None = None, form: str = "paper") -> SizeBound:
    """Theorem 3 (Mamba-2, no gate), with key codes of length m = key_code, by default code_length(kappa), and value
    codes p.

    form "paper": d_model = m + p, d_state = m; the paper has d = O(log kappa + log V), N = log kappa. form "one-group":
    what a real one-group Mamba-2 needs, d_model = m + p + 3 and d_state = 2m + 1: B passes SiLU, so a code is a pair
    silu(Sc), silu(-Sc), and one column removes the mean; is-key, is-value and constant lanes feed it. Sizes only: with
    m < kappa codes of different keys are not orthogonal, and `verify.random_codes` says how often that is wrong.
    """
    _at_least_one(kappa, vocab)
    one_of("form", form, ("paper", "one-group"))
    m = code_length(kappa) if key_code is None else key_code
    at_least("key_code", m, 1, "a key code has at least one lane")
    lanes = m + code_length(vocab)
    return SizeBound(lanes, m) if form == "paper" else SizeBound(lanes + 3, 2 * m + 1)


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


def induction_heads_bound(vocab: int, arch: str, codes: bool = False) -> LayerBound:
    """Induction heads over `vocab` tokens, p = ceil(log2(vocab + 1)) bits for a value or the blank.

    "mamba-delta-t" (Lemma 3): d = 2 vocab, N = vocab, one layer. "mamba": one unmodified layer, d_inner = vocab * p +
    vocab + 1 (a latch per token and bit, a channel per previous token, one constant) and N = 1; with codes the previous
    token takes q + 1 channels, q = ceil(log2 vocab) at least 1. "mamba2": two layers, d_inner = vocab * p (and no less
    than what is carried) and N = 1; the first carries the previous token to lanes.
    """
    at_least("vocab", vocab, 1, "a sequence needs a token")
    one_of("arch", arch, ("mamba", "mamba2", "mamba-delta-t"))
    p = vocab.bit_length()
    q = max(1, (vocab - 1).bit_length())
    previous = q + 1 if codes else vocab
    if arch == "mamba-delta-t":
        return LayerBound(max(2 * vocab, vocab + 1 + (previous if codes else 0)), 2 * vocab, vocab, 1)
    if arch == "mamba2":
        return LayerBound(2 * vocab + 2 * p + 1 + (previous if codes else 0), max(vocab * p, previous), 1, 2)
    lanes = vocab + p + 1 + (previous if codes else 0)
    return LayerBound(lanes, vocab * p + previous + 1, 1, 1)


def induction_heads_information_bits(vocab: int, length: int | None = None) -> float:
    """log2 of the number of states that induction heads need: about V·log2 V, for followers form a tree."""
    return log2(induction_heads_states(vocab, length))


def keep_nth_bound(vocab: int, arch: str = "mamba", position: bool = False) -> LayerBound:
    """KEEP n-th over `vocab` tokens, whatever n: p = code_length(vocab) latches, two ramps of the count and one
    constant.

    A layer that counts comes first, unless the position is an input; Mamba-2, whose step sees lanes only, needs one
    more layer, which carries the comparison. The paper's Corollary 2 gives no size.
    """
    at_least("vocab", vocab, 1, "a sequence needs a token")
    one_of("arch", arch, ("mamba", "mamba2"))
    p = code_length(vocab)
    later = arch == "mamba2"
    return LayerBound(
        2 * p + (3 if position else 2) + 2 * later, p + (0 if later else 3), 1, (1 if position else 2) + later
    )


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
