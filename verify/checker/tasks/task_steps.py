"""Tasks of one integer that the sequence counts: positions and runs (lemma of one integer), and a letter kept at a
position.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from verify.checker.formats import Rejected
from verify.checker.meaning.circuit import Reader
from verify.checker.meaning.conditions import Lanes
from verify.checker.tasks.readout import NOBODY, Heard, Readout, least
from verify.checker.tasks.scores import Scores, readout_parts
from verify.checker.values.exact import plus, times
from verify.checker.values.tables import Ramp
from verify.checker.values.values import TOKEN, Root, Value, World
from verify.checker.values.windows import exact_float, is_window, letters_of, reach

_MOST_CASES = 1 << 26


@dataclass(frozen=True, eq=False)
class Counted:
    """Lanes as functions of one integer n ≥ low that the sequence counts: linear between
    neighbours of `breakpoints`."""

    lanes: Lanes
    scale: int
    breakpoints: list[int]

    @classmethod
    def of(cls, world: World, lanes: Lanes, scale_of: Callable[[Root], int]) -> Counted:
        """scale_of: x / n for a root x that is proved to be a multiple of n; Rejected for others."""
        keys = {key for lane in lanes for key in lane.terms}
        if len(keys) > 1 or any(root == TOKEN or lag for root, lag in keys):
            raise Rejected("the readout reads more than one count of the present position")
        scale = scale_of(world.roots[next(iter(keys))[0]]) if keys else 1
        found = {x // scale + d for lane in lanes for c in lane.terms.values() for x in _ramp(c).xs for d in (0, 1)}
        return cls(lanes, scale, sorted(found))

    def at(self, ns: list[int]) -> np.ndarray:
        """The lanes at these n: (lanes, n)."""
        rows = [[v.const + sum(_ramp(c).at(self.scale * n) for c in v.terms.values()) for n in ns] for v in self.lanes]
        return np.array([[exact_float(x) for x in row] for row in rows]).reshape(len(rows), len(ns))

    def points(self, low: int, told: int, high: int) -> list[int]:
        """All n from low to told, and beyond it up to high the ends of all pieces."""
        ends = [n for n in self.breakpoints if told < n < high]
        return sorted({*range(low, min(told, high) + 1), *ends, high})


def _ramp(component: object) -> Ramp:
    if not isinstance(component, Ramp):
        raise Rejected("the readout reads letters beside a count")
    return component


def _position(root: Root) -> int:
    """A running sum of a constant, in units of that constant: the position times a number."""
    if root.kind != "sum" or not root.parts[1].constant or root.parts[1].const <= 0:
        raise Rejected(f"the readout reads a {root.kind} where the position is needed")
    return _whole(root.parts[1].const / root.parts[0])


def _whole(x: Fraction) -> int:
    if x.denominator != 1 or x <= 0:
        raise Rejected("what is counted has no positive whole steps")
    return int(x)


def prove_clock(reader: Reader, times_: np.ndarray) -> Fraction:
    """`task.Clock`: from position len(times) on the last one is right."""
    return _integer(reader, _position, times_, 1)


def prove_count(reader: Reader, of: np.ndarray, since: np.ndarray, answers: np.ndarray) -> Fraction:
    """How many letters of one set there were since the last letter of another: a count that these start again, or a sum
    over the whole text where there are none of these.
    """
    world = reader.world
    used = world.language.used
    counts, starts = np.isin(used, of), np.isin(used, since)
    if not counts.any():
        raise Rejected("no sequence of the language holds a letter that counts")

    def steps(root: Root) -> int:
        if root.kind not in ("count", "sum") or any(not is_window(world, v) or reach(world, v) for v in root.parts[1:]):
            raise Rejected(f"the readout reads a {root.kind} where a count of present letters is needed")
        unit, driven = root.parts[0], _by_letter(world, root.parts[1])[used]
        reset = _by_letter(world, root.parts[2])[used] if root.kind == "count" else np.zeros(len(used))
        if driven[~counts].any() or (driven[counts] != driven[counts][0]).any():
            raise Rejected("the count grows at other letters than those that it is of, or by different steps")
        if not (reset[starts] > 0).all() or reset[~starts].any():
            raise Rejected("the count does not start again at exactly the letters that the task names")
        return _whole(Fraction(float(driven[counts][0])) / unit)

    return _integer(reader, steps, answers, 0)


def _by_letter(world: World, value: Value) -> np.ndarray:
    part = letters_of(world, value, None)
    return part.table[part.axes[0]] if part.axes else np.full(world.language.tokens, float(part.table))


def _integer(reader: Reader, scale_of: Callable[[Root], int], answers: np.ndarray, low: int) -> Fraction:
    """The lemma of one integer: the score of the right letter leads at every n up to the last answer, and at the
    ends of all pieces.
    """
    world = reader.world
    parts = [(matrix, reader.lanes(k)) for matrix, k in readout_parts(reader)]
    lanes = [v for _, held in parts for v in held]
    counted = Counted.of(world, lanes, scale_of)
    told, high = low + len(answers) - 1, max(world.language.length, low)
    points = counted.points(low, told, high)
    head = np.concatenate([matrix for matrix, _ in parts], axis=1)
    if head.shape[1] != len(lanes) or len(head) * len(points) > _MOST_CASES:
        raise Rejected(f"a readout of {head.shape[1]} lanes at {len(points)} counts")
    scores = times(head, counted.at(points))
    right = answers[np.minimum(np.array(points) - low, len(answers) - 1)]
    lead = plus(scores[right, np.arange(len(points))][None], -scores)
    lead[right, np.arange(len(points))] = np.inf
    return least(lead)


def prove_keep(reader: Reader, n: int) -> Fraction:
    """`task.Keep`: a latch that is open up to n exactly holds the letter of n from then on (lemma of kept letters)."""
    world, scores = reader.world, Scores.of(reader, "Latch")
    if n > world.language.length:
        raise Rejected(f"the task keeps position {n}, and sequences have at most {world.language.length}")
    value, when = (reader.lanes(k) for k in reader.inputs(scores.state))
    if len(when) != 1 or any(not is_window(world, v) or reach(world, v) for v in value):
        raise Rejected("what is kept is no function of the present letter")
    open_ = Counted.of(world, when, _position)
    high = world.language.length
    points = sorted({*open_.points(1, 1, high), n, min(n + 1, high)})  # beyond the promise nothing is known of the flag
    if (open_.at(points)[0] != np.array([p <= n for p in points])).any():
        raise Rejected(f"the latch is not open exactly up to position {n}")
    letters = world.language.used
    codes = np.stack([_by_letter(world, v)[letters] for v in value], axis=1)
    margin = NOBODY
    for own, _ in scores.own(np.arange(world.language.tokens)):
        margin = min(margin, Readout(scores.head, own, letters, codes).margin(Heard(1.0, 1.0)))
    return margin
