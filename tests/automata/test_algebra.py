"""The algebra against its definitions, on random small automata."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from compiler.automata.cascade import HOLD, Cascade, Level, disagreement
from compiler.automata.codes import code_of
from compiler.automata.groups import groups, named
from compiler.automata.holonomy import cascade_of
from compiler.automata.images import CapMet, images
from compiler.automata.monoid import transition_monoid
from compiler.automata.table import NO, YES, Table, minimal, table_of
from constructions.automata.languages import NAMED
from tests.automata.tables import group_orders, maps, random_table
from verify.tasks.recognition import Recognition

SMALL = [random_table(seed, 2 + seed % 5, "ab" if seed % 3 else "abc") for seed in range(120)]
TINY = [random_table(seed, 2 + seed % 3) for seed in range(60)]


def words(table: Table, longest: int) -> list[str]:
    return ["".join(w) for n in range(longest + 1) for w in product(table.letters, repeat=n)]


@pytest.mark.parametrize("table", SMALL[:40], ids=range(40))
def test_the_minimal_table_answers_the_same_with_the_fewest_states(table: Table) -> None:
    least = minimal(table)
    assert all(table.run(word) == least.run(word) for word in words(table, 5))
    longest = {w: tuple(table.run(w + more) for more in words(table, 5)) for w in words(table, 4)}
    assert least.states >= len(set(longest.values()))
    behind = {tuple(replace(least, start=s).run(w) for w in words(table, 6)) for s in range(least.states)}
    assert len(behind) == least.states  # no two of its states are one


@pytest.mark.parametrize("table", SMALL, ids=range(len(SMALL)))
def test_the_monoid_is_all_maps_and_circles_decide(table: Table) -> None:
    least = minimal(table)
    monoid, found = transition_monoid(least), images(least)
    assert monoid.whole and set(map(tuple, monoid.elements.tolist())) == maps(least)
    orders = group_orders(least) if monoid.size < 200 else None
    if orders is not None:
        assert {group.order for group in groups(found, monoid)} == orders
        assert monoid.aperiodic == (not orders)
    assert monoid.aperiodic == (not found.permutations)


@pytest.mark.parametrize("table", SMALL + TINY, ids=range(len(SMALL) + len(TINY)))
def test_a_cascade_follows_every_automaton_without_groups(table: Table) -> None:
    least = minimal(table)
    found = images(least)
    if found.permutations:
        with pytest.raises(ValueError, match="has a group"):
            cascade_of(found, least.outputs)
        return
    cascade = cascade_of(found, least.outputs)
    for word in words(table, 5)[1:]:
        held = cascade.start
        for letter in word[:-1]:
            held = cascade.step(held, table.letters.index(letter))
        assert cascade.output(held, table.letters.index(word[-1])) == table.run(word)


def test_the_check_of_a_cascade_finds_what_is_wrong() -> None:
    table = minimal(NAMED["tomita-4"].make())
    cascade = cascade_of(images(table), table.outputs)
    assert disagreement(cascade, table, table.outputs) is None
    for i, level in enumerate(cascade.levels):
        for key, value in level.sets.items():
            other = 0 if value == HOLD else HOLD
            levels = (*cascade.levels[:i], Level(level.size, level.reads, {**level.sets, key: other}))
            changed = Cascade((*levels, *cascade.levels[i + 1 :]), cascade.reads, cascade.outputs)
            if disagreement(changed, table, table.outputs) is None:  # an entry that may be either
                assert _same(changed, table)
    key = next(iter(cascade.outputs))
    flipped = {**cascade.outputs, key: NO if cascade.outputs[key] == YES else YES}
    assert disagreement(Cascade(cascade.levels, cascade.reads, flipped), table, table.outputs) is not None


def _same(cascade: Cascade, table: Table) -> bool:
    for word in words(table, 8)[1:]:
        held = cascade.start
        for letter in word[:-1]:
            held = cascade.step(held, table.letters.index(letter))
        if cascade.output(held, table.letters.index(word[-1])) != table.run(word):
            return False
    return True


@pytest.mark.parametrize("table", SMALL[:60], ids=range(60))
def test_codes_tell_apart_what_a_table_tells_apart(table: Table) -> None:
    least = minimal(table)
    found = images(least)
    if found.permutations:
        return
    cascade = cascade_of(found, least.outputs)
    for level in (*cascade.levels, Level(0, cascade.reads, cascade.outputs)):
        code = code_of(level.sets, [cascade.levels[j].size for j in level.reads], len(table.letters))
        for key, value in level.sets.items():
            number = key[-1] + len(table.letters) * sum(w * c for w, c in zip(code.weights, key[:-1], strict=True))
            assert code.entries[number] == value and number < code.size


def test_groups_have_their_names() -> None:
    turn = lambda *circle: tuple(circle)
    assert named([turn(1, 0)]).name == "C_2"
    assert named([turn(1, 2, 0, 3, 4), turn(0, 1, 2, 4, 3)]).name == "C_6"
    assert named([turn(1, 0, 2, 3), turn(0, 1, 3, 2)]).name == "C_2×C_2"
    assert named([turn(1, 2, 3, 0), turn(3, 2, 1, 0)]).name == "D_4"
    expected = {"s3": ("S_3", True), "s4": ("S_4", True), "a5": ("A_5", False), "s5": ("S_5", False)}
    for name, (group, solvable) in expected.items():
        least = minimal(NAMED[name].make())
        (found,) = groups(images(least), transition_monoid(least))
        assert (found.name, found.solvable) == (group, solvable)


def test_no_more_maps_are_made_at_once_than_are_kept(monkeypatch) -> None:
    """Of 12 states and 60 letters, whose words make far more than 500 maps: not 60 for each of a layer together."""
    many, made = random_table(3, 12, "".join(chr(0x4E00 + i) for i in range(60))), []
    joined = np.concatenate
    monkeypatch.setattr(np, "concatenate", lambda parts: made.append(sum(map(len, parts))) or joined(parts))
    monoid = transition_monoid(many, most=500)
    assert not monoid.whole and monoid.size == 500 and max(made) <= 2 * 500
    behind = {tuple(map(int, row)) for row in monoid.elements}
    letters = [tuple(row[i] for row in many.following) for i in range(60)]
    assert len(behind) == 500 and {tuple(range(12)), *letters} <= behind


def test_one_state_and_one_letter_are_said_as_one() -> None:
    one, two = Recognition(((0,),), 0, (0,), 1), Recognition(((0, 1), (0, 0)), 0, (0, 0), 9)
    assert one.describe() == "a finite automaton of 1 state, sequences of 1 letter, alphabet of 1"
    assert two.describe() == "a finite automaton of 2 states, sequences of 9 letters, alphabet of 2"


def test_caps_are_sentences() -> None:
    wide = minimal(random_table(1, 40, "abcd"))
    monoid = transition_monoid(wide, most=500)
    assert monoid.size == 500 and not monoid.whole
    with pytest.raises(CapMet, match="more than 50 sets of its"):
        images(wide, most=50)


@pytest.mark.parametrize(
    "transitions, start, outputs, said",
    [
        ({"p": {"a": "p", "b": "p"}, "q": {"a": "p"}}, "p", {"p": YES, "q": NO}, "not total: state 'q' has no tr"),
        ({"p": {"a": "r"}}, "p", {"p": YES}, "leads to 'r', which has no transitions"),
        ({"p": {"a": "p"}}, "z", {"p": YES}, "'z' is no state of the table"),
        ({}, "z", {}, "has no state"),
        ({"p": {}}, "p", {"p": YES}, "has no letter"),
        ({"p": {"a": "p"}}, "p", {}, "has no class"),
        ({"p": {"a": "p"}}, "p", {"p": YES, "x": NO}, "'x' has an answer and is no state"),
    ],
)
def test_a_table_that_is_none_is_refused_in_a_sentence(transitions, start, outputs, said) -> None:
    with pytest.raises(ValueError, match=said):
        table_of(transitions, start, outputs)
