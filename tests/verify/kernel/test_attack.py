"""Changed weights, edited claims and a search that is out of order: the kernel accepts nothing that is not so."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import numpy as np

from tests.spread import some
from tests.verify.kernel.attack import accepted, attack, found, found_broken
from tests.verify.kernel.broken import places, spoiled
from verify.prover.search import Search

ROUNDS = some([1, 0], 0.5)


def test_nothing_proves_a_changed_weight(targets):
    tried: Counter = Counter()
    for target in targets:
        for number in ROUNDS:
            tally, wrong = attack(target, random.Random(f"{target.name} {number}"), reach=0)
            assert not wrong
            tried += tally
    assert tried["changed weights"] == len(ROUNDS) * len(targets)
    for kind in ("old claims", "forged claims", "a fresh search", "a broken search"):
        assert tried[f"changed weights: {kind}, refused"]
    assert tried["edited claims of unchanged weights: refused"] > 10 * len(ROUNDS)


def test_a_key_and_a_value_may_not_exchange_their_names(targets):
    """Whichever two an attack draws, of keep-nth any two may."""
    checkpoint, other = targets[0].checkpoint, {"k0": "v0", "v0": "k0"}
    names = [other.get(name, name) for name in checkpoint.circuit["alphabet"]]
    assert not accepted(replace(checkpoint, circuit=checkpoint.circuit | {"alphabet": names}), targets[0].claims)


def test_a_short_search_proves_the_unchanged_weights(targets):
    """So a fresh search that finds nothing says something of the changed weight."""
    for target in targets:
        assert found(target.checkpoint) is not None


def test_broken_searches_are_broken(targets):
    """Some of them find nothing of right weights any more, and some still do: of both kinds there are many."""
    rng, lost, places_seen = random.Random(5), 0, set()
    rounds = some(range(40), 0.03)
    for _ in rounds:
        claims, what = found_broken(targets[0].checkpoint, rng, reach=0)
        lost += claims is None
        places_seen.add(what)
    assert 0.12 * len(rounds) < lost < 0.88 * len(rounds) and len(places_seen) > 0.3 * len(rounds)


def test_every_function_of_the_search_is_among_those_that_break():
    names = {name for _, name in places()}
    assert {name for name, what in vars(Search).items() if callable(what)} - {"__init__"} <= names


def test_what_is_spoiled_is_something_else():
    rng = random.Random(1)
    for value in (True, 3, "ab", {1, 2}, [1, 2, 3], (1, 2), np.arange(3), None):
        others = [spoiled(value, rng) for _ in range(20)]
        assert any(not np.array_equal(other, value) for other in others)
