"""The lemma of latches of one flag: on values, on a checkpoint, and where it must not be taken."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from constructions.automata.automaton import Automaton, table_json
from constructions.automata.languages import NAMED
from tests.verify.checker.checkpoints import write
from tests.verify.checker.values import Sequence
from verify.checker.check import check, prove
from verify.checker.files import read
from verify.checker.formats import EXACT
from verify.checker.values.bent import relu, single
from verify.checker.values.bounds import bounds, values_of
from verify.checker.values.language import EVERY_LENGTH, Edge, Language, parse
from verify.checker.values.latches import joined, latch
from verify.checker.values.values import Value, World, combine, later, of_letters

ONE = Fraction(1)
NUMBER, FLAG, OTHER = (of_letters(np.array(row, dtype=float)) for row in ([0, 1, 2, 3], [0, 1, 0, 1], [1, 0, 0, 1]))


@pytest.fixture
def world() -> World:
    letters = np.ones(4, dtype=bool)
    return World(Language(4, "any", (Edge("any", "any", letters, False, True),), EVERY_LENGTH), EXACT)


def hat(world: World, flags: tuple[Value, Value, Value]) -> Value:
    """[the number is 2], as three ramps, each latched under a flag of its own."""
    number = single_root(world)
    ramps = [relu(world, combine([(ONE, number)], Fraction(-k))) for k in (1, 2, 3)]
    latches = [(w, latch(world, ramp, flag)) for w, ramp, flag in zip((1, -2, 1), ramps, flags, strict=True)]
    return combine([(Fraction(w), held) for w, held in latches])


def single_root(world: World) -> Value:
    """A number that is no function of one letter."""
    held = latch(world, NUMBER, OTHER)
    return combine([(ONE, held), (ONE, NUMBER)])


def test_ramps_of_one_flag_have_the_bounds_of_the_table(world: World) -> None:
    together, apart = hat(world, (FLAG,) * 3), hat(world, (FLAG, FLAG, OTHER))
    assert bounds(world, joined(world, together)) == (0, 1) == values_of(world, joined(world, together))
    assert bounds(world, joined(world, apart)) != (0, 1)


def test_so_have_those_that_are_seen_some_positions_back(world: World) -> None:
    back = combine([(ONE, later(world, hat(world, (FLAG,) * 3), 2))], Fraction(3))
    mixed = combine([(ONE, later(world, hat(world, (FLAG,) * 3), k)) for k in (1, 2)])
    assert bounds(world, joined(world, back)) == (3, 4) and len(joined(world, mixed).terms) == 2
    for word in ([3, 1, 2, 0, 1, 3], [0, 2, 1, 3, 2, 2]):
        sequence = Sequence(world, word)
        for t in range(1, 7):
            for value in (back, mixed):
                assert sequence.value(joined(world, value), t) == sequence.value(value, t)


def test_they_are_one_latch(world: World) -> None:
    together = hat(world, (FLAG,) * 3)
    number = single_root(world)
    table = combine(
        [(w, relu(world, combine([(ONE, number)], Fraction(-k)))) for w, k in ((ONE, 1), (-2 * ONE, 2), (ONE, 3))]
    )
    assert len(together.terms) > 1 and joined(world, together).key == latch(world, table, FLAG).key
    other = combine([(ONE, together), (ONE, NUMBER)])
    assert single(world, other)[0] == single(world, combine([(ONE, latch(world, table, FLAG)), (ONE, NUMBER)]))[0]


def test_the_joined_value_is_the_value(world: World) -> None:
    rng = np.random.default_rng(0)
    value = combine([(ONE, hat(world, (FLAG, FLAG, OTHER))), (3 * ONE, hat(world, (FLAG,) * 3)), (ONE, NUMBER)], ONE)
    same = joined(world, value)
    assert len(same.terms) < len(value.terms)
    for _ in range(50):
        sequence = Sequence(world, rng.integers(4, size=9).tolist())
        for t in range(1, 10):
            assert sequence.value(value, t) == sequence.value(same, t)


def test_every_length_is_null_and_no_bound_holds_it() -> None:
    edges = [{"from": "any", "to": "any", "tokens": [[0, 1]], "distinct": False}]
    language = parse({"language": {"tokens": 2, "start": "any", "edges": edges}, "length": None})
    assert language.length == EVERY_LENGTH
    assert language.total(np.array([0.0, 2.0**-149])) > Fraction(2) ** 300  # what counts is refused by every format


def test_a_checkpoint_is_proved_for_every_length_and_one_that_counts_is_not(tmp_path) -> None:
    built = Automaton(table=table_json(NAMED["tomita-2"].make()), max_length=1000)
    counts = Automaton(table=table_json(NAMED["parity"].make()), max_length=20)
    for name, construction in (("latches", built), ("counts", counts)):
        task = construction.asks()
        directory = write(tmp_path / name, construction.circuit(), "mamba", task=task)
        verdict = check(directory)
        assert verdict.accepted and verdict.task is None
        checkpoint, circuit = read(directory), json.loads((directory / "circuit.json").read_text())
        endless = replace(checkpoint, language=replace(checkpoint.language, length=EVERY_LENGTH))
        verdict = prove(endless, circuit, task)
        assert (verdict.accepted and verdict.task is None) == (name == "latches")
        assert "of every length" in verdict.domain
        assert name == "latches" or "counted without end" in str(verdict.task)


@pytest.mark.parametrize("number", [2**600, 2**512, 2**40])
def test_what_grows_with_the_length_is_no_part_of_a_circuit_of_every_length(tmp_path, number: int) -> None:
    """A circuit that adds relu(position − 2^600) to a score is not the one whose weights lack it: 2^512 only stands for
    the length.
    """
    construction = Automaton(table=table_json(NAMED["tomita-2"].make()), max_length=1000)
    directory = write(tmp_path / "at", construction.circuit(), "mamba")
    checkpoint, circuit = read(directory), json.loads((directory / "circuit.json").read_text())
    streams, output = circuit["streams"], circuit["output"]
    one = lambda entry: {"shape": [1, 1], "rows": [[[0, entry]]]}
    at = len(streams)
    more = [
        {"operation": "Constant", "attributes": {"values": [1]}, "inputs": []},
        {"operation": "Cumsum", "attributes": {}, "inputs": [at]},
        {"operation": "Linear", "attributes": {"matrices": [one(1), one(-number)]}, "inputs": [at + 1, at]},
        {"operation": "Relu", "attributes": {}, "inputs": [at + 2]},
    ]
    scores = json.loads(json.dumps(streams[output]))
    scores["attributes"]["matrices"].append({"shape": [4, 1], "rows": [[], [], [], [[0, 1]]]})
    scores["inputs"].append(at + 3)
    endless = replace(checkpoint, language=replace(checkpoint.language, length=EVERY_LENGTH))
    assert prove(endless, circuit, None).meaning is None
    verdict = prove(endless, {**circuit, "streams": [*streams, *more, scores], "output": at + 4}, None)
    assert "what grows with the length, in a promise without a length" in str(verdict.meaning)
