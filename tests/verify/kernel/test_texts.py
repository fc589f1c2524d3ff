"""Tasks by name: each machine against the oracle of its construction, and what is proved of small checkpoints."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations, islice
from typing import Any

import numpy as np
import pytest

from constructions.registry import CONSTRUCTIONS
from tests.spread import some
from tests.verify.checker.evidence import SMALL
from tests.verify.kernel.attack import CHAINS, FALSE, Target, accepted, edited, found
from tests.verify.kernel.small import CASES, NAMED, make
from verify.kernel import machines, situations
from verify.kernel.certificate import claims_of, prove, written
from verify.kernel.claims import Refused
from verify.kernel.files import read
from verify.kernel.floats import Unproved
from verify.kernel.machines import Machine
from verify.kernel.tasks import read_task
from verify.kernel.texts import MACHINES
from verify.prover.prove import search, search_of
from verify.tasks.stated import stated_rule
from verify.tasks.task import IGNORED


def answers(found: Sequence[Machine], letters: Sequence[int]) -> list[int | None]:
    """What these machines ask for behind each letter; no two of them at once."""
    held: list[Any] = [machine.start for machine in found]
    said: list[int | None] = []
    for a in letters:
        held = [None if h is None else m.step(h, a) for m, h in zip(found, held, strict=True)]
        asked = [m.right(h) for m, h in zip(found, held, strict=True) if h is not None]
        (right,) = {v for v in asked if v is not None} or {None}
        assert len([v for v in asked if v is not None]) <= 1
        said.append(right)
    return said


def of_construction(name: str, sizes: dict) -> tuple[list[Machine], Any, list[str]]:
    construction = CONSTRUCTIONS[name](**sizes, arch="mamba", dtype="float32")
    letters = list(construction.circuit().language.alphabet.tokens)
    return read_task(letters, construction.asks())[1], construction, letters


STATED = [
    (name, sizes)
    for name, several in SMALL.items()
    for sizes in several
    if (CONSTRUCTIONS[name](**sizes, arch="mamba", dtype="float32").asks() or {}).get("name") in MACHINES
]


def test_every_task_has_an_oracle():
    asked = {CONSTRUCTIONS[name](**sizes, arch="mamba", dtype="float32").asks()["name"] for name, sizes in STATED}
    assert asked == set(MACHINES) - {"automaton"}


def rows(construction: Any) -> Iterator[tuple[list[int], list[int]]]:
    """Sequences of its own verification with their answers: adversarial, and at random."""
    for task in construction.tasks():
        for batch in chain(task.adversarial(), islice(task.random(200, 1, batch_size=50), 4)):
            yield from zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True)


@pytest.mark.parametrize(("name", "sizes"), STATED, ids=lambda value: str(value))
def test_a_machine_answers_as_the_oracle_of_its_construction(name, sizes):
    """Everything that the oracle asks for is asked, but where an n-gram has two continuations."""
    found, construction, _ = of_construction(name, sizes)
    asked = 0
    for letters, labels in rows(construction):
        for right, label in zip(answers(found, letters), labels, strict=True):
            if label != IGNORED and (right is not None or name != "copy-ngram"):
                assert right == label
                asked += 1
    assert asked > 30


@pytest.mark.parametrize(("name", "sizes"), STATED, ids=lambda value: str(value))
def test_a_machine_answers_as_the_checkers_definition_on_any_letters(name, sizes):
    """Of tables, where the kernel asks: nothing behind a wrong letter. Texts of no language are among them."""
    found, construction, letters = of_construction(name, sizes)
    rule = stated_rule(construction.asks(), letters)
    assert rule is not None and {m.end for m in found} == {rule.end}
    rng, asked = random.Random(name), 0
    known = rule.known if rule.known is not None else np.arange(len(letters))
    for _ in range(300):
        text = rng.choices(known.tolist(), k=rng.randint(1, 14))
        if construction.asks()["name"] in CHAINS:
            prompt, right = list(rng.choice(list(construction.solver().prompts()))), text
            text = [*map(letters.index, prompt), *map(letters.index, construction.solver().chain(prompt))][
                : len(prompt) + 3
            ]
            text[-1] = rng.choice(right)
        said, told = answers(found, text), rule.task.answers(text)
        chained = construction.asks()["name"] in CHAINS
        assert all(x == y for x, y in zip(said, told, strict=True) if not chained or x is not None)
        asked += sum(x is not None for x in said)
    assert asked > 100


OTHERS: dict[str, list[dict]] = {
    "copy-delay": [{"n": 3}, {"n": 5}, {"n": 0}, {"n": True}, {"n": None}, {"form": "string"}, {"n": "4"}],
    "copy-string": [{"form": "delay"}, {"form": "pointer"}, {"n": 4}, {"form": "strings"}, {"form": None}],
    "copy-pointer": [{"form": "place"}, {"form": "string"}],
    "copy-place": [{"form": "pointer"}, {"more": 1}],
    "copy-ngram": [{"n": 1}, {"n": 3}, {"matches": "first"}, {"matches": "most"}],
    "fibonacci": [{"modulus": 2}, {"modulus": 4}, {"modulus": 0}, {"modulus": [3]}],
    "coin-change": [{"coins": [1, 3]}, {"coins": [1, 2, 4]}, {"coins": 1}, {"most": 1}, {"most": 9}, {"coins": [0]}],
    "shortest-path": [{"nodes": 2}, {"nodes": 4}, {"nodes": 0}, {"nodes": None}, {"lengths": 2}],
    "mqar-last": [{"write": "first"}, {"write": "alike"}, {"write": "sum"}, {"write": None}],
    "mqar-first": [{"write": "last"}, {"write": "sum"}],
    "mqar-first-write": [{"write": "last"}, {"write": "alike"}, {"write": None}],
    "token-selection": [{"size": 3}, {"size": 5}, {"points": "signs"}, {"points": None}, {"size": 4.0}],
    "absolute-time": [{"horizon": 6}, {"name": "count-in-row"}],
    "count-in-row": [{"largest": 5}, {"name": "absolute-time"}],
    "recall": [{"matches": "last"}, {"matches": 1}, {"matches": None}, {"name": "unique-induction"}],
    "unique-induction": [{"matches": "first"}, {"name": "recall"}, {"names": 1}],
}
"""Entries of a task that is another one, or none."""


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def target(request, tmp_path_factory) -> Target:
    """The checkpoint of a task and a mixer, and the claims that a search finds."""
    name, mixer = request.param
    place = tmp_path_factory.mktemp("named") / f"{name}-{mixer}"
    return Target(make(place, name, mixer), random.Random(name))


def named(target: Target) -> str:
    return target.name.rpartition("-")[0]


def test_a_task_is_proved_whole_and_replayed(target, tmp_path):
    proof = prove(target.checkpoint, target.claims)
    assert proof.task is not None and proof.task.startswith("{")
    file = tmp_path / "certificate.json"
    file.write_text(written(target.claims))
    assert prove(target.checkpoint, claims_of(file)) == proof
    assert "answers" in {claim[0] for claim in target.claims}
    assert target.right(target.letters) == "still true"


def test_other_names_are_accepted_where_the_answers_stay_right_only(target):
    """Every two letters exchange their names, or some of these pairs."""
    pairs, refused = list(combinations(range(len(target.letters)), 2)), 0
    for a, b in some(pairs, 0.25, least=3):
        names = list(target.letters)
        names[a], names[b] = names[b], names[a]
        if accepted(target.named(names), target.claims):
            assert target.right(names) != FALSE, names
        else:
            refused += 1
    assert refused or named(target) in ("unique-induction", "recall", "mqar-first", "copy-delay", "mqar-last")


def test_a_text_that_ends_elsewhere_is_another_task(target):
    circuit = target.checkpoint.circuit
    for end in some([end for end in (None, *target.letters) if end != circuit["end"]], 0.2, least=2):
        assert not accepted(replace(target.checkpoint, circuit=circuit | {"end": end}), target.claims)


def test_other_parameters_are_another_task(target):
    task = target.checkpoint.task
    for change in some(OTHERS[named(target)], 0.2, least=2):
        other = replace(target.checkpoint, task=task | change)
        assert not accepted(other, target.claims), change
    for change in some(OTHERS[named(target)], 0.5):  # nor by a fresh search
        assert found(replace(target.checkpoint, task=task | change)) is None, change


def test_no_changed_weight_is_proved(target):
    """By the old claims, by edited ones; a fresh search is the attack's."""
    rng = random.Random(target.name)
    for changed, how in target.changes(rng, len(some(range(8), 0.25, least=3))):
        for claims in (target.claims, edited(target.claims, rng), edited(target.claims, rng)):
            assert not accepted(changed, claims), how


