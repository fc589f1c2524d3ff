"""What a small file may ask of the kernel: each of these took hours, all memory, or ended in a traceback."""

from __future__ import annotations

import base64
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.verify.kernel.small import copied, only_new, searched
from verify.kernel import circuit as circuits
from verify.kernel import claims, exact, situations
from verify.kernel.cases import Grid
from verify.kernel.certificate import prove
from verify.kernel.circuit import Circuit
from verify.kernel.claims import Ledger, Refused
from verify.kernel.files import read, read_json
from verify.kernel.floats import Unproved
from verify.kernel.language import Edge, Language, parse
from verify.kernel.machines import Machine, beside
from verify.kernel.readout import check_leads
from verify.kernel.situations import Situations
from verify.kernel.terms import Terms, constant
from verify.prover.prove import search_of

ONE = {"operation": "Constant", "attributes": {"values": [1]}, "inputs": []}


def letters(*names: int) -> np.ndarray:
    return np.isin(np.arange(2), names)


ALL = Language(2, 1, (Edge(0, 0, letters(0, 1), False),), 9)


def numbers(values: list[int], kind: Any = 8) -> dict:
    return {"bytes": kind, "base64": base64.b64encode(np.array(values, "<i8").tobytes()).decode()}


def counted(counts: list[int], kind: Any = 8) -> dict:
    held = {"counts": numbers(counts, kind), "columns": numbers([0]), "values": numbers([1])}
    return {"shape": [1, 1], "exponent": 0, **held}


def linear(*matrices: dict) -> tuple[str, dict]:
    return "Linear", {"matrices": list(matrices)}


