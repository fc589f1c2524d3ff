"""Lemma 3.3 of paper D in its softmax form: what the networks answer, beside the soft maximum and the chosen token.

Four settings: keys as angles on a circle; unit vectors in the plane with a gap δ; vectors of any norm up to 1 (the best
one no shorter than 0.95); and contexts of two words, each word an angle (Lemma H.3 by networks).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from itertools import product as every
from math import exp, pi, sqrt
from typing import Any

import numpy as np
from scipy import sparse

from constructions.token_selection.lemmas import Row, row_of
from constructions.token_selection.relu_gadgets import kernel
from constructions.token_selection.relu_gadgets.embedding import context_keys
from constructions.token_selection.relu_gadgets.selection import SoftSelection, sharpness, unit_scale
from verify import lemma_bounds as stated
from verify.arguments import at_least

AT_ONCE = 256  # sequences, or tokens that f_1 reads: the layers then stay in the cache
MOST_AT_ONCE = 1 << 20  # tokens of the sequences that run together
MOST_DRAWN = 1 << 22  # tokens of the sequences that are drawn together
MOST_CORNERS = 1 << 22  # tokens of all corners: where there would be more, fewer places are tried
OVERDRAWN = 8  # of the sequences that are drawn not all have the gap
SPARE = 0.2  # of an error, which F.1's bound and the networks' leave to float64
MOST_CHANNELS = 1 << 12  # beside the query's
POOL = 4_000  # f_1 acts on single tokens: sequences are drawn from so many of them


_Sequences = tuple[np.ndarray, np.ndarray, np.ndarray]
"""(n, tokens) places in a pool of tokens, (n, d) queries, (n,) the token of each sequence that is to be chosen."""


@dataclass(frozen=True)
class Setting:
    """A selection, what is asked for, and how its sequences are drawn.

    error: asked for, from the value of the chosen token, half of it by the softmax; gap: of what is in its exponent;
    choose: shortest norm of the key that is chosen.
    """

    what: str
    made: SoftSelection
    error: float
    gap: float
    choose: float

    @property
    def bound(self) -> float:
        """The proved bound on the distance from the value of the chosen token: F.1's, the networks' and float64's."""
        soft = stated.soft_selection_error(self.made.tokens, self.gap, 2.0)
        return soft + self.soft_bound

    @property
    def soft_bound(self) -> float:
        """The proved bound on the distance from the soft maximum, of the networks as they run in float64."""
        return self.made.error + self.made.rounding


def angles(keys: int = 8, tokens: int = 8, values: int = 2, error: float = 0.01) -> Setting:
    """Keys at equal distances on a circle, scores cos(z − y): d' = 1, and a match has score 1."""
    at_least("keys", keys, 2, "there is something to choose")
    at_least("tokens", tokens, 2, "there is something to choose")
    if not 0 < error < 1:
        raise ValueError(f"error = {error}: values lie in [-1, 1], so an error to keep lies above 0 and below 1.")
    reason = _refusal(keys, tokens, values, error)
    if reason is not None:
        raise ValueError(f"{reason}; {_instead(keys, tokens, values, error)}.")
    made = _of_angles(keys, tokens, values, error)
    return Setting(f"{keys} angles", made, error, made.chi * stated.angle_gap(keys), 1.0)


def _of_angles(keys: int, tokens: int, values: int, error: float) -> SoftSelection:
    chi = sharpness(tokens, stated.angle_gap(keys), error)
    return SoftSelection(1, values, tokens, chi, pi, 1.0, error / 2)


def _refusal(keys: int, tokens: int, values: int, error: float) -> str | None:
    """Why networks of these sizes are not run; None where they are."""
    if error >= np.finfo(float).eps:  # below it float64 carries nothing, and the sizes may be no numbers
        made = _of_angles(keys, tokens, values, error)
        if made.features * (values + 1) > MOST_CHANNELS:
            return (
                f"keys = {keys}, tokens = {tokens}, values = {values} and error = {error:g} take {made.channels:,} "
                f"channels, and {MOST_CHANNELS:,} are the most that are built"
            )
        if made.rounding <= SPARE * error:  # no more than the two halves of the error leave
            return None
    return f"error = {error:g} is lost in the rounding of float64, in which networks run"


def _instead(keys: int, tokens: int, values: int, error: float) -> str:
    """The nearest that works: of the errors, or else of the sizes, one by one and then together."""
    errors = [e for digit in range(-16, 0) for e in (10.0**digit, 2 * 10.0**digit, 5 * 10.0**digit)]
    least = next((e for e in errors if e > error and _refusal(keys, tokens, values, e) is None), None)
    if least is not None:
        return f"the smallest error that is tried and works is {least:g}"
    for name, given, least in (("values", values, 1), ("tokens", tokens, 2), ("keys", keys, 2)):
        for size in (given >> k for k in range(1, given.bit_length()) if given >> k >= least):
            sizes = {"keys": keys, "tokens": tokens, "values": values} | {name: size}
            if _refusal(**sizes, error=error) is None:
                return f"{name} = {size} works"
    return "no error, nor fewer of one of them alone, works; 8 keys, 8 tokens, 2 values and an error of 0.01 do"


