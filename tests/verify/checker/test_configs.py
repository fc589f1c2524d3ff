"""Each entry of config.json, for every class of model, with values that it cannot have."""

from __future__ import annotations

import json

import pytest
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, AutoModelForCausalLM

from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile
from compiler.artifact.package import language_model
from tests.verify.checker.checkpoints import write
from verify.checker.check import check
from verify.checker.families import check_config
from verify.checker.formats import Rejected
from verify.kernel.files import check_config as kernel_config
from verify.kernel.floats import FLOAT32, Unproved

LETTERS = Alphabet.of("a", "b", "c")
ODD = (1, None, "x", [None, None], float("nan"))
IDLE = {"time_step_rank", "max_position_embeddings", "pad_token_id", "eos_token_id"}  # no equation reads them
IDLE |= {"chunk_size"}  # and this makes no difference where every sum is exact
UNOPENED = {  # no model of the library opens with these
    "bos_token_id": ([1], 1.5),
    "eos_token_id": (["x"], [1, None], "x"),
    "pad_token_id": ([1], "x"),
    "time_step_rank": ([], "x", 1.5, None),
    "use_cache": ("x", 1.5, []),
}
READERS = (
    (lambda config: check_config(config, "float32"), Rejected),
    (lambda config: kernel_config(config, FLOAT32), Unproved),
)


def _config(arch: str) -> dict:
    circuit = Circuit("same", 2 * Tokens(LETTERS).one_hot(), InputLanguage.everything(LETTERS, 4))
    return dict(language_model(compile(circuit, arch)).config)


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_entries_with_which_the_library_opens_no_model_are_refused(arch) -> None:
    config = _config(arch)
    assert all(read(config) for read, _ in READERS)
    for key, values in UNOPENED.items():
        for value in values:
            with pytest.raises((StrictDataclassError, TypeError, ValueError)):
                AutoModelForCausalLM.from_config(AutoConfig.for_model(**config | {key: value}))
            for read, refused in READERS:
                with pytest.raises(refused, match=f"the config has {key} = "):
                    read(config | {key: value})


def test_a_chunk_that_the_library_has_no_memory_for_is_refused() -> None:
    """Its scan holds the square of the chunk for every head and column, also for a text of one letter."""
    config = _config("mamba2")
    for read, refused in READERS:
        assert read(config | {"chunk_size": 256})
        with pytest.raises(refused, match="chunk_size = 257, and 256 is the most"):
            read(config | {"chunk_size": 257})


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
