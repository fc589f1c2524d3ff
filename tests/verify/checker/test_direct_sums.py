"""Direct sums of column groups are proved from the weights, and no wrong one is."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from constructions.copy_dp.tables import ShortestPath
from tests.passes.test_direct_sums import ALPHABET, mirrored, overwriting, with_states
from tests.verify.checker.checkpoints import write
from verify.checker.check import check

MIXER = "backbone.layers.0.mixer."


def _written(tmp_path, circuit):
    return write(tmp_path / "c", Circuit("sum", circuit(), InputLanguage.everything(ALPHABET, 24)), "mamba")


@pytest.mark.parametrize("circuit", [mirrored, with_states, overwriting], ids=lambda c: c.__name__)
def test_what_shares_a_block_is_proved(circuit, tmp_path):
    verdict = check(_written(tmp_path, circuit))
    assert verdict.arithmetic is None and verdict.meaning is None, (verdict.arithmetic, verdict.meaning)


@pytest.mark.parametrize("a_log", [-200.0, 0.5, 0.0, -10.0])
@pytest.mark.parametrize("circuit", [mirrored], ids=lambda c: c.__name__)
def test_a_foreign_column_that_is_kept_is_rejected(circuit, a_log, tmp_path):
    """Kept or faded, foreign writes add up; what still erases at a step of 128 stays what it was."""
    directory = _written(tmp_path, circuit)
    tensors = load_file(directory / "model.safetensors")
    name = MIXER + "A_log"
    for at in np.argwhere(tensors[name] == 2)[::3]:
        planted = tensors[name].copy()
        planted[tuple(at)] = a_log
        save_file(tensors | {name: planted}, directory / "model.safetensors")
        verdict = check(directory)
        accepted = verdict.arithmetic is None and verdict.meaning is None
        assert not accepted or 128 * np.exp(a_log) >= 104, at


def test_a_program_of_theorem_3_is_proved(tmp_path):
    construction = ShortestPath(nodes=3, lengths=1)
    directory = write(tmp_path / "c", construction.circuit(), "mamba")
    assert (load_file(directory / "model.safetensors")["backbone.layers.1.mixer.A_log"] == 2).any()
    verdict = check(directory)
    assert verdict.arithmetic is None and verdict.meaning is None, (verdict.arithmetic, verdict.meaning)
