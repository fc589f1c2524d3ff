"""Where lanes, channels, heads and state columns stand in the tensors of a language model, as legs of steps.

Of the equations in `verify/checker/arithmetic` every tensor is an axis of values or one that reads them. The rows of
in_proj are [x; z] in Mamba and [z; x; B; C; Δ] in Mamba-2, those of x_proj [δ; B; C].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compiler.disguise.steps import Leg
from compiler.targets.family import EMBEDDING, FINAL_NORM, HEAD, mixer_prefix, norm_name

HOLDS, READS, BESIDE = 1, -1, 0


@dataclass(frozen=True)
class Space:
    """Coordinates that may change places among themselves.

    name: in words; size: how many; places: legs that a permutation concerns; scalings: lists of legs along each of
    which powers of two cancel; up: those of them that only factors of at least 1 keep (the coordinates enter silu).
    signed: how many of the first scalings may change signs; mixed: legs along which coordinates may become sums.
    """

    name: str
    size: int
    places: list[Leg]
    scalings: list[list[Leg]]
    up: int = 0
    signed: int = 0
    mixed: list[Leg] = field(default_factory=list)


def lanes(config: Mapping[str, Any]) -> Space:
    """The residual stream: scaled by the blocks that write and read, and by the weights of each norm."""
    layers = range(config["num_hidden_layers"])
    holds: list[Leg] = [(EMBEDDING, 1, 0, HOLDS)]
    holds += [(f"{mixer_prefix(i)}out_proj.weight", 0, 0, HOLDS) for i in layers]
    read: list[Leg] = [(f"{mixer_prefix(i)}in_proj.weight", 1, 0, READS) for i in layers]
    read += [(HEAD, 1, 0, READS)]
    norms: list[Leg] = [(norm_name(i), 0, 0, HOLDS) for i in layers]
    norms += [(FINAL_NORM, 0, 0, HOLDS)]
    scalings = [[*holds, *read], *([norm, reader] for norm, reader in zip(norms, read, strict=True))]
    return Space(
        "lanes", config["hidden_size"], [*holds, *read, *norms], scalings, signed=len(scalings), mixed=[*holds, *read]
    )


def mamba_spaces(config: Mapping[str, Any], layer: int) -> dict[str, Space]:
    """Channels, state columns and the lanes of Δ of a Mamba block."""
    p, inner = mixer_prefix(layer), config["intermediate_size"]
    columns, rank = config["state_size"], config["time_step_rank"]
    in_proj, x_proj, out, dt = (f"{p}{name}.weight" for name in ("in_proj", "x_proj", "out_proj", "dt_proj"))
    taps, bias = f"{p}conv1d.weight", f"{p}conv1d.bias"
    beside: list[Leg] = [(name, 0, 0, BESIDE) for name in (taps, bias, dt, f"{p}dt_proj.bias", f"{p}A_log", f"{p}D")]
    channels = Space(
        "channels",
        inner,
        [(in_proj, 0, 0, HOLDS), (in_proj, 0, inner, HOLDS), *beside, (x_proj, 1, 0, READS), (out, 1, 0, READS)],
        [
            [(in_proj, 0, 0, HOLDS), (bias, 0, 0, HOLDS), (x_proj, 1, 0, READS), (out, 1, 0, READS)],
            [(in_proj, 0, inner, HOLDS), (out, 1, 0, READS)],
            [(in_proj, 0, 0, HOLDS), (taps, 0, 0, READS)],
        ],
        up=2,
    )
    write, read = (x_proj, 0, rank, HOLDS), (x_proj, 0, rank + columns, READS)
    steps: list[Leg] = [(x_proj, 0, 0, HOLDS), (dt, 1, 0, READS)]
    return {
        "channels": channels,
        "columns": Space(
            "columns", columns, [write, read, (f"{p}A_log", 1, 0, BESIDE)], [[write, read]], 0, 1, [write, read]
        ),
        "ranks": Space("ranks", rank, steps, [steps], 0, 1, steps),
    }


def mamba2_spaces(config: Mapping[str, Any], layer: int) -> dict[str, Space]:
    """Channels, heads and state columns of a Mamba-2 block: B and C enter silu, so columns only change places."""
    p, inner, heads = mixer_prefix(layer), config["intermediate_size"], config["num_heads"]
    columns = config["n_groups"] * config["state_size"]
    in_proj, out, taps, bias = f"{p}in_proj.weight", f"{p}out_proj.weight", f"{p}conv1d.weight", f"{p}conv1d.bias"
    norm = f"{p}norm.weight"
    x, written, read = ((in_proj, 0, at, HOLDS) for at in (inner, 2 * inner, 2 * inner + columns))
    channels = Space(
        "channels",
        inner,
        [
            (in_proj, 0, 0, HOLDS),
            x,
            (taps, 0, 0, BESIDE),
            (bias, 0, 0, BESIDE),
            (norm, 0, 0, BESIDE),
            (out, 1, 0, READS),
        ],
        [
            [x, (bias, 0, 0, HOLDS), (out, 1, 0, READS)],
            [(in_proj, 0, 0, HOLDS), (out, 1, 0, READS)],
            [x, (taps, 0, 0, READS)],
            [(norm, 0, 0, HOLDS), (out, 1, 0, READS)],
        ],
        up=2,
    )
    both = [leg for k, row in enumerate((written, read)) for leg in (row, (taps, 0, inner + k * columns, READS))]
    biases: list[Leg] = [(bias, 0, inner + k * columns, BESIDE) for k in (0, 1)]
    beside: list[Leg] = [(in_proj, 0, 2 * inner + 2 * columns, BESIDE)]
    beside += [(f"{p}{name}", 0, 0, BESIDE) for name in ("A_log", "D", "dt_bias")]
    return {
        "channels": channels,
        "heads": Space("heads", heads, beside, []),
        "columns": Space("columns", columns, [*both, *biases], [both[:2], both[2:]]),
    }


SPACES = {"mamba": mamba_spaces, "mamba2": mamba2_spaces}
