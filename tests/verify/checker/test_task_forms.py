"""Tasks of one's own of the general forms: two definitions that share no code, and proofs against brute force."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import cache, partial
from itertools import product

import numpy as np
import pytest

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.data import language_to_data, to_data
from compiler.language.input_language import InputLanguage
from compiler.language.output import emit, readout_integer, readout_one_hot
from compiler.language.source import Tokens
from compiler.language.stream import constant
from compiler.language.words import count, present
from tests.spread import some
from tests.verify.checker.edits import edits
from tests.verify.checker.evaluator import evaluate
from verify import Automaton, Counted, Lookup
from verify.checker.formats import Rejected
from verify.checker.tasks import letters, paths
from verify.checker.tasks.machine import Machine
from verify.checker.tasks.task import prove_task, read_task
from verify.checker.tasks.task_copies import answers
from verify.checker.tasks.task_forms import States
from verify.checker.values.language import parse

NAMES = ("a", "b", "c")
STATES = ("s", "t", "u")


def _automaton(seed: int) -> Automaton:
    rng = random.Random(seed)
    table = {s: {n: rng.choice(STATES) for n in NAMES if rng.random() < 0.9} for s in STATES}
    return Automaton("s", table, {s: rng.choice(NAMES) for s in STATES if rng.random() < 0.8})


WHICH = ("first", "last", "only", 1, 2, 3)
FORMS = [_automaton(seed) for seed in range(20)]
FORMS += [Lookup(("a",), ("b", "c"), which, blank) for which in WHICH for blank in (None, "c")]
FORMS += [Lookup(("a", "b"), ("b", "c"), which, blank) for which in WHICH for blank in (None, "a")]
FORMS += [Counted(("a",), ("a", "b", "c"), since) for since in ((), ("b",), ("b", "c"))]
FORMS += [Counted.at_least(2, ("a", "c"), "b", "a", ("b",))]


@pytest.mark.parametrize("i", range(len(FORMS)))
def test_the_checker_s_definition_is_the_function_that_was_asked(i):
    """On every string of up to six letters: the function of who states the task, and what the checker proves of it."""
    task = FORMS[i]
    stated = read_task(json.loads(json.dumps(task.claim | {"end": None})), NAMES)
    walked = getattr(stated.task, "walked", stated.task)
    for length in range(1, 7):
        for word in product(range(3), repeat=length):
            expected = [task([NAMES[k] for k in word[: t + 1]]) for t in range(length)]
            for defined in (stated.task.answers, walked.answers, partial(answers, walked.machine)):
                found = [None if a is None else NAMES[a] for a in defined(word)]
                assert found == expected, (task.claim, word)


def test_a_misspelt_state_is_told() -> None:
    with pytest.raises(ValueError, match="a state 'ood' with neither transitions nor an answer"):
        Automaton("even", {"even": {"a": "ood"}, "odd": {"a": "even"}}, {"even": "b", "odd": "c"})
    with pytest.raises(ValueError, match="a state 'evn' with neither"):
        Automaton("evn", {"even": {"a": "even"}}, {"even": "b"})
    assert Automaton("even", {"even": {"a": "end"}, "end": {}}, {"even": "b"})(["a"]) is None


YES = Alphabet.of("a", "b", "no", "yes")
PAIRS = Alphabet.of("_", k=2, v=2)
SEEN = {"0": {"a": "1", "b": "0"}, "1": {"a": "1", "b": "2"}, "2": {"a": "2", "b": "2"}}
KEYS, VALUES = ("k0", "k1"), ("v0", "v1")


def _yes(flag, length: int, task) -> Circuit:
    language = InputLanguage.of(YES, "s", [("s", "s", ("a", "b"))], length, "strings of a and b")
    return Circuit("yes", readout_integer(flag, YES, {"no": 0, "yes": 1}), language, task=task)


def _looked(policy: str, which: str | int, length: int) -> Circuit:
    x = Tokens(PAIRS)
    key, value, written = x.one_hot("k"), x.one_hot("v"), x.is_in("v") & x.is_in("k").shift(1)
    found = memory.write(key.shift(1), value, when=written, policy=policy).read(key)
    scores = np.vstack([np.zeros((3, 2)), 2 * np.eye(2)]) @ found + np.eye(5)[:, [0]] @ constant(1)
    language = InputLanguage.everything(PAIRS, length)
    return Circuit("look", readout_one_hot(scores, PAIRS), language, task=Lookup(KEYS, VALUES, which, "_"))


def _circuits() -> dict[str, Circuit]:
    x = Tokens(YES)
    a, b = x.is_in("a"), x.is_in("b")
    parity = Automaton("e", {"e": {"a": "o", "b": "e"}, "o": {"a": "e", "b": "o"}}, {"e": "no", "o": "yes"})
    seen = Automaton("0", SEEN, {"0": "no", "1": "no", "2": "yes"})
    since = Counted.at_least(3, ["a"], "yes", "no", ["b"])
    return {
        "parity": _yes(a.cumsum() % 2, 7, parity),
        "seen ab": _yes(present(b & a.shift(1)), 7, seen),
        "three": _yes(a.cumsum() >= 3, 8, Counted.at_least(3, ["a"], "yes", "no")),
        "three since": _yes(count(a, reset=b) >= 3, 8, since),
        "last": _looked("last", "last", 5),
        "first": _looked("first", "first", 5),
        "first is the one": _looked("first", 1, 5),
    }


MADE = _circuits()


@cache
def _rows(name: str) -> tuple[np.ndarray, ...]:
    language = MADE[name].language
    return tuple(np.array(list(language.strings(n))) for n in range(1, language.max_length + 1))


def _lead(name: str, circuit: dict, claim: dict) -> float | None:
    """The least lead of the answers of the function that this claim means, over every sequence; None for no circuit."""
    task = _function(claim)
    try:
        alphabet, found = circuit["alphabet"], np.inf
        for rows in _rows(name):
            scores = evaluate(circuit, rows)
            full = np.zeros((*rows.shape, len(alphabet)))
            full[..., : scores.shape[-1]] = scores
            for row, said in zip(rows.tolist(), full, strict=True):
                for t in range(len(row)):
                    right = task([alphabet[k] for k in row[: t + 1]])
                    if right is not None:
                        own = said[t][alphabet.index(right)]
                        found = min(found, own - np.delete(said[t], alphabet.index(right)).max())
        return found
    except (Rejected, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError):
        return None


def _function(claim: dict):
    if claim["name"] == "automaton":
        return Automaton(claim["start"], claim["transitions"], claim["classes"])
    if claim["name"] == "lookup":
        return Lookup(claim["keys"], claim["values"], claim["which"], claim["blank"])
    return Counted(claim["of"], claim["answers"], claim["since"])


@pytest.mark.parametrize("name", MADE)
def test_a_form_is_proved_and_what_is_proved_of_an_edited_one_is_true(name, monkeypatch):
    monkeypatch.setattr(letters, "MOST_WORK", 1 << 24)
    made = MADE[name]
    circuit, claim = json.loads(json.dumps(to_data(made))), made.task.claim | {"end": None}
    language = parse(language_to_data(made.language))
    found = prove_task(language, circuit, claim)
    assert found.reason is None and 0 < found.margin <= _lead(name, circuit, claim)
    wrong, listed = 0, list(edits(circuit, claim))
    tried = some(random.Random(name).sample(listed, min(60, len(listed))), 0.07)
    for what, other, said in tried:
        try:
            lead = _lead(name, other, said)
        except (ValueError, TypeError, KeyError):  # the edited claim is no task
            lead = None
        margin = prove_task(language, other, said).margin or 0
        if lead is not None:
            wrong += lead <= 0
            assert margin <= max(lead, 0), what
    assert wrong >= (4 if len(tried) > 40 else 1), wrong


def test_too_many_situations_are_told_before_more_than_the_first_answers_are_looked_at(monkeypatch):
    """Answers take most of the time, and none of it is of use where situations are left."""
    monkeypatch.setattr(paths, "_FIRST", 0)
    made = _looked("first", 1, 5)
    circuit, claim = json.loads(json.dumps(to_data(made))), made.task.claim | {"end": None}
    language, looked = parse(language_to_data(made.language)), []
    ahead = paths._ahead
    monkeypatch.setattr(paths, "_ahead", lambda *given: looked.append(1) or ahead(*given))
    assert prove_task(language, circuit, claim).reason is None and looked
    looked.clear()
    monkeypatch.setattr(paths, "_MOST_PATHS", 4)
    assert "more than 4 situations" in prove_task(language, circuit, claim).reason and not looked


def _distinct(letters: int) -> dict:
    """circuit.json of "yes from the third letter on" over a language that has each letter once."""
    names = [f"x{i}" for i in range(letters)]
    alphabet = Alphabet.of(*names, "no", "yes")
    scores = emit(alphabet, (Tokens(alphabet).is_in(*names).cumsum() >= 3, "yes"), otherwise="no")
    language = InputLanguage.of(alphabet, "s", [("s", "s", tuple(names))], 60, "each once")
    circuit = json.loads(json.dumps(to_data(Circuit("distinct", scores, language))))
    circuit["promise"]["language"]["edges"][0]["distinct"] = True
    return circuit


def test_a_distinct_edge_has_no_more_letters_than_stand_on_it(monkeypatch):
    """A sixth of five letters is no situation, so a promise of 60 letters takes no more work than one of five."""
    circuit = _distinct(5)
    steps = States(np.zeros(7, int), 0, np.arange(1, 8).clip(max=6)[:, None], np.array([-1, 5, 5, 6, 6, 6, 6]))
    language, levels = parse(circuit["promise"]), paths._levels
    assert [len(each) for each in levels(language, Machine(circuit, 7), steps)] == [1] * 6
    assert paths.prove_paths(language, circuit, steps) > 0
    last = replace(steps, answers=np.array([-1, 5, 5, 6, 6, 5, 6]))  # wrong behind the fifth letter, which comes
    assert paths.prove_paths(language, circuit, last) < 0
    never = replace(steps, answers=np.array([-1, 5, 5, 6, 6, 6, 5]))  # and behind a sixth, which does not
    assert paths.prove_paths(language, circuit, never) > 0


def test_a_wrong_answer_near_the_start_is_told_before_all_situations_are_found(monkeypatch):
    circuit, went = _distinct(60), []
    but_one = [f"x{i}" for i in range(59)]
    claim = {"name": "count", "of": but_one, "since": [], "answers": ["no"] * 3 + ["yes"], "end": None}
    levels = paths._levels
    monkeypatch.setattr(paths, "_levels", lambda *given: (went.append(1) or each for each in levels(*given)))
    assert "that the right letter leads is not proved" in prove_task(parse(circuit["promise"]), circuit, claim).reason
    assert len(went) < 10


def test_counts_and_automata_of_long_texts_are_proved_by_their_own_rules():
    """What would be too many situations one by one: a count up to 65,536, and an automaton, which repeats itself."""
    x = Tokens(YES)
    a, b = x.is_in("a"), x.is_in("b")
    for flag, task in [
        (a.cumsum() >= 3, Counted.at_least(3, ["a"], "yes", "no")),
        (count(a, reset=b) >= 3, Counted.at_least(3, ["a"], "yes", "no", ["b"])),
        (present(b & a.shift(1)), Automaton("0", SEEN, {"0": "no", "1": "no", "2": "yes"})),
    ]:
        made = _yes(flag, 65536, task)
        circuit = json.loads(json.dumps(to_data(made)))
        assert prove_task(parse(language_to_data(made.language)), circuit, task.claim | {"end": None}).reason is None


def _says(task) -> str:
    return read_task(json.loads(json.dumps(task.claim | {"end": None})), NAMES).says


def test_the_sentence_tells_the_whole_task():
    """Who reads the verdict reads thresholds and transitions there: two tasks that differ have two sentences."""
    told = [_says(task) for task in FORMS]
    assert len({json.dumps(task.claim) for task in FORMS}) == len(set(told))
    assert _says(Counted.at_least(9, ["a"], "c", "b")).endswith("`b` for 0 to 8, `c` from 9 on")
    small = Automaton("e", {"e": {"a": "o", "b": "e"}, "o": {"a": "e"}}, {"e": "a"})
    assert "'e' answers 'a' ('a' to 'o', 'b' to 'e'); 'o' asks nothing ('a' to 'e')" in _says(small)
    assert "leads nowhere nothing is asked" in _says(small)
    rng = random.Random(0)
    states = [f"s{i}" for i in range(60)]
    large = [{s: {n: rng.choice(states) for n in NAMES} for s in states} for _ in range(2)]
    said = [_says(Automaton("s0", table, dict.fromkeys(states, "a"))) for table in large]
    assert said[0] != said[1] and all("SHA-256" in s and len(s) < 400 for s in said)


def test_a_task_of_letters_that_never_come_is_rejected():
    made = MADE["three"]
    circuit, language = json.loads(json.dumps(to_data(made))), parse(language_to_data(made.language))
    for changed in ({"of": ["a", "yes"]}, {"since": ["no"]}):
        found = prove_task(language, circuit, made.task.claim | {"end": None} | changed)
        assert "which no sequence of the language holds" in found.reason


@pytest.mark.parametrize(
    "claim, said",
    [
        ({"name": "automaton", "start": "s", "transitions": [], "classes": {}}, "no object of objects"),
        ({"name": "automaton", "start": "s", "transitions": {"s": {"z": "s"}}, "classes": {}}, "'z'"),
        ({"name": "automaton", "start": "s", "transitions": {"s": {"a": 1}}, "classes": {}}, "texts"),
        ({"name": "automaton", "start": "s", "transitions": {}, "classes": {"t": "a"}}, "state that is none"),
        ({"name": "automaton", "start": "s", "transitions": {"s": {}}, "accept": ["s"]}, "'yes'"),
        ({"name": "lookup", "keys": ["a"], "values": ["b"], "which": 0, "blank": None}, "the number 0"),
        ({"name": "lookup", "keys": ["a"], "values": ["b"], "which": "best", "blank": None}, "the number 'best'"),
        ({"name": "lookup", "keys": "a", "values": ["b"], "which": 1, "blank": None}, "by their names"),
        ({"name": "count", "of": ["a"], "since": ["a"], "answers": ["b"]}, "starts the count again"),
        ({"name": "count", "of": ["a"], "since": [], "answers": []}, "no list"),
        ({"name": "count", "of": ["a"], "since": [], "answers": ["b"], "end": "z"}, "'z'"),
    ],
)
def test_a_claim_that_is_none_is_one_sentence(claim, said):
    with pytest.raises(Rejected, match=said):
        read_task({"end": None} | claim, NAMES)


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: Automaton("s", {"s": {"a": 1}}, {}), "no text"),
        (lambda: Automaton("s", {"s": {"a": "s"}}, {"t": "a"}), "'t'"),
        (lambda: Lookup(["a"], ["b"], 0), "which = 0"),
        (lambda: Lookup(["a"], ["b"], "best"), "'best'"),
        (lambda: Counted(["a"], ["b"], ["a"]), "'a'"),
        (lambda: Counted([], ["b"]), "a count needs"),
        (lambda: Counted.at_least(0, ["a"], "b", "c"), "n = 0"),
    ],
)
def test_a_form_that_means_nothing_is_refused(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()
