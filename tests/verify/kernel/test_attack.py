"""Changed weights, edited claims and a search that is out of order: the kernel accepts nothing that is not so."""

from __future__ import annotations

import random

from tests.verify.kernel.attack import accepted, attack, found
from verify.kernel.terms import Poly
from verify.prover.search import Search

ROUNDS = 6


def test_no_changed_weight_is_proved(targets):
    rng = random.Random(7)
    for target in targets:
        tally, wrong = attack(target, ROUNDS, rng, reach=0)
        assert not wrong
        assert tally["weights changed"] == ROUNDS and tally["forged"] and tally["edited"] > tally["edited and accepted"]


class Broken(Search):
    """A search whose ideas are lost, swapped, made of other polynomials, or doubled, by chance."""

    rng = random.Random(3)

    def _ideas(self, place, subjects):
        shuffled = list(subjects)
        if self.rng.random() < 0.2:
            self.rng.shuffle(shuffled)
        for claim in super()._ideas(place, shuffled):
            kind = self.rng.randrange(8)
            if kind == 0:
                continue
            if kind == 1:
                yield claim[:-1]
            if kind == 2:
                yield [claim[0], *claim[1:][::-1]]
            yield claim

    def _cut(self, p):
        return super()._cut(p if self.rng.random() < 0.9 else Poly({(): 1}))


def test_a_broken_search_proves_nothing_wrong(targets):
    """Of the right weights some proofs survive; of changed ones none ever."""
    Broken.rng = rng = random.Random(5)
    good = bad = 0
    for target in targets:
        for _ in range(12):
            claims = found(target.checkpoint, Broken, reach=0)
            assert claims is None or accepted(target.checkpoint, claims)
            good += claims is not None
            changed, how = target.changed(rng)
            if changed is not None:
                assert found(changed, Broken, reach=0) is None, how
                bad += 1
    assert good and bad > 10
