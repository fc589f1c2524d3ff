"""The lemma of matches: the earlier items most like what stands here decide, whatever else was seen.

Positions are of classes, by what stands there and before: items, each with a context and the letter that is said of
it, and others. At a query the right letter is that of the items seen so far, the present position included, whose
context is most like the query, if all of these say one letter. So some class i of items was seen that is as like as
any and says the right letter; of its likeness no class was seen that says another, and none was seen that is more
like. For each query and each such i the circuit is run in intervals (`hulls.py`): i was seen once at least, those
that are ruled out never, and every other class as often as the language lets it be, or not at all. Every sequence is
one of these cases at every query, and in each the right letter must lead.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from verify.checker.formats import Rejected
from verify.checker.meaning.conditions import place
from verify.checker.meaning.entries import read_matrix
from verify.checker.meaning.told import letter
from verify.checker.tasks.hulls import Counts, Hulls, Seen, Windows
from verify.checker.tasks.readout import NOBODY, least
from verify.checker.tasks.scores import dense
from verify.checker.values.exact import plus, times
from verify.checker.values.language import Edge, Language

_MOST_CASES = 1 << 13
_MOST_STEPS = 1 << 22  # windows times edges
_AT_ONCE = 256
BEFORE = -1  # instead of an edge: the sequence has not begun
Window = tuple[int, ...]
"""What stands at a position (lag 0) and before it, each a number among the sets of `Places`."""


@dataclass(frozen=True, eq=False)
class Places:
    """sets: (sets, letters + 1), as in `Windows`. Each position is of exactly one class: contexts.shape[0] items, then
    others. classes, queries: their windows; contexts, said: (items,), the context and the letter of each item.

    alike: (contexts, queries), how much, the larger the more; negative: not at all. once: nothing is asked where
    several items decide, whatever they say.
    """

    sets: np.ndarray
    classes: list[Window]
    queries: list[Window]
    contexts: np.ndarray
    said: np.ndarray
    alike: np.ndarray
    once: bool


def prove_matches(language: Language, data: dict, places: Places) -> Fraction:
    """The least lead of the right letter at every query of every sequence."""
    if len(places.classes) * len(language.edges) > _MOST_STEPS:
        raise Rejected(f"there are {len(places.classes)} classes of positions and {len(language.edges)} edges")
    paths = Paths(language, places.sets)
    most = np.array([paths.most(window) for window in places.classes], dtype=np.float64)
    asked = [q for q, window in enumerate(places.queries) if paths.most(window)]
    items = np.flatnonzero(most[: len(places.said)])
    pairs = [(q, i) for q in asked for i in items[places.alike[places.contexts[items], q] >= 0].tolist()]
    if len(pairs) > _MOST_CASES:
        raise Rejected(f"there are {len(pairs)} pairs of a query and an item to go through, and {_MOST_CASES} at most")
    used = np.flatnonzero(most)
    classes = Hulls(data, _windows(places.sets, [places.classes[k] for k in used.tolist()]))
    margin = NOBODY
    for start in range(0, len(pairs), _AT_ONCE):
        queries, ones = (np.array(side) for side in zip(*pairs[start : start + _AT_ONCE], strict=True))
        seen = Seen(classes, _counts(places, used, most, queries, ones))
        hulls = Hulls(data, _windows(places.sets, [places.queries[q] for q in queries.tolist()]), seen)
        margin = min(margin, lead(hulls, data, places.said[ones], language.tokens))
    return margin


def _windows(sets: np.ndarray, windows: list[Window]) -> Windows:
    """Windows of several lengths: further back stands anything."""
    at = np.zeros((max(map(len, windows), default=1), len(windows)), dtype=np.int64)
    for case, window in enumerate(windows):
        at[: len(window), case] = window
    return Windows(sets, at)


def _counts(places: Places, used: np.ndarray, most: np.ndarray, queries: np.ndarray, ones: np.ndarray) -> Counts:
    """Where item `ones` was seen, and decides. used: which classes there are; most: how often each of all can be."""

    def counts(classes: np.ndarray, cases: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        numbers, one, asked = used[classes], ones[cases], queries[cases]
        least, top = np.zeros((len(numbers), len(one))), np.repeat(most[numbers][:, None], len(one), axis=1)
        items = numbers[numbers < len(places.said)]  # the first of the classes
        own = places.alike[places.contexts[one], asked]
        like = places.alike[places.contexts[items][:, None], asked[None]]
        same = like == own if places.once else (like == own) & (places.said[items][:, None] != places.said[one][None])
        is_one = items[:, None] == one[None]
        top[: len(items)][(like > own) | same] = 0.0
        least[: len(items)][is_one] = 1.0
        top[: len(items)][is_one] = 1.0 if places.once else most[np.broadcast_to(one, is_one.shape)[is_one]]
        return least, top

    return counts


def lead(hulls: Hulls, data: dict, right: np.ndarray, letters: int) -> Fraction:
    """How far the right letter of each case is ahead of every other, at least: of a linear map of lanes."""
    output = data["streams"][data["output"]]
    if output["operation"] not in ("Linear", "Emit"):
        raise Rejected(f"the scores are the operation {output['operation']}, and the proof reads linear readouts")
    found = NOBODY
    for answer in np.unique(right).tolist():
        cases, total = np.flatnonzero(right == answer), np.zeros((letters, 1))
        for data_, k in zip(output["attributes"]["matrices"], output["inputs"], strict=True):
            head, lanes = dense(read_matrix(data_), letters), hulls.value(k).take(slice(None), cases)
            if head.shape[1] != len(lanes.lo):
                raise Rejected("a matrix of the readout has another width than what it reads")
            away = plus(head[answer][None], -head)
            total = plus(total, plus(times(np.maximum(away, 0.0), lanes.lo), times(np.minimum(away, 0.0), lanes.hi)))
        leads = np.delete(total, answer, axis=0)
        margin = least(leads)
        if margin <= 0:
            raise Rejected(_short(data, answer, int(leads.min(axis=1).argmin()), margin))
        found = min(found, margin)
    return found


def _short(data: dict, answer: int, other: int, margin: Fraction) -> str:
    """Which score is not shown to lead, over which, what was read for it, and what may make it provable."""
    other += other >= answer  # of the letters, without the answer
    reads = data["streams"][data["output"]]["inputs"]
    return (
        f"{letter(data, answer)} is only shown to lead {letter(data, other)} by {float(margin):g}; it reads "
        f"{', '.join(place(data['streams'], k) for k in reads)}; a larger weight of the keys that are compared, or "
        "fewer earlier items, may make it provable"
    )


class Paths:
    """How often what a window says can be, by the paths of the language."""

    def __init__(self, language: Language, sets: np.ndarray):
        self.language, self.sets = language, sets
        letters = np.stack([edge.letters for edge in language.edges])
        self._common = sets[:, :-1].astype(np.int64) @ letters.T.astype(np.int64)  # letters of each set on each edge
        starts: dict[str, list[int]] = {}
        for f, edge in enumerate(language.edges):
            starts.setdefault(edge.source, []).append(f)
        self._first = starts.get(language.start, [])
        self._after = [starts.get(edge.target, []) for edge in language.edges]

    def most(self, window: Window) -> int:
        """At how many positions of a sequence the window can be, at most; 0 where it cannot be."""
        edges, length, last = self.language.edges, self.language.length, len(window) - 1
        bound = length - last * (not self.sets[window[last], -1])
        for lag, on in enumerate(self._on_paths(window)):
            if not on:
                return 0
            if BEFORE not in on:
                bound = min(bound, sum(self._taken(edges[e], int(self._common[window[lag], e])) for e in on))
        return max(bound, 0)

    def _taken(self, edge: Edge, letters: int) -> int:
        """How often an edge can be taken with one of so many letters, at most."""
        if not edge.repeats:
            return 1
        return letters if edge.distinct else self.language.length

    def _on_paths(self, window: Window) -> list[set[int]]:
        """For each lag the edges, or `BEFORE`, on a path that takes a letter of each set."""
        found = [{e for e in range(len(self._after)) if self._common[k, e]} for k in window]
        for k, edges in zip(window[1:], found[1:], strict=True):
            edges |= {BEFORE} if self.sets[k, -1] else set()
        for lag in range(len(window) - 2, -1, -1):
            found[lag] &= self._following(found[lag + 1])
        for lag in range(1, len(window)):
            found[lag] = {e for e in found[lag] if found[lag - 1] & self._following({e})}
        return found

    def _following(self, before: set[int]) -> set[int]:
        return {f for e in before for f in ({*self._first, BEFORE} if e == BEFORE else self._after[e])}
