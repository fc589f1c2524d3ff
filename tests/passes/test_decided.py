"""What bounds decide: comparisons and rectifiers with numbers that no format holds, and one step beside the bounds."""

from __future__ import annotations

import operator
from fractions import Fraction

import numpy as np
import pytest
import torch

from compiler.artifact.package import bare
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import position
from compiler.language.stream import constant
from compiler.language.words import concatenate, fading_sum, latch, maximum, minimum, present, select
from tests.gadgets.harness import LETTERS, is_a

LENGTH, HUGE = 6, 10**12
RELATIONS = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
counts = is_a.cumsum()


def _outputs(stream, dtype="float32", target="mamba"):
    """On each word of six letters a and b: (64, 6) numbers of the real module, and the counts of a."""
    circuit = Circuit("alone", stream, InputLanguage.everything(LETTERS, LENGTH))
    ids = (np.arange(2**LENGTH)[:, None] >> np.arange(LENGTH)) & 1
    with torch.no_grad():
        found = bare(compile(circuit, target, dtype))(torch.from_numpy(ids)).double().numpy()[..., 0]
    return found, np.cumsum(ids == 0, axis=1)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("bound", [-HUGE, -1, 0, 1, LENGTH - 1, LENGTH, LENGTH + 1, HUGE])
@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_comparisons_at_the_bounds_and_far_beyond(relation, bound, target):
    """Also at the first position, where what is seen before is 0 and no count."""
    compare = RELATIONS[relation]
    found, count = _outputs(compare(counts, bound), target=target)
    assert np.array_equal(found, compare(count, bound))
    late, _ = _outputs(compare(counts.shift(2), bound), target=target)
    assert np.array_equal(late, compare(np.pad(count, [(0, 0), (2, 0)])[:, :LENGTH], bound))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("bound", [0, 1, 2, LENGTH, LENGTH + 1])
def test_positions_at_their_bounds(relation, bound):
    compare = RELATIONS[relation]
    found, _ = _outputs(compare(position(), bound))
    assert np.array_equal(found, np.broadcast_to(compare(np.arange(1, LENGTH + 1), bound), found.shape))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_clips_and_extremes_beyond_every_format(dtype):
    change = counts - counts.shift(2)
    found, count = _outputs(minimum(counts, HUGE), dtype)
    assert np.array_equal(found, count)
    assert np.array_equal(_outputs(maximum(counts, -HUGE), dtype)[0], count)
    assert np.array_equal(_outputs((counts - HUGE).relu(), dtype)[0], 0 * count)
    before = np.pad(count, [(0, 0), (2, 0)])[:, :LENGTH]
    assert np.array_equal(_outputs(change.clip(-HUGE, HUGE), dtype)[0], count - before)
    assert np.array_equal(_outputs(change.clip(1, HUGE), dtype)[0], np.maximum(count - before, 1))


@pytest.mark.parametrize("bound", [-1, 0, 1, LENGTH - 1, LENGTH])
def test_rectifiers_at_the_bounds(bound):
    found, count = _outputs((counts - bound).relu())
    assert np.array_equal(found, np.maximum(count - bound, 0))


def test_constants_that_fold_to_more_than_a_float():
    for bound in (-(2**60), 2**60):
        found, count = _outputs(counts + 1 < bound)
        assert np.array_equal(found, count + 1 < bound)
        assert np.array_equal(_outputs(counts + 1 == bound)[0], 0 * count)
    assert np.array_equal(_outputs((counts + 1).clip(-(2**60), 4))[0], np.minimum(count + 1, 4))
    assert np.array_equal(_outputs(minimum(counts + 1, 2**60))[0], count + 1)


ALWAYS, NEVER = position() >= 0, position() > LENGTH
FLAGS = {
    "never": (NEVER, False),
    "always": (ALWAYS, True),
    "late": (counts.shift(3) >= 0, True),
    "not": (~NEVER, True),
    "both": (ALWAYS & ~NEVER, True),
    "either": (NEVER | (counts < 0), False),
}