ASKED: dict[str, tuple[tuple[str, dict], str]] = {
    "a power of ten in a text": (("Constant", {"values": ["1e2000000000"]}), "no number, or none in digits"),
    "such a bound": (("Clip", {"lo": 0, "hi": "1e2000000000"}), "no number, or none in digits"),
    "such an entry": (linear({"size": 1, "diagonal": "1e2000000000"}), "no number, or none in digits"),
    "such a table": (("Lookup", {"table": ["1e2000000000"], "symbols": False}), "no number, or none in digits"),
    "a one-hot of many numbers": (("OneHotOf", {"n": 10**12}), "too large"),
    "a look far back": (("Shift", {"k": 10**12}), "too large"),
    "a kind of integers": (linear(counted([1], "fi,)O")), "'fi,\\)O' bytes, expected 1, 2, 4 or 8"),
    "a row of many entries": (linear(counted([4 * 10**8])), "more entries than there are"),
    "a row of fewer than none": (linear(counted([-1])), "more entries than there are"),
    "a table of one row": (
        ("Embed", {"table": {"shape": [1, 1], "rows": [[[0, 1]]]}}),
        "a table of 1 rows for 2 letters",
    ),
    "a matrix of another size": (linear({"size": 8192, "diagonal": 1}), "different sizes"),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_a_stream_may_ask(name: str):
    (operation, attributes), words = ASKED[name]
    inputs = [] if operation in ("Constant", "Embed") else [0]
    streams = [ONE, {"operation": operation, "attributes": attributes, "inputs": inputs}, ONE]
    with pytest.raises(Unproved, match=words):
        Circuit(Ledger(Terms(ALL), only_new), {"streams": streams, "output": 2})


@pytest.mark.parametrize("limit, words", [("MOST_ENTRIES", "entries together"), ("MOST_LANES", "lanes together")])
def test_matrices_and_lanes_are_counted_together(limit: str, words: str, monkeypatch: pytest.MonkeyPatch):
    """Each is small, and a file of few bytes has many."""
    maps = [{"operation": "Linear", "attributes": {"matrices": [{"size": 1, "diagonal": 1}]}, "inputs": [0]}] * 4
    read_all = lambda: Circuit(Ledger(Terms(ALL), only_new), {"streams": [ONE, *maps, ONE], "output": 5})
    assert len(read_all().lanes) == 5
    monkeypatch.setattr(circuits, limit, 3)
    with pytest.raises(Unproved, match=words):
        read_all()


def test_numbers_of_more_than_64_bits_are_few(monkeypatch: pytest.MonkeyPatch):
    """Each is a number of Python's: of 50 million, a file of 135 kB made 6 GB."""
    wide = np.array([[2.0**100, 2.0**-20], [0.0, 1.0]])
    found, below = exact.whole(wide)
    assert below == 1 << 20 and found.dtype == object
    assert exact.matmul(found, found)[0, 0] == 1 << 240
    monkeypatch.setattr(exact, "_MOST_LONG", 3)
    with pytest.raises(Unproved, match="4 numbers that 64 bits do not hold"):
        exact.whole(wide)
    with pytest.raises(Unproved, match="products of 8192 × 8193 numbers"):
        exact.matmul(np.full((8192, 1), 1 << 70), np.full((1, 8193), 1))
    with pytest.raises(Unproved, match="scores of more than 64 bits"):
        check_leads(np.full((1 << 14, 2), 1 << 70), np.full((2, 1 << 12), 1), np.arange(1 << 12))


def test_what_is_seen_too_far_back_makes_no_cases():
    """One stream looks back no farther than a claim can, but many do so one behind the other."""
    terms = Terms(ALL)
    far = terms.earlier(constant(1), 1 << 30)
    with pytest.raises(Unproved, match="1073741824 positions back makes more than"):
        Grid(terms, [far])
    with pytest.raises(Unproved, match="is read 1073741824 positions back"):
        Situations(terms, [far], [], [])


def test_a_convolution_has_no_more_taps_than_a_claim_looks_back(recall, tmp_path):
    config = read_json(recall / "config.json")
    with pytest.raises(Unproved, match="conv_kernel = 4097, and 4096 is the most"):
        read(copied(recall, tmp_path / "wide", config=config | {"conv_kernel": 4097}))


def test_a_proof_has_a_last_claim(recall, monkeypatch: pytest.MonkeyPatch):
    found = searched(recall)[1]
    monkeypatch.setattr(claims, "MOST_CLAIMS", 3)
    with pytest.raises(Unproved, match="more than 3 claims"):
        prove(read(recall), found)


def promise(*edges: tuple[str, list, str], length: int = 9) -> dict:
    held = [{"from": a, "to": b, "tokens": spans, "distinct": False} for a, spans, b in edges]
    return {"language": {"tokens": 2, "start": "s", "edges": held}, "length": length}


def test_edges_that_no_sequence_takes_are_left_out():
    """What was said of their letters was said of nothing; and a walk went by all of them, for each situation."""
    found = parse(promise(("s", [[0, 0]], "s"), ("s", [], "t"), ("t", [[1, 1]], "t"), ("u", [[1, 1]], "s")))
    assert found.used.tolist() == [True, False] and len(found.edges) == 1 and found.states == 3
    chain = [("s", [[0, 0]], "0"), *((str(i), [[0, 0]], str(i + 1)) for i in range(4)), ("4", [[1, 1]], "s")]
    for length, last in ((5, False), (6, True)):
        found = parse(promise(*chain, length=length))
        assert found.used[1] == last and len(found.edges) == length


def test_a_task_that_is_asked_behind_no_path_is_no_task(recall):
    """Recall of a language whose pairs and queries lie on an island that no sequence comes to."""
    checkpoint = read(recall)
    away = [replace(edge, source=edge.source + 1, target=edge.target + 1) for edge in checkpoint.language.edges]
    mask = np.arange(checkpoint.language.tokens) == 0
    data = [(Edge(0, 0, mask, False)), *away]
    held = [
        {"from": str(e.source), "to": str(e.target), "tokens": [[a, a] for a in np.flatnonzero(e.letters).tolist()]}
        for e in data
    ]
    language = {"tokens": len(mask), "start": "0", "edges": [edge | {"distinct": False} for edge in held]}
    island = parse({"language": language, "length": 99})
    assert island.used.tolist() == mask.tolist() and island.states > len(island.edges) == 1
    with pytest.raises(Unproved, match="a text that asks 0: no claim of the kind 'asks'"):
        search_of(replace(checkpoint, language=island))


def test_a_walk_ends_at_its_steps(monkeypatch: pytest.MonkeyPatch):
    """Two letters lead from each situation to two: all the last twelve letters."""
    terms = Terms(replace(ALL, length=99))
    letter = terms.of_letter([0, 1])  # type: ignore[list-item]
    held = terms.add([(1, terms.earlier(letter, 12)), (1, letter)])  # type: ignore[list-item]
    assert len(Situations(terms, [held], [], []).state) > 1 << 12
    monkeypatch.setattr(situations, "_STEPS_EACH", 0)
    with pytest.raises(Unproved, match="situations and more, in 2 steps"):
        Situations(terms, [held, held], [], [], language=terms.language)
    monkeypatch.setattr(situations, "_STEPS_EACH", 16)
    monkeypatch.setattr(situations, "_MOST_NUMBERS", 64)
    with pytest.raises(Unproved, match="situations and more"):
        Situations(terms, [held, held], [], [], language=terms.language)


def test_all_cases_of_a_proof_are_counted_together(recall, monkeypatch: pytest.MonkeyPatch):
    """Each claim has limits of its own, and there may be thousands."""
    found = searched(recall)[1]
    monkeypatch.setattr("verify.kernel.terms._MOST_WORK", 100)
    with pytest.raises(Refused, match="the cases of the proof form more than 100 numbers"):
        prove(read(recall), found)


def test_a_task_beside_a_language_ends_at_its_steps(monkeypatch: pytest.MonkeyPatch):
    machine = Machine(0, lambda held, a: (held + a) % 8, lambda held: held % 2)
    both, _ = beside(ALL, machine)
    assert len(both.edges) == 16
    for limit in ("_MOST_STEPS", "MOST_LETTERS"):
        with monkeypatch.context() as patch:
            patch.setattr("verify.kernel.machines." + limit, 7)
            with pytest.raises(Unproved, match="task and language take more than"):
                beside(ALL, machine)


def test_an_automaton_says_something_of_each_state_that_it_moves_to(keep):
    """A state whose name was mistyped ended what is asked."""
    checkpoint = read(keep)
    names = checkpoint.circuit["alphabet"]
    moves = {a: dict.fromkeys(names, b) for a, b in pairwise(["p", "q", "p"])}
    task = {"name": "automaton", "start": "p", "end": None, "transitions": moves, "classes": {"q": names[0]}}
    with pytest.raises(Unproved, match="may score as high|no claim of the kind 'answers'"):
        prove(replace(checkpoint, task=task), searched(keep)[1])
    moves["p"] = moves["p"] | {names[0]: "Q"}
    with pytest.raises(Unproved, match="leads to a state that it says nothing of"):
        prove(replace(checkpoint, task=task), searched(keep)[1])
