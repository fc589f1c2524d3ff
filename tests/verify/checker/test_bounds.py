"""An attack on every bound: what the checker believes of a number holds on sequences of the language, number by number.

The numbers are all roots that a proof meets, of the weights and of the circuit as written, at the least and largest
value, among the values, and at the edges that a path may stand on; and the scores, as the weight of rules bounds them.
"""

from __future__ import annotations

import json
import random
from fractions import Fraction
from itertools import product as choices

import numpy as np
import pytest

from constructions.registry import CONSTRUCTIONS
from tests.circuits import CASES
from tests.verify.checker.checkpoints import write
from tests.verify.checker.fuzz import walks
from tests.verify.checker.learned import LEARNED
from tests.verify.checker.values import Sequence
from verify.checker.arithmetic import columns, running
from verify.checker.arithmetic.columns import most_held
from verify.checker.arithmetic.memories import read_bound
from verify.checker.arithmetic.model import prove_arithmetic
from verify.checker.arithmetic.norms import level_of
from verify.checker.arithmetic.running import running_sum
from verify.checker.files import read, read_json
from verify.checker.formats import FORMATS, Rejected, decay
from verify.checker.meaning.circuit import Reader
from verify.checker.meaning.compare import _score, compare
from verify.checker.meaning.conditions import ONE
from verify.checker.values.bent import product, relu
from verify.checker.values.bounds import bounds, given, tight, values_of
from verify.checker.values.language import Edge, Language
from verify.checker.values.latches import latch
from verify.checker.values.tables import Table, table_sum
from verify.checker.values.values import Value, World, combine, constant, later, of_letters

CHAINS = [
    ("lcs", {"length": 2, "distinct_letters": 2}),
    ("max-subarray", {"length": 2, "values": 2, "arch": "mamba2"}),
    ("knapsack", {"items": 2, "capacity": 2, "values": 2}),
    ("selective-copy", {"n": 2, "vocab": 2, "length": 6, "arch": "mamba2"}),
    ("copy", {"form": "string", "n": 3, "vocab": 2, "arch": "mamba2"}),
    ("mqar", {"kappa": 3, "vocab": 6, "write": "first"}),
    ("mqar", {"kappa": 3, "vocab": 6, "arch": "mamba2"}),
    ("phonebook", {"names": 2, "entries": 2, "digits": 2}),
    ("phonebook", {"names": 3, "entries": 2, "digits": 2, "arch": "mamba2"}),
    ("lis", {"length": 3, "values": 3, "arch": "mamba2"}),
    ("shortest-path", {"nodes": 3, "lengths": 2, "arch": "mamba2"}),
    ("in-context-recall", {"vocab": 4, "length": 8, "max_length": 16}),
]
CIRCUITS = ["arithmetic_on_counters", "first_rule_that_holds", "first_and_last_latch", "mqar_code_keys"]
SINCE = ["since-back", "since-reached", "and-stored", "mass-of-sums"]


def _made(name: str, params: dict):
    if params or name in CONSTRUCTIONS:
        construction = CONSTRUCTIONS[name](**params)
        return construction.circuit(), construction.target
    if name in LEARNED:
        return LEARNED[name](), "mamba2"
    return next(c for c in CASES if c.name == name).build(), "mamba"


@pytest.mark.parametrize("name, params", [*CHAINS, *((name, {}) for name in CIRCUITS + SINCE)], ids=str)
def test_every_bound_holds_on_sampled_sequences(name, params, tmp_path):
    directory = write(tmp_path / "c", *_made(name, params))
    model, circuit = prove_arithmetic(read(directory)), read_json(directory / "circuit.json")
    world = model.world
    compare(world, circuit, model.lanes, model.head)
    reader, stream = Reader(world, circuit), circuit["streams"][circuit["output"]]
    scores = reader.output(stream["inputs"][0] if stream["operation"] == "Decide" else circuit["output"])
    asked = [_score(scores, row) for row in range(min(scores[0][0].shape[0], 12))]
    bounded = [tight(world, value) for value in asked]
    promise = json.loads((directory / "construction.json").read_text())["promise"]
    language, rng = promise["language"] | {"length": promise["length"]}, random.Random(name)
    for word in (walks(language, 1, 24, rng)[0].tolist() for _ in range(4)):
        sequence = Sequence(world, word)
        for t in range(1, len(word) + 1):
            for root in world.roots:
                x = sequence.root(root.id, t)
                assert x.denominator == 1 and root.lo <= x <= root.hi, (root.kind, root.id, x, root.lo, root.hi)
                assert root.values is None or x in root.values, (root.kind, root.id, x)
                here = [e.letters[word[t - 1]] for e in world.language.edges]
                assert any(lo <= x <= hi for lo, hi in root.along.T[here]), (root.kind, root.id, x)
            for value, (lo, hi) in zip(asked, bounded, strict=True):
                assert lo <= sequence.value(value, t) <= hi


