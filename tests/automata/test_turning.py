"""Automata with groups: permutations by swaps, smaller sets, and cascades beside their tables."""

from __future__ import annotations

import random
from itertools import combinations, product

import pytest

from compiler.automata import turning as module
from compiler.automata.cascade import Cascade, disagreement
from compiler.automata.holonomy import cascade_of
from compiler.automata.images import CapMet, images
from compiler.automata.permutations import behind, blocks, generated, inverse, swapped, swaps
from compiler.automata.splitting import longest, split
from compiler.automata.table import NO, YES, Table, minimal
from compiler.automata.turning import Machine, turning_cascade, turnings
from constructions.automata.languages import NAMED
from constructions.automata.random_automata import drawn
from tests.automata.groups import ALL_LETTERS, alternating, cyclic, group_table, symmetric
from tests.spread import some


def wrong_answers(cascade: Cascade, table: Table, letters: int, seed: int = 0) -> int:
    """Answers of the swaps alone that are not the table's, on a random word."""
    machine, draw = Machine(cascade), random.Random(seed)
    state, at, wrong = machine.start, table.start, 0
    for _ in range(letters):
        letter = draw.randrange(len(table.letters))
        state, at = machine.step(state, letter), table.following[at][letter]
        wrong += machine.output(state) != table.outputs[at]
    return wrong


@pytest.mark.parametrize("name", ALL_LETTERS)
def test_groups_with_every_element_as_a_letter_need_no_delay(name: str) -> None:
    elements, columns = ALL_LETTERS[name]
    table = minimal(group_table(elements))
    cascade = turning_cascade(images(table), table.outputs)
    kinds = {(t.columns, t.size) for t in turnings(cascade)}
    assert sorted(k for k, _ in kinds) == columns
    assert wrong_answers(cascade, table, 2000) == 0


@pytest.mark.parametrize("name", [name for name in NAMED if name not in ("s5", "d-12", "subsequence-abcd")])
def test_every_named_language_is_followed(name: str) -> None:
    table = minimal(NAMED[name].make())
    cascade = turning_cascade(images(table), table.outputs)
    assert disagreement(cascade, table, table.outputs) is None
    assert wrong_answers(cascade, table, 500) == 0


def test_random_automata_with_groups_are_followed() -> None:
    followed = refused = 0
    tried = some(range(200), 0.01)
    for number in tried:
        table = minimal(drawn(number))
        if table.states > 6 or not images(table).permutations:
            continue
        try:
            cascade = turning_cascade(images(table), table.outputs)
        except CapMet as cap:
            refused += "places" in str(cap) or "together" in str(cap)
            continue
        assert wrong_answers(cascade, table, 150, number) == 0
        followed += 1
    assert followed >= 0.4 * len(tried) and refused <= max(1, len(tried) / 50), (followed, refused)


# Whose levels have fewer tiles behind some values of the levels above than where they start.
FEWER = ((1, 2, 0), (3, 4, 3), (4, 2, 2), (1, 4, 3), (4, 4, 4))


@pytest.mark.parametrize("start", range(5))
@pytest.mark.parametrize("answers", [{0, 2, 3}, {1, 4}])
def test_levels_whose_number_of_tiles_varies_begin_anywhere(start: int, answers: set[int]) -> None:
    outputs = tuple(YES if state in answers else NO for state in range(5))
    table = minimal(Table(tuple("abc"), FEWER, start, outputs, tuple("01234")))
    cascade = turning_cascade(images(table), table.outputs)
    machine = Machine(cascade)
    for word in product(range(3), repeat=7):
        state, at = machine.start, table.start
        for letter in word:
            state, at = machine.step(state, letter), table.following[at][letter]
            assert machine.output(state) == table.outputs[at]


def test_all_that_swaps_can_hold_is_right_for_s3_and_resets() -> None:
    """Every reachable state of the machine × every letter, so every word: S_3 with a letter that starts again."""
    three = symmetric(3)
    rows = tuple((*(x[s] for x in three), 1) for s in range(3))
    table = Table(tuple("abcdefr"), rows, 0, ("p", "q", "r"), ("0", "1", "2"))
    cascade = turning_cascade(images(table), table.outputs)
    machine = Machine(cascade)
    seen = {_frozen(machine.start): (machine.start, table.start)}
    waiting = list(seen.values())
    for state, at in waiting:
        for letter in range(len(table.letters)):
            to, answer = machine.step(state, letter), table.following[at][letter]
            assert machine.output(to) == table.outputs[answer]
            if _frozen(to) not in seen:
                seen[_frozen(to)] = (to, answer)
                waiting.append((to, answer))
    assert len(seen) > 36


