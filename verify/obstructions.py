"""What no small model can do: lower bounds on the channels D of paper D's class for copying and recall.

A block of D channels with the filter c1·cos(2πa1·j/P) + c2·sin(2πa2·j/P) is a recurrence of at most 4D states, two for
each frequency. A real mixer has for each channel d_state numbers and what its convolution holds. The sizes that
the theorems promise are not legible in the text that we read. Three bounds, each under a condition of its own, say that
none which is poly-logarithmic in words and length is enough: O1 of numbers of β bits, O2 of bilinear read-outs, O3 of
fixed filters.

Information (O1). A model that has taken at most 2^b values when the answer begins copies a uniform string of N words
with probability at most 2^b·V^−N. So b ≥ N·log2 V + log2(1 − ε), and recall of any key out of n_K takes b ≥ n_K·log2
V_v. M blocks hold 4·D·M numbers of β bits: D ≥ b/(4Mβ), and so for any other count of numbers for each channel.
Networks between the blocks and decays that read the input change nothing about it.

Rank (O2). A read-out <ψ(q), Σ_j φ(k_j) v_j> by r products whose kernel <ψ(q), φ(k)> is 1 for q = k and at most η away
from 0 else has r ≥ n/(1 + (n − 1)η²) on n keys: its matrix A has rank ≤ r, trace n and |A|_F² ≤ n(1 + (n − 1)η²), and
trace² ≤ rank·|A|_F², as the singular values add up to the trace or more. This holds at any precision.

For l stored pairs, all of them right whatever the values, let the l − 1 keys that weigh most on a query q, by |A_qk|,
stand beside it: with w where A_qk > 0, and with q's own value v where it is negative. v wins over w, and w over v where
the two are exchanged, only if Σ |A_qk| < A_qq = 1 over these keys. So every l × l part of A is diagonally dominant, and
has rank l. And a row has off its diagonal Σ A_qk² ≤ max(1, (n − 1)/(l − 1)²): the l − 1 largest add up to less than 1,
no other is larger than the least of them, and the sum of squares is convex in that least. So r ≥ l, and
r ≥ n/(1 + max(1, (n − 1)/(l − 1)²)). A channel of d_state columns reads out by as many products.

Delays (O3). The Hankel matrix (h_{a+b+1})_{a,b<i} of a delay by i is a permutation matrix, that of s states has rank at
most s; they differ by √(i − s) or more in the Frobenius norm, so by √(i − s)/i in some entry. A filter that is nearer
than 1/√(2i) to a delay by i has s > i/2 states. It is about fixed filters: what counts places needs none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, inf, lgamma, log, log2, sqrt

import numpy as np

from compiler import digits
from verify.arguments import at_least

STATES_OF_A_CHANNEL = 4
BILINEAR, FIXED = "with a bilinear read-out", "with fixed filters"
ROOM = 1e-9  # below a whole number it is the number itself


@dataclass(frozen=True)
class Obstruction:
    """A lower bound and what a model has of the same thing: bits of state, products, or states of a filter.

    given: of which models it holds, such as "with fixed filters"; "": of any. built: None where the model has no such
    part; then the bound is not about it, and it needs no channels for it.
    """

    kind: str
    of: str
    least: float
    built: float | None
    channels: int
    given: str = ""

    @property
    def kept(self) -> bool:
        """Whether the model has as much as any must."""
        return self.built is None or self.built >= self.least - ROOM

    def __str__(self) -> str:
        least = digits.at_least(self.least, 4)
        if self.built is None:
            return f"{self.kind}: {least} {self.of} at least where there is one, built none"
        where = f" {self.given}" if self.given else ""
        return f"{self.kind}: {least} {self.of} at least{where} (D ≥ {self.channels}), built {self.built:.4g}"


@dataclass(frozen=True)
class Capacity:
    """What a built model has.

    channels: D, of its widest block; blocks: M; numbers: of state, in all blocks; states: numbers that one more channel
    adds to a block, and shared: that a block has besides; columns: products of a channel's read-out; filters: states of
    the fixed filters that tell places apart, None where places are counted; precision: bits of a number.
    """

    channels: int
    blocks: int
    numbers: int
    states: int = STATES_OF_A_CHANNEL
    shared: int = 0
    columns: int = 1
    filters: int | None = None
    precision: int = 32

    @classmethod
    def of_network(cls, channels: int, blocks: int, window: int) -> Capacity:
        """Paper D's class: D, M and U; cosines over the window tell its U + 1 places apart."""
        return cls(channels, blocks, STATES_OF_A_CHANNEL * channels * blocks, filters=window + 1)


