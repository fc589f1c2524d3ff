"""Level 2: coordinates become sums of each other, by unimodular maps whose inverses are as exact.

The norms see a sum of squares, which no integer mixing keeps but signed permutations. It need not be kept: the ballast
hides all lanes but itself (E7), so any mixing of the lanes beside it is taken that the ballast still hides. What reads
them reads the inverse. State columns may be mixed where every channel gives both the same decay; in Mamba-2 none may,
because C would need a negative weight, and it enters silu.
"""

from __future__ import annotations

from random import Random

import numpy as np

from compiler.disguise.facts import Facts
from compiler.disguise.spaces import READS, SPACES, Space, lanes
from compiler.disguise.steps import Mix, Step, patch_of
from compiler.lattice.units import array_units
from compiler.targets.family import FINAL_NORM, mixer_prefix, norm_name

MIXES_A_LANE = 2


def idle_lanes_read(facts: Facts) -> list[Step]:
    """The norms let idle lanes through as they do the others: they hold 0, and nothing reads them yet."""
    after = {name: tensor.copy() for name, tensor in facts.tensors.items()}
    layers = range(facts.config["num_hidden_layers"])
    for name in (*map(norm_name, layers), FINAL_NORM):
        after[name][facts.data : facts.width - facts.ballast] = facts.level
    patch = patch_of(facts.tensors, after, {"idle_lanes": "their norm weights become those of the others"})
    facts.tensors = after
    return [patch] if patch.entries else []


def draw_lane_mixes(facts: Facts, rng: Random) -> list[Step]:
    """Elementary steps on the residual stream, as many as stay exact of two for each lane that are tried."""
    space, steps = lanes(facts.config), []
    choices = list(facts.mixable)
    for _ in range(MIXES_A_LANE * facts.data):
        to, of = rng.sample(choices, 2) if len(choices) > 1 else (0, 0)
        sign, shift = rng.choice((-1, 1)), rng.choice((0, 0, 1))
        step = _mixed(facts, space, to, of, sign, shift) if to != of and facts.bounds[of] else None
        steps += [] if step is None else [step]
    return steps


def _mixed(facts: Facts, space: Space, to: int, of: int, sign: int, shift: int) -> Step | None:
    """The lane `to` takes sign · 2^shift quanta of its own for each quantum of `of`; None where that is not exact."""
    unit = facts.units[to] if np.isfinite(facts.units[to]) else facts.units[of]
    factor = sign * float(np.ldexp(unit / facts.units[of], shift))
    bounds, units = facts.bounds.copy(), facts.units.copy()
    bounds[to] += abs(factor) * bounds[of]
    units[to] = unit
    held = 2 * bounds[to] <= facts.format.exact_integers * unit and facts.divisible(units)
    fits = held and facts.hidden(bounds, facts.level) and _writable(facts, to, of, factor, bounds, units)
    if not fits or not _readable(facts, space, to, of, factor, bounds, units):
        return None
    facts.bounds, facts.units = bounds, units
    return _taken(facts, Mix(space.mixed, to, of, factor))


def _writable(facts: Facts, to: int, of: int, factor: float, bounds: np.ndarray, units: np.ndarray) -> bool:
    """Whether every block adds to `to` exactly when it also adds factor times what it adds to `of`."""
    for layer in range(facts.config["num_hidden_layers"]):
        out = facts.tensors[f"{mixer_prefix(layer)}out_proj.weight"].astype(float)
        row = (out[to] + factor * out[of])[None]
        if not facts.exact_rows(layer, row, bounds[to : to + 1], units[to : to + 1]):
            return False
    return True


def _readable(
    facts: Facts, space: Space, to: int, of: int, factor: float, bounds: np.ndarray, units: np.ndarray
) -> bool:
    """Whether every row that reads `to` stays an exact sum when it also reads -factor times that of `of` (E11)."""
    for name, axis, first, role in space.mixed:
        if role != READS or axis != 1:
            continue
        matrix = facts.tensors[name][:, first : first + space.size]
        rows = matrix[matrix[:, to] != 0].astype(float)
        if not len(rows):
            continue
        rows[:, of] -= factor * rows[:, to]
        reach = np.abs(rows) @ bounds
        quanta = np.where(rows != 0, array_units(rows) * units, np.inf).min(axis=1)
        if not (facts.format.holds(rows[:, of]).all() and (reach <= facts.format.exact_integers * quanta).all()):
            return False
    return True


def draw_column_mixes(facts: Facts, rng: Random) -> list[Step]:
    """In each Mamba block, disjoint pairs of columns of one decay: h_i takes h_j on, and C_j reads that off again.

    What the state then holds is for the checker to bound.
    """
    steps: list[Step] = []
    if facts.config["model_type"] != "mamba":
        return steps
    for layer in range(facts.config["num_hidden_layers"]):
        spaces = SPACES["mamba"](facts.config, layer)
        decays = facts.tensors[f"{mixer_prefix(layer)}A_log"]
        live = [n for n in range(decays.shape[1]) if _written(facts, spaces["columns"], n)]
        rng.shuffle(live)
        for to, of in zip(live[::2], live[1::2]):
            if np.array_equal(decays[:, to], decays[:, of]):
                steps.append(_taken(facts, Mix(spaces["columns"].mixed, to, of, float(rng.choice((-1, 1))))))
    return steps


def _written(facts: Facts, columns: Space, n: int) -> bool:
    name, _, first, _ = columns.places[0]
    return bool(facts.tensors[name][first + n].any())


def _taken(facts: Facts, step: Step) -> Step:
    step.apply(facts.tensors)
    return step
