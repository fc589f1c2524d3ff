"""The lemma of known letters: circuits of finitely many states beside automata, against brute force."""

from __future__ import annotations

import copy
import json
import random
from fractions import Fraction

import numpy as np
import pytest

from compiler.automata.images import images
from compiler.automata.table import minimal
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.data import to_data
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout_integer
from compiler.language.source import Tokens
from compiler.language.words import count, latch
from constructions.automata.automaton import Automaton, table_json
from constructions.automata.languages import NAMED
from tests.automata.tables import random_table
from tests.verify.checker.evaluator import evaluate
from verify.checker.formats import Rejected
from verify.checker.tasks import reached
from verify.checker.tasks.names import Names
from verify.checker.tasks.paths import prove_paths
from verify.checker.tasks.reached import Unfit, prove_reached
from verify.checker.tasks.task_forms import read_automaton
from verify.checker.values.language import parse

YES = Alphabet.of("a", "b", "no", "yes")
X = Tokens(YES)


def _data(circuit: Circuit) -> dict:
    return json.loads(json.dumps(to_data(circuit)))


def _asked(data: dict, claim: dict):
    return parse(data["promise"]), data, read_automaton(claim, Names(data["alphabet"]))[0]


def _circuit(flag, length: int | None = None) -> Circuit:
    language = InputLanguage.of(YES, "s", [("s", "s", ("a", "b"))], length, "strings of a and b")
    return Circuit("yes", readout_integer(flag, YES, {"no": 0, "yes": 1}), language)


def _wrong_somewhere(data: dict, table, answers: np.ndarray, words: np.ndarray) -> bool:
    """Whether one of these words is answered otherwise than by the table, or not ahead of all: an evaluator that shares
    nothing with circuit or checker.
    """
    scores = np.sort(evaluate(data, words), axis=-1), evaluate(data, words).argmax(axis=-1)
    state, following = np.full(len(words), table.start), np.array(table.following)
    for t in range(words.shape[1]):
        state = following[state, words[:, t]]
        if (scores[1][:, t] != answers[state]).any():
            return True
    return bool((scores[0][..., -1] == scores[0][..., -2]).any())


@pytest.mark.parametrize("name", ["tomita-2", "tomita-7", "dyck-1-2", "even-pairs"])
def test_both_proofs_find_the_same_margin(name) -> None:
    construction = Automaton(table=table_json(NAMED[name].make()))
    asked = _asked(_data(construction.circuit()), construction.asks())
    assert prove_reached(*asked) == prove_paths(*asked) > 0


def _star_free(count: int) -> list:
    found, seed = [], 0
    while len(found) < count:
        table = random_table(seed, 2 + seed % 5)
        if not images(minimal(table)).permutations:
            found.append(table)
        seed += 1
    return found


def test_no_false_claim_is_proved() -> None:
    """The claim of another automaton, a number of a table, a matrix or an embedding changed: refused where random
    words find a wrong answer; accepted where nothing that can be reached has changed.
    """
    draw, refused, kept = random.Random(0), 0, 0
    words = np.random.default_rng(0).integers(2, size=(300, 24))
    for table in _star_free(30):
        construction = Automaton(table=table_json(table))
        data, claim = _data(construction.circuit()), construction.asks()
        ids = {name: i for i, name in enumerate(data["alphabet"])}
        answers = np.array([ids[name] for name in construction.given.outputs])
        assert prove_reached(*_asked(data, claim)) > 0
        for _ in range(10):
            changed, stream = copy.deepcopy(data), draw.choice(data["streams"])
            at = data["streams"].index(stream)
            attributes = changed["streams"][at]["attributes"]
            if isinstance(attributes.get("table"), list) and attributes["table"]:
                k = draw.randrange(len(attributes["table"]))
                attributes["table"][k] = int(attributes["table"][k]) + draw.choice((-1, 1))
            elif stream["operation"] == "Shift":
                attributes["k"] += 1
            elif len(stream["inputs"]) == 2 and stream["operation"] == "Latch":
                changed["streams"][at]["inputs"][1] = draw.choice(
                    [i for i, s in enumerate(data["streams"][:at]) if s["type"]["kind"] == "Bool"]
                    or stream["inputs"][1:]
                )
            else:
                continue
            if changed == data:
                continue
            try:
                proved = prove_reached(*_asked(changed, claim)) > 0
            except (Rejected, IndexError):
                proved = False
            refused, kept = refused + (not proved), kept + proved
            if proved:
                assert not _wrong_somewhere(changed, construction.given, answers, words)
    assert refused > 20 and kept > 20, (refused, kept)


def test_one_wrong_state_far_away_is_found() -> None:
    """D_4 with one transition of its claim changed, in each state: no word of fewer letters tells them apart."""
    construction = Automaton(table=table_json(NAMED["d-4"].make()))
    data, claim = _data(construction.circuit()), construction.asks()
    for state in claim["transitions"]:
        other = copy.deepcopy(claim)
        other["transitions"][state]["a"] = state
        same = other == claim
        assert (prove_reached(*_asked(data, other)) > 0) == same


def test_what_counts_ends_with_the_length_or_with_the_cap(monkeypatch) -> None:
    seen = {"0": {"a": "1", "b": "0"}, "1": {"a": "0", "b": "1"}}
    claim = {"start": "0", "transitions": seen, "classes": {"0": "no", "1": "yes"}}
    odd = (X.is_in("a").cumsum() % 2).named("odd")
    assert prove_reached(*_asked(_data(_circuit(odd, 200)), claim)) == 1
    monkeypatch.setattr(reached, "MOST_REACHED", 100)
    with pytest.raises(Rejected, match="more than 100 situations"):
        prove_reached(*_asked(_data(_circuit(odd, 200)), claim))


def test_counts_since_and_delays_are_rows(monkeypatch) -> None:
    since = count(X.is_in("a"), reset=X.is_in("b")) > 1
    table = {"0": {"a": "1", "b": "0"}, "1": {"a": "2", "b": "0"}, "2": {"a": "2", "b": "0"}}
    claim = {"start": "0", "transitions": table, "accept": ["2"]}
    assert prove_reached(*_asked(_data(_circuit(since, 50)), claim)) == Fraction(1)
    back = {"0": {"a": "1", "b": "0"}, "1": {"a": "3", "b": "2"}, "2": {"a": "1", "b": "0"}, "3": {"a": "3", "b": "2"}}
    claim = {"start": "0", "transitions": back, "accept": ["2", "3"]}
    assert prove_reached(*_asked(_data(_circuit(X.is_in("a").shift(1))), claim)) == 1
    assert prove_reached(*_asked(_data(_circuit(latch(X.is_in("a"), X.is_in(["a", "b"])).shift(1))), claim)) == 1
    claim["accept"] = ["2"]
    assert prove_reached(*_asked(_data(_circuit(X.is_in("a").shift(1))), claim)) <= 0


def test_letters_that_are_used_up_are_for_another_proof() -> None:
    language = InputLanguage.of(YES, "s", [("s", "s", ("a", "b"), True)], 2, "a and b once each")
    circuit = Circuit("yes", readout_integer(X.is_in("a"), YES, {"no": 0, "yes": 1}), language)
    with pytest.raises(Unfit):
        prove_reached(*_asked(_data(circuit), {"start": "0", "transitions": {"0": {"a": "0"}}, "accept": []}))