def test_what_looks_back_is_nothing_before_the_start():
    everything = Edge("any", "any", np.ones(3, dtype=bool), False, True)
    world = World(Language(3, "any", (everything,), 9), FORMATS["float32"])
    seen = running_sum(world, of_letters(np.array([1.0, 0.0, 0.0])), "a sum")
    none = combine([(ONE, relu(world, combine([(-ONE, seen)], ONE)))])
    for back in (none, combine([(-ONE, none)], ONE)):
        value = later(world, back, 2)
        assert bounds(world, value) == (0, 1) and values_of(world, value) == (0, 1)
    mixed = combine([(ONE, later(world, none, 1)), (-ONE, later(world, none, 2))])
    assert bounds(world, mixed) == (-1, 1) and set(values_of(world, mixed)) == {-1, 0, 1}


@pytest.mark.parametrize("seed", range(20))
def test_gates_that_are_latches_of_one_flag_are_of_one_letter(seed):
    """Of products behind sums of such latches only those count that one letter opens, or that are open before."""
    rng = random.Random(seed)
    world = World(Language(3, "any", (Edge("any", "any", np.ones(3, dtype=bool), False, True),), 5), FORMATS["float32"])
    drawn = lambda: of_letters(np.array([rng.randrange(-1, 3) for _ in range(3)], float))
    flag = of_letters(np.array([1.0, 1.0, 0.0]))
    kept = [latch(world, drawn(), flag) for _ in range(4)]
    bent = [relu(world, combine([(ONE, a), (ONE, b)])) for a, b in zip(kept, kept[1:], strict=False)]
    gates = [*kept, *bent, combine([(-ONE, kept[0])], ONE)]
    counts = [running_sum(world, of_letters(np.eye(3)[i]), "a count") for i in range(3)]
    total = combine([(ONE, product(world, rng.choice(counts), gate)) for gate in rng.sample(gates, 3)])
    (lo, hi), read = bounds(world, total), read_bound(world, gates, [ONE] * len(gates))
    for word in choices(range(3), repeat=5):
        sequence = Sequence(world, list(word))
        assert all(lo <= sequence.value(total, t) <= hi for t in range(1, 6))
        assert all(sum(abs(sequence.value(gate, t)) for gate in gates) <= read for t in range(1, 6))


def test_exclusive_gates_that_are_latches_count_once():
    world = World(Language(3, "any", (Edge("any", "any", np.ones(3, dtype=bool), False, True),), 7), FORMATS["float32"])
    count, flag = running_sum(world, constant(1), "the position"), of_letters(np.array([1.0, 1.0, 0.0]))
    a, b = (latch(world, of_letters(np.eye(3)[i]), flag) for i in range(2))
    both = combine([(ONE, product(world, count, gate)) for gate in (a, b)])
    assert bounds(world, both) == (0, 7)
    assert read_bound(world, [a, combine([(ONE, b), (ONE, b)])], [ONE, ONE]) < 2 + ONE / 1024
    others = [latch(world, of_letters(np.eye(3)[i]), of_letters(np.eye(3)[i])) for i in range(2)]
    assert bounds(world, combine([(ONE, product(world, count, gate)) for gate in others])) == (0, 14)


def _of_a_count(world: World, count: Value, rng: random.Random) -> Value:
    """Some function ≥ 0 of a count, mostly 0 and with a few breakpoints."""
    at = sorted(rng.sample(range(1, 24), 3))
    tent = [relu(world, combine([(ONE, count)], Fraction(-x))) for x in (at[0] - 1, *at, at[2] + 1)]
    return relu(world, combine([(Fraction(rng.randrange(-3, 4)), t) for t in tent], Fraction(rng.randrange(-2, 2))))


def _any_letter(length: int) -> World:
    return World(
        Language(3, "any", (Edge("any", "any", np.ones(3, dtype=bool), False, True),), length), FORMATS["float32"]
    )