def _frozen(state: module.State) -> tuple:
    return (state.held, tuple(sorted(state.places.items())), state.values)


def test_the_cascade_check_finds_each_wrong_swap() -> None:
    table = minimal(group_table(symmetric(4)))
    cascade = turning_cascade(images(table), table.outputs)
    (turning,) = turnings(cascade)
    machine = Machine(cascade)
    key, factors = next((key, f) for key, f in turning.factors.items() if None not in f)
    turning.factors[key] = (factors[1], factors[0], *factors[2:])  # type: ignore[index]
    machine.turnings = [turning]
    draw, state, at, wrong = random.Random(0), machine.start, table.start, 0
    for _ in range(500):
        letter = draw.randrange(24)
        state, at = machine.step(state, letter), table.following[at][letter]
        wrong += machine.output(state) != table.outputs[at]
    assert wrong > 0


def test_a_permutation_is_the_fewest_swaps() -> None:
    found = dict.fromkeys([tuple(range(4))], 0)
    waiting = list(found)
    for p in waiting:  # all products of swaps, the short ones first
        for pair in combinations(range(4), 2):
            longer = behind(p, swapped(4, pair))
            if longer not in found:
                found[longer] = found[p] + 1
                waiting.append(longer)
    for p, fewest in found.items():
        product_of = tuple(range(4))
        for pair in swaps(p):
            product_of = behind(product_of, swapped(4, pair))
        assert product_of == p and len(swaps(p)) == fewest
        assert behind(p, inverse(p)) == tuple(range(4))


def test_blocks_are_parts_that_every_letter_takes_to_parts() -> None:
    for generators, size in [([(1, 2, 3, 0)], 2), ([(1, 2, 3, 4, 5, 0)], 2), ([(1, 0, 3, 2), (2, 3, 0, 1)], 2)]:
        parts = blocks(generators, len(generators[0]))
        assert parts is not None and all(len(part) == size for part in parts)
        sets = {frozenset(part) for part in parts}
        assert all(frozenset(g[s] for s in part) in sets for g in generators for part in parts)
    assert blocks([(1, 2, 3, 4, 0)], 5) is None
    assert blocks([(1, 0, 2, 3), (1, 2, 3, 0)], 4) is None


def test_splitting_takes_fewer_swaps_and_never_changes_an_answer() -> None:
    for elements in (
        cyclic(4),
        cyclic(6),
        cyclic(7),
        symmetric(3),
        alternating(4),
        generated([(1, 2, 3, 0), (3, 2, 1, 0)], 4, 8),
    ):
        assert elements is not None
        table = minimal(group_table(elements))
        whole = cascade_of(images(table), table.outputs, turning=True)
        less = split(whole)
        assert disagreement(less, table, table.outputs) is None
        assert max(map(longest, less.levels)) < max(map(longest, whole.levels))


def test_too_many_places_are_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    table = minimal(group_table(symmetric(4)))
    monkeypatch.setattr(module, "MOST_PLACES", 3)
    with pytest.raises(CapMet, match="moves 4 places, and 3 are the most"):
        turning_cascade(images(table), table.outputs)


def test_words_of_swaps_are_products() -> None:
    """D_j of the docstring, for all words of three letters over S_3."""
    table = minimal(group_table(symmetric(3)))
    cascade = turning_cascade(images(table), table.outputs)
    (turning,) = turnings(cascade)
    letters = {key[-1]: key for key in turning.factors}
    for word in product(letters, repeat=3):
        held, partial = turning.start, [tuple(range(3))] * turning.columns
        for letter in word:
            held = turning.step(held, letters[letter])
            for j in range(turning.columns):
                for factor in turning.factors[letters[letter]][: j + 1]:
                    partial[j] = partial[j] if factor is None else behind(partial[j], swapped(3, factor))
        products = tuple(range(3))
        for column, expected in zip(held, partial, strict=True):
            products = behind(column, products)
            assert products == expected
