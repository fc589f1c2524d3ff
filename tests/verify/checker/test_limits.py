"""What a small file may ask of the checker: each of these took minutes or gigabytes before it was refused."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from compiler import Alphabet, Circuit, InputLanguage, Tokens, constant, readout_integer
from compiler.language.data import language_to_data, to_data
from constructions.registry import CONSTRUCTIONS
from tests.verify.checker.small_case import Case
from tests.verify.checker.test_configs import _config
from tests.verify.checker.test_reached import X, _asked, _circuit, _data
from verify.checker.budget import MOST_LAG, check_circuit
from verify.checker.families import check_config
from verify.checker.formats import Rejected
from verify.checker.tasks import letters, reached
from verify.checker.tasks.letters import Situation, Work
from verify.checker.tasks.names import Names
from verify.checker.tasks.paths import prove_paths
from verify.checker.tasks.reached import prove_reached
from verify.checker.tasks.task import Answers, prove_task, read_task
from verify.checker.text import check_text
from verify.checker.values.effort import limited
from verify.checker.values.language import parse
from verify.checker.values.tables import Table
from verify.checker.values.values import ZERO, Value, combine

BACK = {"0": {"a": "1", "b": "0"}, "1": {"a": "3", "b": "2"}, "2": {"a": "1", "b": "0"}, "3": {"a": "3", "b": "2"}}
AFTER_A = {"start": "0", "transitions": BACK, "accept": ["2", "3"]}


# Situations --------------------------------------------------------------------------------------------------------


def test_equal_tables_of_situations_are_one_and_are_counted_once() -> None:
    work, table = Work(), np.arange(12.0).reshape(3, 4)
    held = work.kept(table)
    assert held is not table and (held == table).all() and work.kept(table.copy()) is held
    assert work.room == letters.MOST_KEPT - table.nbytes
    others = [table.reshape(4, 3), table.astype(np.int64), table + 1]
    assert len({id(work.kept(other)) for other in (table, *others)}) == 4


def test_what_all_situations_hold_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table over two letters stood in each of 4,096 situations, and in its key: 6 GB."""
    case = Case("copy", {"form": "delay", "n": 2, "vocab": 3}, 4)
    assert case.prove() == 1
    monkeypatch.setattr(letters, "MOST_KEPT", 40)
    reason = case.answers().reason or ""
    assert "the situations to go through one by one take more than 40 bytes" in reason
    monkeypatch.setattr(letters, "MOST_KEPT", 30)
    with pytest.raises(Rejected, match="take more than 30 bytes"):
        prove_reached(*_asked(_data(_circuit(X.is_in("a").shift(1))), AFTER_A))


def test_what_is_known_of_letters_is_counted() -> None:
    """Sets of combinations were narrowed at no cost: 21 seconds in all."""
    many = np.ones((50, 60), dtype=bool)
    situation = Situation({i: np.arange(n) for i, n in enumerate(many.shape)}, (((0, 1), many),) * 8, Work())
    before = situation.work.left
    assert situation.possible((0, 1)).all()
    assert before - situation.work.left >= 8 * many.size // letters._MARKS


def test_rows_are_as_many_as_what_they_remember_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A delay remembers as many numbers as it is long, though no lane is wide."""
    widest: list[int] = []
    moved = reached._Steps.moved

    def watched(self, rows, work):
        found = moved(self, rows, work)
        widest.append(self.widest)
        return found

    monkeypatch.setattr(reached._Steps, "moved", watched)
    here = X.is_in("a")
    prove_reached(*_asked(_data(_circuit(here.shift(1) + constant(0) * here.shift(8))), AFTER_A))
    assert max(widest) >= 9


def test_each_number_of_a_delay_is_an_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A delay of a million took minutes of each letter."""
    here = X.is_in("a")
    far = _data(_circuit(here.shift(1) + constant(0) * here.shift(4000)))
    monkeypatch.setattr(letters, "MOST_WORK", 1 << 24)
    began = time.process_time()
    with pytest.raises(Rejected, match="too many situations"):
        prove_reached(*_asked(far, AFTER_A))
    assert time.process_time() - began < 5


