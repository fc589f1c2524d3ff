"""A circuit of the present token alone is saved too: its language model has a layer that adds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import compiler
from compiler import Alphabet, Circuit, InputLanguage, Tokens, readout_one_hot
from constructions.checkpoints.saved import verify_checkpoint
from tests.constructions.test_construct import run

LETTERS = Alphabet.of("a", "b", "c")


def next_letter() -> Circuit:
    present = Tokens(LETTERS).one_hot()
    follower = present[[2, 0, 1]]  # a to b to c to a
    return Circuit("next", readout_one_hot(follower, LETTERS), InputLanguage.everything(LETTERS, 8))


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_it_is_saved_verified_and_right(target: str, tmp_path: Path) -> None:
    compiler.compile(next_letter(), target).save(tmp_path / "out")
    loaded = compiler.load(tmp_path / "out")
    assert len(loaded.blocks) == 1
    assert loaded(torch.tensor([[0, 1, 2, 2, 0]])).argmax(-1).tolist() == [[1, 2, 0, 0, 1]]
    assert verify_checkpoint(tmp_path / "out").good


def test_the_commands_take_it(tmp_path: Path) -> None:
    directory = str(tmp_path / "out")
    compiler.compile(next_letter()).save(directory)
    assert run("verify", directory, "--json") == 0
    assert run("inspect", directory) == 0
    assert run("show", directory) == 0
    assert run("plot", directory, "--input", "a b", "--out", str(tmp_path / "s.png")) == 0
    assert (tmp_path / "s.png").stat().st_size > 10_000  # lanes and answers, without a state
