"""Direct sums of column groups are proved from the weights, and no wrong one is."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from compiler.driver import compile
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from constructions.copy_dp.lists import LongestIncreasingSubsequence, MaximumSubarray
from constructions.copy_dp.tables import MatrixChain, ShortestPath
from tests.passes.test_direct_sums import ALPHABET, mirrored, overwriting, with_states
from tests.verify.checker.audit import without
from tests.verify.checker.checkpoints import write
from verify.checker.check import check

MIXER = "backbone.layers.0.mixer."


def _written(tmp_path, circuit):
    return write(tmp_path / "c", Circuit("sum", circuit(), InputLanguage.everything(ALPHABET, 24)), "mamba")


@pytest.mark.parametrize("circuit", [mirrored, with_states, overwriting], ids=lambda c: c.__name__)
def test_what_shares_a_block_is_proved(circuit, tmp_path):
    verdict = check(_written(tmp_path, circuit))
    assert verdict.arithmetic is None and verdict.meaning is None, (verdict.arithmetic, verdict.meaning)


@pytest.mark.parametrize("circuit", [with_states, overwriting], ids=lambda c: c.__name__)
def test_columns_that_cancel_are_not_proved_without_their_rule(circuit, tmp_path):
    directory = _written(tmp_path, circuit)
    with without("other memories' columns: columns that cancel"):
        assert not check(directory).accepted


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


def test_a_mirror_with_the_sign_of_what_it_mirrors_is_rejected(tmp_path):
    """Then foreign columns add where they have to cancel."""
    directory = _written(tmp_path, mirrored)
    tensors = load_file(directory / "model.safetensors")
    name, columns = MIXER + "x_proj.weight", tensors[MIXER + "A_log"].shape[1]
    queries = np.arange(len(tensors[name]))[-columns:]
    found = np.argwhere((tensors[name] != 0) & np.isin(np.arange(len(tensors[name])), queries)[:, None])
    opposite = [at for at in found if tensors[name][tuple(at)] < 0]
    assert opposite
    for at in opposite:
        planted = tensors[name].copy()
        planted[tuple(at)] *= -1
        save_file(tensors | {name: planted}, directory / "model.safetensors")
        verdict = check(directory)
        assert verdict.arithmetic is not None or verdict.meaning is not None, at


@pytest.mark.parametrize(
    ("construction", "blocks"),
    [
        (MaximumSubarray(length=2, values=2), 5),
        (LongestIncreasingSubsequence(length=2, values=2), 6),
        (MatrixChain(matrices=2, largest=2), 7),
    ],
    ids=lambda c: getattr(c, "name", str(c)),
)
def test_small_programs_are_proved_with_or_without_direct_sums(construction, blocks, tmp_path):
    """The first two would save a block by masks folded in a direct sum, which the checker does not follow."""
    assert len(compile(construction.circuit(), "mamba").blocks) == blocks
    assert check(write(tmp_path / "c", construction.circuit(), "mamba")).meaning is None


def test_a_program_of_theorem_3_is_proved(tmp_path):
    construction = ShortestPath(nodes=3, lengths=1)
    directory = write(tmp_path / "c", construction.circuit(), "mamba")
    assert (load_file(directory / "model.safetensors")["backbone.layers.1.mixer.A_log"] == 2).any()
    verdict = check(directory)
    assert verdict.arithmetic is None and verdict.meaning is None, (verdict.arithmetic, verdict.meaning)
