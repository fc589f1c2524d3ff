"""Selective copying and edit distances, whole: their machines, their certificates, and what is no answer."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from constructions.registry import CONSTRUCTIONS
from tests.spread import some
from tests.verify.checker.checkpoints import write
from tests.verify.kernel.attack import Target, accepted, edited
from tests.verify.kernel.small import chains, copied, searched
from verify.checker.tasks.task_copies import BAR, END, OTHER, TEXT, Written, answers
from verify.kernel.certificate import claims_of, prove, replay, written
from verify.kernel.claims import Refused
from verify.kernel.files import read
from verify.kernel.floats import Unproved
from verify.kernel.machines import Machine, beside
from verify.kernel.tasks import read_task
from verify.kernel.texts import edit_distance, selective_copy
from verify.prover.prove import search
from verify.tasks.solvers.sequences import LongestIncreasingSubsequenceSolver
from verify.tasks.solvers.words import EditDistanceSolver


def test_selective_copies_are_proved_whole_and_replayed(copies, tmp_path):
    proof, claims = searched(copies)
    assert proof.task is not None and proof.task.startswith('{"name": "selective-copy"} (SHA-256 ')
    assert ": Behind the first |: the letters x0, x1, … before it in their order" in proof.task
    file = tmp_path / "certificate.json"
    file.write_text(written(claims))
    assert replay(copies, claims_of(file)) == proof
    assert {"follow", "answers", "total", "ballast"} <= {claim[0] for claim in claims}


@pytest.mark.parametrize("change", [{"x0": "x1", "x1": "x0"}, {"|": "_", "_": "|"}, {".": "_", "_": "."}, {"x1": "y"}])
def test_other_names_are_another_task_or_the_same_one(copies, change):
    """Two letters that are copied may swap their names: the text that is copied is the same."""
    checkpoint, claims = read(copies), searched(copies)[1]
    names = [change.get(name, name) for name in checkpoint.circuit["alphabet"]]
    renamed = replace(checkpoint, circuit=checkpoint.circuit | {"alphabet": names})
    assert accepted(renamed, claims) == (set(change) == {"x0", "x1"})


def test_a_text_that_does_not_end_is_another_task(copies, tmp_path):
    circuit = json.loads((copies / "circuit.json").read_text())
    for end in (None, "_"):
        other = copied(copies, tmp_path / "copy", circuit=circuit | {"end": end})
        with pytest.raises(Unproved, match="ends a text"):
            replay(other, searched(copies)[1])


def test_the_machine_answers_as_the_checkers_does(copies):
    """On texts of any letters, those of no language included; the checker's machine is held against the solver."""
    names = read(copies).circuit["alphabet"]
    made = selective_copy({name: i for i, name in enumerate(names)})
    kinds = np.array([{"|": BAR, ".": END, "_": OTHER}.get(name, TEXT) for name in names])
    rng, asked = random.Random(4), 0
    for _ in range(300):
        text, held, found = [rng.randrange(len(names)) for _ in range(rng.randint(1, 9))], made[0].start, []
        for a in text:
            held = None if held is None else made[0].step(held, a)
            found.append(None if held is None else made[0].right(held))
        assert found == answers(Written(kinds, names.index(".")), text)
        asked += sum(v is not None for v in found)
    assert asked > 300


def test_language_and_machine_have_the_sequences_of_the_language(copies):
    """A machine that counts its letters: each state says how many were read, and no letter is lost."""
    language = read(copies).language
    both, right = beside(replace(language, length=6), Machine(0, lambda n, a: min(n + 1, 6), lambda n: n))
    reached, state = {(0, 0)}, {0: 0}
    for n in range(1, 7):
        before = {s for k, s in reached if k == n - 1}
        reached |= {(n, e.target) for e in both.edges if e.source in before}
        assert {right[s] for k, s in reached if k == n} == {n}
        letters = np.any([e.letters for e in both.edges if e.source in before], axis=0)
        state = {e.target: 0 for e in language.edges if e.source in state}
        assert letters.any() and len({s for k, s in reached if k == n}) == len(state)


