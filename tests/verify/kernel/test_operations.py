"""Operations of a circuit as polynomials: held against what they mean on all sequences of a small language."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from tests.circuits import CASES
from tests.verify.checker.checkpoints import write
from tests.verify.kernel.small import copied
from tests.verify.kernel.test_situations import LENGTH, LETTERS, sequences, value
from verify.kernel.circuit import Circuit
from verify.kernel.claims import Ledger, Refused
from verify.kernel.floats import Unproved
from verify.kernel.language import Edge, Language
from verify.kernel.terms import Poly, Terms
from verify.prover.prove import search
from verify.prover.search import Search

Letters = tuple[int, ...]


def embed(*columns: list) -> dict:
    """A stream: what each column has for the present letter."""
    rows = [[[c, column[a]] for c, column in enumerate(columns) if column[a]] for a in range(LETTERS)]
    return stream("Embed", [], table={"shape": [LETTERS, len(columns)], "rows": rows})


def stream(operation: str, inputs: list[int], **attributes) -> dict:
    return {"operation": operation, "attributes": attributes, "inputs": inputs}


ONE_HOT = embed([1, 0, 0], [0, 1, 0], [0, 0, 1])
EVEN, LOW, NUMBER = embed([1, 0, 1]), embed([1, 1, 0]), embed([-3, 5, 4])
N = [-3, 5, 4]


def largest(numbers: list[int], when: list[int]) -> Callable[[Letters], list]:
    return lambda seen: [max((numbers[a] for a in seen if when[a]), default=0)]


def first_written(seen: Letters) -> list:
    """What the first position of the present letter stored, where that letter is written."""
    held = [N[a] for a in seen if a == seen[-1] and a in (0, 2)]
    return [held[0] if held else 0]


CODES = embed([1, 1, -1], [1, -1, 1])
WORDS = {"shape": [2, 2], "rows": [[[0, 1], [1, -1]], [[0, -1], [1, -1]]]}


def at_flags(seen: Letters) -> list:
    """The sums of the numbers and of the letter's flag at even letters, and then at low ones."""
    return [sum(x[a] for a in seen if when[a]) for when in ([1, 0, 1], [1, 1, 0]) for x in (N, [0, 1, 0])]