# O1 ---------------------------------------------------------------------------------------------------------------


def copy_bits(length: int, vocab: int, error: float = 0.0) -> float:
    """N·log2 V + log2(1 − ε): the state's bits where a uniform string of N words is copied but for a share ε.

    0 where one string that is always written is right as often.
    """
    _sizes(length, vocab)
    if not 0 <= error < 1:
        raise ValueError(f"error = {error} is no probability of failure; it must be at least 0 and below 1.")
    return max(0.0, length * log2(vocab) + log2(1 - error))


def recall_bits(keys: int, values: int, pairs: int | None = None) -> float:
    """min(n_K, pairs)·log2 V_v: so many keys may have been shown, each with any value. pairs: n_K by default."""
    _sizes(keys, values)
    return (keys if pairs is None else min(keys, pairs)) * log2(values)


def _free_pairs(vocab: int, length: int) -> int:
    """How many tokens may stand once before the last place, each with another behind it that is none of them."""
    return min(vocab - 1, (length - 1) // 2)


def unique_induction_bits(vocab: int, length: int) -> float:
    """The larger of two. n tokens that stand once, each with any of the V − n others behind it, where 2n < length. Or
    m = min(V, length − 1) different tokens, the last one fixed, in any of (m − 1)! orders. Every two of these texts
    differ in the answer to a token that stands once in both; their rest repeats one of the others, or the last one.
    """
    _sizes(length, vocab)
    pairs = range(_free_pairs(vocab, length) + 1)
    return max(*(n * log2(vocab - n) for n in pairs), lgamma(max(1, min(vocab, length - 1))) / log(2))


def most_copied(bits: float, length: int, vocab: int) -> float:
    """min(1, 2^b·V^−N): the share of strings that a state of b bits copies at most."""
    return min(1.0, 2.0 ** (bits - length * log2(vocab)))


def channels_for_bits(
    bits: float, blocks: int = 2, precision: int = 32, states: int = STATES_OF_A_CHANNEL, shared: int = 0
) -> int:
    """D ≥ (b/(Mβ) − shared)/states, at least 1 where there is anything to keep."""
    if bits <= 0:
        return 0
    return max(1, ceil((bits / (blocks * precision) - shared) / states - ROOM))


# O2 ---------------------------------------------------------------------------------------------------------------


def least_products(keys: int, off: float) -> float:
    """r ≥ n/(1 + (n − 1)η²) products for a kernel that is 1 on n keys and at most η = off between them."""
    at_least("keys", keys, 1, "a kernel is of some keys")
    return keys / (1 + (keys - 1) * off**2)


def least_products_for_pairs(keys: int, pairs: int) -> float:
    """O2 for l = pairs of the n = keys, with any of two or more values: l of them, and n/2 from l = √n + 1 on."""
    at_least("pairs", pairs, 1, "a recall has a pair")
    stored = min(keys, pairs)
    off = max(1.0, (keys - 1) / (stored - 1) ** 2) if stored > 1 else inf
    return max(float(stored), keys / (1 + off))


# O3 ---------------------------------------------------------------------------------------------------------------


def delay_error(delay: int, states: int) -> float:
    """√(i − s)/i: every filter of s states is somewhere so far from a delay by i, over at least 2i − 1 positions."""
    at_least("delay", delay, 1, "a delay is of a position at least")
    return sqrt(delay - states) / delay if states < delay else 0.0


def least_delay_states(delay: int, error: float) -> int:
    """s ≥ i − (i·e)²: states of a filter within e of a delay by i; i itself for an exact one."""
    at_least("delay", delay, 1, "a delay is of a position at least")
    return max(0, ceil(delay - (delay * error) ** 2 - ROOM))


def hankel(taps: np.ndarray, size: int) -> np.ndarray:
    """(h_{a+b+1})_{a,b<size} of the taps h_0, h_1, …, those that are not given being 0."""
    taps = np.concatenate([np.asarray(taps, dtype=float), np.zeros(2 * size)])
    return taps[np.add.outer(np.arange(size), np.arange(size)) + 1]


# For a construction -------------------------------------------------------------------------------------------------


def of_copy(length: int, vocab: int, has: Capacity, error: float = 0.0) -> list[Obstruction]:
    """Copying N words but for a share of the strings: O1, and O3 of N − 1, by which the last place is later than the
    first."""
    return [_information(copy_bits(length, vocab, error), has), _delay(length - 1, has)]


def of_recall(keys: int, values: int, has: Capacity, products: int, pairs: int | None = None) -> list[Obstruction]:
    """Recall: O1 and O2. products: the read-out's; l = n_K pairs by default."""
    return _of_memory(recall_bits(keys, values, pairs), keys, has, products, keys if pairs is None else pairs)


def of_unique_induction(vocab: int, length: int, has: Capacity) -> list[Obstruction]:
    """O1 and O2, of pairs with any of two values or more; the read-out gates a bank for each token."""
    pairs = max(1, min(vocab - 2, _free_pairs(vocab, length)))
    return _of_memory(unique_induction_bits(vocab, length), pairs, has, vocab, pairs)


def _of_memory(bits: float, keys: int, has: Capacity, products: int, pairs: int) -> list[Obstruction]:
    least = least_products_for_pairs(keys, pairs) if bits > 0 else 0.0  # else the answer is always the same
    rank = Obstruction("rank", "products", least, products, ceil(least / has.columns - ROOM), BILINEAR)
    return [_information(bits, has), rank]


def least_channels(found: list[Obstruction], given: bool = False) -> int:
    """The D that any exact solution needs; given: that one needs of which all these bounds hold."""
    return max((one.channels for one in found if given or not one.given), default=0)


def summary(found: list[Obstruction], channels: int) -> str:
    """One sentence: any exact solution needs D ≥ …, one with …; built …."""
    needed = least_channels(found)
    more = [f", one {one.given} D ≥ {one.channels}" for one in found if one.given and one.channels > needed]
    return f"any exact solution needs D ≥ {needed}{''.join(more)}; built {channels}"


def crossing(power: float, constant: float = 1.0, vocab: int = 2, blocks: int = 2, precision: int = 32) -> float:
    """The least N = 2^i from which on copying takes D > C·(log2 N·V)^p: from there no such bound can hold."""
    for i in range(1, 2000):
        needed = 2.0 ** min(i, 1000) * log2(vocab) / (STATES_OF_A_CHANNEL * blocks * precision)
        # 2^i/(log)^p grows from i + log2 V ≥ 2p on, so what is crossed behind that stays so
        if i + log2(vocab) >= 2 * power and needed > constant * (i + log2(vocab)) ** power:
            return 2.0**i
    return inf


def _information(bits: float, has: Capacity) -> Obstruction:
    least = channels_for_bits(bits, has.blocks, has.precision, has.states, has.shared)
    return Obstruction("information", "bits of state", bits, has.numbers * has.precision, least)


def as_before(found: list[Obstruction]) -> list[Obstruction]:
    """What earlier versions recorded: a delay by N for N places."""
    return [replace(one, least=one.least + 1) if one.kind == "delay" else one for one in found]


def _delay(length: int, has: Capacity) -> Obstruction:
    least = least_delay_states(length, 0.0) if length else 0
    channels = 0 if has.filters is None else ceil(least / has.states)
    return Obstruction("delay", "states of a filter", least, has.filters, channels, FIXED)


def _sizes(count: int, vocab: int) -> None:
    at_least("count", count, 1, "there is something to keep")
    at_least("vocab", vocab, 1, "there is a word")
