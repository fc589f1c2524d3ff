"""Sums of what a count stops: the rule beside all sequences of two letters, and on the checkpoint that needs it."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tests.verify.kernel.attack import Target, accepted, edited, found
from verify.kernel.certificate import prove, replay
from verify.kernel.claims import Refused
from verify.kernel.files import read
from verify.kernel.floats import Unproved
from verify.kernel.language import Edge, Language
from verify.kernel.rules import stopping
from verify.kernel.terms import Poly, Terms, constant
from verify.prover.prove import search

LENGTH = 7
TEXTS = np.array(list(product(range(3), repeat=LENGTH)))


class World:
    """Three letters: `rises` is what each adds to the counter, `level` what is added before the counter's part."""

    def __init__(self, rises: list[int], level: list[int], slope: int = 1, gated: bool = True, lag: int = 0):
        self.terms = Terms(Language(3, 1, (Edge(0, 0, np.ones(3, bool), False),), LENGTH))
        b = self.terms.of_letter([Fraction(x) for x in rises])
        counter = self.terms.sum(b)
        bent = [(Fraction(1), self.terms.of_letter([Fraction(x) for x in level])), (Fraction(1), constant(0))]
        bent.append((Fraction(-slope), self.terms.earlier(counter, lag) if lag else counter))
        m = self.terms.relu(self.terms.add(bent))
        m = self.terms.product(b, m) if gated else m
        ((self.counter, _), (self.atom, self.unit)) = (self._atom(p) for p in (counter, self.terms.sum(m)))
        counts = np.array(rises)[TEXTS].cumsum(axis=1)
        seen = np.pad(counts, ((0, 0), (lag, 0)))[:, :LENGTH]
        written = np.maximum(np.array(level)[TEXTS] - slope * seen, 0)
        self.true = np.abs(written * (np.array(rises)[TEXTS] if gated else 1)).sum(axis=1).max()

    def _atom(self, p: Poly) -> tuple[int, Fraction]:
        """p is a number times an atom; 0 is the atom 0, which is no sum, no times."""
        ((((a, _),), c),) = p.terms.items() or [(((0, 0),), Fraction(0))]
        return a, c

    def most(self, stop: int) -> int:
        (cell,) = stopping(self.terms, 1, self.atom, self.counter, stop).cells
        return abs(self.unit) * max(-cell.lo, cell.hi)


@pytest.mark.parametrize(
    ("rises", "level", "slope", "most"),
    [
        ([0, 1, 1], [9, 2, 3], 1, 3),  # 3 - 1 and 3 - 2
        ([0, 1, 1], [9, 5, 5], 2, 4),  # 5 - 2 and 5 - 4
        ([0, 0, 1], [9, 9, 3], 3, 0),
        ([0, 1, 2], [0, 4, 4], 1, 12),  # twice 3, 2 and 1, though no sequence counts to each of them by twos
    ],
)
def test_what_is_said_is_the_most_at_each_count(rises, level, slope, most):
    """A `stop` beyond the first that does says the same."""
    world = World(rises, level, slope)
    assert world.true <= most == world.most(5) == world.most(7)


def test_no_sequence_adds_up_to_more_than_is_said():
    """Counters that rise, stand and fall, parts that stop and that do not: where the rule takes them, what it says
    holds of all sequences; it takes some and refuses some.
    """
    rng, outcomes = np.random.default_rng(17), []
    for _ in range(400):
        rises, level = rng.choice([-1, 0, 0, 1, 1, 2], 3).tolist(), rng.integers(0, 6, 3).tolist()
        rises[0] = max(rises[0], 1)
        slope, gated, lag = int(rng.integers(1, 4)), bool(rng.random() < 0.7), int(rng.random() < 0.2)
        world = World(rises, level, slope, gated, lag)
        try:
            said = world.most(int(rng.integers(1, 7)))
        except Unproved:
            outcomes.append(False)
            continue
        assert world.true <= said, (rises, level, slope, gated, lag)
        outcomes.append(True)
    assert 30 < sum(outcomes) < 370


@pytest.mark.parametrize(
    ("rises", "gated", "stop"),
    [
        ([0, 1, 1], True, 2),  # at a count of 2 there is 1 still
        ([0, 1, 1], False, 5),  # where nothing is counted, something is added
        ([1, 1, -1], True, 5),  # what falls again stands at a count twice
    ],
)
def test_what_does_not_stop_is_refused(rises, gated, stop):
    with pytest.raises(Unproved, match="does not stop"):
        World(rises, [2, 2, 3], 1, gated).most(stop)


def test_a_counter_that_is_no_running_sum_is_refused():
    world = World([0, 1, 1], [9, 2, 3])
    (((table, _),),) = world.terms.atoms[world.counter].of.terms
    for atom, counter in ((world.atom, table), (table, world.counter), (world.atom, 0)):
        with pytest.raises(Unproved, match="no running sum"):
            stopping(world.terms, 1, atom, counter, 5)


def test_first_writes_on_mamba_2_are_proved_and_changed_weights_are_not(firsts):
    claims = search(firsts)[1]
    assert replay(firsts, claims).task is not None
    kept = [claim for claim in claims if claim[0] != "stops"]
    assert len(kept) < len(claims)
    with pytest.raises((Refused, Unproved)):
        prove(read(firsts), kept)
    for i, claim in enumerate(claims):  # an end that comes too soon
        if claim[0] == "stops":
            with pytest.raises((Refused, Unproved)):
                prove(read(firsts), [*claims[:i], [*claim[:3], 1], *claims[i + 1 :]])
    rng = random.Random(5)
    for other, how in Target(firsts, rng, claims).changes(rng, 6):
        assert not accepted(other, claims) and not accepted(other, edited(claims, rng)) and not found(other), how