def test_a_language_that_grows_beside_a_small_circuit_takes_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Selective copying in a web of 2,000 edges took 13 seconds to be none; here an eighth of its work may be done."""
    made = CONSTRUCTIONS["selective-copy"](n=2, vocab=2)
    circuit = json.loads(json.dumps(to_data(made.circuit())))
    states = [f"s{i}" for i in range(100)]
    ends = [(i, (i * 7 + j) % 100) for i in range(100) for j in range(20)]
    tokens = [[0, len(made.circuit().language.alphabet.tokens) - 1]]
    edges = [{"from": states[i], "to": states[j], "tokens": tokens, "distinct": False} for i, j in ends]
    language = {"tokens": tokens[0][1] + 1, "start": "s0", "edges": edges}
    monkeypatch.setattr(letters, "MOST_WORK", letters.MOST_WORK >> 3)
    stated = read_task(made.asks(), list(made.circuit().language.alphabet.tokens))
    began = time.process_time()
    with pytest.raises(Rejected, match="too many situations"):
        prove_paths(parse({"language": language, "length": 20}), circuit, stated.task.machine)
    assert time.process_time() - began < MOST_SORTS * _sort()


MOST_SORTS = 8.5
"""As long as so many sorts the search may take: it takes some six."""


def _sort() -> float:
    """Processor seconds of a sort in plain Python on this machine, which may be slow: the least of three."""

    def once() -> float:
        began = time.process_time()
        sorted(range(1 << 19), key=lambda i: i * 7919 % 524287)
        return time.process_time() - began

    return min(once() for _ in range(3))


# What is seen back ---------------------------------------------------------------------------------------------------


def _streams(*streams: tuple[str, dict, list]) -> dict:
    kind = {"kind": "Int", "lo": None, "hi": None, "width": 1}
    held = [
        {"operation": name, "attributes": attributes, "inputs": inputs, "type": kind, "name": None, "source": []}
        for name, attributes, inputs in [("Constant", {"values": [1]}, []), *streams]
    ]
    return {"groups": [], "codebooks": [], "streams": held}


FAR = {
    "a shift": [("Shift", {"k": MOST_LAG + 1}, [0])],
    "two shifts": [("Shift", {"k": MOST_LAG}, [0]), ("Relu", {}, [1]), ("Shift", {"k": 1}, [2])],
    "taps": [("Lti", {"kernel": [0] * (MOST_LAG + 2)}, [0])],
    "taps of a shift": [("Shift", {"k": MOST_LAG}, [0]), ("Lti", {"kernel": [0, 1]}, [1])],
}


@pytest.mark.parametrize("name", FAR)
def test_a_circuit_sees_no_farther_back_than_the_limit(name: str) -> None:
    with pytest.raises(Rejected, match=f"has {MOST_LAG + 1} positions seen back, and the checker reads {MOST_LAG} at"):
        check_circuit(_streams(*FAR[name]), 0)


def test_delays_beside_each_other_are_each_as_long_as_the_limit_but_not_too_many() -> None:
    one = ("Shift", {"k": MOST_LAG}, [0])
    check_circuit(_streams(*[one] * 100), 0)
    with pytest.raises(Rejected, match="lanes of work"):
        check_circuit(_streams(*[one] * 200), 0)


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_a_convolution_has_no_more_taps_than_the_limit(arch: str) -> None:
    config = _config(arch)
    assert check_config(config | {"conv_kernel": MOST_LAG}, config["dtype"])
    with pytest.raises(Rejected, match=f"conv_kernel = {MOST_LAG + 1}, expected an integer from 1 to {MOST_LAG}"):
        check_config(config | {"conv_kernel": MOST_LAG + 1}, config["dtype"])


def test_what_stands_before_a_sequence_is_counted_where_it_is_added() -> None:
    far = Value(ZERO, {(-1, 4000): Table(np.arange(3.0), (ZERO,) * 4000)})
    with limited() as effort:
        combine([(1, far)])  # type: ignore[list-item]
    assert effort.steps >= 1000


def test_no_construction_comes_near_the_limit() -> None:
    """A text of a thousand letters that is written a thousand positions later."""
    alphabet = Alphabet.of("a", "b")
    output = readout_integer(Tokens(alphabet).is_in("a").shift(1024), alphabet, {"b": 0, "a": 1})
    circuit = Circuit("far", output, InputLanguage.everything(alphabet, 4096))
    data = json.loads(json.dumps(to_data(circuit)))
    assert parse(language_to_data(circuit.language)).length == 4096
    check_circuit(data, 0)


# Folders -------------------------------------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_listed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(self: Path):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", denied)
    with pytest.raises(Rejected, match="the files beside config.json cannot be listed: Permission denied"):
        check_text(tmp_path, {}, {}, {"promise": {}})


# Tasks ---------------------------------------------------------------------------------------------------------------


def _timed(letters: list[str], claim: dict) -> tuple[float, Answers]:
    circuit = {"alphabet": letters, "end": "." if "." in letters else None, "streams": []}
    edges = [{"from": "s", "to": "s", "tokens": [[0, len(letters) - 1]], "distinct": False}]
    language = parse({"language": {"tokens": len(letters), "start": "s", "edges": edges}, "length": 9})
    began = time.process_time()
    found = prove_task(language, circuit, claim)
    return time.process_time() - began, found


def test_names_of_many_letters_are_looked_at_once() -> None:
    """Of 10,000 letters, and as many that ask for each of them: 10^8 looks at a name."""
    names = Names([*(f"x{i}" for i in range(2000)), *(f"x{i}@1" for i in range(2000))])
    began = time.process_time()
    assert [names.numbered(f"x{i}@", 1).tolist() for i in range(2000)] == [[i] for i in range(2000, 4000)]
    assert time.process_time() - began < 0.5
    assert len(names.numbered("x")) == 2000


@pytest.mark.parametrize("letters, prefix", [(["x0", "x2"], "x"), (["1", "0", "3"], ""), (["a10", "a12"], "a1")])
def test_a_number_that_is_left_out_is_seen_nevertheless(letters: list[str], prefix: str) -> None:
    with pytest.raises(Rejected, match="some are left out"):
        Names(letters).numbered(prefix)


def test_a_table_of_many_states_and_letters_is_refused_before_it_is_formed() -> None:
    """A line a state: 640 MB, which were sorted."""
    letters = [f"a{i}" for i in range(20000)]
    moves = {str(i): {f"a{i}": str(i + 1)} for i in range(4000)}
    claim = {"name": "automaton", "start": "0", "transitions": moves, "classes": {"4000": "a0"}, "end": None}
    seconds, found = _timed(letters, claim)
    assert "an automaton has at most 4194304 moves" in (found.reason or "") and seconds < 5


def test_sets_of_many_letters_are_refused_before_they_are_formed() -> None:
    """Of each item one, a byte for each letter: 4 GB."""
    items = [f"k{i}=v{j}" for i in range(100) for j in range(100)]
    letters = [*items, *(f"q{i}" for i in range(100)), *(f"v{i}" for i in range(100))]
    _, found = _timed(letters, {"name": "token-selection", "points": "angle", "size": 100})
    assert "sets of 10200 letters to go through, and more" in (found.reason or "")