def vectors(norms: bool, gap: float = 1.4, tokens: int = 3, error: float = 0.3) -> Setting:
    """Keys in the plane, of norm 1 or up to 1, scores <k, q> with a gap: half of it is lost to the cosines."""
    scale, chi, shortest = unit_scale(gap), sharpness(tokens, gap / 2, error), 0.95 if norms else 1.0
    least = exp(-chi * ((1 - shortest**2) / 2 + (1 - shortest) ** 2 / 2))
    made = SoftSelection(2, 1, tokens, chi / scale**2, scale, least, error / 2, norms, scale)
    what = f"norm {'0 to 1' if norms else '1'}, δ = {gap}"
    return Setting(what, made, error, chi * gap / 2, shortest)


def rows(samples: int, seed: int) -> list[Row]:
    """The four settings."""
    rng = np.random.default_rng(seed)
    return [
        angle_row(angles(5, 5, 1, 0.05), 5, samples, rng),
        *(vector_row(vectors(norms), samples, rng) for norms in (False, True)),
        context_row(samples, rng),
    ]


def angle_row(
    setting: Setting,
    keys: int,
    samples: int,
    rng: np.random.Generator,
    progress: Callable[[str, int], Callable[[int], None]] = lambda name, count: lambda done: None,
) -> Row:
    """Sequences of different keys, the query one of them, random values with −1 and 1 among them.

    Corners: every key at every place (of very long sequences: at places from the first to the last) with the value 1 or
    −1, all others, its neighbours first, with the opposite. progress: is told how many sequences there are, and which
    are done.
    """
    of_angles = _AngleSequences(keys, setting.made.tokens, max(2, POOL // keys))
    pool_values = _values(rng, (keys * of_angles.count, setting.made.values))
    pool_values[:: of_angles.count], pool_values[1 :: of_angles.count] = 1, -1
    places = of_angles.corner_places()
    each = max(1, MOST_DRAWN // setting.made.tokens)
    sequences = chain(
        (of_angles.corners(places[start : start + each]) for start in range(0, len(places), each)),
        (of_angles.drawn(rng, min(each, samples - start)) for start in range(0, samples, each)),
    )
    advance = progress("sequences", len(places) + samples)
    return _measured(setting, of_angles.pool_keys(), pool_values, sequences, advance)


@dataclass(frozen=True)
class _AngleSequences:
    """Sequences of tokens of a pool in which each of the angles stands `count` times: first with the value 1, then with
    −1, then with random ones.
    """

    keys: int
    tokens: int
    count: int

    def pool_keys(self) -> np.ndarray:
        return np.repeat(_circle(self.keys), self.count)[:, None]

    def drawn(self, rng: np.random.Generator, samples: int) -> _Sequences:
        """Different keys, any of which is asked for; where there are more tokens than keys, a key that stands again has
        its value again.
        """
        distinct = np.argsort(rng.random((samples, self.keys)), axis=1)
        kind = distinct[:, np.arange(self.tokens) % self.keys]
        member = np.take_along_axis(rng.integers(self.count, size=(samples, self.keys)), kind, 1)
        return self._asked(kind, member, rng.integers(self.tokens, size=samples))

    def corner_places(self) -> np.ndarray:
        """(key, place, whether its value is −1) of every corner."""
        most = max(2, MOST_CORNERS // (2 * self.keys * self.tokens))
        at = np.unique(np.linspace(0, self.tokens - 1, min(self.tokens, most)).round().astype(int)).tolist()
        return np.array([(key, place, sign) for key in range(self.keys) for place in at for sign in (0, 1)])

    def corners(self, places: np.ndarray) -> _Sequences:
        chosen, at, sign = places.T
        near = np.array([(j + 1) // 2 * (1 if j % 2 else -1) for j in range(self.keys)])  # 0, 1, −1, 2, −2, …
        turn = near[(np.arange(self.tokens) - at[:, None]) % self.keys]
        member = np.where(turn == 0, sign[:, None], 1 - sign[:, None])
        return self._asked((chosen[:, None] + turn) % self.keys, member, at)

    def _asked(self, kind: np.ndarray, member: np.ndarray, right: np.ndarray) -> _Sequences:
        query = _circle(self.keys)[kind[np.arange(len(kind)), right]][:, None]
        return kind * self.count + member, query, right


def vector_row(setting: Setting, samples: int, rng: np.random.Generator) -> Row:
    """A best match anywhere on the circle, the others just as far below as the gap allows or farther."""
    made, gap = setting.made, 2 * setting.gap / (setting.made.chi * setting.made.scale**2)
    norm = np.where(rng.random(POOL) < 0.5, rng.uniform(setting.choose, 1, POOL), rng.random(POOL) if made.norms else 1)
    angle = 2 * pi * np.arange(POOL) / POOL
    pool = norm[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    tries = OVERDRAWN * samples
    best = rng.choice(np.flatnonzero(norm >= setting.choose), tries)
    query = np.stack([np.cos(angle[best]), np.sin(angle[best])], 1)
    away = rng.integers(POOL // 3, POOL - POOL // 3, size=(tries, made.tokens))
    drawn = (best[:, None] + away) % POOL
    right = rng.integers(made.tokens, size=tries)
    drawn[np.arange(tries), right] = best
    scores = np.einsum("nkd,nd->nk", pool[drawn], query)
    top = scores[np.arange(tries), right]
    scores[np.arange(tries), right] = -np.inf
    kept = np.flatnonzero(top - scores.max(1) >= gap)[:samples]
    corner_keys, corner_values, corners, at = _vector_corners(setting, gap)
    keys, values = (
        np.concatenate([corner_keys, pool]),
        np.concatenate([corner_values, _values(rng, (POOL, made.values))]),
    )
    drawn = np.concatenate([corners, drawn[kept] + len(corner_keys)])
    query = np.concatenate([np.tile([1.0, 0.0], (len(corners), 1)), query[kept]])
    right = np.concatenate([at, right[kept]])
    return _measured(setting, keys * made.scale, values, [(drawn, query * made.scale, right)])


def _vector_corners(setting: Setting, gap: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(keys, values, sequences of them, the right place): the query is (1, 0), the best key the longest or shortest.

    All others lie at the gap, on either side or straight behind, and have the opposite value.
    """
    keys, values, drawn, right = [], [], [], []
    for norm in sorted({setting.choose, 1.0}):
        below = norm - gap
        side = sqrt(max(0.0, 1 - below**2))
        ends = [(norm, 0.0), (below, side), (below, -side), *([(below, 0.0)] if setting.made.norms else [])]
        for sign in (1.0, -1.0):
            start = len(keys)
            keys += ends
            values += [sign, *[-sign] * (len(ends) - 1)]
            for at in range(setting.made.tokens):
                for others in every(range(1, len(ends)), repeat=setting.made.tokens - 1):
                    drawn.append([start + j for j in (*others[:at], 0, *others[at:])])
                    right.append(at)
    columns = np.repeat(np.array(values)[:, None], setting.made.values, axis=1)
    return np.array(keys), columns, np.array(drawn), np.array(right)


def context_row(samples: int, rng: np.random.Generator, vocab: int = 4, tokens: int = 6) -> Row:
    """H.3 for n = 2: keys are the angles of the two words before, a word's value its two bits as ±1.

    Corners: every sequence of words with one match. In the others a word stands for any number in [−1, 1] as well.
    """
    gap, error, start = 1.0, 0.9, vocab - 1  # one word is kept for what stands before the start
    chi = sharpness(tokens, gap, error)
    made = SoftSelection(2, 2, tokens, chi, pi, 1.0, error / 2)
    all_of_them = np.array(list(every(range(start), repeat=tokens)))
    words = np.concatenate([all_of_them, rng.integers(start, size=(OVERDRAWN * samples, tokens))])
    keys, query = context_keys(words, 2, start, 1), context_keys(words, 2, start, 0)[:, -1]
    matches = (keys == query[:, None]).all(-1)
    kept = np.flatnonzero(matches.sum(1) == 1)
    exact = int((kept < len(all_of_them)).sum())
    kept = kept[: exact + samples]
    bits = np.stack([np.arange(vocab) // 2, np.arange(vocab) % 2], 1) * 2.0 - 1
    circle, contexts = _circle(vocab), vocab**2
    copies = POOL // (contexts * vocab)
    pool = np.arange(contexts * vocab * copies)
    member = rng.integers(copies, size=(len(kept), tokens))
    member[:exact] = 0
    codes = (keys[kept][..., 0] * contexts + keys[kept][..., 1] * vocab + words[kept]) * copies + member
    pool_keys = np.stack([circle[pool // copies // contexts], circle[pool // copies // vocab % vocab]], 1)
    values = np.where((pool % copies == 0)[:, None], bits[pool // copies % vocab], _values(rng, (len(pool), 2)))
    setting = Setting("contexts of 2 words, angles", made, error, chi * gap, 1.0)
    row = _measured(setting, pool_keys, values, [(codes, circle[query[kept]], matches[kept].argmax(1))])
    return row | {"lemma": "H.3"}


def _measured(
    setting: Setting,
    keys: np.ndarray,
    values: np.ndarray,
    sequences: Iterable[_Sequences],
    advance: Callable[[int], None] = lambda done: None,
) -> Row:
    """keys, values: of a pool of tokens, of which the sequences are drawn.

    f_1 runs once for each token of the pool, and so do the waves of f_2 for each query.
    """
    made = setting.made
    none = np.zeros_like(keys)
    tokens = np.concatenate([made.first(part) for part in _parts(np.concatenate([keys, none, values], 1))])
    tokens = tokens[:, : -made.d]
    soft_off, value_off, points = 0.0, 0.0, 0
    for drawn, query, right in sequences:
        asked, which = np.unique(query, axis=0, return_inverse=True)
        waves = np.concatenate([made.waves(part) for part in _parts(asked)])
        for part in _parts(np.arange(len(drawn)), min(AT_ONCE, MOST_AT_ONCE // made.tokens)):
            got = made.meeting(np.concatenate([_added(tokens, drawn[part]), waves[which[part]]], 1))
            weights = weights_of(made, keys[drawn[part]], query[part])
            value = values[drawn[part]]
            soft_off = max(soft_off, float(np.abs(got - (weights[..., None] * value).sum(1)).max()))
            value_off = max(value_off, float(np.abs(got - value[np.arange(len(part)), right[part]]).max()))
            advance(len(part))
        points += len(drawn)
    sizes = {name: max(net.sizes()[name] for net in (made.first, made.second)) for name in ("L", "W", "B")}
    sizes |= {"S": made.first.nonzeros + made.second.nonzeros, "D": made.first.outputs}
    promised = {"D": stated.selection_channels(made.top, made.d, made.values)}
    good = soft_off <= setting.soft_bound and setting.bound <= setting.error
    more: dict[str, Any] = {"soft_error": soft_off, "soft_bound": setting.soft_bound, "asked": setting.error}
    more |= {"rounding": made.rounding, "good": good}
    return row_of("3.3", setting.what, points, value_off, setting.bound, sizes=sizes, stated=promised, **more)


def _parts(rows: np.ndarray, at_once: int = AT_ONCE) -> list[np.ndarray]:
    return np.array_split(rows, max(1, len(rows) // at_once))


def _added(tokens: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """What the filter gives at the last token: the sum of its tokens for each sequence, none of which is copied."""
    rows, length = drawn.shape
    which = sparse.csr_array((np.ones(drawn.size), drawn.ravel(), length * np.arange(rows + 1)), (rows, len(tokens)))
    return which @ tokens


def weights_of(made: SoftSelection, keys: np.ndarray, query: np.ndarray) -> np.ndarray:
    """The soft maximum's weights in float64, with the factor of the norms where there is one."""
    found = kernel.kernel(keys, query[..., None, :], made.chi)
    if made.norms:
        found = found * np.exp(-made.chi * made.scale**2 * (1 - (keys**2).sum(-1) / made.scale**2) / 2)
    return found / found.sum(-1, keepdims=True)


def _circle(count: int) -> np.ndarray:
    return 2 * pi * np.arange(count) / count - pi


def _values(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Random in [−1, 1], a third of them at the ends."""
    drawn = rng.uniform(-1, 1, shape)
    return np.where(rng.random(shape) < 1 / 3, np.sign(drawn), drawn)


def one_selection(setting: Setting, keys: int, seed: int) -> dict[str, Any]:
    """For the picture: a sequence of angles, its scores, the weights of the softmax and of the networks, the answer."""
    made, rng = setting.made, np.random.default_rng(seed)
    places = rng.permutation(keys)[np.arange(made.tokens) % keys]
    right = int(rng.integers(made.tokens))
    key, values = _circle(keys)[places][:, None], _values(rng, (keys, made.values))[places]
    query = key[right]
    tokens = made.first(np.concatenate([key, np.broadcast_to(query, key.shape), values], 1))
    phi = tokens[:, made.features * made.values : -made.d]
    raw = phi @ (kernel.weights(made.chi, made.d, made.top) * made.waves(query[None])[0])
    return {
        "keys": places.tolist(),
        "query": int(places[right]),
        "chosen": right,
        "scores": np.cos(key[:, 0] - query).tolist(),
        "softmax": weights_of(made, key, query).tolist(),
        "networks": (raw / raw.sum()).tolist(),
        "values": values.tolist(),
        "output": made.second(made.filtered(tokens)).tolist(),
        "bound": setting.bound,
        "chi": made.chi,
    }
