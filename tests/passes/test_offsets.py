"""Numbers that are added, summed exactly: those that no float holds and nothing needs, and those that are large."""

from __future__ import annotations

import operator
from fractions import Fraction

import numpy as np
import pytest
import torch

from compiler.artifact.numeric import numeric_stack
from compiler.artifact.package import bare
from compiler.compiled import Compiled
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.exactness.compare import Miscompiled
from compiler.interpreter import interpret
from compiler.language.circuit import Circuit
from compiler.language.data.circuits import from_data, to_data
from compiler.language.input_language import InputLanguage
from compiler.language.source import numbers, position
from compiler.language.stream import Stream, constant
from compiler.language.types import Int, Real
from compiler.language.words import concatenate, fading_sum, maximum, minimum, select
from compiler.passes.offsets import offsets
from tests.gadgets.harness import LETTERS, is_a

LENGTH, BEYOND = 5, 2**60 + 1
IDS = (np.arange(2**LENGTH)[:, None] >> np.arange(LENGTH)) & 1
COUNT = np.cumsum(IDS == 0, axis=1)
THIRD = Fraction(1, 3)
counts = is_a.cumsum()
RELATIONS = [operator.gt, operator.lt, operator.ge, operator.le, operator.eq, operator.ne]


def _circuit(stream: Stream) -> Circuit:
    return Circuit("alone", stream, InputLanguage.everything(LETTERS, LENGTH))


def _outputs(stream: Stream, target: str = "mamba", dtype: str = "float32") -> np.ndarray:
    """On each word of five letters a and b: (32, 5) numbers of the real module."""
    with torch.no_grad():
        return bare(compile(_circuit(stream), target, dtype))(torch.from_numpy(IDS)).double().numpy()[..., 0]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("bound", [Fraction(-10, 3), THIRD, Fraction(7, 3), 0.1, 2.5, BEYOND, -BEYOND, BEYOND + THIRD])
def test_integers_are_compared_with_any_number(relation, bound):
    assert np.array_equal(_outputs(relation(counts, bound)), relation(COUNT, bound))
    assert np.array_equal(_outputs(relation(bound, counts)), relation(bound, COUNT))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("target", ["mamba2", "s4d", "fnn+ssm"])
def test_on_every_target(relation, target):
    circuit = _circuit(relation(counts, Fraction(4, 3)))
    compiled = compile(circuit, target)
    expected = relation(COUNT, Fraction(4, 3))
    assert np.array_equal(interpret(circuit, IDS)[circuit.output][..., 0], expected)
    found = compiled.run(IDS) if target == "fnn+ssm" else _outputs(circuit.output, target)[..., None]
    assert np.array_equal(found[..., 0], expected)


def test_a_threshold_is_a_multiple_of_what_is_compared():
    half = counts / 2 - 1
    assert np.array_equal(_outputs(half > THIRD), COUNT / 2 - 1 > THIRD)
    assert np.array_equal(_outputs(half != 0.1), np.ones_like(COUNT))


def test_each_lane_has_its_threshold():
    bounds = concatenate(constant(THIRD), constant(-BEYOND), constant(1), constant(Fraction(5, 3)))
    wide = concatenate(counts, counts, counts, counts) >= bounds
    for lane, least in enumerate([1, -BEYOND, 1, 2]):
        assert np.array_equal(_outputs(wide[lane]), least <= COUNT)


@pytest.mark.parametrize("number", [THIRD, BEYOND, Fraction(BEYOND, 3), 0.1])
def test_what_nobody_reads_or_what_cancels_needs_no_float(number):
    for alike in (
        (counts + number) - number,
        concatenate(counts, counts + number)[0],
        concatenate(counts, constant(number))[0],
        counts + 0 * constant(number),
        3 * (counts - number) - 2 * counts + constant(3 * Fraction(number)),
    ):
        assert np.array_equal(_outputs(alike), COUNT)


def test_what_nobody_reads_needs_no_bounds():
    """The comparison with the circuit as written runs it all the same."""
    for unread in (counts * 2**250 * (counts * 2**250), counts * 2.0**-310):
        assert np.array_equal(_outputs(concatenate(counts, unread)[0]), COUNT)


