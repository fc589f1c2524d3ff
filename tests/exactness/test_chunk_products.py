"""mamba_ssm's chunk scan rounds Δ⟨C, B⟩ to the dtype: what float16 does not reach is refused, on Mamba-2 alone. And it
adds up C·h over the columns, of C and h at different positions.
"""

import numpy as np
import pytest

from compiler import Alphabet, Circuit, CompileError, InputLanguage, Tokens, compile, concatenate, memory, sum_where
from compiler.exactness.levels import LEAST_STATE
from compiler.exactness.sums import scan_bounds
from compiler.formats import FLOAT16

LETTERS = Alphabet.of("a", "b")


def _sum_where() -> Circuit:
    """Programs like it gave NaN on CUDA: 128 · 32 · 32, which is infinite in float16, times 0."""
    x = Tokens(LETTERS)
    return Circuit("sum", sum_where(x.number({"a": 1}), x.is_in("a")), InputLanguage.everything(LETTERS, 8))


def test_no_state_of_mamba2_is_in_float16_and_the_refusal_says_why():
    with pytest.raises(
        CompileError, match="is kept in a state, and mamba2 reads Δ·x̂·B·C of it, .* 163224 .* 65504; use"
    ):
        compile(_sum_where(), "mamba2", "float16")
    assert FLOAT16.largest < LEAST_STATE, "the four smallest numbers that come out of softplus and silu exactly"


@pytest.mark.parametrize(("target", "dtype"), [("mamba", "float16"), ("mamba2", "bfloat16"), ("mamba2", "float32")])
def test_where_it_is_held_or_not_formed_nothing_is_refused(target, dtype):
    compile(_sum_where(), target, dtype)


def test_what_keeps_no_state_is_not_refused():
    x = Tokens(LETTERS)
    shifted = Circuit("shift", x.number({"a": 1}).shift(2), InputLanguage.everything(LETTERS, 8))
    compile(shifted, "mamba2", "float16")


def _read_of_columns(count: int) -> np.ndarray:
    """What a scan of this many columns may form, all of them written at `a` and read at `b`."""
    x = Tokens(LETTERS)
    write, read = (concatenate(*[x.number({letter: 1})] * count) for letter in "ab")
    summed = memory.outer_sum(x.number({"a": 2}), write, read)
    (block,) = compile(Circuit("sum", summed, InputLanguage.everything(LETTERS, 8)), "mamba2").blocks
    assert block.d_state == count
    return scan_bounds(block, np.ones(len(block.lanes)), 8)


def test_what_is_read_of_all_columns_is_bounded_together():
    """It may be added up before an exp of 0 takes it away: 8 times the largest float32 is infinite."""
    assert _read_of_columns(8).max() == 8 * _read_of_columns(1).max()
