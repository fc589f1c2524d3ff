"""A disguised checkpoint with its key: traced, patched and hooked by the names of its circuit."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from compiler.artifact.dtype import in_dtype
from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import CONFIG, WEIGHTS
from compiler.artifact.json_files import read_json
from compiler.artifact.load import load_over_tokens
from compiler.artifact.manifest import file_hash
from compiler.disguise.basis import lane_basis
from compiler.disguise.directory import check_disguised, not_plain, read_disguised, write_plain
from compiler.disguise.errors import DisguiseError
from compiler.disguise.key import Key, read_key
from compiler.tracing.forward import Basis
from compiler.tracing.model import TracedModel
from compiler.tracing.truth import Truth


def load_disguised(directory: str | Path, key: str | Path | Key) -> TracedModel:
    """The disguised model itself, read and set by the names of its circuit: the key says which sums of its lanes they
    are. DisguiseError where the key is of others; CheckpointError where the weights are not the
    circuit's.
    """
    directory, known = Path(directory), key if isinstance(key, Key) else read_key(Path(key))
    check_disguised(directory)
    _, tensors = read_disguised(directory)
    if file_hash(directory / WEIGHTS) != known.weights:
        raise DisguiseError(f"the key is that of other weights than those in {directory}.")
    with TemporaryDirectory() as place:
        out = Path(place) / "plain"
        write_plain(directory, known, known.plain(tensors), out)
        try:
            plain = load_over_tokens(out)
            truth = plain.truth
        except CheckpointError as reason:
            raise not_plain(directory, known, reason, out) from reason
    config = read_json(directory / CONFIG)
    model = TracedModel.from_language_model(config, {name: torch.from_numpy(t) for name, t in tensors.items()})
    model = in_dtype(model, plain.manifest.dtype)
    model.manifest, model.config, model.tokens, model.directory = plain.manifest, config, plain.tokens, directory
    to = lane_basis(known.steps, config["hidden_size"])
    back = lane_basis(known.steps, config["hidden_size"], inverse=True)
    if not np.array_equal(to @ back, np.eye(len(to))):
        raise DisguiseError(f"the steps of the key of {directory} on lanes have no exact inverse.")
    model.__dict__["truth"] = Truth(truth.compiled, model, truth.layout, Basis(to, back))
    return model
