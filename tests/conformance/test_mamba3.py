"""docs/mamba3.md: its numbers are those of the emulation, and the real step on a GPU is as it says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from conformance.mamba3 import PI, TWO_PI, decoded, first_wrong, on_cuda, prefill_error, wrong_tokens

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "mamba3.md").read_text("utf-8").split())


def test_a_decoded_half_turn_goes_wrong_where_the_page_says() -> None:
    found, tokens = first_wrong(decoded, 20_000), 100_000
    assert found is not None and f"**first wrong at token {found:,}**" in PAGE
    wrong = set(wrong_tokens(decoded, tokens))
    again = next(t for t in range(found, tokens) if t not in wrong)
    share = 100 * len(wrong) / (tokens - found + 1)
    assert f"right again from token {again:,} and wrong again later" in PAGE and max(wrong) > again
    assert f"{share:.1f} % of the answers from token {found:,} to {tokens:,} are wrong" in PAGE


def test_a_step_that_takes_its_angle_modulo_a_turn_is_right_there() -> None:
    """Whether the test sees the fault: the same step, reduced."""

    def reduced(angle: np.float32) -> tuple[np.float32, float]:
        behind, rotated = decoded(angle)
        return np.float32(behind - TWO_PI * np.floor(behind / TWO_PI)), rotated

    assert first_wrong(reduced, 20_000) is None and PI > 3


def test_the_drift_of_whole_sequences_is_as_the_page_says() -> None:
    told = re.search(r"([\d.]+) radians after 1,000,000 tokens", PAGE)
    assert told and f"{prefill_error(1_000_000):.3f}" == told[1]


def test_the_step_on_a_gpu_never_reduces_its_angle() -> None:
    """Where this fails the class has settled: then docs/mamba3.md is out of date."""
    try:
        step = on_cuda()
    except (RuntimeError, ImportError) as error:
        pytest.skip(str(error))
    found = first_wrong(step, 10_000)
    assert found is not None and found < 10_000