def test_an_input_that_nobody_reads_may_be_left_out():
    """The comparison with the circuit as written gives it values all the same."""
    read, unread = numbers(Int(-5, 5), "read"), numbers(Real(-4, 4), "unread")
    compiled = compile(Circuit("one", concatenate(read.cumsum(), unread + THIRD)[0], length=4))
    values = np.array([[[3.0], [-1.0], [5.0], [0.0]]])
    found = numeric_stack(compiled).run({"read": values})
    assert np.array_equal(found, values.cumsum(axis=1))
    assert np.array_equal(_outputs(concatenate(position(), counts + THIRD)[0]), 0 * COUNT + np.arange(1, LENGTH + 1))


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_large_numbers_beside_the_divisor(target):
    large = 2**60
    for added in (large, large + 3, -large - 1):
        total = COUNT.astype(object) + added
        assert np.array_equal(_outputs((counts + added) % 4, target), total % 4)
        assert np.array_equal(_outputs((counts + added) // 4 - added // 4, target), total // 4 - added // 4)
    letter = (IDS == 0).astype(object)
    assert np.array_equal(_outputs((is_a + large) % 4, target), (letter + large) % 4)


@pytest.mark.parametrize("added", [2**60, 2**60 + 5])
def test_large_numbers_on_both_sides(added):
    place = np.broadcast_to(np.arange(1, LENGTH + 1), IDS.shape)
    assert np.array_equal(_outputs(position() + added > added + 2), place > 2)
    assert np.array_equal(_outputs(position() + added == counts + (added + 1)), place == COUNT + 1)


@pytest.mark.parametrize("by", [2**60, BEYOND, -BEYOND])
@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_what_cancels_behind_clips_and_extremes(by, target):
    place = position()
    at = np.broadcast_to(np.arange(1, LENGTH + 1), IDS.shape)
    moved = counts + by
    cases = [
        (moved.clip(by + 1, by + 3), COUNT.clip(1, 3)),
        (minimum(moved, by + 2), np.minimum(COUNT, 2)),
        (minimum(by + 2, moved), np.minimum(COUNT, 2)),
        (maximum(moved, place + (by - 2)), np.maximum(COUNT, at - 2)),
        (minimum(maximum(moved, by + 1), place + (by - 1)), np.minimum(np.maximum(COUNT, 1), at - 1)),
    ]
    for stream, expected in cases:
        assert np.array_equal(_outputs(stream - by, target), expected)
    third = minimum(counts + THIRD, 3 + THIRD) - THIRD
    assert np.array_equal(_outputs(third, target), np.minimum(COUNT, 3))


def test_before_the_start_nothing_was_clipped():
    """What cancels at the positions of a sequence is not there before them."""
    late = np.pad(COUNT.clip(1, 3)[:, :-1], [(0, 0), (1, 0)])
    shifted = (counts + 2**20).clip(2**20 + 1, 2**20 + 3) - 2**20
    assert np.array_equal(_outputs((shifted.shift() + 2**60) - 2**60), late)


@pytest.mark.parametrize("number", [1e300, -1e300, 1e-300, 2.0**-1000])
def test_numbers_far_beyond_what_floats_sum(number):
    for relation in RELATIONS:
        assert np.array_equal(_outputs(relation(counts, number)), relation(COUNT, number))
    assert np.array_equal(_outputs((counts + number) - number), COUNT)
    far = minimum(counts, number) if number > 1 else maximum(counts, number) if number < 0 else counts
    assert np.array_equal(_outputs(far), COUNT)
    with pytest.raises(CompileError, match=r"its value .*, and no float sums such numbers exactly"):
        compile(_circuit(counts + number))


@pytest.mark.parametrize("far", [BEYOND, Fraction(100, 3)])
def test_extremes_that_are_never_reached(far):
    change = counts - counts.shift(2)
    before = np.pad(COUNT, [(0, 0), (2, 0)])[:, :LENGTH]
    for alike in (minimum(change, far), maximum(change, -far), minimum(far, change), maximum(-far, change)):
        assert np.array_equal(_outputs(alike), COUNT - before)
    with pytest.raises(CompileError, match="no float"):
        compile(_circuit(maximum(change, far)))
    with pytest.raises(CompileError, match="no float"):
        compile(_circuit(minimum(counts, THIRD)))


def test_what_stood_before_the_start_is_no_constant():
    """A delay of a sum is a delay of both: before the start the number is not there."""
    shifted = np.pad(COUNT, [(0, 0), (1, 0)])[:, :LENGTH]
    late = np.arange(LENGTH) >= 1
    assert np.array_equal(_outputs((counts + 2).shift() > Fraction(5, 3)), shifted + 2 * late > 1)
    assert np.array_equal(_outputs(((counts + 5) // 2 + 0.5).shift() > 2.1), late * ((shifted + 5) // 2 + 0.5) > 2.1)


@pytest.mark.parametrize(
    "stream",
    [
        constant(THIRD),
        counts + THIRD,
        counts + BEYOND,
        select(is_a, constant(THIRD), 0),
        fading_sum(counts, THIRD) > THIRD,
        (counts + THIRD).retyped((counts + THIRD).type) - THIRD + constant(THIRD),
    ],
)
def test_numbers_that_are_needed_are_refused_by_their_line(stream):
    with pytest.raises(CompileError, match=r"test_offsets.py:\d+\): it(s value .* no float| compares)"):
        compile(_circuit(stream))


def test_a_number_that_may_not_be_needed_is_no_reason_beside_others():
    with pytest.raises(CompileError) as caught:
        compile(_circuit((counts > THIRD) & counts))
    assert len(caught.value.reasons) == 1 and "a Bool or a OneHot is needed" in str(caught.value)


def test_the_names_stay_with_what_they_name():
    """What is left of a sum without its number is not the sum."""
    sum_ = (counts + 2).named("sum")
    circuit = offsets(_circuit(sum_ > THIRD))
    assert "sum" not in {s.name for s in circuit.streams}
    kept = offsets(_circuit(sum_.relu()))
    assert [s.name for s in kept.streams].count("sum") == 1


def test_what_is_kept_compiles_to_the_same():
    circuit = _circuit(concatenate((counts + THIRD) - THIRD > 0.1, counts + THIRD > BEYOND)[0])
    compiled = compile(circuit)
    assert isinstance(compiled, Compiled)
    again = compile(from_data(to_data(compiled.source)))
    assert [repr(b) for b in again.blocks] == [repr(b) for b in compiled.blocks]


def test_a_wrong_sum_does_not_leave_the_compiler(monkeypatch):
    """The circuit as written is compared, and not only what was made of it."""
    from compiler import pipeline

    monkeypatch.setattr(pipeline, "offsets", lambda circuit: _circuit(counts > 1))
    with pytest.raises(Miscompiled, match="what was left out"):
        compile(_circuit(counts > THIRD))
