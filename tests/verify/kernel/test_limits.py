"""What a small file may ask of the kernel: each of these took hours, all memory, or ended in a traceback."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.verify.kernel.small import copied, only_new, searched
from verify.kernel import circuit as circuits
from verify.kernel import claims, exact, situations, texts
from verify.kernel.cases import Grid
from verify.kernel.certificate import prove
from verify.kernel.circuit import Circuit
from verify.kernel.claims import Ledger, Refused
from verify.kernel.files import read, read_json
from verify.kernel.floats import Unproved
from verify.kernel.language import Edge, Language, parse
from verify.kernel.machines import Machine, beside, counted
from verify.kernel.readout import check_leads, numbered
from verify.kernel.situations import Situations
from verify.kernel.tasks import read_task
from verify.kernel.terms import Terms, constant
from verify.prover.prove import search_of

ONE = {"operation": "Constant", "attributes": {"values": [1]}, "inputs": []}


def letters(*names: int) -> np.ndarray:
    return np.isin(np.arange(2), names)


ALL = Language(2, 1, (Edge(0, 0, letters(0, 1), False),), 9)


def numbers(values: list[int], kind: Any = 8) -> dict:
    return {"bytes": kind, "base64": base64.b64encode(np.array(values, "<i8").tobytes()).decode()}


def packed(counts: list[int], kind: Any = 8) -> dict:
    held = {"counts": numbers(counts, kind), "columns": numbers([0]), "values": numbers([1])}
    return {"shape": [1, 1], "exponent": 0, **held}


def linear(*matrices: dict) -> tuple[str, dict]:
    return "Linear", {"matrices": list(matrices)}


ASKED: dict[str, tuple[tuple[str, dict], str]] = {
    "a power of ten in a text": (("Constant", {"values": ["1e2000000000"]}), "no number, or none in digits"),
    "such a bound": (("Clip", {"lo": 0, "hi": "1e2000000000"}), "no number, or none in digits"),
    "such an entry": (linear({"size": 1, "diagonal": "1e2000000000"}), "no number, or none in digits"),
    "such a table": (("Lookup", {"table": ["1e2000000000"], "symbols": False}), "no number, or none in digits"),
    "a one-hot of many numbers": (("OneHotOf", {"n": 10**12}), "lanes together"),
    "a look far back": (("Shift", {"k": 10**12}), "too large"),
    "a kind of integers": (linear(packed([1], "fi,)O")), "'fi,\\)O' bytes, expected 1, 2, 4 or 8"),
    "a row of many entries": (linear(packed([4 * 10**8])), "more entries than there are"),
    "a row of fewer than none": (linear(packed([-1])), "more entries than there are"),
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
    for name in ("terms._OF_A_TERM", "terms._OF_A_LETTER", "terms._OF_A_FRACTION", "circuit._OF_A_RAMP"):
        monkeypatch.setattr(f"verify.kernel.{name}", 0)
    monkeypatch.setattr("verify.kernel.terms._MOST_WORK", 100)
    monkeypatch.setattr("verify.kernel.terms._OF_A_WEIGHT", 0)
    with pytest.raises(Refused, match="the proof forms more than 100 numbers"):
        prove(read(recall), found)


def test_a_proof_of_more_weights_may_take_longer(recall, monkeypatch: pytest.MonkeyPatch):
    found, checkpoint = searched(recall)[1], read(recall)
    monkeypatch.setattr("verify.kernel.terms._MOST_WORK", 0)
    with pytest.raises((Unproved, Refused), match=f"the proof forms more than {32 * checkpoint.weights} numbers"):
        prove(checkpoint, found)
    monkeypatch.setattr("verify.kernel.terms._OF_A_WEIGHT", 1 << 20)
    assert prove(checkpoint, found).claims == len(found)


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


# What is counted as it is formed -------------------------------------------------------------------------------------


def read_streams(*streams: dict) -> Circuit:
    return Circuit(Ledger(Terms(ALL), only_new), {"streams": [*streams, ONE], "output": len(streams)})


def stream(operation: str, *inputs: int, **attributes: Any) -> dict:
    return {"operation": operation, "attributes": attributes, "inputs": list(inputs)}


def test_lanes_are_counted_before_they_are_built(monkeypatch: pytest.MonkeyPatch):
    """A one-hot of 2^20 numbers took 340 seconds and 3.7 GB before its lanes were counted."""
    three = stream("Constant", values=[1, 1, 1])
    wide = {"shape": [9, 1], "rows": [[]] * 9}
    letter = stream("Embed", table={"shape": [2, 9], "rows": [[], []]})
    built: list[str] = []
    for name in ("OneHotOf", "Latch", "SumWhere", "Linear", "Embed"):
        rule, known = circuits.RULES[name]
        kept = lambda *operands, rule=rule, name=name: built.append(name) or rule(*operands)
        monkeypatch.setitem(circuits.RULES, name, (kept, known))
    asked = [[ONE, stream("Linear", 0, matrices=[wide])], [letter], [ONE, stream("OneHotOf", 0, n=9)]]
    asked += [[three, three, stream(name, 0, 1)] for name in ("Latch", "SumWhere")]
    for streams in asked:
        read_streams(*streams)
    assert sorted(set(built)) == ["Embed", "Latch", "Linear", "OneHotOf", "SumWhere"]
    built.clear()
    monkeypatch.setattr(circuits, "MOST_LANES", 8)
    for streams in asked:
        with pytest.raises(Unproved, match="more than 8 lanes together"):
            read_streams(*streams)
    assert not built


def test_what_a_circuit_forms_is_counted_with_the_cases(monkeypatch: pytest.MonkeyPatch):
    """Of 2^20 lanes that are allowed each may be a sum of ramps."""
    count = stream("Cumsum", 0)
    monkeypatch.setattr("verify.kernel.terms._MOST_WORK", 1 << 24)
    read_streams(ONE, count, stream("OneHotOf", 1, n=8))
    with pytest.raises(Unproved, match="the proof forms more than 16777216 numbers"):
        read_streams(ONE, count, stream("OneHotOf", 1, n=1 << 16))


def test_each_polynomial_costs_as_many_numbers_as_it_has_terms():
    terms = Terms(ALL)
    letter = terms.of_letter(np.array([0, 3]))
    far = terms.add([(Fraction(1), terms.earlier(letter, k)) for k in range(40)])
    asked: dict[str, Callable[[], Any]] = {
        "add": lambda: terms.add([(Fraction(1), far)]),
        "product": lambda: terms.product(far, letter),
        "earlier": lambda: terms.earlier(far, 1),
        "relu": lambda: terms.relu(far),
        "sum": lambda: terms.sum(far),
        "name": lambda: terms.name(far),
    }
    for name, form in asked.items():
        before = terms._work
        form()
        assert terms._work - before >= len(far.terms) << 11, name
    always: dict[str, Callable[[], Any]] = {
        "latch": lambda: terms.latch(letter, constant(1)),
        "of_letter": lambda: terms.of_letter(np.array([0, 0])),
        "by_letter": lambda: terms.by_letter(letter),
    }
    for name, form in always.items():
        before = terms._work
        form()
        assert terms._work - before >= 1 << 11, name


# Tasks ---------------------------------------------------------------------------------------------------------------


def test_a_step_costs_what_is_remembered(monkeypatch: pytest.MonkeyPatch):
    """A task of contexts hashes all of them at each letter: 4,095 letters each, after as many letters."""
    names = {name: i for i, name in enumerate(["^", "|", ".", *(f"x{i}" for i in range(20))])}
    terms, path = Terms(ALL), np.random.default_rng(0).integers(3, 23, 400).tolist()
    (machine,) = read_task([*names], {"name": "copy-ngram", "n": 4095, "matches": "alike"})[1]
    edges = tuple(Edge(i, i + 1, np.arange(23) == a, False) for i, a in enumerate([0, *path]))
    chain = Language(23, len(path) + 2, edges, 999)
    _, right = beside(chain, counted(terms, machine))
    assert len(right) == len(path) + 2 and terms._work > len(path) ** 3
    monkeypatch.setattr("verify.kernel.terms._MOST_WORK", 1 << 26)
    with pytest.raises(Unproved, match="the proof forms more than 67108864 numbers"):
        beside(chain, counted(Terms(ALL), machine))


def test_every_machine_of_a_task_is_counted(recall, monkeypatch: pytest.MonkeyPatch):
    """Also in the text that a claim says asks something."""
    claimed = searched(recall)[1]
    monkeypatch.setattr("verify.kernel.machines._OF_A_STEP", 1 << 33)
    with pytest.raises(Refused, match="the proof forms more than .*it stands where a text that asks"):
        prove(read(recall), claimed)


def test_names_are_gone_through_once_not_for_each_machine(monkeypatch: pytest.MonkeyPatch):
    """Of a task that is a machine for each of thousands of letters."""
    times: list[str] = []
    monkeypatch.setattr(texts, "numbered", lambda names, *a: times.append(a[0]) or numbered(names, *a))
    many = {name: i for i, name in enumerate(["×", ".", *(f"{c}{i}" for c in "kv" for i in range(50))])}
    for task in ({"name": "mqar", "write": "last"}, {"name": "induction-heads"}, {"name": "recall", "matches": "one"}):
        assert len(read_task([*many], task)[1]) == 50
    assert len(read_task([*many], {"name": "unique-induction", "matches": "one"})[1]) == 50
    assert len(times) <= 8


def test_places_of_each_letter_are_looked_for_among_its_own_names(monkeypatch: pytest.MonkeyPatch):
    looked: list[int] = []
    monkeypatch.setattr(texts, "numbered", lambda names, *a: looked.append(len(names)) or numbered(names, *a))
    names = [".", *(f"x{i}" for i in range(50)), *(f"x{i}@{p}" for i in range(50) for p in (1, 2))]
    (machine,) = read_task(names, {"name": "copy", "form": "place"})[1]
    assert sum(looked) == len(names) + 50 * 3
    seen = reduce(machine.step, map(names.index, ["x7", "x3", "x7@2"]), machine.start)
    assert machine.right(seen) == names.index("x3")


def test_a_table_of_two_words_is_of_short_ones():
    names = ["a", "b", "|", ";", ".", *map(str, range(300))]
    (machine,) = read_task(names, {"name": "edit-distance"})[1]
    ask = lambda n: reduce(machine.step, [*[0] * n, 2, *[1] * n, 3], machine.start)
    assert len(ask(3)[1]) == 4 * 5
    with pytest.raises(Unproved, match="expected one from 1 on, below 256"):
        ask(200)


def test_entries_of_a_table_are_formed_once_and_are_few():
    names = [*map(str, range(5000)), ";", "."]
    (machine,) = read_task(names, {"name": "fibonacci", "modulus": 7})[1]
    asked = lambda n: machine.step(machine.step(machine.start, n), 5000)[1][:-1]
    assert asked(3) == (0, 1, 1, 2) and asked(8) == (0, 1, 1, 2, 3, 5, 1, 6, 0) and asked(1) == (0, 1)
    with pytest.raises(Unproved, match="has the number 4097"):
        asked(4096)
