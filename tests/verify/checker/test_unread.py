"""What the scores are not made of needs no rule; multiples of a fraction are compared; constants may be huge."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from compiler.language.circuit import Circuit
from compiler.language.data import to_data
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout_integer
from compiler.language.source import position
from compiler.language.stream import Stream, constant
from compiler.language.words import concatenate, fading_sum, latch, maximum, minimum, present, sum_where
from constructions.registry import CONSTRUCTIONS
from tests.circuits import ABC, abc, is_a, is_b
from tests.verify.checker.checkpoints import write
from verify.checker.check import check
from verify.checker.tasks.task import prove_task
from verify.checker.values.language import parse

LENGTH, HUGE = 5, 2**60
number = abc.number({"a": 3, "b": 1})
count, real = is_a.cumsum(), fading_sum(number, Fraction(1, 3))
both = concatenate(real, count)
eighth = number / 8


def _circuit(stream: Stream) -> Circuit:
    language = InputLanguage.everything(ABC, LENGTH)
    return Circuit("c", readout_integer(stream, ABC, {"a": 0, "b": 1}), language)


PROVED = {
    "times 0": 0 * real + count,
    "beside": both[1],
    "beside, later": both.shift(1)[1] % 2,
    "beside, kept": latch(both, is_b)[1],
    "beside, summed": sum_where(both, is_b)[1],
    "flags beside": present(concatenate(count > 1, real > 1))[0] + 0,
    "with a flag that never holds": ((real > 1) & (position() > LENGTH)) + count,
    "eighths": eighth > eighth.shift(1),
    "sums of eighths": eighth.cumsum() >= 1,
    "a token and a huge number": (number + 1 < HUGE) + is_a.shift(1),
    "a token and a huge number, later": (number.shift(1) + 1 == HUGE) + is_a,
    "a token and two huge numbers": minimum(maximum(number + 1, -HUGE), HUGE) + is_a.shift(1),
}


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
@pytest.mark.parametrize("name", PROVED)
def test_is_proved(name: str, target: str, tmp_path: Path) -> None:
    assert check(write(tmp_path / "c", _circuit(PROVED[name]), target)).meaning is None


@pytest.mark.parametrize("stream", [real, both.sum(), latch(both, is_b)[0]], ids=["alone", "added", "kept"])
def test_scores_made_of_real_numbers_are_not(stream: Stream, tmp_path: Path) -> None:
    """Weights of which the arithmetic is proved, and a circuit that asks for a real number."""
    directory = write(tmp_path / "c", _circuit(count), "mamba")
    (directory / "circuit.json").write_text(json.dumps(to_data(_circuit(stream))))
    held = next(s for s in to_data(_circuit(stream))["streams"] if s["operation"] == "FadingSum")
    written = ":".join(map(str, held["source"]))
    assert written.startswith("test_unread.py:")
    assert check(directory).meaning == f"the FadingSum ({written}): computed, but no proof rule for FadingSum"


@pytest.mark.parametrize("name, told", [("level", "level"), (None, "the Novel")])
def test_an_operation_without_a_rule_is_named_with_its_place(name: str | None, told: str, tmp_path: Path) -> None:
    """An operation of tomorrow, in a file that says where it was written."""
    directory = write(tmp_path / "c", _circuit(count), "mamba")
    data = json.loads((directory / "circuit.json").read_text())
    held = next(s for s in data["streams"] if s["operation"] == "Cumsum")
    held |= {"operation": "Novel", "name": name, "source": ["levels.py", 7]}
    (directory / "circuit.json").write_text(json.dumps(data))
    verdict = check(directory)
    assert verdict.arithmetic is None
    assert verdict.meaning == f"{told} (levels.py:7): computed, but no proof rule for Novel"


@pytest.mark.parametrize(
    "construction, params, states, beside",
    [
        ("mqar", {"kappa": 2, "vocab": 2}, False, ""),
        ("copy", {"form": "string", "n": 2, "vocab": 2}, True, " among paths"),
        ("unique-induction", {"vocab": 3, "length": 4}, True, " among matches"),
    ],
)
def test_answers_that_rest_on_such_an_operation_say_so(
    construction: str, params: dict, states: bool, beside: str
) -> None:
    """By rules of values, by paths and by matches: a state of the circuit, or what a state is told."""
    made = CONSTRUCTIONS[construction](**params)
    data = json.loads(json.dumps(to_data(made.circuit())))
    held = max(data["streams"], key=lambda s: s["operation"] in ("MemoryRead", "Latch") if states else not s["inputs"])
    held |= {"operation": "Novel", "name": "level", "source": ["levels.py", 7]}
    reason = prove_task(parse(data["promise"]), data, made.asks()).reason
    assert reason == f"level (levels.py:7): computed, but no proof rule for Novel{beside}"


FORGED = {
    "another lane": (both[1], both[0]),
    "a flag that holds at last": (
        ((real > 1) & (position() > LENGTH)) + count,
        ((real > 1) & (position() > LENGTH - 1)) + count,
    ),
    "another relation": (eighth > Fraction(1, 8), eighth >= Fraction(1, 8)),
    "an eighth more": (eighth.cumsum() > Fraction(1, 8), eighth.cumsum() > Fraction(2, 8)),
    "a sixteenth more": (eighth.cumsum() >= Fraction(1, 8), eighth.cumsum() >= Fraction(3, 16)),
    "the other side": ((number + 1 < HUGE) + count, (number + 1 > HUGE) + count),
    "huge beside": (maximum(number + 1, -HUGE) + count, minimum(number + 1, -HUGE) + HUGE + count),
}


@pytest.mark.parametrize("name", FORGED)
def test_another_circuit_is_not_proved_by_the_same_weights(name: str, tmp_path: Path) -> None:
    own, other = map(_circuit, FORGED[name])
    directory = write(tmp_path / "c", own, "mamba")
    assert check(directory).meaning is None
    (directory / "circuit.json").write_text(json.dumps(to_data(other)))
    assert check(directory).meaning


def test_lanes_that_are_not_alike_are_not_taken_for_each_other(tmp_path: Path) -> None:
    """Two real lanes, of which the weights hold nothing: their difference is not 0."""
    two = concatenate(real, fading_sum(number, Fraction(1, 5)))
    directory = write(tmp_path / "c", _circuit(0 * two.sum() + count), "mamba")
    assert check(directory).meaning is None
    difference = np.array([[1, -1]]) @ two + count * constant(1)
    (directory / "circuit.json").write_text(json.dumps(to_data(_circuit(difference))))
    assert check(directory).meaning
