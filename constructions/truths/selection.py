"""Paper D: Theorem D.2, selective copying. The text that we read has lost its formulas."""

from __future__ import annotations

from collections import Counter
from math import ceil, log

import numpy as np

from constructions.papers import TOKEN_SELECTION
from constructions.truths.truth import Finding, Kind, Truth

PAD = -1


def words_in_order(
    words: int = 600,
    length: int = 64,
    pad: float = 0.3,
    known: int = 3,
    failure: float = 0.1,
    strings: int = 20,
    ordered: int = 3,
    larger: int = 60_000,
) -> Finding:
    """known: n, the last words that are looked up; failure: ε; ordered: how many last words are looked up in order;
    larger: the words of a larger vocabulary.
    """
    run = ceil(log(2 * length / failure) / log(1 / pad)) if pad else 1  # of PADs, reached with probability ε/2
    drawn, wider = (drawn_strings(count, length, pad, strings) for count in (words, larger))
    behind = [count for x in drawn for count in behind_windows(x, known, known * run)]
    several, still = (
        float(np.mean([count > 1 for x in texts for count in behind_windows(x, known, known * run)]))
        for texts in (drawn, wider)
    )
    in_order = float(np.mean([several_contexts(x, ordered) for x in drawn]))
    return Finding(
        {"tokens of a window, n·r": known * run}
        | {f"different words behind windows that hold the last {known} words, mean": float(np.mean(behind))}
        | {f"share of steps with several, {words:,} words": several, f"with {larger:,} words": still},
        min(several, still) > failure,
        {f"where the last {ordered} words in order stand twice": in_order},
        in_order <= failure,
    )


def drawn_strings(words: int, length: int, pad: float, strings: int) -> list[list[int]]:
    """Random words, each replaced by a PAD with the probability `pad`."""
    rng = np.random.default_rng(0)
    return [np.where(rng.random(length) < pad, PAD, rng.integers(words, size=length)).tolist() for _ in range(strings)]


def behind_windows(x: list[int], known: int, window: int) -> list[int]:
    """How many different words stand behind windows that hold the last `known` words of a prefix, in any order: for
    each prefix of the words. 1 is what the match needs.
    """
    held = [Counter(t for t in x[max(0, end - window) : end] if t != PAD) for end in range(len(x))]
    following = [next((t for t in x[end:] if t != PAD), PAD) for end in range(len(x))]
    kept = [t for t in x if t != PAD]
    wanted = [Counter(kept[i - known : i]) for i in range(known, len(kept))]
    return [len({word for word, has in zip(following, held, strict=True) if last <= has}) for last in wanted]


def several_contexts(x: list[int], known: int) -> float:
    """The share of contexts of `known` words, in order and without PADs, that have two different words behind them."""
    kept = [t for t in x if t != PAD]
    behind: dict[tuple[int, ...], set[int]] = {}
    contexts = [tuple(kept[i - known : i]) for i in range(known, len(kept))]
    for context, word in zip(contexts, kept[known:], strict=True):
        behind.setdefault(context, set()).add(word)
    return float(np.mean([len(behind[context]) > 1 for context in contexts])) if contexts else 0.0


TRUTHS = (
    Truth(
        "words-in-order",
        Kind.UNSAID,
        TOKEN_SELECTION,
        "Proof of Theorem D.2",
        "Below the theorem the model finds “the same …-gram (excluding empty tokens)”, in order. The proof drops the "
        "order: the model finds the place whose partial sequence and the present one “have the same elements that are "
        "not ⟨PAD⟩” (“common elements (including duplicates)”); the probability that two have is bounded by a count "
        "of elements, positions and indices.",
        "The match has to be the only one. Windows that hold n words in spite of PADs hold the n words of their "
        "neighbours too, in whatever order, so almost every step has several matches with different words behind "
        "them. Which pairs of windows the bound counts is not legible in the text we read. The theorem's assumption is "
        "not legible either; a larger vocabulary changes nothing.",
        "The last n words in their order repeat as rarely as n-grams. `selective-copy` counts words and needs no "
        "match.",
        words_in_order,
    ),
)
