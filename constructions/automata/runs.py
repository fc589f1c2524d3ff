"""Long words on a built automaton: its answers beside a plain walk through its table, which shares no code with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from compiler.artifact.generate import transformers_model
from compiler.artifact.model import Stack
from compiler.runtime.streaming import stream_scores
from constructions.checkpoints import artifact
from constructions.checkpoints.built import Built
from verify.tasks.recognition import Recognition

CHUNK = 4096  # letters of a word that are held at a time


def task_of(built: Built) -> Recognition:
    (task,) = built.construction.tasks()
    assert isinstance(task, Recognition)
    return task


def words(task: Recognition, count: int, length: int, seed: int) -> np.ndarray:
    """(count, length): half uniform, the first half mostly of letters behind which more than one answer is possible."""
    rng = np.random.default_rng(seed)
    open_ended = [task.word(rng, length) for _ in range((count + 1) // 2)]
    return np.concatenate([np.array(open_ended), rng.integers(task.letters, size=(count // 2, length))])


def wrong_in_modules(built: Built, given: np.ndarray) -> int:
    """Wrong answers of the language model as real modules, which read the words chunk by chunk."""
    stack = built.stack()
    assert isinstance(stack, Stack)
    chunks = torch.from_numpy(given).split(CHUNK, dim=1)
    said = torch.cat([scores.argmax(dim=-1) for scores in stream_scores(stack, chunks)], dim=1)
    return _wrong(task_of(built), given, said)


def wrong_in_transformers(built: Built, given: np.ndarray, piece: int | None = None) -> int:
    """Wrong answers of the saved checkpoint, as transformers loads it and runs whole words.

    piece: so many letters at a time, the cache carried on, for models that begin from a cache; the layer of attention,
    whose output is multiplied by 0, begins each piece with an empty one. None: each word is one call.
    """
    with TemporaryDirectory() as directory:
        path = Path(directory) / "checkpoint"
        artifact.save(built, {}, path)
        model = transformers_model(path, built.compiled.dtype).eval()
        with torch.inference_mode():
            said = torch.cat(list(_said(model, torch.from_numpy(given), piece)), dim=1)
    return _wrong(task_of(built), given, said)


def _said(model: Any, given: torch.Tensor, piece: int | None) -> Iterator[torch.Tensor]:
    """What the model answers, by pieces."""
    if piece is None:
        yield model(given, use_cache=False).logits.argmax(dim=-1)
        return
    from transformers.cache_utils import DynamicLayer

    cache = None
    for tokens in given.split(piece, dim=1):
        out = model(tokens, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        cache.layers = [DynamicLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers]
        yield out.logits.argmax(dim=-1)


def _wrong(task: Recognition, given: np.ndarray, said: torch.Tensor) -> int:
    return int((said.numpy() != np.array([task.labels(word) for word in given.tolist()])).sum())
