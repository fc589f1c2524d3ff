"""Paper A on recall: Theorems 3 and 4, and Appendix D.3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, log, sqrt

import numpy as np

from constructions.papers import SELECTIVITY
from constructions.truths.answers import answered, one_batch
from constructions.truths.truth import Finding, Kind, Truth
from verify.tasks.task import Batch

PASSES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "linear": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


def independent_keys(
    kappa: int = 8, vocab: int = 64, independent: bool = True, distinct: bool = True, write: str = "last"
) -> Finding:
    """independent: keys as D.3 draws them; distinct: those of the other data; write: the policy for the first data."""
    from constructions.selectivity.mqar import MQAR
    from verify.tasks.mqar import PaperLayout

    length = 8 * kappa
    circuit = MQAR(kappa=kappa, vocab=vocab, length=length)

    def data(again: bool) -> Batch:
        options = {"filler": "neutral", "pairs": kappa, "rebind": again, "write": "last"}
        return one_batch(PaperLayout(kappa, vocab, length, **options), 50)

    drawn = data(independent)
    often = answered(circuit, drawn)
    latch = answered(replace(circuit, write=write), drawn)
    once = answered(circuit, data(not distinct))
    return Finding(
        {f"queries right, κ = {kappa}, V = {vocab}, T = {length}": often},
        often < 1,
        {"queries right with distinct keys": once, f"with --write {write} on the first data": latch},
        once == latch == 1,
    )


def coherent(words: int, entries: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Words of `entries` entries ±1/√p (48), drawn until no two have a product above ε in size: Lemma 4's condition."""
    for _ in range(100):
        code = rng.choice([-1, 1], (words, entries))
        if np.abs(code @ code.T - entries * np.eye(words)).max() <= epsilon * entries:
            return code / sqrt(entries)
    raise ValueError(f"no code of {entries} signs for {words} words has a coherence of {epsilon}")


def overlapping(
    kappa: int, vocab: int, entries: int, epsilon: float, passes: tuple[Callable, ...], seed: int
) -> tuple[int, float]:
    """One sequence of Theorem 3, step 2: (right answers of κ, mean product of two keys over that of one with itself).

    Keys and values have the coherence ε and pass `passes` on their way into B, C and x̂; the state is the sum of (77),
    and the answer its largest product with a value (76).
    """
    rng = np.random.default_rng(seed)
    keys, values = coherent(kappa, entries, epsilon, rng), coherent(vocab, entries, epsilon, rng)
    bound = rng.integers(vocab, size=kappa)
    write, ask, keep = passes
    products = ask(keys) @ write(keys).T
    read = products @ keep(values[bound])
    own = products.diagonal().sum()
    return int(((read @ values.T).argmax(axis=1) == bound).sum()), float((products.sum() - own) / (kappa - 1) / own)


def codes_through_relu(
    kappa: int = 8,
    vocab: int = 64,
    entries: int = 64,
    epsilon: float = 0.49,
    sequences: int = 200,
    sigma: str = "relu",
    halves: bool = True,
) -> Finding:
    """epsilon: the coherence of keys and of values, by Lemma 4 below 0.5; halves: whether the difference of two
    halves takes the place of σ, or σ itself.
    """
    linear, passed = PASSES["linear"], PASSES[sigma]
    both = (lambda x: passed(x) - passed(-x)) if halves else passed

    def share(*passes: Callable) -> tuple[float, float]:
        found = [overlapping(kappa, vocab, entries, epsilon, passes, seed) for seed in range(sequences)]
        return sum(right for right, _ in found) / kappa / sequences, float(np.mean([product for _, product in found]))

    (right, product), (wanted, _) = share(passed, passed, passed), share(linear, linear, linear)
    (alone, _), (difference, _) = share(passed, linear, linear), share(both, both, both)
    original, _ = share(*[PASSES["silu"]] * 3)
    return Finding(
        {f"queries right with σ = {sigma}, κ = {kappa}, V = {vocab}, {entries} entries": right}
        | {"mean product of two keys, over that of a key with itself": product}
        | {"queries right without σ": wanted},
        right < 0.9 * wanted,
        {"queries right with σ on B alone": alone, "with σ = silu": original, "with σ(x) − σ(−x)": difference},
        original == difference == wanted,
    )


