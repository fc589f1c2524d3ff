"""Part A: every float operation of the packaged model gives the exact value, by induction over blocks and positions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor

import numpy as np

from verify.checker.arithmetic.delta import check_silent, delta_block
from verify.checker.arithmetic.mamba import mamba_block
from verify.checker.arithmetic.mamba2 import mamba2_block
from verify.checker.arithmetic.memories import joined
from verify.checker.arithmetic.norms import normed
from verify.checker.arithmetic.pads import check_norms
from verify.checker.arithmetic.sums import exact_sum
from verify.checker.files import Checkpoint, Matrix
from verify.checker.formats import Rejected, array_exponent
from verify.checker.values.bounds import bounds
from verify.checker.values.exact import above, number
from verify.checker.values.values import Value, World, of_letters

ONE = Fraction(1)
BLOCKS = {"mamba": mamba_block, "mamba2": mamba2_block, "olmo_hybrid": delta_block, "qwen3_5_text": delta_block}


@dataclass(frozen=True)
class Names:
    """Of tensors, and of the ε of norms. silent: layers at the end that add 0; shift: norms multiply by shift + w."""

    embedding: str
    layers: str
    norm: str
    mixer: str
    final_norm: str
    epsilon: str
    silent: int = 0
    shift: float = 0.0

    def weight(self, stored: Matrix) -> np.ndarray:
        """What a norm multiplies by."""
        row = stored.dense_row(0)
        if self.shift and row.any():
            raise Rejected("a norm that multiplies by 1 + w has a w other than 0")
        return row + self.shift


_MAMBA = Names(
    "backbone.embeddings.weight",
    "backbone.layers",
    "norm.weight",
    "mixer",
    "backbone.norm_f.weight",
    "layer_norm_epsilon",
)
_DELTA = Names(
    "model.embed_tokens.weight",
    "model.layers",
    "input_layernorm.weight",
    "linear_attn",
    "model.norm.weight",
    "rms_norm_eps",
    silent=1,
)
NAMES = {"mamba": _MAMBA, "mamba2": _MAMBA, "olmo_hybrid": _DELTA, "qwen3_5_text": replace(_DELTA, shift=1.0)}


@dataclass(frozen=True, eq=False)
class Proved:
    """What the model computes: the lanes at the head, each a value, and the head's weights."""

    world: World
    lanes: list[Value]
    head: Matrix
    silent: bool  # whether every special token scores below every letter, at every position


