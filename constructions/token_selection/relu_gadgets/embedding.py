"""Words as short vectors of signs (Lemma H.1), and contexts of n words whose keys match (Lemma H.3).

H.1, as we restore it: M in {±1/√k}^(k × V) with <M e_u, M e_v> ≤ 1/2 for u ≠ v. Of random signs a pair fails with
probability at most e^(−k/8) (Hoeffding), so k ≥ 8(2 ln V − ln 2) leaves all V(V − 1)/2 pairs right with positive
probability; seeds are tried in order until one is. For k ≤ 4 all 2^k vectors do: two of them have a product of k − 2 ≤
k/2 at most. A vector within 1/(4√k) of M e_w in every entry is decoded to w: <M e_w − M e_u, ·> is then off from at
least 1/2 by less than 1/2.

H.3: key_t = (x_{t−1}, …, x_{t−n}), value_t = x_t, query_t = (x_t, …, x_{t−n+1}), vectors of n words divided by √n.
They match with product 1, else it is at most 1 − 1/(2n). The key is one word behind the query: with the same words in
both, each token matches itself. Before the start stands a word of its own: without one the vectors there are shorter.
"""

from __future__ import annotations

from itertools import product
from math import ceil, log

import numpy as np

from verify.arguments import at_least, at_most

SEEDS = 1000


def sign_length(vocab: int) -> int:
    """k = ⌈8(2 ln V − ln 2)⌉."""
    at_least("vocab", vocab, 2, "two words are told apart")
    return ceil(8 * (2 * log(vocab) - log(2)))


def sign_embedding(vocab: int, length: int | None = None) -> np.ndarray:
    """Signs (V, k) of the first seed with <·, ·> ≤ k/2 for each two rows; M is their transpose over √k."""
    k = sign_length(vocab) if length is None else length
    for seed in range(SEEDS):
        signs = np.random.default_rng(seed).choice(np.array([-1, 1]), (vocab, k))
        products = signs @ signs.T
        np.fill_diagonal(products, -k)
        if 2 * products.max() <= k:
            return signs
    raise ValueError(f"length = {k}: no seed below {SEEDS} makes {vocab} words; {sign_length(vocab)} signs suffice.")


def every_word(k: int) -> np.ndarray:
    """All 2^k vectors of k ≤ 4 signs, as words (2^k, k)."""
    at_least("k", k, 1, "a word has a sign")
    at_most("k", k, 4, "beyond it two words that differ in one sign have a product above k/2")
    return np.array(list(product((1, -1), repeat=k)))


def context_keys(words: np.ndarray, n: int, start: int, behind: int) -> np.ndarray:
    """(…, T) words to (…, T, n): x_{t−behind}, …, x_{t−behind−n+1}; start stands before the first.

    behind = 1 for keys, 0 for queries.
    """
    front = np.full((*words.shape[:-1], n + behind), start)
    whole, length = np.concatenate([front, words], -1), words.shape[-1]
    return np.stack([whole[..., n - i : n - i + length] for i in range(n)], -1)


def context_vectors(contexts: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """(…, n) words to unit vectors (…, n·k)."""
    n, k = contexts.shape[-1], signs.shape[1]
    return signs[contexts].reshape(*contexts.shape[:-1], n * k) / np.sqrt(n * k)
