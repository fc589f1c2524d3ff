"""What an operation asks of its operands is proved of constants too, and what a memory takes for granted is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.circuits.memories import mqar_once
from tests.verify.checker.checkpoints import write
from tests.verify.checker.test_operands import stream
from verify.checker.check import check
from verify.checker.formats import EXACT
from verify.checker.meaning.circuit import Reader, given
from verify.checker.meaning.conditions import Lanes, Unproved
from verify.checker.values.effort import limited
from verify.checker.values.language import parse
from verify.checker.values.values import World

EDGE = {"from": "s", "to": "s", "tokens": [[0, 2]], "distinct": False}
PROMISE = {"language": {"tokens": 3, "start": "s", "edges": [EDGE]}, "length": 4}
FLAG = stream("Embed", 1, table={"shape": [3, 1], "rows": [[[0, 1]], [], []]})
NUMBER = stream("Embed", 1, table={"shape": [3, 1], "rows": [[[0, 2]], [], []]})
ZERO, ONE, TWO = (stream("Constant", 1, values=[n]) for n in (0, 1, 2))
AT = {"flag": 0, "number": 1, "0": 2, "1": 3, "2": 4}


def lanes(*more: dict) -> Lanes:
    data = {"streams": [FLAG, NUMBER, ZERO, ONE, TWO, *more], "codebooks": []}
    return Reader(World(parse(PROMISE), EXACT), data).lanes(len(data["streams"]) - 1)


@pytest.mark.parametrize("operation", ["And", "Or", "SameSymbol"])
@pytest.mark.parametrize("left", ["flag", "number", "0", "1", "2"])
@pytest.mark.parametrize("right", ["0", "1", "2", "flag"])
def test_operands_of_flags_are_flags_where_they_are_constants(operation: str, left: str, right: str) -> None:
    last = stream(operation, 1, AT[left], AT[right])
    if {left, right} & {"number", "2"}:
        with pytest.raises(Unproved, match="is not proved to be 0 or 1"):
            lanes(last)
    else:
        lanes(last)


@pytest.mark.parametrize("operand", AT)
def test_only_a_flag_has_a_negation(operand: str) -> None:
    last = stream("Not", 1, AT[operand])
    if operand in ("number", "2"):
        with pytest.raises(Unproved, match="an operand of `not` is not proved to be 0 or 1"):
            lanes(last)
    else:
        lanes(last)


def test_a_memory_written_once_takes_that_for_granted_and_the_verdict_says_it(tmp_path: Path) -> None:
    """The compiler holds the language to it; the checker proves the sum, which is another meaning elsewhere."""
    directory = write(tmp_path / "c", mqar_once(), "mamba")
    circuit = json.loads((directory / "circuit.json").read_text())
    at = next(i for i, s in enumerate(circuit["streams"]) if s["operation"] == "MemoryRead")
    verdict = check(directory)
    said = f"no slot of stream {at} is written twice"
    assert verdict.accepted and verdict.given == given(circuit) == (said,)
    assert f"  meaning: proved, where {said}" in verdict.lines()
    assert verdict.to_json()["meaning"] == {"proved": True, "reason": None, "given": [said]}
    circuit["streams"][at]["attributes"]["policy"] = "sum"
    (directory / "circuit.json").write_text(json.dumps(circuit))
    assert check(directory).given == () and "  meaning: proved" in check(directory).lines()


def test_nothing_is_taken_for_granted_of_what_no_score_is_made_of() -> None:
    once = stream("MemoryRead", 1, 0, 0, 0, policy="once")
    assert given({"streams": [FLAG, once, stream("Relu", 1, 0)], "output": 2}) == ()
    assert given({"streams": [FLAG, once, stream("Relu", 1, 1)], "output": 2}) == (
        "no slot of stream 1 is written twice",
    )


def test_words_that_take_gigabytes_are_not_decoded() -> None:
    """Their matrix is a few bytes in the file, and the square of that many numbers here."""
    many = 1 << 13
    table = {"shape": [3, many], "rows": [[[0, 1]], [[1, 1]], [[2, 1]]]}
    words = stream("Decode", many, 5, words={"diagonal": 1, "size": many})
    with pytest.raises(Unproved, match=r"8192 words of 8192 numbers, over 3 letters, of which no more than 16777216"):
        lanes(stream("Embed", many, table=table), words)


def test_decoding_takes_a_step_for_each_word() -> None:
    codes = stream("Embed", 3, table={"shape": [3, 3], "rows": [[[k, 1]] for k in range(3)]})
    with limited() as effort:
        lanes(codes)
        before = effort.steps
        assert len(lanes(codes, stream("Decode", 3, 5, words={"diagonal": 1, "size": 3}))) == 3
        assert effort.steps >= 2 * before + 3
