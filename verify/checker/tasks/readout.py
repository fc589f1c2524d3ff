"""Which letter scores highest, from exact bounds on what is read: the last step of every task's proof (lemma of
readout).

Arrays are float64 and hold exact numbers; an operation that might round is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from verify.checker.formats import Rejected
from verify.checker.values.exact import above, below, plus, product, times, times_number

_MOST_CASES = 1 << 23
_MOST_KINDS = 64
NOBODY = Fraction(1 << 1000)  # the lead over nobody


@dataclass(frozen=True)
class Heard:
    """What is read: a · (the code of the answer) + other codes, low ≤ a ≤ high, the sizes of the others' weights at
    most `others` in sum."""

    low: float
    high: float
    others: float = 0.0

    @cached_property
    def corners(self) -> list[tuple[float, float]]:
        """(a, sum of all weights) where a linear function of the two is least."""
        if not self.others:
            return [(a, a) for a in {self.low, self.high}]
        low, high, others = map(Fraction, (self.low, self.high, self.others))
        return [(a, g) for a in {self.low, self.high} for g in (below(low - others), above(high + others))]


@dataclass(frozen=True, eq=False)
class Readout:
    """score(u) = own(u) + head(u) · x: head (letters, lanes), own (letters,).

    answers: ids of the letters that can be right; codes: (answers, lanes), what is stored for each.
    """

    head: np.ndarray
    own: np.ndarray
    answers: np.ndarray
    codes: np.ndarray

    def margin(self, heard: Heard) -> Fraction:
        """A lower bound on score(answer) − score(any other letter); it proves nothing unless it is positive."""
        if len(self.head) * self.codes.size <= _MOST_CASES:
            return self._all.least(heard)
        return min(self._among_answers(heard), *(part.least(heard) for part in self._against_others))

    def empty(self, blank: int) -> Fraction:
        """The lead of the blank where nothing is read."""
        return least(plus(self.own[blank], -np.delete(self.own, blank)))

    @cached_property
    def centre(self) -> np.ndarray:
        """Between the least and the largest code, lane by lane."""
        return times_number(plus(self.codes.max(axis=0), self.codes.min(axis=0)), 0.5)

    @cached_property
    def reach(self) -> np.ndarray:
        return np.abs(plus(self.codes, -self.centre)).max(axis=0)

    @cached_property
    def _all(self) -> Leads:
        """Every answer against every other letter."""
        places = np.arange(len(self.answers))
        signal = times(self.head, plus(self.codes, -self.centre).T)  # (letters, answers)
        shift = times(self.head, self.centre[:, None])[:, 0]
        noise = np.zeros_like(signal)
        for lane in np.flatnonzero(self.reach):
            away = np.abs(plus(self.head[:, lane][:, None], -self.head[self.answers, lane][None]))
            noise = plus(noise, times_number(away, self.reach[lane]))
        others = np.ones(signal.shape, dtype=bool)
        others[self.answers, places] = False
        parts = [
            plus(signal[self.answers, places][None], -signal),
            plus(shift[self.answers][None], -shift[:, None]),
            plus(self.own[self.answers][None], -self.own[:, None]),
            noise,
        ]
        return Leads.of(*(part[others] for part in parts))

    def _among_answers(self, heard: Heard) -> Fraction:
        """The lemma of readout, lane by lane: the head of an answer is at its end of every lane, on the side of its
        code.

        A lane that holds the same for all answers does not tell them apart; their heads must not differ there.
        """
        sides, heads, tells = plus(self.codes, -self.centre), self.head[self.answers], self.reach > 0
        clear = plus(times_number(np.abs(sides).min(axis=0), heard.low), -times_number(self.reach, heard.others))
        top, bottom = heads.max(axis=0), heads.min(axis=0)
        if (heads != np.where(sides > 0, top, bottom)).any():
            raise Rejected("the head of an answer is not at its end of every lane")
        shift = times(heads, self.centre[:, None])[:, 0]
        for _, g in heard.corners:
            base = plus(self.own[self.answers], times_number(shift, g))
            if (base != base[0]).any():
                raise Rejected("the offsets of two answers differ")
        if len(np.unique(heads, axis=0)) < len(heads):
            raise Rejected("two answers have the same head")
        steps = zip(plus(top, -bottom)[tells], clear[tells], strict=True)
        lanes = min((Fraction(float(s)) * Fraction(float(c)) for s, c in steps), default=NOBODY)
        sums = times(heads, np.ones((heads.shape[1], 1)))
        return lanes if (sums != sums[0]).any() else 2 * lanes  # of equal sums, heads differ in two lanes at least

    @cached_property
    def _against_others(self) -> list[Leads]:
        """Every answer against the letters that are never right, of which those with equal heads and offsets count
        once.
        """
        others = np.delete(np.arange(len(self.head)), self.answers)
        rows = np.unique(np.column_stack([self.head[others], self.own[others]]), axis=0)
        if len(rows) > _MOST_KINDS:
            raise Rejected(f"{len(rows)} kinds of letters are never right, and {_MOST_KINDS} at most are looked at")
        sides, ones = plus(self.codes, -self.centre), np.ones((self.codes.shape[1], 1))
        found = [Leads.of(*np.zeros((4, 0)))]
        for row in rows:
            away = plus(self.head[self.answers], -row[None, :-1])
            signal, noise = times(product(away, sides), ones)[:, 0], times(np.abs(away), self.reach[:, None])[:, 0]
            shift, offset = times(away, self.centre[:, None])[:, 0], plus(self.own[self.answers], -row[-1:])
            found.append(Leads.of(signal, shift, offset, noise))
        return found


@dataclass(frozen=True, eq=False)
class Leads:
    """The lemma of readout: leads a · signal + g · shift + offset, less the noise times the weights of others;
    different ones.
    """

    signal: np.ndarray
    shift: np.ndarray
    offset: np.ndarray
    noise: np.ndarray

    @classmethod
    def of(cls, *parts: np.ndarray) -> Leads:
        rows = np.stack(parts)[:, np.lexsort(parts)]
        return cls(*rows[:, np.append(True, (rows[:, 1:] != rows[:, :-1]).any(axis=0))[: rows.shape[1]]])

    def least(self, heard: Heard) -> Fraction:
        found = NOBODY
        for a, g in heard.corners:
            lead = plus(plus(times_number(self.signal, a), times_number(self.shift, g)), self.offset)
            found = min(found, least(plus(lead, -times_number(self.noise, heard.others))))
        return found


def least(a: np.ndarray) -> Fraction:
    """The least number; NOBODY's if there is none, or all are infinite: a lead of a letter over itself."""
    low = float(a.min(initial=np.inf))
    return NOBODY if low == np.inf else Fraction(low)


def least_lead(table: np.ndarray, right: np.ndarray) -> Fraction:
    """How far the right letters are ahead of all others, at least: table (letters, cases), right the letter of each."""
    cases = np.arange(len(right))
    ahead = plus(table[right, cases][None], -table)
    ahead[right, cases] = np.inf
    return least(ahead)