def prove_arithmetic(checkpoint: Checkpoint, together: bool = True) -> Proved:
    """Rejected, with the first operation that may not be exact. together: see `World`."""
    config, tensors = checkpoint.config, checkpoint.tensors
    world = World(checkpoint.language, checkpoint.format, together=together)
    names = NAMES[config["model_type"]]
    embedding = tensors[names.embedding].T
    letters = checkpoint.language.tokens
    lanes = [of_letters(embedding.dense_row(i)[:letters]) for i in range(config["hidden_size"])]
    epsilon = config[names.epsilon]
    _check_pads(world, config, tensors, names)
    if names.silent:
        check_silent(tensors, config)
    for b in range(config["num_hidden_layers"] - names.silent):
        what, prefix = f"block {b + 1}", f"{names.layers}.{b}.{names.mixer}."
        u = normed(world, lanes, names.weight(tensors[f"{names.layers}.{b}.{names.norm}"]), epsilon, f"{what}: norm")
        mixer = {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
        added = BLOCKS[config["model_type"]](world, u, mixer, config, what)
        lanes = [
            joined(world, exact_sum(world, [(ONE, old), (ONE, new)], f"{what}: lane {i}"))
            for i, (old, new) in enumerate(zip(lanes, added, strict=True))
        ]
        world.blocks.append(len(world.roots))
    final = normed(world, lanes, names.weight(tensors[names.final_norm]), epsilon, "final norm")
    head = tensors["lm_head.weight"]
    _check_head(world, final, head)
    return Proved(world, final, head, _specials_lose(world, final, head, letters))


def _check_pads(world: World, config: dict, tensors: dict[str, Matrix], names: Names) -> None:
    """What a special token's row is behind the norms (lemma of pads)."""
    embedding, letters = tensors[names.embedding], world.language.tokens
    rows = np.array([embedding.dense_row(i) for i in range(letters, embedding.shape[0])])
    of_lanes = {name: t for name, t in tensors.items() if "norm" in name and t.shape == (1, config["hidden_size"])}
    weights = {name: t.dense_row(0) + names.shift for name, t in of_lanes.items()}
    check_norms(world.format, rows.reshape(-1, config["hidden_size"]), weights, config[names.epsilon])


def _check_head(world: World, lanes: list[Value], head: Matrix) -> None:
    """Every logit is an exact sum.

    All rows at once, in units: float64 is exact below 2^53, and at least 2^53 beyond.
    """
    used = sorted(set(head.cols.tolist()))
    for i in used:
        if lanes[i].upto is not None:
            raise Rejected(f"the head reads lane {i}, a count that outgrows {world.format.name}")
    place = {lane: k for k, lane in enumerate(used)}
    weight_unit, lane_unit = np.zeros(len(used), dtype=np.int64), np.zeros(len(used), dtype=np.int64)
    under, over = np.zeros(len(used)), np.zeros(len(used))  # how far each lane reaches to either side of 0
    by_lane = head.T
    for i, k in place.items():
        lane_unit[k] = lanes[i].unit
        weight_unit[k] = array_exponent(by_lane.dense_row(i)) or 0
        low, high = (end / Fraction(2) ** int(lane_unit[k]) for end in bounds(world, lanes[i]))
        under[k], over[k] = _up(max(-low, Fraction(0))), _up(max(high, Fraction(0)))
    live = under + over > 0
    if not live.any():
        return
    at = np.array([place.get(c, 0) for c in range(head.shape[1])])[head.cols]
    keep = live[at]
    at, rows, data = at[keep], head.rows[keep], head.data[keep]
    unit = int((weight_unit + lane_unit)[live].min())
    in_units = np.abs(data) * 2.0 ** (lane_unit[at] - unit)
    added = lambda ends: np.bincount(rows, weights=in_units * ends, minlength=head.shape[0])
    down, up = (np.where(data > 0, a[at], b[at]) for a, b in ((under, over), (over, under)))
    totals = np.maximum(added(down), added(up))  # a sum of some of the terms lies between those below 0 and those above
    most = number(min(Fraction(world.format.units), world.format.largest / Fraction(2) ** unit))
    _check_rows(world, lanes, head, np.flatnonzero((totals > most) | (unit < world.format.least)), unit)


def _check_rows(world: World, lanes: list[Value], head: Matrix, rows: np.ndarray, unit: int) -> None:
    """The rows that a unit for all does not settle, one by one."""
    if len(rows) > 1 << 16:
        raise Rejected(f"{len(rows)} logits may not be exact in units of 2^{unit}")
    for r in rows.tolist():
        exact_sum(world, [(w, lanes[i]) for i, w in head.row(r)], f"logit {r}")


def _up(x: Fraction) -> float:
    """The largest integer up to x as a float64, or one that is no smaller."""
    return above(floor(x))


def _specials_lose(world: World, lanes: list[Value], head: Matrix, letters: int) -> bool:
    """Whether each row beyond the letters stays below the least logit of some letter (lemma of special tokens)."""
    if head.shape[0] == letters:
        return True
    highest = max(bounds(world, logit(world, lanes, head, r))[1] for r in range(letters, head.shape[0]))
    return any(bounds(world, logit(world, lanes, head, r))[0] > highest for r in range(letters))


def logit(world: World, lanes: list[Value], head: Matrix, row: int) -> Value:
    return exact_sum(world, [(w, lanes[i]) for i, w in head.row(row)], f"logit {row}")