def logarithmic_codes(
    kappas: tuple[int, ...] = (8, 128, 512, 1024),
    vocab: int = 4096,
    epsilon: float = 0.49,
    delta: float = 0.5,
    draws: int = 2,
    least: int = 1,
    longer: float = 0.5,
    wanted: float = 0.01,
    smaller: float = 0.3,
    more: int = 8192,
    asked: int = 200,
) -> Finding:
    """epsilon, delta: of Lemma 4, for keys and for values, whose codes are drawn until they have this coherence.

    draws: of a key code, each with κ random values; least: entries of a key for each ⌈log₂ κ⌉; longer: entries for each
    key, but at least Lemma 4's; wanted: the share of wrong answers that is few; smaller: another ε, with `more` keys of
    which the first `asked` are asked.
    """
    from compiler.language.codebook import jl, jl_length, least_coherence
    from verify.random_codes import measured_failures

    values = jl(vocab, epsilon, delta).book.words
    lengths = {kappa: jl_length(kappa, epsilon, delta) for kappa in kappas}

    def wrong(kappa: int, length: int) -> float:
        def keys(draw: int) -> np.ndarray:
            return jl(kappa, epsilon, delta, length, seed=1000 * draw).book.words

        return float(measured_failures(values, keys, kappa, draws, 1).mean())

    at_least_length = f"{'' if least == 1 else least}⌈log₂ κ⌉ entries"
    at_log = min(least_coherence(kappa, least * (kappa - 1).bit_length()) for kappa in kappas)
    rates = [wrong(kappa, length) for kappa, length in lengths.items()]
    few = max(wrong(kappa, max(length, ceil(longer * kappa))) for kappa, length in lengths.items())
    rising = all(earlier <= later for earlier, later in zip(rates, rates[1:], strict=False))
    keys, finer = (jl(size, smaller, delta).book.words.astype(float) for size in (more, vocab))
    stored = np.random.default_rng(0).integers(vocab, size=more)
    read = keys[:asked] @ keys.T @ finer[stored]
    small = float(((read @ finer.T).argmax(axis=1) != stored[:asked]).mean())
    return Finding(
        {f"least coherence of {at_least_length}, κ in {kappas}": at_log}
        | {f"wrong with Lemma 4's N = {lengths[k]}, κ = {k}": rate for k, rate in zip(kappas, rates, strict=True)}
        | {"V": vocab, "Lemma 4's entries of a value": values.shape[1], "few wrong are at most": wanted}
        | {f"wrong with ε = {smaller:g}, N = {keys.shape[1]}, κ = {more}, {asked} queries": small},
        at_log >= 0.5 and rising and min(rates[-1], small) > wanted,
        {f"largest share wrong with N = {longer:g}κ, but at least Lemma 4's": few},
        few <= wanted,
    )


def signs_of_lemma_4(vocab: int, epsilon: float, delta: float) -> np.ndarray:
    """M√p of Theorem 4's step 2: V + 1 columns of ±1 with |<Me_i, Me_j>| ≤ ε, measured, the last one all ones.

    p is Lemma 4's. Rows are multiplied by ±1, the rotation that makes the last column parallel to 1 and keeps the
    entries ±1 and the products.
    """
    p = ceil(4 / epsilon**2 * log((vocab + 1) / delta))
    for seed in range(100):
        signs = np.random.default_rng(seed).choice([-1, 1], (p, vocab + 1))
        if np.abs(signs.T @ signs - p * np.eye(vocab + 1)).max() <= epsilon * p:
            return signs * signs[:, -1:]
    raise ValueError(f"no code of {p} signs for {vocab + 1} words has a coherence of {epsilon}")


@dataclass(frozen=True)
class Theorem4:
    """Theorem 4's model for one chunk with the constants of (94); the other chunks are 0 behind the gate."""

    k: float
    c0: float
    c1: float
    b: float
    beta: float
    sigma: str

    def hits(self, signs: np.ndarray) -> np.ndarray:
        """c₀k + c₁v − b, what (95) has before σ: a column for each value. Columns of `signs` are √p·Me_i."""
        return self.c0 * self.k + self.c1 * (signs / sqrt(len(signs)) + self.beta) - self.b

    def largest_miss(self, signs: np.ndarray) -> float:
        """The largest number before σ that (96) asks to be 0: pairs (v, k), (k, k'), (v, v), and (k, v) elsewhere."""
        v = signs.max() / sqrt(len(signs)) + self.beta
        c0, c1 = self.c0, self.c1
        return float(max(c0 * v + c1 * self.k, c0 * self.k, c1 * self.k, (c0 + c1) * v, c1 * v) - self.b)

    def right(self, signs: np.ndarray) -> float:
        """The share of values that (95)–(99) answer rightly."""
        code = signs / sqrt(len(signs))
        scores = code.T @ (self.k * PASSES[self.sigma](self.hits(signs)))  # row i is the score of value i
        own = scores.diagonal().copy()
        np.fill_diagonal(scores, -np.inf)
        return float((own > scores.max(axis=0)).mean())