MEANT: dict[str, tuple[list[dict], Callable[[Letters], list]]] = {
    "a table of numbers": (
        [embed([0, 1, 3]), stream("Lookup", [0], table=[5, -2, 7], symbols=False)],
        lambda seen: [{0: 5, 1: -2, 2: 0}[seen[-1]]],
    ),
    "a table of letters": (
        [ONE_HOT, stream("Lookup", [0], table=["1/2", 3, -1], symbols=True)],
        lambda seen: [[Fraction(1, 2), 3, -1][seen[-1]]],
    ),
    "a filter": (
        [NUMBER, stream("Lti", [0], kernel=[2, 0, "-1/2"])],
        lambda seen: [2 * N[seen[-1]] - (Fraction(N[seen[-3]], 2) if len(seen) > 2 else 0)],
    ),
    "sums where a flag is": (
        [embed(N, [0, 1, 0]), embed([1, 0, 1], [1, 1, 0]), stream("SumWhere", [0, 1])],
        at_flags,
    ),
    "words": ([CODES, stream("Decode", [0], words=WORDS)], lambda seen: [int(seen[-1] == 1), 0]),
    "words that were": (
        [CODES, stream("Shift", [0], k=1), stream("Decode", [1], words=WORDS)],
        lambda seen: [int(len(seen) > 1 and seen[-2] == 1), 0],
    ),
    "quotients": ([NUMBER, stream("FloorDivide", [0], divisor=3)], lambda seen: [N[seen[-1]] // 3]),
    "rests": ([NUMBER, stream("Modulo", [0], divisor=3)], lambda seen: [N[seen[-1]] % 3]),
    "one of several numbers": (
        [embed([0, 1, 3]), stream("OneHotOf", [0], n=3)],
        lambda seen: [int(j == [0, 1, 3][seen[-1]]) for j in range(3)],
    ),
    "or": ([EVEN, LOW, stream("Or", [0, 1])], lambda seen: [1]),
    "or of what was": (
        [EVEN, stream("Shift", [0], k=1), embed([0, 1, 0]), stream("Or", [1, 2])],
        lambda seen: [int(seen[-1] == 1 or len(seen) > 1 and seen[-2] in (0, 2))],
    ),
    "the same letter": (
        [ONE_HOT, stream("Shift", [0], k=2), stream("SameSymbol", [0, 1])],
        lambda seen: [int(len(seen) > 2 and seen[-1] == seen[-3])],
    ),
    "a running maximum": ([NUMBER, LOW, stream("RunningMax", [0, 1])], largest(N, [1, 1, 0])),
    "one of what is above 0": ([embed([3, 1, 2]), LOW, stream("RunningMax", [0, 1])], largest([3, 1, 2], [1, 1, 0])),
    "one of what is below 0": (
        [embed([-3, -1, -2]), LOW, stream("RunningMax", [0, 1])],
        largest([-3, -1, -2], [1, 1, 0]),
    ),
    "first writes": (
        [NUMBER, ONE_HOT, EVEN, stream("MemoryRead", [0, 1, 1, 2], policy="first", writes=None)],
        first_written,
    ),
}


@pytest.mark.parametrize("name", MEANT)
def test_an_operation_is_what_it_means(name: str):
    streams, meant = MEANT[name]
    terms = Terms(Language(LETTERS, 1, (Edge(0, 0, np.ones(LETTERS, bool), False),), LENGTH))
    last = stream("Constant", [], values=[0])
    circuit = Circuit(Ledger(terms, Search(terms)), {"streams": [*streams, last], "output": len(streams)})
    lanes: list[Poly] = circuit.lanes[-1]
    for seen in sequences(terms.language):
        assert [value(terms, p, seen, len(seen)) for p in lanes] == meant(seen), seen


@pytest.mark.parametrize(
    "streams, why",
    [
        ([NUMBER, stream("Or", [0, 0])], "not proved to be 0 or 1"),
        ([embed([2, 1, 0], [0, 1, 0], [0, 0, 1]), stream("MemoryRead", [0, 0, 0], policy="first")], "to be 0 or 1"),
        ([embed([1, 0, 0], [1, 0, 0]), stream("MemoryRead", [0, 0, 0], policy="first")], "not proved to be 0 or 1"),
        ([embed(["1/2", 1, 0]), stream("FloorDivide", [0], divisor=2)], "not whole"),
        ([embed(["1/2", 1, 0]), stream("RunningMax", [0, 0])], "0 or 1|not whole"),
        ([embed([1 << 20, 1, 0]), stream("Modulo", [0], divisor=2)], "more than 256"),
        ([CODES, stream("Cumsum", [0]), stream("Decode", [1], words=WORDS)], "no function of one letter"),
        (
            [
                CODES,
                stream("Shift", [0], k=1),
                embed([1, 1, 1]),
                stream("Decode", [1], words=WORDS | {"rows": [[], []]}),
            ],
            "a word of zeros",
        ),
        ([NUMBER, NUMBER, stream("SumWhere", [0, 1])], "not proved to be 0 or 1"),
        ([NUMBER, stream("Lti", [0], kernel=[1e-3, "1e3"])], "digits alone"),
        ([NUMBER, stream("Lookup", [0], table=[1], symbols=False, more=1)], "an attribute that the kernel does not"),
    ],
)
def test_what_an_operation_needs_is_proved_of_its_operands(streams, why):
    terms = Terms(Language(LETTERS, 1, (Edge(0, 0, np.ones(LETTERS, bool), False),), LENGTH))
    with pytest.raises(Unproved, match=why):
        Circuit(Ledger(terms, Search(terms)), {"streams": [*streams, NUMBER], "output": len(streams)})


def _entry(kind: str, **attributes) -> Callable[[list[dict]], None]:
    """Changes the attributes of the first such stream, or its operation."""

    def change(streams: list[dict]) -> None:
        found = next(s for s in streams if s["operation"] == kind)
        if "operation" in attributes:
            found["operation"] = attributes["operation"]
        else:
            found["attributes"] |= attributes

    return change


CHANGED = {
    "table_of_a_counter": _entry("Lookup", table=[5, -2, 7, 5]),
    "table_of_a_symbol": _entry("Lookup", table=[4, -1, 1]),
    "division_of_counters": _entry("FloorDivide", divisor=2),
    "logic_on_counters": _entry("Or", operation="And"),
    "same_as_three_back": _entry("Shift", k=2),
    "largest_lead": _entry("RunningMax", operation="Latch"),
    "mqar_first": _entry("MemoryRead", policy="sum"),
    "fixed_filter": _entry("Lti", kernel=[1, 0, -2, "1/2"]),
    "sums_at_each_letter": _entry("SumWhere", operation="Latch"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_another_circuit_is_not_that_of_the_weights(name: str, tmp_path):
    case = next(case for case in CASES if case.name == name)
    directory = write(tmp_path / "own", case.build(), "mamba")
    assert search(directory)[0].claims
    circuit = json.loads((directory / "circuit.json").read_text())
    CHANGED[name](circuit["streams"])
    with pytest.raises((Unproved, Refused)):
        search(copied(directory, tmp_path / "other", circuit=circuit))
