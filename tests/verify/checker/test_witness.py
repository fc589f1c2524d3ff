"""A task that the language never asks is not proved: each task is held to the shortest text that asks its questions."""

from __future__ import annotations

import json
import random
import re
import time
from functools import cache
from itertools import product

import numpy as np
import pytest

from compiler import Alphabet, Circuit, InputLanguage, emit
from compiler.language.data import to_data
from constructions.registry import CONSTRUCTIONS
from tests.verify.checker.evidence import SMALL
from tests.verify.checker.test_task_forms import MADE
from verify.checker.formats import Rejected
from verify.checker.tasks import questions, task, witness
from verify.checker.tasks.questions import ANY, Ask, Many
from verify.checker.tasks.task import prove_task, read_task
from verify.checker.tasks.witness import Question, Search, check_asked
from verify.checker.values.language import parse

LEAST = {
    "mqar": 3,  # k v k
    "induction-heads": 2,  # v v
    "keep-nth": 3,
    "absolute-time": 6,
    "count-in-row": 5,
    "in-context-recall": 3,
    "token-selection": 2,  # an item, a query
    "recall": 3,
    "unique-induction": 2,
    "copy-ngram": 3,  # ^ x |
    "copy string": 3,  # x | x, and then the end
    "copy delay": 5,
    "copy pointer": 5,  # x x x x @4
    "copy place": 4,
    "edit-distance": 9,  # a | a ; 0 1 ; 1 0, and then the end
    "lcs": 9,
    "fibonacci": 3,  # 0 ; 0
    "coin-change": 3,
    "shortest-path": 7,  # three edges, ;, three distances
    "phonebook": 5,  # n 1 ? n, of which the ; is one
    "selective-copy": 3,
}
"""The fewest letters with which a text asks each question that a construction of a small size names."""


def _title(name: str, params: dict) -> str:
    return f"{name} {params['form']}" if "form" in params else name


SIZES = [(name, params) for name, sizes in SMALL.items() for params in sizes if _title(name, params) in LEAST]
NAMES = [f"{_title(name, params)}-{number}" for number, (name, params) in enumerate(SIZES)]


@cache
def _data(name: str, size: int) -> tuple[dict, dict]:
    """circuit.json and the claim."""
    made = CONSTRUCTIONS[name](**SMALL[name][size])
    return json.loads(json.dumps(to_data(made.circuit()))), json.loads(json.dumps(made.asks()))


def _made(name: str, params: dict) -> tuple[dict, dict]:
    return _data(name, SMALL[name].index(params))


def _reason(circuit: dict, claim: dict, **changed) -> str | None:
    """What the checker has against the promise with these entries."""
    return prove_task(parse(circuit["promise"] | changed), circuit, claim).reason


def _unasked(circuit: dict, claim: dict, length: int) -> str | None:
    """Why questions are not asked within this length."""
    language = parse(circuit["promise"] | {"length": length})
    stated, search = read_task(claim, circuit["alphabet"]), Search(language)
    try:
        stated.check_letters(circuit["alphabet"], language.used)
        check_asked(search, stated.task.questions(Ask(search, circuit["alphabet"])), stated.task.answers)
    except Rejected as reason:
        return str(reason)
    return None


def test_every_construction_with_a_task_has_a_shortest_text_here():
    titles = {_title(n, p) for n, sizes in SMALL.items() for p in sizes if CONSTRUCTIONS[n](**p).asks()}
    assert titles == LEAST.keys()


@pytest.mark.parametrize("name, params", SIZES, ids=NAMES)
def test_a_length_below_the_shortest_question_is_rejected(name, params):
    circuit, claim = _made(name, params)
    least = LEAST[_title(name, params)]
    assert _reason(circuit, claim) is None
    assert _unasked(circuit, claim, least) is None
    for length in range(1, least):
        assert _unasked(circuit, claim, length) is not None, length
        assert _reason(circuit, claim, length=length) is not None, length


@pytest.mark.parametrize("name, params", SIZES, ids=NAMES)
def test_a_letter_that_never_comes_is_rejected_where_the_task_names_it(name, params):
    """Each letter in turn is taken out of the language; absolute-time and keep-nth name none that they read."""
    circuit, claim = _made(name, params)
    letters, language = circuit["alphabet"], parse(circuit["promise"])
    needed = read_task(claim, letters).needed
    read = [] if needed is None else sorted(set(needed.tolist()) & set(language.used.tolist()))
    assert read or name in ("absolute-time", "keep-nth")
    for gone in read:
        edges = [edge | {"tokens": _without(edge["tokens"], gone)} for edge in circuit["promise"]["language"]["edges"]]
        try:
            reason = _reason(circuit, claim, language=circuit["promise"]["language"] | {"edges": edges})
        except Rejected as refused:  # no sequence is left
            reason = str(refused)
        assert reason is not None, letters[gone]


def _without(ranges: list, gone: int) -> list:
    return [[i, i] for first, last in ranges for i in range(first, last + 1) if i != gone]


