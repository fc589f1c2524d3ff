"""Memories in two digits are proved to be the memories that the circuit asks for."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import compiler
from constructions.selectivity.mqar import MQAR
from tests.verify.checker.plants import plant
from verify.checker.check import check


def _saved(directory: Path, arch: str) -> Path:
    construction = MQAR(kappa=5, vocab=4, arch=arch, max_d_state=2)
    compiled = compiler.compile(construction.circuit(), arch, max_d_state=2)
    assert max(block.d_state for block in compiled.blocks) == 2
    compiled.save(directory)
    return directory


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_recall_from_two_digits_is_proved(arch: str, tmp_path: Path):
    verdict = check(_saved(tmp_path / "c", arch))
    assert verdict.accepted, verdict.reason


def test_no_wrong_weight_is_accepted(tmp_path: Path):
    tally, missed = plant(_saved(tmp_path / "c", "mamba"), 20, random.Random(0))
    assert tally["rejected"] == 20 and missed == []