def test_no_changed_weight_of_the_copies_is_proved(copies):
    """On Mamba-2, by the old claims or by edited ones; a fresh search is the attack's (`python -m … attack`)."""
    rng, tried = random.Random(9), 0
    target = Target(copies, rng)
    rounds = some(range(8), 0.25, least=4)
    for _ in rounds:
        changed, how = target.changed(rng)
        for claims in (target.claims, edited(target.claims, rng), edited(target.claims, rng)):
            if changed is not None:
                assert not accepted(changed, claims), how
                tried += 1
    assert tried > 1.2 * len(rounds)


# Edit distances: a task whose scores rules over scores decide ----------------------------------------------------


def test_edit_distances_are_proved_whole(words, words_claims):
    proof = prove(read(words), words_claims)
    assert proof.task is not None and "how many letters must be put in, dropped or changed" in proof.task
    assert {"follow", "same", "weight", "answers"} <= {claim[0] for claim in words_claims}


def test_the_table_is_that_of_the_solver():
    """Letter by letter, of all pairs of words of at most three letters; behind a wrong letter nothing is asked."""
    names = ["|", ";", ".", "a", "b", "0", "1", "2", "3"]
    of = {name: i for i, name in enumerate(names)}
    (machine,), solver, asked = edit_distance(of), EditDistanceSolver(3, "ab"), 0
    for prompt in solver.prompts():
        held, chain = machine.start, solver.chain(prompt)
        for i, name in enumerate((*prompt, *chain)):
            right = machine.right(held)
            assert right == (None if i < len(prompt) else of[name])
            if right is not None:
                assert machine.step(held, (right + 1) % len(names)) is None
                asked += 1
            held = machine.step(held, of[name])
        assert held is None
    assert asked > 1000
    assert machine.step((False, (of["a"], of["0"], of["|"])), of[";"]) is None
    with pytest.raises(Unproved, match="has no letter"):
        machine.step((False, (*[of["a"]] * 4, of["|"])), of[";"])


@pytest.mark.parametrize("change", [{"0": "1", "1": "0"}, {"a": "b", "b": "a"}])
def test_edit_distances_under_other_names_are_another_task(words, words_claims, change):
    """The two letters may swap their names: the table is the same."""
    checkpoint = read(words)
    names = [change.get(name, name) for name in checkpoint.circuit["alphabet"]]
    renamed = replace(checkpoint, circuit=checkpoint.circuit | {"alphabet": names})
    assert accepted(renamed, words_claims) == ("b" in change)


def test_an_answer_that_no_rule_gives_is_not_proved(words, words_claims):
    """Of a circuit whose rules over scores name each other's letters."""
    checkpoint = read(words)
    streams = checkpoint.circuit["streams"]
    (place,) = [i for i, stream in enumerate(streams) if stream["operation"] == "Decide"]
    tokens = streams[place]["attributes"]["tokens"]
    changed = [*streams[:place], streams[place] | {"attributes": {"tokens": tokens[::-1]}}, *streams[place + 1 :]]
    assert not accepted(replace(checkpoint, circuit=checkpoint.circuit | {"streams": changed}), words_claims)


def test_no_changed_weight_of_the_edit_distances_is_proved(words, words_claims):
    """By the claims of the unchanged weights, or by edited ones."""
    rng, tried = random.Random(3), 0
    target = Target(words, rng, words_claims)
    rounds = some(range(4), 0.5, least=2)
    for _ in rounds:
        changed, how = target.changed(rng)
        for claims in (words_claims, edited(words_claims, rng)):
            if changed is not None:
                assert not accepted(changed, claims), how
                tried += 1
    assert tried > len(rounds)


# Longest increasing subsequences: a task that the manifest states as an automaton ---------------------------------


def test_longest_increasing_subsequences_are_proved_whole(longest, longest_claims):
    """On Mamba-2, where sums of the circuit are minus those of the weights."""
    proof = prove(read(longest), longest_claims)
    assert proof.task is not None and "(SHA-256 " in proof.task and "automaton of construction.json" in proof.task
    assert any(claim[0] == "same" and str(claim[2]).startswith("-") for claim in longest_claims)


