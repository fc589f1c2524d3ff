"""Circuits that two readers would read in two ways: none is accepted, whatever the weights compute."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from verify.checker.formats import Rejected
from verify.checker.meaning.entries import float_of, read_matrix
from verify.checker.operands import check_operands


def stream(operation: str, width: int, *inputs: int, **attributes: object) -> dict:
    kind = {"kind": "Int", "lo": None, "hi": None, "width": width}
    return {"operation": operation, "attributes": attributes, "inputs": list(inputs), "type": kind}


TALL = {"shape": [2, 1], "rows": [[], []]}
ONE, TWO, FOUR = (stream("Constant", n, values=[1] * n) for n in (1, 2, 4))
OPERANDS = {
    "a one-hot of two numbers": stream("OneHotOf", 3, 1, n=3),
    "a look-up of two numbers": stream("Lookup", 1, 1, table=[1], symbols=False),
    "a count of two flags": stream("Count", 1, 1, 0),
    "a count with two resets": stream("Count", 1, 0, 1),
    "two conditions for one": stream("Select", 1, 1, 0, 0),
    "one yes for two noes": stream("Select", 2, 0, 0, 1),
    "two that go around four": stream("Multiply", 4, 1, 2),
    "four that go around two": stream("Compare", 4, 2, 1, relation=">"),
    "an end above the other": stream("Clip", 1, 0, lo=1, hi=0),
    "the same in fractions": stream("Clip", 1, 0, lo="1/2", hi="1/3"),
    "rules without scores": stream("Decide", 2, tokens=[]),
    "scores without rules": stream("Decide", 2, 1, tokens=[]),
    "one rule for two": stream("Decide", 2, 1, 0, tokens=[0, 1]),
    "a memory of one operand": stream("MemoryRead", 1, 0, policy="sum"),
    "a memory of another query than key": stream("MemoryRead", 1, 0, 0, 1, policy="sum"),
    "a latch without a flag": stream("Latch", 1, 0),
    "a map of nothing": stream("Linear", 1, matrices=[]),
    "a map of more than it reads": stream("Linear", 1, 0, matrices=[{"shape": [1, 2], "rows": [[]]}]),
    "a map of other heights": stream("Linear", 1, 0, 0, matrices=[{"diagonal": 1, "size": 1}, TALL]),
    "words of more lanes": stream("Decode", 2, 0, words={"diagonal": 1, "size": 2}),
    "a table of other symbols": stream("Lookup", 1, 1, table=[1], symbols=True),
    "more lanes than it makes": stream("Shift", 2, 0, k=1),
    "fewer latches than flags": stream("Latch", 2, 1, 1),
    "rules over what rules decide": stream("Decide", 1, 3, 0, tokens=[0]),
}
TAKEN = [
    stream("OneHotOf", 3, 0, n=3),
    stream("Lookup", 1, 1, table=[1, 2], symbols=True),
    stream("Count", 1, 0, 0),
    stream("Select", 2, 0, 1, 1),
    stream("Select", 2, 1, 1, 1),
    stream("Multiply", 4, 0, 2),
    stream("Compare", 4, 2, 2, relation=">"),
    stream("Clip", 1, 0, lo=1, hi=1),
    stream("Latch", 4, 1, 1),
    stream("MemoryRead", 2, 1, 0, 0, policy="sum"),
    stream("MemoryRead", 2, 1, 0, 0, 0, policy="sum"),
    stream("Linear", 2, 0, 1, matrices=[TALL, {"diagonal": 1, "size": 2}]),
    stream("GatedRead", 3, 0, 0, 0, 0, 0),  # of an operation that the checker does not know it knows nothing
]


def check(last: dict) -> None:
    decide = stream("Decide", 2, 1, 0, tokens=[0])
    promise = {"language": {"tokens": 2}}
    check_operands({"codebooks": [], "promise": promise, "streams": [ONE, TWO, FOUR, decide, last]})


@pytest.mark.parametrize("name", OPERANDS)
def test_operands_that_are_read_in_two_ways_are_refused(name: str):
    with pytest.raises(
        Rejected, match=r"streams\[4\] (has operands of|is a \w+ (of|with)|makes|clips to|decides over)"
    ):
        check(OPERANDS[name])


@pytest.mark.parametrize("last", TAKEN, ids=json.dumps)
def test_operands_that_an_operation_takes(last: dict):
    check(last)


def test_a_number_is_not_rounded():
    """2^60 times a constant of 1 + 2^-60, less 2^60, is 1 exactly, and 0 in floats."""
    assert float_of("3/4") == 0.75 and float_of(2**60) == 2.0**60
    for number in (f"{2**60 + 1}/{2**60}", 2**60 + 1, "1/3", f"1/{2**1100}"):
        with pytest.raises(Rejected, match="53 bits"):
            float_of(number)
    packed = lambda exponent: {
        "shape": [1, 1],
        "exponent": exponent,
        **{name: {"bytes": 1, "base64": text} for name, text in (("counts", "AQ=="), ("columns", "AA=="))},
        "values": {"bytes": 1, "base64": "Aw=="},
    }
    assert [Fraction(float(x)) for x in read_matrix(packed(-1074)).data] == [Fraction(3, 2**1074)]
    with pytest.raises(Rejected, match="float64 does not hold"):
        read_matrix(packed(-1099))
