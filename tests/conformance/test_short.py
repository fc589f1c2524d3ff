"""Models of few positions: every mode gives each piece at least one token, and all modes together read all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner

from conformance.models.modes import modes
from constructions.command.cli import app


class Heard:
    """A model that says how many tokens stand before each, by its cache, and refuses none but an empty piece."""

    def begin(self, tokens: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Any]:
        return self.extend(0, tokens)

    def extend(self, cache: int, tokens: Tensor) -> tuple[Tensor, Any]:
        assert tokens.shape[1] > 0, "a piece of no token"
        places = torch.arange(cache, cache + tokens.shape[1])
        return places.expand(tokens.shape)[..., None], cache + tokens.shape[1]

    def select(self, cache: int, rows: Tensor) -> int:
        return cache

    def fork(self, cache: int) -> int:
        return cache


@pytest.mark.parametrize("length", [*range(1, 14), 60])
def test_no_piece_is_empty(length: int) -> None:
    tokens = torch.zeros(3, length, dtype=torch.int64)
    for _, name, mode in modes(length):
        told = mode(Heard(), tokens)
        asked = length if told.length is None else told.length
        assert torch.equal(told.logits[0, :, 0], torch.arange(asked)), name


def test_there_are_steps_from_a_long_prompt_wherever_one_fits() -> None:
    for length in range(4, 61):
        _, late = (name for stage, name, _ in modes(length) if stage == "steps")
        prompt = int(late.split()[3].rstrip(","))
        assert 2 < prompt < length or (prompt, length) == (3, 4)
    assert late == "a prompt of 51, then steps"


def test_a_checkpoint_of_seven_positions_is_right(tmp_path: Path) -> None:
    """The copy of a string of four was said to be given no token."""
    place = str(tmp_path / "copy")
    built = CliRunner().invoke(app, ["copy", "--form", "string", "--n", "4", "--vocab", "2", "--out", place])
    assert built.exit_code == 0, built.output
    found = CliRunner().invoke(app, ["conformance", "--checkpoint-dir", place])
    assert found.exit_code == 0, found.output
