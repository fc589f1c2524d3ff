"""Lemma H.3 by its tensor feature map, and copying by random ±1 features of ours (after Theorem 3.1)."""

from __future__ import annotations

import numpy as np

from compiler.machines.fnn_ssm.relu_network import ReluNetwork
from constructions.token_selection.base import digits
from constructions.token_selection.lemmas import Row, row_of
from constructions.token_selection.relu_gadgets.context_match import ContextMatch
from constructions.token_selection.relu_gadgets.embedding import context_keys, every_word
from constructions.token_selection.relu_gadgets.random_features import RandomFeatures
from verify import lemma_bounds as stated
from verify.bounds import repeated_ngram_bound

AT_ONCE = 256
QUERIES = 64  # whose neighbours are all tried
LOST = 0.05  # ε' of a string whose contexts all differ
SURE = 1e-6  # how improbable it is that any number at all is farther off than is stated


def rows(samples: int, seed: int) -> list[Row]:
    """All of them."""
    rng = np.random.default_rng(seed)
    matches = [match_row(ContextMatch(n, k, tokens, 1 / 8), samples, rng) for n, k, tokens in ((3, 2, 16), (2, 4, 12))]
    return [*matches, *random_rows(3, 4, 6, samples, rng)]


# H.3 ------------------------------------------------------------------------------------------------------------------