def test_a_state_that_is_minus_another_one_is_not_that_one(longest, longest_claims):
    """A sign that is turned around is refused, by the number of the claim."""
    compared = [i for i, claim in enumerate(longest_claims) if claim[0] == "same" and claim[2] is not None]
    minus = [i for i in compared if longest_claims[i][2][0] == "-"]
    for i in (minus[0], *some([i for i in compared if i not in minus], 0.8)):
        kind, name, other, how = longest_claims[i]
        turned = [kind, name, other[1:] if i in minus else f"-{other}", how]
        with pytest.raises(Refused, match=f"claim {i + 1} is refused"):
            prove(read(longest), [*longest_claims[:i], turned, *longest_claims[i + 1 :]])


def test_an_automaton_that_asks_for_something_else_is_refused(longest, longest_claims):
    """Another answer, another end, a letter that there is not, a state that is no text, or one entry too many."""
    checkpoint = read(longest)
    task: dict = checkpoint.task  # type: ignore
    state = next(s for s, letter in task["classes"].items() if letter == "1")
    changes: list[dict] = [
        {"classes": task["classes"] | {state: "0"}},
        {"classes": task["classes"] | {"0": "2"}},  # behind 0 the circuit answers 1, the length so far
        {"classes": {}},
        {"classes": task["classes"] | {state: "x"}},
        {"end": ";"},
        {"start": state},
        {"transitions": task["transitions"] | {"": {"0": None}}},
        {"accept": []},
    ]
    for changed in some(changes, 0.8, least=3):
        assert not accepted(replace(checkpoint, task=task | changed), longest_claims), changed


def test_the_automaton_of_a_solver_answers_as_it_does():
    solver = LongestIncreasingSubsequenceSolver(2, range(2))
    task = chains(solver, ".")
    for prompt in solver.prompts():
        state, chain = task["start"], solver.chain(prompt)
        for i, name in enumerate((*prompt, *chain)):
            assert task["classes"].get(state) == (None if i < len(prompt) else name)
            state = task["transitions"].get(state, {}).get(name)
        assert state is None


def test_scores_that_differ_from_the_circuits_are_refused(longest, longest_claims):
    """By another weight of the head, or another number of the circuit's matrix."""
    checkpoint, claims = read(longest), longest_claims
    head = checkpoint.tensors["lm_head.weight"]
    at = next(i for i in np.flatnonzero(head[3]).tolist() if head[4, i])
    changed = head.copy()
    changed[3, at] *= 2
    other = replace(checkpoint, tensors=checkpoint.tensors | {"lm_head.weight": changed})
    for wrong in (other, replace(checkpoint, circuit=_another_matrix(checkpoint.circuit))):
        with pytest.raises((Unproved, Refused), match="score"):
            prove(wrong, claims)


def _another_matrix(circuit: dict) -> dict:
    """The circuit with one number of the matrix of its scores changed."""
    streams = json.loads(json.dumps(circuit["streams"]))
    scores = streams[streams[circuit["output"]]["inputs"][0]]["attributes"]["matrices"][0]
    row = next(row for row in scores["rows"] if row)
    row[0][1] = str(2 * Fraction(row[0][1]))
    return circuit | {"streams": streams}


@pytest.mark.parametrize("sizes", [{"n": 4, "vocab": 3}, {"n": 2, "vocab": 2}])
@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_the_last_position_of_a_promise_is_kept(sizes, arch, tmp_path):
    construction = CONSTRUCTIONS["keep-nth"](**sizes, length=sizes["n"], max_length=sizes["n"], arch=arch)
    place = write(tmp_path / "c", construction.circuit(), arch, task=construction.asks())
    assert search(place)[0].task


@pytest.mark.parametrize("n", ["1", None, True, 0, 1.0])
def test_a_position_of_another_kind_is_told(n):
    with pytest.raises(Unproved, match="the task has the number"):
        read_task(["a", "b"], {"name": "keep-nth", "n": n})
