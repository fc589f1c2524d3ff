"""Level 1: coordinates change places, signs, and powers of two.

A permutation changes the order of sums alone, and all sums are exact (E11). A power of two commutes with every
rounding. silu is not odd, so a channel keeps its sign and is only made larger, away from where silu bends.
"""

from __future__ import annotations

from random import Random

import numpy as np

from compiler.disguise.facts import Facts
from compiler.disguise.spaces import SPACES, Space, lanes
from compiler.disguise.steps import Permute, Scale, Step
from compiler.targets.family import mixer_prefix


def draw_places(facts: Facts, rng: Random) -> list[Step]:
    """Steps that move and scale every coordinate of the model."""
    steps = _lanes(facts, rng)
    kind = facts.config["model_type"]
    for layer in range(facts.config["num_hidden_layers"]):
        spaces = SPACES[kind](facts.config, layer)
        steps += _mamba(facts, spaces, rng) if kind == "mamba" else _mamba2(facts, spaces, layer, rng)
    return steps


def _lanes(facts: Facts, rng: Random) -> list[Step]:
    """Ballast keeps its size, other lanes are scaled as far as it hides them; norm weights take any power of two."""
    space = lanes(facts.config)
    exponents = [0] * space.size
    for i in _shuffled(range(facts.data), rng):
        exponents[i] = _lane_exponent(facts, i, rng.randint(-facts.shift, facts.shift))
    steps: list[Step] = [_scale(space, 0, exponents, rng)]
    for k in range(1, len(space.scalings)):
        steps.append(_scale(space, k, _exponents(space.size, -facts.shift, facts.shift, rng), rng))
    return [*steps, Permute(space.places, _shuffled(range(space.size), rng))]


def _lane_exponent(facts: Facts, lane: int, exponent: int) -> int:
    """The exponent, or the nearest to 0 on its side that the norms bear; `facts` is told."""
    while exponent:
        bounds, units = facts.bounds.copy(), facts.units.copy()
        bounds[lane], units[lane] = np.ldexp(bounds[lane], exponent), np.ldexp(units[lane], exponent)
        if facts.hidden(bounds, facts.level) and facts.divisible(units):
            facts.bounds, facts.units = bounds, units
            return exponent
        exponent -= 1 if exponent > 0 else -1
    return 0


def _mamba(facts: Facts, spaces: dict[str, Space], rng: Random) -> list[Step]:
    steps: list[Step] = []
    for space in spaces.values():
        for k in range(len(space.scalings)):
            least = 0 if k < space.up else -facts.shift
            steps.append(_scale(space, k, _exponents(space.size, least, facts.shift, rng), rng))
        steps.append(Permute(space.places, _shuffled(range(space.size), rng)))
    return steps


def _mamba2(facts: Facts, spaces: dict[str, Space], layer: int, rng: Random) -> list[Step]:
    """The gated norm bears a factor for all channels that its weight reads, and none for its ballast."""
    config, channels, columns = facts.config, spaces["channels"], spaces["columns"]
    read = facts.tensors[f"{mixer_prefix(layer)}norm.weight"] != 0
    top = _gated_exponent(facts, layer)
    gates = [rng.randint(0, top) if live else 0 for live in read.tolist()]
    features = [rng.randint(0, top - gate) if live else 0 for gate, live in zip(gates, read.tolist(), strict=True)]
    steps: list[Step] = [_scale(channels, 0, features, rng), _scale(channels, 1, gates, rng)]
    free = lambda space: _exponents(space.size, -facts.shift, facts.shift, rng)
    steps += [_scale(channels, 2, free(channels), rng)]
    steps += [Scale(channels.scalings[3], free(channels), _signs(channels.size, rng))]
    steps += [_scale(columns, k, free(columns), rng) for k in (0, 1)]
    heads = _nested([config["n_groups"], config["num_heads"] // config["n_groups"]], rng)
    within = [_shuffled(range(config["head_dim"]), rng) for _ in heads]
    order = [head * config["head_dim"] + i for head, inner in zip(heads, within, strict=True) for i in inner]
    groups = heads[:: config["num_heads"] // config["n_groups"]]
    of_group = [head // (config["num_heads"] // config["n_groups"]) for head in groups]
    places = [g * config["state_size"] + i for g in of_group for i in _shuffled(range(config["state_size"]), rng)]
    return [
        *steps,
        Permute(channels.places, order),
        Permute(spaces["heads"].places, heads),
        Permute(columns.places, places),
    ]


def _gated_exponent(facts: Facts, layer: int) -> int:
    """The largest exponent that all channels of a block may have at once: the ballast of each group hides them."""
    level = float(facts.tensors[f"{mixer_prefix(layer)}norm.weight"].max(initial=0))
    exponent, bounds = 0, facts.gated[layer]
    while exponent < facts.shift and facts.hidden(np.ldexp(bounds, exponent + 1), level):
        exponent += 1
    return exponent


def _scale(space: Space, k: int, exponents: list[int], rng: Random) -> Step:
    """Powers of two along one list of legs, with signs where they cancel."""
    signs = _signs(space.size, rng) if k < space.signed else [1] * space.size
    return Scale(space.scalings[k], exponents, signs)


def _signs(size: int, rng: Random) -> list[int]:
    return [rng.choice((-1, 1)) for _ in range(size)]


def _exponents(size: int, least: int, most: int, rng: Random) -> list[int]:
    return [rng.randint(least, most) for _ in range(size)]


def _shuffled(items, rng: Random) -> list[int]:
    items = list(items)
    rng.shuffle(items)
    return items


def _nested(sizes: list[int], rng: Random) -> list[int]:
    """A permutation of groups, and of the items within each."""
    groups, each = sizes
    return [group * each + i for group in _shuffled(range(groups), rng) for i in _shuffled(range(each), rng)]