@pytest.mark.parametrize("write", ["first", "last"])
def test_keys_that_come_only_once_are_not_asked(write):
    circuit, claim = _made("mqar", {"kappa": 3, "vocab": 6, "write": write})
    edges = [edge | {"distinct": True} for edge in circuit["promise"]["language"]["edges"]]
    reason = _reason(circuit, claim, language=circuit["promise"]["language"] | {"edges": edges})
    assert "no sequence of the language, of at most" in reason and "asks at 'k0'" in reason


@pytest.mark.parametrize("name, least", [("seen ab", 2), ("three", 3), ("three since", 3)])
def test_each_answer_of_a_stated_task_is_given_somewhere(name, least):
    made = MADE[name]
    circuit, claim = json.loads(json.dumps(to_data(made))), json.loads(json.dumps(made.task.claim | {"end": None}))
    assert _reason(circuit, claim) is None
    assert _unasked(circuit, claim, least) is None
    assert "has the answer" in _unasked(circuit, claim, least - 1)
    assert _reason(circuit, claim, length=least - 1) is not None


@pytest.mark.parametrize("which, least", [("first", 3), ("last", 3), ("only", 3), (1, 3), (2, 5), (3, 7)])
def test_a_look_up_of_a_later_pair_needs_a_longer_text(which, least):
    circuit = json.loads(json.dumps(to_data(MADE["first"])))
    claim = MADE["first"].task.claim | {"end": None, "which": which, "blank": None}
    assert _unasked(circuit, claim, least) is None
    assert _unasked(circuit, claim, least - 1) is not None


ASKING_NOTHING = [
    {"name": "automaton", "start": "S", "transitions": {"S": {"a": "S", "b": "S"}}, "classes": {}},
    {"name": "lookup", "keys": [], "values": [], "which": "last", "blank": None},
    {"name": "lookup", "keys": [], "values": ["a"], "which": "last", "blank": "a"},
    {"name": "lookup", "keys": ["a"], "values": [], "which": "last", "blank": "a"},
    {"name": "lookup", "keys": ["a"], "values": [], "which": 2, "blank": None},
]


@pytest.mark.parametrize("claim", ASKING_NOTHING, ids=str)
@pytest.mark.parametrize("letters", ["a", "ab"])
def test_a_claim_that_names_nothing_to_ask_is_refused_before_any_proof(letters, claim, monkeypatch):
    """Also where one letter is all there is, which leads whatever is asked."""
    alphabet = Alphabet.of(*letters)
    language = InputLanguage.of(alphabet, "s", [("s", "s", tuple(letters))], 10, "any")
    circuit = json.loads(json.dumps(to_data(Circuit("one", emit(alphabet, otherwise="a"), language))))
    if "transitions" in claim:
        claim = claim | {"transitions": {"S": dict.fromkeys(letters, "S")}}
    monkeypatch.setattr(task, "_margin", lambda *given: pytest.fail("a proof was begun"))
    assert _reason(circuit, claim | {"end": None}).startswith("the task asks")


# The search ------------------------------------------------------------------------------------------------------


def _language(rng: random.Random) -> dict:
    states = [f"s{i}" for i in range(rng.randint(1, 3))]
    edges = [
        {
            "from": rng.choice(states),
            "to": rng.choice(states),
            "tokens": [[i, i] for i in range(4) if rng.random() < 0.5] or [[0, 0]],
            "distinct": rng.random() < 0.6,
        }
        for _ in range(rng.randint(2, 5))
    ]
    return {"language": {"tokens": 4, "start": "s0", "edges": edges}, "length": rng.randint(1, 6)}


def _strings(promise: dict) -> set[str]:
    """All sequences of the language, by going along every path."""
    found: set[str] = set()

    def go(state: str, text: str, used: frozenset) -> None:
        found.add(text)
        for number, edge in enumerate(promise["language"]["edges"]):
            if edge["from"] == state and len(text) < promise["length"]:
                for i, _ in edge["tokens"]:
                    if not (edge["distinct"] and (number, i) in used):
                        go(edge["to"], text + "abcd"[i], used | {(number, i)})

    go("s0", "", frozenset())
    return found - {""}


def _pattern(rng: random.Random) -> tuple[list, str]:
    """The items of a pattern, and the same as a regular expression."""
    items, text = [], ""
    for place in range(rng.randint(1, 4)):
        ids = [i for i in range(4) if rng.random() < 0.5] or [rng.randrange(4)]
        many = bool(place) and rng.random() < 0.3
        items.append(Many(ids, once=not many))
        text += f"[{''.join('abcd'[i] for i in ids)}]" + "*" * many
    last = rng.randrange(4)
    return [ANY, *items, last], f"[abcd]*{text}{'abcd'[last]}"