@pytest.mark.parametrize("length", [24, 4096, 1 << 20])
def test_a_column_of_a_count_holds_one_write_at_any_length(length):
    world = _any_letter(length)
    counted, others = of_letters(np.array([1.0, 0.0, 0.0])), of_letters(np.array([1.0, 1.0, 0.0]))
    count = running_sum(world, counted, "a count")
    above = [relu(world, combine([(ONE, count)], Fraction(-x))) for x in (6, 7, 8)]
    seventh = combine(zip((ONE, -2 * ONE, ONE), above, strict=True))
    assert most_held(world, seventh, counted) == 1
    assert most_held(world, seventh, others) == length  # written while the count stands still


@pytest.mark.parametrize("halved", [0, 3, 256])
@pytest.mark.parametrize("seed", range(10))
def test_what_counts_leave_is_at_least_what_is_added_up(seed, halved, monkeypatch):
    monkeypatch.setattr(columns, "_MOST_HALVED", halved)
    rng, world = random.Random(seed), _any_letter(24)
    counts = [running_sum(world, of_letters(np.eye(3)[i]), "a count") for i in range(2)]
    a, b, c = (_of_a_count(world, rng.choice(counts), rng) for _ in range(3))
    both = relu(world, combine([(ONE, a), (ONE, b), (-ONE, c)]))
    roots = tuple(world.roots[next(iter(count.ramps))[0]] for count in counts)
    places = [{r.id: (x, x) for r, x in zip(roots, at, strict=True)} for at in choices(range(25), repeat=2)]
    true = sum(given(world, both, known)[1] * given(world, a, known)[1] for known in places)
    at_once = 25 * 25 * bounds(world, both)[1] * bounds(world, a)[1]
    found = columns._over_all(world, both, a, roots)
    assert true <= found <= at_once
    assert halved or found == at_once


def test_decays_that_float32_rounds_to_few_digits_are_bounded():
    """float32 takes exp(-103.9) for 2^-149, nearly twice what it is."""
    for a_log in (-103.97, -103.9, -102.85, -100.3, -88.0, -87.5, -86.0, -3.0, 4.5):
        low, high = decay(a_log)
        assert low <= Fraction(float(np.exp(np.float32(a_log)))) <= high


def test_a_count_that_outgrows_the_format_is_bounded_whatever_the_order(monkeypatch):
    """float32 takes 2^24 and then 2^22 parts of 3, one after the other, for 2^25: more than 9/8 of what it is. Where
    all positions count it takes them for 9/8 at most.
    """
    truth = (1 << 24) + 3 * (1 << 22)
    edge = Edge("", "", np.ones(1, dtype=bool), False, True)
    monkeypatch.setattr(running, "_added_up", lambda world, shape: Fraction(truth))
    for length, most in ((truth, truth * 9 // 8), (1 << 60, truth * 32 // 15 + 1)):
        world = World(Language(1, "", (edge,), length), FORMATS["float32"])
        count = running_sum(world, constant(1), "here")
        assert bounds(world, count)[1] == most and count.upto == 1 << 24
    assert truth * 9 // 8 < 1 << 25 < most


def test_a_table_that_is_added_to_nothing_is_that_table():
    """Most sums of windows are of this kind: made anew they were a third of the proof of copying by n-grams."""
    table = Table(np.array([0.0, 1.0, 2.0]), (Fraction(1),))
    assert table_sum([(Fraction(1), table)]) is table
    assert table_sum([(Fraction(1), table)], Fraction(1)).key == table.affine(Fraction(1), Fraction(1)).key != table.key
    assert table_sum([(Fraction(2), table)]).start == (2,)


@pytest.mark.parametrize(("level", "fits"), [(2**62, True), (2**63, False)])
def test_a_sum_of_squares_that_rounds_beyond_2_to_the_127_is_refused(level, fits):
    """Two lanes of 2^62 add up to 2^125, and what hides beside them changes nothing; two of 2^63 to 2^127 already."""
    world = World(Language(3, "any", (Edge("any", "any", np.ones(3, dtype=bool), False, True),), 7), FORMATS["float32"])
    lanes = [constant(level), constant(level)]
    if fits:
        assert level_of(world, lanes, 1e-5, "a norm") == level
        return
    with pytest.raises(Rejected, match="its sum of squares can overflow"):
        level_of(world, lanes, 1e-5, "a norm")