def match_row(made: ContextMatch, samples: int, rng: np.random.Generator) -> Row:
    """Texts in which the last n words stand once before, over all 2^k words but one, which stands before the start.

    Corners: the one match at each place, every other key one sign away from the query, its value the opposite.
    """
    words = every_word(made.k)
    each = np.arange(len(words) ** made.n)
    contexts = words[each[:, None] // len(words) ** np.arange(made.n) % len(words)].reshape(-1, made.d)
    none = np.zeros_like(contexts)
    pool = [np.concatenate([contexts, none, np.broadcast_to(word, (len(contexts), made.k))], 1) for word in words]
    tokens = np.stack([made.first(part.astype(float))[:, : -made.d] for part in pool], 1)
    key, value, query, right = (
        np.concatenate(both) for both in zip(_nearest(made, rng), _texts(made, samples, rng), strict=True)
    )
    off = soft_off = 0.0
    for part in np.array_split(np.arange(len(key)), max(1, len(key) // AT_ONCE)):
        got = made.second(np.concatenate([tokens[key[part], value[part]].sum(1), contexts[query[part]]], 1))
        differing = np.bitwise_count(key[part] ^ query[part, None])
        weights = float(made.share) ** differing
        soft = (weights[..., None] * words[value[part]]).sum(1) / weights.sum(1, keepdims=True)
        wanted = words[value[part, right[part]]]
        off, soft_off = max(off, float(np.abs(got - wanted).max())), max(soft_off, float(np.abs(got - soft).max()))
    promised = stated.context_match_sizes(made.n, made.k, made.tokens, made.ratio.network.sizes())
    good = soft_off <= made.ratio.error and made.error <= made.asked
    what = f"n = {made.n} words of k = {made.k} signs"
    sizes = _sizes(made.first, made.second)
    return row_of("H.3", what, len(key), off, made.error, sizes=sizes, stated=promised, good=good, soft_error=soft_off)


def _texts(made: ContextMatch, samples: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """(key, value, query, right) as numbers of contexts and words; the last words are planted once before."""
    length, start = made.tokens, 2**made.k - 1
    text = rng.integers(start, size=(2 * samples, length))
    at = rng.integers(length - made.n, size=len(text))
    for i in range(made.n):
        text[np.arange(len(text)), at + i] = text[:, length - made.n + i]
    keys, queries = context_keys(text, made.n, start, 1), context_keys(text, made.n, start, 0)[:, -1]
    matches = (keys == queries[:, None]).all(-1)
    kept = np.flatnonzero(matches.sum(1) == 1)[:samples]
    base = (start + 1) ** np.arange(made.n)
    return keys[kept] @ base, text[kept], queries[kept] @ base, matches[kept].argmax(1)


def _nearest(made: ContextMatch, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """The same for corners: contexts are numbers whose bits are their signs, so one bit is turned over."""
    chosen = rng.permutation(1 << made.d)[:QUERIES]
    query = np.repeat(chosen, made.tokens)
    right = np.tile(np.arange(made.tokens), len(chosen))
    turned = 1 << rng.integers(made.d, size=(len(query), made.tokens))
    word = rng.integers(1 << made.k, size=len(query))
    here = np.arange(made.tokens) == right[:, None]
    key = np.where(here, query[:, None], query[:, None] ^ turned)
    return key, np.where(here, word[:, None], (1 << made.k) - 1 - word[:, None]), query, right


# After 3.1, by features of ours ---------------------------------------------------------------------------------------


def random_rows(n: int, vocab: int, length: int, samples: int, rng: np.random.Generator) -> list[Row]:
    """Strings of `length` words and what the model writes behind them, given that it was right so far.

    How far any y_b is from its sign, how many strings without a repeated context go wrong, and how many of all.
    """
    signs = 2 * digits(vocab + 1) - 1  # the separator ends a copy
    count = stated.random_features(length, signs.shape[1], LOST)
    made = RandomFeatures(n, vocab + 1, signs.shape[1], 2 * length + 2, count)
    strings = rng.integers(vocab, size=(3 * samples // (2 * (length + 1)) + 1, length))
    bar = np.full((len(strings), 1), vocab)
    text = np.concatenate([bar, strings, bar, strings], 1)
    queries = contexts_until(text, n, vocab)
    keys = np.concatenate([np.full_like(queries[:, :1], vocab + 1), queries[:, :-1]], 1)
    got, wanted = _written(made, keys, queries, text, signs, length), signs[np.concatenate([strings, bar], 1)]
    off = np.abs(got - wanted).max((1, 2))
    wrong = (np.sign(got) != wanted).any((1, 2))
    base = (vocab + 2) ** np.arange(n)
    seen = np.sort(keys[:, 1 : length + 2] @ base, 1)
    alone = (seen[:, 1:] != seen[:, :-1]).all(1)
    points, every = int(alone.sum()) * (length + 1), len(strings) * (length + 1)
    bound = stated.random_feature_error(count, made.pairs, points * made.digits, SURE)
    sizes, name = _sizes(made.first, made.second), f"F = {count}"
    promised = stated.random_feature_sizes(n, made.letters, made.digits, count, made.pairs)
    repeated = repeated_ngram_bound(length, vocab, n) + LOST
    return [
        row_of(
            "ours",
            f"{name}: |y − sign|, no repeat",
            points,
            float(off[alone].max()),
            bound,
            sizes=sizes,
            stated=promised,
        ),
        row_of("ours", f"{name}: wrong, no repeat", points, float(wrong[alone].mean()), LOST),
        row_of("ours", f"{name}: wrong, of all", every, float(wrong.mean()), repeated),
    ]


def contexts_until(text: np.ndarray, n: int, bar: int) -> np.ndarray:
    """(batch, T) to (batch, T, n): the last n tokens, of which none behind (that is, before) the latest bar counts.

    What does not count is bar + 1.
    """
    padded = np.concatenate([np.full((len(text), n), bar + 1), text], 1)
    last = np.stack([padded[:, n - i : n - i + text.shape[1]] for i in range(n)], -1)
    closed = np.cumsum(last == bar, -1) - (last == bar) > 0
    return np.where(closed, bar + 1, last)


def _written(
    made: RandomFeatures, keys: np.ndarray, queries: np.ndarray, text: np.ndarray, signs: np.ndarray, length: int
) -> np.ndarray:
    """(batch, T, n) of keys and queries, (batch, T) words: y at the last length + 1 positions, by the networks.

    f_1 runs once for each token that there is.
    """
    one_hot = np.concatenate([np.eye(made.letters), np.zeros((1, made.letters))])
    tokens, ids = np.unique(
        np.concatenate([keys, text[..., None]], -1).reshape(-1, made.n + 1), axis=0, return_inverse=True
    )
    contexts = one_hot[tokens[:, :-1]].reshape(len(tokens), -1)
    features = made.first(np.concatenate([contexts, np.zeros_like(contexts), signs[tokens[:, -1]]], 1))
    features = features[:, : made.count * made.digits]
    ids, asked, found = ids.reshape(text.shape), one_hot[queries[:, -length - 1 :]], []
    for part in np.array_split(np.arange(len(text)), max(1, len(text) // 32)):
        sums = np.cumsum(features[ids[part]], 1)[:, -length - 1 :]
        query = asked[part].reshape(*sums.shape[:2], -1)
        found.append(made.second(np.concatenate([sums, query], -1)))
    return np.concatenate(found)


def _sizes(first: ReluNetwork, second: ReluNetwork) -> dict[str, float]:
    """Of both networks: the larger L, W, B, all of S, and D between them."""
    larger = {name: max(net.sizes()[name] for net in (first, second)) for name in ("L", "W", "B")}
    return larger | {"S": first.nonzeros + second.nonzeros, "D": first.outputs}