def test_a_sequence_is_found_exactly_where_brute_force_finds_one():
    rng, outcomes = random.Random(5), []
    for _ in range(200):
        promise = _language(rng)
        try:
            search = Search(parse(promise))
        except Rejected:
            continue
        items, text = _pattern(rng)
        fits = sorted((s for s in _strings(promise) if re.fullmatch(text, s)), key=len)
        found = dict(search.reached(Ask(search, "abcd").pattern(*items), [0]))
        spelled = "".join("abcd"[i] for i in found.get(0, []))
        assert bool(fits) == bool(found), (promise, text)
        assert not fits or spelled in fits and len(spelled) == len(fits[0]), (promise, text, spelled)
        outcomes.append(bool(fits))
    assert 40 < sum(outcomes) < len(outcomes) - 40


def _everything(length: int | None, distinct: bool = False) -> Search:
    edges = [{"from": "s", "to": "s", "tokens": [[0, 3]], "distinct": distinct}]
    return Search(parse({"language": {"tokens": 4, "start": "s", "edges": edges}, "length": length}))


def test_a_sequence_that_the_task_s_own_definition_does_not_answer_so_is_none():
    """The pattern is found, and what it is said to ask is not what the task says there."""
    search = _everything(3)
    ask = Ask(search, "abcd")
    right = [Question({0: "asks for it"}, [ask.pattern(0, 1, right=2)])]
    check_asked(search, right, lambda letters: [2] * len(letters))
    for answer in (None, 1):
        with pytest.raises(Rejected, match="no sequence of the language, of at most 3 letters, asks for it"):
            check_asked(search, right, lambda letters, answer=answer: [answer] * len(letters))


def test_a_search_that_is_too_long_is_told(monkeypatch):
    monkeypatch.setattr(witness, "MOST_STEPS", 50)
    search = _everything(None)
    question = Question({0: "asks for it"}, [Ask(search, "abcd").pattern(*[None] * 60)])
    with pytest.raises(Rejected, match="a search of 50 steps finds no sequence that asks for it"):
        check_asked(search, [question], lambda letters: [0] * len(letters))


def test_a_search_stops_among_the_places_of_one_letter(monkeypatch):
    """The second letter alone would take some 1,800 steps from the 61 places behind the first."""
    monkeypatch.setattr(witness, "MOST_STEPS", 50)
    search = _everything(None)
    assert not dict(search.reached(Ask(search, "abcd").pattern(*[ANY] * 60, 0, 1, 2), [0]))
    assert search.steps < 300


def test_a_step_past_letters_that_are_used_up_counts_each_of_them() -> None:
    """All that was taken is looked at again: a web of 900 distinct edges took 34 seconds to be none."""
    states = [f"s{i}" for i in range(30)]
    edges = [{"from": s, "to": t, "tokens": [[0, 3]], "distinct": True} for s in states for t in states]
    search = Search(parse({"language": {"tokens": 4, "start": "s0", "edges": edges}, "length": None}))
    question = Question({0: "asks for it"}, [Ask(search, "abcd").pattern(*[None] * 60)])
    began = time.process_time()
    with pytest.raises(Rejected, match="steps finds no sequence that asks for it"):
        check_asked(search, [question], lambda letters: [0] * len(letters))
    assert time.process_time() - began < 10


@pytest.mark.parametrize("n", [2, 65537, 300_000])
def test_a_position_far_away_is_reached_in_a_sequence_of_that_length(n):
    """The task's own definition answers it there."""
    for length in (None, n):
        search = _everything(length)
        check_asked(search, questions.of_position(Ask(search, "abcd"), n), task.Keep(n).answers)


@pytest.mark.parametrize("n, distinct", [(65537, True), ((1 << 20) + 1, False)])
def test_a_position_that_is_too_far_away_is_said_to_be_that(n, distinct):
    asked = questions.of_position(Ask(_everything(None, distinct), "abcd"), n)
    with pytest.raises(Rejected, match=f"whether a sequence has {n} letters is only looked for up to {n - 1}"):
        next(asked)


@pytest.mark.parametrize("write", ["sum", "first", "last"])
def test_large_vocabularies_are_soon_searched(write):
    made = CONSTRUCTIONS["mqar"](kappa=1024, vocab=50257, write=write)
    circuit = made.circuit()
    language = parse(json.loads(json.dumps(to_data(circuit)))["promise"])
    letters = list(circuit.language.alphabet.tokens)
    stated, search, start = read_task(made.asks(), letters), Search(language), time.process_time()
    check_asked(search, stated.task.questions(Ask(search, letters)), stated.task.answers)
    assert search.steps < 200 and time.process_time() - start < 2


def test_letters_alike_are_one_class_and_others_are_not():
    edges = [{"from": "s", "to": "s", "tokens": [[0, 1], [3, 3]], "distinct": False}]
    edges += [{"from": "s", "to": "t", "tokens": [[1, 2]], "distinct": False}]
    search = Search(parse({"language": {"tokens": 5, "start": "s", "edges": edges}, "length": 4}))
    same = {(a, b) for a, b in product(range(5), repeat=2) if search.alike[a] == search.alike[b]}
    assert same == {(a, a) for a in range(5)} | {(0, 3), (3, 0)}
    assert search.one_of_each(np.arange(5)) == [0, 1, 2, 4]
    assert search.one_of_each(np.arange(5), np.array([0, 0, 0, 1, 0])) == [0, 1, 2, 3, 4]