@pytest.mark.parametrize("name", FLAGS)
def test_the_branch_that_is_never_taken_is_not_computed(name):
    flag, holds = FLAGS[name]
    yes, no = (counts, HUGE * counts) if holds else (HUGE * counts, counts)
    found, count = _outputs(select(flag, yes, no))
    assert np.array_equal(found, count)
    with pytest.raises(CompileError):
        _outputs(select(counts > 2, yes, no))


@pytest.mark.parametrize("flag", [ALWAYS, NEVER])
@pytest.mark.parametrize("swapped", [False, True])
def test_decided_flags_in_conjunctions_and_disjunctions(flag, swapped):
    """Beside several lanes too, which a single flag is spread over."""
    other, holds = counts > 2, flag is ALWAYS
    pair = (other, flag) if swapped else (flag, other)
    found, count = _outputs(pair[0] & pair[1])
    assert np.array_equal(found, (count > 2) & holds)
    assert np.array_equal(_outputs(pair[0] | pair[1])[0], (count > 2) | holds)
    wide = concatenate(counts > 1, other)
    pair = (wide, flag) if swapped else (flag, wide)
    assert np.array_equal(_outputs((pair[0] & pair[1])[1])[0], (count > 2) & holds)


REAL = fading_sum(counts, Fraction(1, 3))


@pytest.mark.parametrize("lane", range(4))
def test_lanes_are_decided_one_by_one(lane):
    """One that has to be computed, one that always holds, one that never does, one that holds after the first a."""
    after = [3, -HUGE, HUGE, 0][lane]
    wide = concatenate(counts, counts, counts, counts) > np.array([[3], [-HUGE], [HUGE], [0]]) @ constant(1)
    found, count = _outputs((wide & wide)[lane])
    assert np.array_equal(found, count > after)
    bent = concatenate(counts - 3, counts + HUGE, counts - HUGE, counts + 0).relu()[lane]
    if lane != 1:  # the number itself is in no format
        assert np.array_equal(_outputs(minimum(bent, HUGE))[0], np.maximum(count - [3, 0, HUGE, 0][lane], 0))


@pytest.mark.parametrize("swapped", [False, True])
def test_what_stands_beside_a_flag_that_never_holds_is_not_computed(swapped):
    """A comparison of real numbers that is refused, and numbers that no format holds."""
    with pytest.raises(CompileError, match="it compares real numbers"):
        _outputs(REAL > 1)
    pair = (NEVER, REAL > 1) if swapped else (REAL > 1, NEVER)
    assert not _outputs((pair[0] & pair[1]) + counts - counts)[0].any()
    found, count = _outputs(~(pair[0] & pair[1]) & (counts > 2))
    assert np.array_equal(found, count > 2)
    pair = (NEVER, constant(HUGE)) if swapped else (constant(HUGE), NEVER)
    assert np.array_equal(_outputs(pair[0] * pair[1] + counts)[0], count)
    assert np.array_equal(
        _outputs((concatenate(NEVER, is_a) * concatenate(constant(HUGE), counts))[1])[0] > 0, _a(count)
    )


def _a(count):
    return np.diff(count, axis=1, prepend=0) > 0


def test_one_side_of_a_comparison_is_enough():
    """A real number that may reach its bound and not exceed it."""
    never = REAL.clip(0, 1) > 1
    found, count = _outputs(never | (counts > 2))
    assert np.array_equal(found, count > 2)
    assert np.array_equal(_outputs((1 - REAL.clip(0, 1) >= 0) & (counts > 2))[0], count > 2)


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_a_latch_computes_the_flags_that_are_read(target):
    found, count = _outputs(present(concatenate(counts > 1, REAL > 1))[0], target=target)
    assert np.array_equal(found, count > 1)
    both = concatenate(counts > 1, REAL > 1)
    assert np.array_equal(
        _outputs(latch(concatenate(counts, counts + 1), both)[1], target=target)[0], (count + 1) * (count > 1)
    )


def test_a_number_of_the_output_still_needs_a_format():
    with pytest.raises(CompileError, match="1000000000000.0, which no float32 holds"):
        _outputs(maximum(counts, HUGE))
