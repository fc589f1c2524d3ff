"""The packaged model, from the embedding to the logits, by induction over blocks and positions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from verify.kernel.exact import add, matmul, whole
from verify.kernel.files import Checkpoint
from verify.kernel.floats import Unproved, exponents
from verify.kernel.mamba import mamba_block
from verify.kernel.mamba2 import mamba2_block
from verify.kernel.mixers import ONE, Floats, Number

_NO_UNIT = 1 << 30  # larger than every exponent
BLOCKS = {"mamba": mamba_block, "mamba2": mamba2_block}


def lanes_of(f: Floats, checkpoint: Checkpoint) -> list[Number]:
    """The lanes that the head reads; Unproved with the first operation that may not be exact."""
    config, tensors = checkpoint.config, checkpoint.tensors
    embedding, letters = tensors["backbone.embeddings.weight"], checkpoint.language.tokens
    lanes = [Number(f.terms.of_letter(column)) for column in embedding[:letters].T]
    epsilon, block = config["layer_norm_epsilon"], BLOCKS[config["model_type"]]
    _check_pads(f, tensors, embedding[letters:].astype(np.float64), epsilon)
    for b in range(config["num_hidden_layers"]):
        what, prefix = f"block {b + 1}", f"backbone.layers.{b}."
        u = f.norm(f"{what}: norm", lanes, tensors[f"{prefix}norm.weight"], epsilon)
        mixer = prefix + "mixer."
        weights = {name.removeprefix(mixer): t for name, t in tensors.items() if name.startswith(mixer)}
        added = block(f, what, u, weights, config)
        both = enumerate(zip(lanes, added, strict=True))
        lanes = [f.sum(f"{what}: lane {i}", [(ONE, old), (ONE, new)]) for i, (old, new) in both]
    return f.norm("final norm", lanes, tensors["backbone.norm_f.weight"], epsilon)


def _check_pads(f: Floats, tensors: dict[str, np.ndarray], rows: np.ndarray, epsilon: float) -> None:
    """Where a text is padded, a special token's row goes on through all norms, and nothing overflows: squares and norms
    (lemma of pads). float64 is right to a part of 2^-20 here.
    """
    squares, wide = (rows**2).sum(axis=1), rows.shape[1]
    normal = np.abs(rows) / np.sqrt(squares / wide + epsilon)[:, None]
    weights = [
        np.abs(t) for name, t in tensors.items() if name.endswith(("norm.weight", "norm_f.weight")) and t.size == wide
    ]
    reach = max((normal.max(axis=0, initial=0) * t).max() for t in weights)
    if not (squares.max(initial=0) < 2.0**126 and 4 * reach < f.form.largest):
        raise Unproved(f"a special token's lanes can reach {float(reach):g} behind a norm where it pads a text")


def check_head(f: Floats, lanes: Sequence[Number], head: np.ndarray, letters: int) -> None:
    """Every logit is exact in any order (lemma of sums), and every special token scores below some letter always (lemma
    of special tokens).
    """
    read = [i for i in np.flatnonzero(head.any(axis=0)).tolist() if not lanes[i].zero]
    if any(lanes[i].outgrown is not None for i in read):
        raise Unproved(f"the head reads a count that outgrows {f.form.name}")
    (rows, by), ends = whole(head[:, read]), [f.terms.range(lanes[i].poly) for i in read]
    (low, high), of = whole(np.array(ends, object).reshape(-1, 2).T[..., None])
    up, down, below = np.maximum(rows, 0), np.minimum(rows, 0), by * of
    lows, highs = add(matmul(up, low), matmul(down, high)), add(matmul(up, high), matmul(down, low))
    above, under = np.maximum(high, 0), np.minimum(low, 0)  # a sum of some terms is between those of all of one sign
    reach = np.maximum(add(matmul(up, above), matmul(down, under)), -add(matmul(up, under), matmul(down, above)))
    units = np.where(rows, exponents(head[:, read]) + [lanes[i].poly.unit for i in read], _NO_UNIT)
    for r in np.flatnonzero(rows.any(axis=1)).tolist():
        f.form.exact(Fraction(int(reach[r, 0]), below), int(units[r].min()), f"logit {r}")
    if len(head) > letters and highs[letters:].max() >= lows[:letters].max():
        raise Unproved("a special token may score as high as every letter")