# What each part is needed for ------------------------------------------------------------------------------------


def of(name: str, tmp_path) -> Any:
    return read(make(tmp_path / name, name, "mamba" if (name, "mamba") in CASES else "mamba2"))


@pytest.mark.parametrize("name", NAMED)
def test_without_its_machine_a_task_is_not_proved(name, tmp_path, monkeypatch):
    checkpoint = of(name, tmp_path)
    monkeypatch.delitem(MACHINES, checkpoint.task["name"])
    with pytest.raises(Unproved):
        search_of(checkpoint)


@pytest.mark.parametrize("name", ["absolute-time", "count-in-row"])
def test_intervals_that_grow_for_ever_need_the_ends_of_ranges(name, tmp_path, monkeypatch):
    monkeypatch.setattr(situations, "_EXACT_ROUNDS", 1 << 40)
    with pytest.raises(Refused, match="there are new situations still"):
        search_of(of(name, tmp_path))


def test_a_text_that_only_the_length_ends_needs_the_length(tmp_path, monkeypatch):
    """copy-place: without it the machine remembers ever longer texts."""
    checkpoint = of("copy-place", tmp_path)
    made = machines.beside
    longer = lambda language, machine: made(replace(language, length=1 << 20), machine)
    monkeypatch.setattr(machines, "beside", longer)
    with pytest.raises(Unproved, match="remembers more than"):
        search_of(checkpoint)


def test_induction_heads_need_one_letter_at_a_time(tmp_path, monkeypatch):
    """Of eight letters; otherwise a situation holds what stood behind each of them."""
    place = make(tmp_path / "heads", "induction-heads", "mamba", vocab=8)
    assert search(place)[0].task
    monkeypatch.setattr(machines, "_present", lambda terms, p, letter: p)
    with pytest.raises((Refused, Unproved), match="situations and more"):
        search_of(read(place))
