"""Numbers that a scan forms on its way to 0 overflow, and 0 · ∞ is NaN: each of these models was accepted once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from transformers.models.mamba import modeling_mamba
from transformers.models.mamba2 import modeling_mamba2

from tests.spread import some
from tests.verify.kernel.extremes import WIDTH, Block, checker_says, kernel_says, outcome, runs

LETTERS = [0, 0, 0, 0, 1, 1, 0, 1, 0, 0]
B, C = WIDTH, WIDTH + 1  # convolved rows of a block of one column


def sums_of_a_chunk(step: float, dtype: str) -> Block:
    """A head without anything to write, whose Δ adds up to infinity over a chunk: −∞ − (−∞)."""
    block = Block("mamba2", dtype)
    block.mixer["dt_bias"][:] = -128, step
    block.constant(B, -128)
    block.constant(C, -128)
    return block


def steps_times_writes(write: float, dtype: str) -> Block:
    """Δ·B of a head whose x̂ is 0, which a step with a cache forms in the dtype."""
    block = Block("mamba2", dtype)
    block.mixer["dt_bias"][:] = -128, 128
    block.mixer["A_log"][1] = -128
    block.constant(B, write)
    block.constant(C, -128)
    return block


def reads_of_an_earlier_state(read: float, dtype: str) -> Block:
    """a writes 2^73 into two columns, b reads both and writes 0, and each position erases: C·h is 0 at all of them, but
    not for C of one chunk and h at the end of the one before.
    """
    block = Block("mamba2", dtype, columns=2, chunk=4)
    block.mixer["dt_bias"][:] = -128, 128
    block.at(2, 2.0**6, 1)
    for column in (WIDTH, WIDTH + 1):
        block.at(column, 2.0**60, 1)
        block.at(column + 2, read, -1)
    return block


FORGED: dict[str, tuple[Callable[[float, str], Block], str, float, float, str]] = {
    "sums of a chunk": (sums_of_a_chunk, "float32", 2.0**127, 2.0**121, "over a chunk can reach"),
    "sums of a chunk, in bfloat16": (sums_of_a_chunk, "bfloat16", 2.0**127, 2.0**121, "over a chunk can reach"),
    "Δ·B": (steps_times_writes, "float16", 1024, 256, "float16 ends at 6.55e+04"),
    "C·h of two positions": (reads_of_an_earlier_state, "float32", 2.0**54, 2.0**53, "C·h of an earlier position"),
}


def test_the_models_run_here_are_transformers_own_code():
    """mamba_ssm's scans give 0 where these give NaN."""
    for scan in (modeling_mamba.mamba_selective_scan, modeling_mamba2.mamba2_chunk_scan):
        assert inspect.unwrap(scan) is scan


@pytest.mark.parametrize("name", FORGED)
def test_what_overflows_on_its_way_to_0_is_refused(name: str, tmp_path: Path):
    """The greater number gives NaN and is refused by both, the lesser one is accepted by both and exact."""
    make, dtype, wrong, right, words = FORGED[name]
    forged = make(wrong, dtype).write(tmp_path / "forged")
    assert any(np.isnan(found).any() for found in runs(forged, LETTERS))
    for said in (kernel_says(forged), checker_says(forged)):
        assert words in (said or "accepted")
    block = make(right, dtype)
    fine = block.write(tmp_path / "fine")
    assert kernel_says(fine) is None and checker_says(fine) is None
    for found in runs(fine, LETTERS):
        np.testing.assert_array_equal(found, block.scores(LETTERS))


def test_what_is_accepted_of_extreme_numbers_is_exact(tmp_path: Path):
    found = [outcome(seed, tmp_path / "block") for seed in some(range(60), seconds=0.1, least=20)]
    assert not [told for told in found if told.startswith("wrong")] and "kernel and checker" in found
