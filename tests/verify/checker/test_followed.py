"""States together: what sequences show is what is gone through; layers of a group are as many states as it has."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
import torch

from constructions.automata.automaton import Automaton, table_json
from constructions.automata.languages import NAMED
from tests.automata.groups import alternating, symmetric, whether_one
from tests.spread import some
from tests.verify.checker.changed import changed, contents
from tests.verify.checker.checkpoints import write
from tests.verify.checker.values import Sequence
from verify.checker.check import prove, prove_answers
from verify.checker.formats import FORMATS
from verify.checker.meaning import normal_form
from verify.checker.values import together
from verify.checker.values.bent import product, relu
from verify.checker.values.followed import Followed, followed
from verify.checker.values.language import parse
from verify.checker.values.machines import moved, of_states
from verify.checker.values.values import Value, World, combine, constant, later, of_letters
from verify.checker.values.windows import TooLarge

ONE = Fraction(1)


def _world(edges: list[tuple[str, str, list[int]]]) -> World:
    given = [{"from": a, "to": b, "tokens": [[v, v] for v in letters], "distinct": False} for a, b, letters in edges]
    language = {"tokens": 4, "start": "s", "edges": given}
    return World(parse({"language": language, "length": None}), FORMATS["float32"])


def _machine(world: World, flags: list[Value], draw: random.Random) -> Value:
    """A function of a state of a few places that flags which exclude each other permute or reset."""
    places = draw.randrange(2, 5)
    moves = []
    for flag in flags:
        put = draw.randrange(places)
        moves.append((flag, draw.choice([tuple(draw.sample(range(places), places)), (put,) * places])))
    root, order = moved(world, moves)
    return of_states(root, [Fraction(draw.randrange(3)) for _ in order])


def _drawn(world: World, draw: random.Random) -> list[Value]:
    """Two layers of states, and functions of these and of letters, some of them some positions back."""
    letter = lambda *ids: of_letters(np.isin(np.arange(4), ids).astype(float))
    first = [_machine(world, [letter(0), letter(1, 2)], draw) for _ in range(2)]
    seen = later(world, first[0], draw.randrange(3))
    above = relu(world, combine([(ONE, seen), (ONE, letter(1))], Fraction(-1)))
    both = relu(world, combine([(ONE, above), (-ONE, relu(world, combine([(ONE, above)], Fraction(-1))))]))  # 0 or 1
    second = _machine(world, [both, combine([(-ONE, both)], ONE)], draw)
    mixed = product(world, second, later(world, letter(0, 2), 1))
    return [
        second,
        mixed,
        relu(world, combine([(ONE, second), (-ONE, first[1]), (ONE, letter(2))])),
        later(world, both, 2),
    ]


LANGUAGES = {
    "all words": [("s", "s", [0, 1, 2])],
    "a letter behind which others come": [("s", "s", [0, 1]), ("s", "t", [2]), ("t", "t", [1, 2]), ("t", "s", [0])],
}


def _words(found: Followed) -> Iterator[tuple[list[int], int, int]]:
    """(a shortest word, the state behind it, the kind of its last letter) of every moment."""
    waiting, met = [([], 0)], set()
    for word, state in waiting:
        for kind, target in enumerate(found.joint.following[state].tolist()):
            if target >= 0 and (target, kind) not in met:
                met.add((target, kind))
                longer = [*word, int(found.kinds[kind])]
                waiting.append((longer, target))
                yield longer, target, kind


@pytest.mark.parametrize("edges", LANGUAGES.values(), ids=LANGUAGES)
@pytest.mark.parametrize("seed", range(8))
def test_what_is_gone_through_is_what_sequences_show(edges, seed) -> None:
    """Every moment is that of a word, and every position of random words is one."""
    world, draw = _world(edges), random.Random(seed)
    values = _drawn(world, draw)
    found = followed(world, values)
    tables = [found.joint.everywhere(function) for function in found.found]
    told = lambda word: [
        float(sequence.value(value, len(word))) for sequence in (Sequence(world, word),) for value in values
    ]
    shown = set()
    for word, state, kind in _words(found):
        assert told(word) == [table[state, kind] for table in tables]
        shown.add(tuple(told(word)))
    assert {tuple(row) for row in found.attained().tolist()} == shown
    for _ in range(20):
        state, word = "s", []
        for _ in range(30):
            _, state, letters = draw.choice([edge for edge in edges if edge[0] == state])
            word.append(draw.choice(letters))
        sequence = Sequence(world, word)
        for t in range(1, len(word) + 1):
            assert tuple(float(sequence.value(value, t)) for value in values) in shown


def test_other_states_are_not_gone_through() -> None:
    world = _world(LANGUAGES["all words"])
    world.roots.append(world.root("sum", (0, 5, None), (ONE, constant(1))))
    with pytest.raises(TooLarge, match="a sum"):
        followed(
            world,
            [Value(Fraction(0), {(0, 0): of_states(world.roots[0], [Fraction(i) for i in range(6)]).terms[0, 0]})],
        )


def test_layers_of_a_group_are_proved_by_what_is_reached(tmp_path, monkeypatch) -> None:
    """S_3 by two columns, as if all tables were too large; then with one weight, or one letter, that is another."""

    def too_large(*_):
        raise TooLarge("a table")

    monkeypatch.setattr(together, "_codes", too_large)
    monkeypatch.setattr(normal_form, "as_tables", lambda *_: None)
    construction = Automaton(table=table_json(NAMED["s3"].make()), arch="gated-deltanet")
    directory = write(tmp_path / "at", construction.circuit(), "gated-deltanet", task=construction.asks())
    checkpoint, circuit, claim = contents(directory)
    verdict = prove(checkpoint, circuit, claim)
    assert verdict.accepted and verdict.task is None, verdict.lines()
    right, *others = changed(directory, len(some(range(12), 0.5, least=5)), seed=1)
    assert right.accepted
    differ = [change for change in others if not torch.equal(change.letters, right.letters)]
    assert len(differ) > 2 and [change.said for change in differ if change.accepted] == []
    state = next(iter(claim["transitions"]))
    claim["transitions"][state]["c"] = claim["transitions"][state]["s"]
    assert prove(checkpoint, circuit, claim).task is not None


@pytest.mark.parametrize("name", ["s3", "s4", "a5"])
def test_named_groups_are_proved_for_every_length(tmp_path, name: str) -> None:
    construction = Automaton(table=table_json(NAMED[name].make()), arch="gated-deltanet")
    directory = write(tmp_path / "at", construction.circuit(), "gated-deltanet", task=construction.asks())
    checkpoint, circuit, claim = contents(directory)
    verdict = prove(checkpoint, circuit, claim)
    assert verdict.accepted and verdict.every_length and verdict.margin == 1, verdict.lines()
    moves = next(iter(claim["transitions"].values()))
    first, second, *_ = moves
    moves[first], moves[second] = moves[second], moves[first]
    assert prove_answers(checkpoint.language, circuit, claim).reason is not None


@pytest.mark.parametrize("elements", [symmetric(3), alternating(4)], ids=["S_3", "A_4"])
def test_groups_with_every_element_as_a_letter_are_proved_for_every_length(tmp_path, elements) -> None:
    """Whether the product is 1; one answer changed is not proved. A_5 and S_5: tests/trust/times.py."""
    construction = Automaton(table=table_json(whether_one(elements)), arch="gated-deltanet")
    directory = write(tmp_path / "at", construction.circuit(), "gated-deltanet", task=construction.asks())
    checkpoint, circuit, claim = contents(directory)
    verdict = prove(checkpoint, circuit, claim)
    assert verdict.accepted and verdict.every_length and verdict.margin == 1, verdict.lines()
    moves = claim["transitions"][next(iter(claim["transitions"]))]
    moves["g1"] = moves["g2"]
    assert prove_answers(checkpoint.language, circuit, claim).reason is not None