def ones_and_codes(
    vocab: int = 64,
    epsilon: float = 0.49,
    delta: float = 0.5,
    k: float = 10.0,
    c0: float = 10.0,
    c1: float = 1.0,
    b: float = 100.0,
    beta: float = 1.0,
    sigma: str = "relu",
    balance: bool = True,
) -> Finding:
    """k, c0, c1, b, beta: the constants of (94); balance: whether the other code is balanced."""
    from compiler.language.codebook import balanced

    signs = signs_of_lemma_4(vocab, epsilon, delta)[:, :-1]
    ones = np.abs(signs.sum(axis=0)).max() / sqrt(len(signs))
    other = balanced(vocab).words.T.astype(float) if balance else signs
    model, least = Theorem4(k, c0, c1, b, beta, sigma), 1.05 / sqrt(len(signs))  # (93) asks for more than 1/√p
    right, even = model.right(signs), model.right(other)
    with_silu = replace(model, sigma="silu").right(other)
    return Finding(
        {f"p of Lemma 4 for ε = {epsilon:g}, δ = {delta:g}, {vocab + 1} words": len(signs), "ε": epsilon}
        | {"largest |(Me_i)ᵀ1|": float(ones), "ε√p": epsilon * sqrt(len(signs))}
        | {"values right": right, "largest entry of a hit": float(model.hits(signs).max())}
        | {"largest number before σ of what should become 0": model.largest_miss(signs)},
        ones > epsilon and right < 1,
        {f"values right with β = {least:.2g}, 1.05 of 1/√p": replace(model, beta=least).right(signs)}
        | {f"with {len(other)} balanced signs": even, "with these and SiLU": with_silu},
        even == with_silu == 1,
    )


TRUTHS = (
    Truth(
        "independent-keys",
        Kind.UNSAID,
        SELECTIVITY,
        "Appendix D.3",
        "“We generate the data described in App. C.1 as follows … we draw the key token k_i ∼ Unif({1, …, "
        "κ})”, with i.i.d. above the sign; Theorem 2 solves MQAR with κ pairs.",
        "The columns of (52) hold one value for each key, so the κ keys have to be distinct. The proof takes them to "
        "be: a half-sentence below (61) (“distinct keys … are only associated with their respective values”), and "
        "(63), where each column is one key and one value. Drawn like this, some key comes twice and its column holds "
        "a sum. Run on the real module with neutral noise; each key is asked once, and the last value is the answer.",
        "With distinct keys every query is right. `--write last` answers the i.i.d. data too.",
        independent_keys,
    ),
    Truth(
        "codes-through-relu",
        Kind.UNSAID,
        SELECTIVITY,
        "Proof of Theorem 3, (74) and step 2",
        "x̂_B = σ(c₀ ⊙ x_{t−1} + c₁ ⊙ x_t − b) := x_{t−1}; with embeddings Me_i of entries ±1/√p “The action of the "
        "convolution layer … is the same as in step 1”.",
        "This proof does not say which σ it has. With the ReLU of (54), in the proof of Theorem 2, one-hot keys pass "
        "and signs do not. (74) has σ on B alone, where it does little harm. By (14b), (14d) and (14e) it stands "
        "behind all three convolutions; then no product of two keys is negative, and other keys do not cancel.",
        "With the SiLU of “the original Mamba definition” (footnote to (54)) signs of the size 1/√p pass nearly "
        "unharmed, if they are not scaled up as that footnote has it for one-hot keys. With ReLU σ(x) − σ(−x) = x "
        "passes them: with B = [σ(k), σ(−k)], the read by C = [σ(q), σ(−q)] less that by [σ(−q), σ(q)] is the read by "
        "<k, q>.",
        codes_through_relu,
    ),
    Truth(
        "logarithmic-codes",
        Kind.FAILS,
        SELECTIVITY,
        "Theorem 3, proof, step 2, and Remark 7",
        "M_k ∈ R^(log κ × κ) with |<Me_i, Me_j>| ≤ ε, ε in (0, 0.5); “The above construction with N = log κ works for "
        "generic inputs where the values are drawn randomly from the vocabulary with sufficient size” (Remark 7).",
        "κ words of ⌈log₂ κ⌉ signs hold a word and its negative, or one word twice: ε = 1. With codes of Lemma 4 for "
        "keys and values (ε = 0.49, measured) answers are right for few keys and wrong for many: for a fixed ε N grows "
        "as log κ, and the sum over κ − 1 other keys, beside the answer, as √(κ/N). The proof adds “for ϵ ≪ 1”, which "
        "names no number. With ε = 0.3 the same comes with more keys. Remark 7 meets adversarial values by a smaller "
        "ε, “without however impacting its logarithmic behavior”: for one ε. That ε has to fall as κ grows, as "
        "√(log κ/κ) even for random values.",
        "N has to grow with κ and not with log κ: with κ/2 signs few are wrong. One-hot keys (N = κ) answer "
        "everything.",
        logarithmic_codes,
    ),
    Truth(
        "ones-and-codes",
        Kind.FAILS,
        SELECTIVITY,
        "Proof of Theorem 4, (93)–(99)",
        "“(Me_i)ᵀ·1 ≤ ε per the assumption that Me_{|V|+1} is parallel to 1_p”, so that the scores (99) are ε + εβ "
        "and 1 + εβ.",
        "Me_{|V|+1} has the length 1, and 1_p the length √p: parallel to it, it is 1_p/√p, and what follows is "
        "(Me_i)ᵀ1 ≤ ε√p. With the β = 1 of (94) it outweighs the 1 of the right value.",
        "Balanced signs have (Me_i)ᵀ1 = 0. With them the constants of (94) answer all, with SiLU in place of ReLU as "
        "well. On the first, random signs a β just above the 1/√p that (93) asks for is enough as well: then β√p is "
        "near 1.",
        ones_and_codes,
    ),
)
