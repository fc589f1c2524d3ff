"""Each entry of config.json, for every class of model, with values that it cannot have."""

from __future__ import annotations

import json

import pytest

from compiler import Alphabet, Circuit, InputLanguage, Tokens
from tests.verify.checker.checkpoints import write
from verify.checker.check import check

LETTERS = Alphabet.of("a", "b", "c")
ODD = (1, None, "x", [None, None], float("nan"))
IDLE = {"time_step_rank", "max_position_embeddings", "pad_token_id", "eos_token_id"}  # no equation reads them
IDLE |= {"chunk_size"}  # and this makes no difference where every sum is exact


@pytest.mark.parametrize("target", ["mamba", "mamba2", "gated-deltanet", "gated-deltanet-qwen"])
def test_an_entry_that_cannot_be_is_one_sentence(target, tmp_path) -> None:
    circuit = Circuit("same", 2 * Tokens(LETTERS).one_hot(), InputLanguage.everything(LETTERS, 4))
    directory = write(tmp_path / "at", circuit, target)
    config = json.loads((directory / "config.json").read_text())
    assert check(directory).weights is None
    for key, value in config.items():
        for odd in ODD:
            (directory / "config.json").write_text(json.dumps(config | {key: odd}))
            reason = check(directory).weights
            assert key in IDLE or odd == value if reason is None else "\n" not in reason, (key, odd)
