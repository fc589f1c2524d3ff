"""What pictures need of a built model: every stage of a block, and the distribution of exp(ΔA)."""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.analysis.affine_form import ONE
from compiler.compiled import Compiled, run_blocks
from compiler.ir.block import trace
from compiler.language.operations import Source
from constructions.checkpoints.built import build
from constructions.construction import CircuitFamily
from constructions.experiments.entry import Entry
from constructions.selectivity.with_position import KeepNthPosition

SEQUENCE = "k1 v2 k0 v3 k2 v0 _ k0 _ k2 k1 _"
BINS = 10


def detail_of(entry: Entry) -> dict[str, Any]:
    """What the row keeps: plain numbers for JSON."""
    assert isinstance(entry.built, CircuitFamily)
    compiled = build(entry.built).compiled
    return stages(compiled, SEQUENCE) if entry.detail == "stages" else decay(compiled, entry.built)


def stages(compiled: Compiled, text: str) -> dict[str, Any]:
    """Every stage of a one-block model on a sequence: {stage: {"rows": names, "values": (rows, time)}}, and the tokens.

    The scores of the real module are equal to those of this block bit for bit wherever the row says exact.
    """
    ids = np.array([compiled.source.token_alphabet.encode(text)])
    (block,) = compiled.blocks
    lanes = run_blocks(compiled, ids)[0]
    found = trace(block, lanes)
    channels, columns = block.channels.names, block.columns.names
    state = [f"{channel}, {column}" for column in columns for channel in channels]
    parts = {
        "embedding": ([lane.name for lane in block.lanes], lanes[0].T),
        "convolution": (list(block.features.names), found.features[0].T),
        "write B": (list(columns), found.write[0].T),
        "state": (state, found.states[0].transpose(2, 1, 0).reshape(len(state), -1)),
        "read C": (list(columns), found.read[0].T),
        "gate": (list(channels), found.gate[0].T),
        "output": ([lane.name for lane in block.lanes], found.out[0].T),
    }
    answers = compiled.interpret(ids)[0].argmax(-1)
    names = compiled.source.token_alphabet.tokens
    told = {name: _used(rows, values) for name, (rows, values) in parts.items()}
    return {"tokens": text.split(), "answers": [names[a] for a in answers], "stages": told}


def _used(rows: list[str], values: np.ndarray) -> dict[str, Any]:
    """The rows that are ever anything but 0."""
    used = np.flatnonzero(np.any(values, axis=1))
    return {"rows": [rows[i] for i in used], "values": values[used].tolist()}


def decay(compiled: Compiled, built: CircuitFamily, length: int = 30) -> dict[str, list[float]]:
    """The share of exp(−ΔA) of the latches in each tenth of [0, 1], before the n-th token and from it on.

    A latch forgets at n what it held, and keeps from n + 1 on what it took at n.
    """
    assert isinstance(built, KeepNthPosition)
    rng = np.random.default_rng(0)
    tokens = np.eye(built.vocab)[rng.integers(built.vocab, size=(1, length))]
    positions = np.arange(1.0, length + 1)[None, :, None]
    (block,) = compiled.blocks
    found = trace(block, _lanes(compiled, {"token": tokens, "position": positions}))
    latches = [i for i, name in enumerate(block.channels.names) if name.startswith("kept")]
    parts = {"before": found.kept[0, : built.n, latches], "after": found.kept[0, built.n :, latches]}
    return {name: (np.histogram(part, BINS, (0, 1))[0] / part.size).tolist() for name, part in parts.items()}


def _lanes(compiled: Compiled, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """(batch, time, lanes) before the first block, from the numbers of every input."""
    shape = next(iter(inputs.values())).shape[:2]
    lanes = np.zeros((*shape, compiled.lanes.count))
    for stream, at in compiled.lanes.index.items():
        if stream is ONE:
            lanes[..., at] = 1
        elif stream.operation.source is Source.NUMBERS:
            lanes[..., at[at >= 0]] = inputs[stream.label][..., at >= 0]
    return lanes
