"""A directory that transformers saved, opened as a model, or refused in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.artifact.errors import CheckpointError, first_line
from compiler.language.markdown import one_line
from compiler.runtime.model_size import no_larger_than, size_of

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


def saved_model(directory: Path, dtype: str | torch.dtype) -> PreTrainedModel:
    """The model of a directory by transformers, without code from there.

    CheckpointError where it cannot be read, and where a weight is missing or has another size: transformers would draw
    random numbers for it. A config.json that asks for far more than the files hold is refused before that is made.
    """
    from transformers import AutoModelForCausalLM

    try:
        with no_larger_than(directory, size_of(directory)):
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                directory, dtype=dtype, output_loading_info=True, ignore_mismatched_sizes=True,
                trust_remote_code=False, local_files_only=True,
            )  # fmt: skip
        model, told = loaded
    except CheckpointError:
        raise
    except Exception as reason:  # whatever a file that is no model makes the libraries raise
        raise CheckpointError(f"{directory} cannot be read as a model: {first_line(reason)}") from reason
    if told["missing_keys"]:
        raise CheckpointError(
            f"the weights of {directory} lack {sorted(told['missing_keys'])[0]}, so it is no whole model."
        )
    if told["mismatched_keys"]:
        name, there, asked = sorted(told["mismatched_keys"])[0]
        raise CheckpointError(
            f"{directory} cannot be read as a model: its weight {one_line(name)} is {tuple(there)}, and by its "
            f"config.json it is {tuple(asked)}."
        )
    return model
