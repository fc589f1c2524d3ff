"""Part A: every float operation of the packaged model gives the exact value, by induction over blocks and positions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from verify.checker.arithmetic.mamba import mamba_block
from verify.checker.arithmetic.mamba2 import mamba2_block
from verify.checker.arithmetic.memories import joined
from verify.checker.arithmetic.norms import normed
from verify.checker.arithmetic.sums import exact_sum
from verify.checker.files import Checkpoint, Matrix
from verify.checker.formats import Rejected, array_exponent
from verify.checker.values.bounds import bounds, largest
from verify.checker.values.values import Value, World, of_letters

ONE = Fraction(1)
BLOCKS = {"mamba": mamba_block, "mamba2": mamba2_block}


@dataclass(frozen=True, eq=False)
class Proved:
    """What the model computes: the lanes at the head, each a value, and the head's weights."""

    world: World
    lanes: list[Value]
    head: Matrix
    silent: bool  # whether every special token scores below every letter, at every position


def prove_arithmetic(checkpoint: Checkpoint) -> Proved:
    """Rejected, with the first operation that may not be exact."""
    config, tensors = checkpoint.config, checkpoint.tensors
    world = World(checkpoint.language, checkpoint.format)
    embedding = tensors["backbone.embeddings.weight"].T
    letters = checkpoint.language.tokens
    lanes = [of_letters(embedding.dense_row(i)[:letters]) for i in range(config["hidden_size"])]
    epsilon = config["layer_norm_epsilon"]
    for b in range(config["num_hidden_layers"]):
        what, prefix = f"block {b + 1}", f"backbone.layers.{b}."
        u = normed(world, lanes, tensors[prefix + "norm.weight"].dense_row(0), epsilon, f"{what}: norm")
        mixer = {name.removeprefix(prefix + "mixer."): t for name, t in tensors.items() if name.startswith(prefix)}
        added = BLOCKS[config["model_type"]](world, u, mixer, config, what)
        lanes = [
            joined(world, exact_sum(world, [(ONE, old), (ONE, new)], f"{what}: lane {i}"))
            for i, (old, new) in enumerate(zip(lanes, added, strict=True))
        ]
        world.blocks.append(len(world.roots))
    final = normed(world, lanes, tensors["backbone.norm_f.weight"].dense_row(0), epsilon, "final norm")
    head = tensors["lm_head.weight"]
    _check_head(world, final, head)
    return Proved(world, final, head, _specials_lose(world, final, head, letters))


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
    size = np.zeros(len(used))
    by_lane = head.T
    for i in used:
        lane_unit[place[i]] = lanes[i].unit
        weight_unit[place[i]] = array_exponent(by_lane.dense_row(i)) or 0
        size[place[i]] = _up(largest(world, lanes[i]) / Fraction(2) ** int(lane_unit[place[i]]))
    live = np.array([size[place[i]] > 0 for i in used], dtype=bool)
    if not live.any():
        return
    at = np.array([place.get(c, 0) for c in range(head.shape[1])])[head.cols]
    keep = live[at]
    at, rows, data = at[keep], head.rows[keep], head.data[keep]
    unit = int((weight_unit + lane_unit)[live].min())
    terms = np.abs(data) * 2.0 ** (lane_unit[at] - unit) * size[at]
    totals = np.bincount(rows, weights=terms, minlength=head.shape[0])
    worst = float(totals.max())
    if worst > world.format.units or worst * 2.0**unit > world.format.largest or unit < world.format.least:
        _check_rows(world, lanes, head, np.flatnonzero(totals > world.format.units), unit)


def _check_rows(world: World, lanes: list[Value], head: Matrix, rows: np.ndarray, unit: int) -> None:
    """The rows that a unit for all does not settle, one by one."""
    if len(rows) > 1 << 16:
        raise Rejected(f"{len(rows)} logits may not be exact in units of 2^{unit}")
    for r in rows.tolist():
        exact_sum(world, [(w, lanes[i]) for i, w in head.row(r)], f"logit {r}")


def _up(x: Fraction) -> float:
    """The integer x as a float64, or one that is no smaller."""
    return float(x) if x < 1 << 53 else float(x) * (1 + 2.0**-50)


def _specials_lose(world: World, lanes: list[Value], head: Matrix, letters: int) -> bool:
    """Whether each row beyond the letters stays below the least logit of some letter (lemma of special tokens)."""
    if head.shape[0] == letters:
        return True
    highest = max(bounds(world, _logit(world, lanes, head, r))[1] for r in range(letters, head.shape[0]))
    return any(bounds(world, _logit(world, lanes, head, r))[0] > highest for r in range(letters))


def _logit(world: World, lanes: list[Value], head: Matrix, row: int) -> Value:
    return exact_sum(world, [(w, lanes[i]) for i, w in head.row(row)], f"logit {row}")
