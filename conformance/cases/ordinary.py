"""Ordinary numbers in the options that are crossed: exp is neither 0 nor 1, softplus and silu are no relu.

On exact operands a kernel may round its exp to 0 or 1 where two options meet, and nothing shows. Here every operand is
away from 0, every position writes and is read, some channels keep what they hold over more than a chunk and others
forget it, and no document ends where chunks meet: so a mistake shows wherever the options with it meet.

Results are computed in float64. How far y may be from them is a part of what the same equations give for absolute
values, none of whose terms cancel. Beside narrow operands there are two cases: one allows for some roundings to their
dtype, as definitions in use round sums and gates; the other only for that of y.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from conformance import exact
from conformance.cases.curves import ULP, half_a_unit
from conformance.cases.draw import LAYER, Draw, assemble
from conformance.cases.factors import DTYPES, LENGTHS, STRENGTH, Factors, factors_of
from conformance.cases.finer import finer
from conformance.cases.kept import kept
from conformance.cases.meeting import rows_without
from conformance.cases.options import Option
from conformance.cases.packing import inside_of_chunks
from conformance.cases.rendered import called, crossing
from conformance.loader import Case

A_STEP = 4 * ULP  # the error of a step, as of a half-life
ROUNDINGS = 2  # to a narrow dtype, of as many units as the largest has, before y is rounded
OF_A_WRITE = 3  # of a scan: the sum of Δ and its bias, 2.4 times as much behind softplus(−2.5), softplus, two products
FAINTEST = 2.0**-25  # half a unit of the smallest numbers of float16
ROUNDED = "rounding, crossed"
_LIMITS = {"above": (0.0, 0.7), "both": (0.3, 0.7), "below": (0.3, math.inf)}  # of more bits than a narrow dtype has
_RATES = (1 / 64, 2.0, 1 / 4, 3.0)
_DELTA_RATES = (1 / 64, 1 / 4, 1 / 2, 1.0)
_SIZES = {  # with columns and channels beyond a tile of 16
    "selective_scan": [(4, 2, 2), (6, 1, 3), (2, 9, 17)],
    "ssd": [(4, 2, 2), (6, 1, 3), (4, 9, 20)],
    "delta_rule": [(1, 4, 3), (2, 16, 5), (1, 8, 3)],
}
_TOO_FEW = 2  # positions, in which little can go wrong: a window is longer
_LONGER = 65  # positions, beyond a chunk of 64
_STATES = ("initial_state", "initial_states")
SIGNED = ("u", "x", "B", "C", "D", "weight", "bias", *_STATES)

Row = Mapping[str, Any]


@kept
def ordinary_cases(
    op: str, without: frozenset[Option] = frozenset(), lengths: tuple[int, ...] = LENGTHS
) -> tuple[Case, ...]:
    """The crossed cases of ordinary numbers, those of the stage `ROUNDED` last; without: options not to be taken."""
    rows = finer(op, ordinary_rows(op, without, lengths), rounded=True)
    cases = [case for row in rows for case in both(op, row, share_of(op, row))]
    return tuple(sorted(cases, key=lambda case: case.stage == ROUNDED))


def ordinary_rows(
    op: str, without: frozenset[Option] = frozenset(), lengths: tuple[int, ...] = LENGTHS
) -> list[dict[str, Any]]:
    """Rows in which any three factors meet. Over one position or two little can go wrong: where three of the others
    meet there alone, they meet again over more.
    """
    factors = ordinary_factors_of(op, lengths)
    rows = rows_without(factors, without)
    longer = min((length for length in factors["length"] if length >= _LONGER), default=max(factors["length"]))
    others = lambda row: combinations([level for level in row.items() if level[0] != "length"], STRENGTH)
    met = {levels for row in rows if row["length"] > _TOO_FEW for levels in others(row)}
    again = []
    for row in rows:
        if row["length"] <= _TOO_FEW and not met.issuperset(others(row)):
            again.append(row | {"length": longer})
            met.update(others(row))
    return rows + again


def ordinary_factors_of(op: str, lengths: tuple[int, ...] = LENGTHS) -> Factors:
    """What is crossed: the same as of exact numbers, with other sizes."""
    found = factors_of(op, lengths)
    return dict(found) | ({"sizes": _SIZES[op]} if op in _SIZES else {})


class _Draw(Draw):
    def between(self, shape: tuple[int, ...], least: float, most: float) -> Tensor:
        return torch.from_numpy(self.random.uniform(least, most, size=shape)).float()

    def signed(self, shape: tuple[int, ...], least: float = 0.5, most: float = 2.0) -> Tensor:
        """As large as that, of either sign."""
        return self.between(shape, least, most) * self.of((-1, 1), shape)


def both(op: str, row: Row, share: float, change: Callable[[str, Tensor], Tensor] = lambda _, m: m) -> list[Case]:
    """The case of a row, and beside narrow operands the strict one. share: how far a result may be, as a part of the
    sum of absolute values; change: what is made of an operand, by its name, after it is drawn.
    """
    draw = _Draw(f"{op} ordinary {called(row)}")
    inputs, options = {"conv": _conv, "norm": _norm, "delta_rule": _delta}.get(op, _scan)(op, row, draw)
    inputs = {name: change(name, m) for name, m in inputs.items()}
    dtype = DTYPES[row["dtype"]]
    narrow = (*LAYER, "initial_states") if op == "conv" else LAYER
    inputs = {name: m.to(dtype).float() if name in narrow else m for name, m in inputs.items()}
    row = {"start": "nothing", "last state": False, **row}
    made = crossing(row, op, inputs, options, inside_of_chunks(row), kind=exact.Double, relative=1.0)
    sizes = _sizes(op, row, inputs, options, made)
    if op == "conv" and "last_state" in sizes:  # a copy
        sizes["last_state"] = torch.zeros_like(sizes["last_state"])
    named = replace(made, name=f"ordinary: {made.name}", asks=f"ordinary numbers, and {made.asks}")
    unit = torch.finfo(dtype).eps if dtype != torch.float32 else 0.0
    roundings = OF_A_WRITE if op in ("selective_scan", "ssd") else ROUNDINGS
    loose = replace(named, tolerance={key: (share + roundings * unit) * m for key, m in sizes.items()})
    if not unit or op == "delta_rule":
        return [loose]
    strict = {key: share * m for key, m in sizes.items()}
    strict["y"] = strict["y"] + half_a_unit(dtype) * made.expected["y"].abs() + FAINTEST
    asks = f"nothing is rounded but y, and {made.asks}"
    return [loose, replace(named, stage=ROUNDED, name=f"rounded once: {made.name}", asks=asks, tolerance=strict)]


def share_of(op: str, row: Row) -> float:
    """Of the sum of absolute values: what float32 may add up to."""
    added = {"conv": row.get("taps", 0), "norm": row["sizes"]}.get(op) or row["length"] + row["sizes"][-1]
    return A_STEP * (added + 4)


def _sizes(op: str, row: Row, inputs: dict[str, Tensor], options: dict[str, Any], made: Case) -> dict[str, Tensor]:
    """What the tolerance of every result is a part of."""
    if op == "norm":  # no terms but squares are added
        return {name: m.abs() for name, m in made.expected.items()}
    if op == "delta_rule":  # a write contracts: no error grows
        return {name: torch.full_like(m, float(m.abs().max())) for name, m in made.expected.items()}
    positive = {name: m.abs() if name in SIGNED else m for name, m in inputs.items()}
    plain = {name: value for name, value in options.items() if name != "activation"}
    found = crossing(row, op, positive, plain, inside_of_chunks(row), kind=exact.Double, relative=1.0).expected
    return {name: m.abs() for name, m in found.items()}  # silu(z) of either sign is a factor


def _scan(op: str, row: Row, draw: _Draw) -> tuple[dict[str, Tensor], dict[str, Any]]:
    heads, channels, columns = row["sizes"]
    own = 1 if op == "ssd" else channels
    time, sizes = (row["batch"], row["length"]), (heads, channels)
    bias, steps = None, draw.between((*time, heads, own), *((-2.5, 1.0) if row["softplus"] else (0.125, 1.0)))
    if row["bias"]:  # of the sign of Δ where no softplus follows: in bfloat16 their sum is as near as each of them
        neighbours = 0.35 * _in_turn(heads, 1, 0)[:, None]  # differ
        bias = draw.signed((heads, own)) if row["softplus"] else draw.between((heads, own), 0.25, 0.4) + neighbours
        steps = steps - bias if row["softplus"] else steps
    if row.get("limit"):  # of one position too some are cut off
        beside = bias if bias is not None and row["softplus"] else torch.zeros(heads, own)
        steps[:, 0, -1] = 2 - beside[-1]
        steps[:, 0, 0] = -2 - beside[0] if row["limit"] != "above" else steps[:, 0, 0]
        if heads > 2:  # and one is not
            steps[:, 0, 1] = _between_limits(row["softplus"], None if bias is None else bias[1])
    rates = _in_turn(heads * own, *_RATES).reshape(heads, own, 1)
    skip = draw.between(sizes, 0.5, 0.75) * (_in_turn(heads, 1, 2)[:, None] * _in_turn(channels, 1, 3))
    # B and C have one sign in each column: what a position writes it also reads, and no two columns cancel.
    signs = draw.signed((row["batch"], 1, row["groups"], 1), 1, 1) * _in_turn(columns, 1, -1)
    level = _in_turn(row["length"], 1, 3)[:, None, None] * signs
    inputs = assemble(
        op,
        draw.signed((*time, *sizes)),
        steps,
        -rates * draw.between((heads, own, 1 if op == "ssd" else columns), 0.625, 1.375),
        *(draw.between((*time, row["groups"], columns), 0.5, 1) * level for _ in range(2)),
        D=skip[:, :own] if row["D"] not in (False, "no") else None,
        z=draw.signed((*time, *sizes), 0.5, 3.0) if row["z"] else None,
        bias=bias,
        initial=draw.signed((row["batch"], *sizes, columns)) if _begins_with_a_state(row) else None,
    )
    if row["D"] == "of channels":
        inputs["D"] = skip
    options: dict[str, Any] = {"delta_softplus" if op == "selective_scan" else "dt_softplus": row["softplus"]}
    if op == "ssd":
        options["chunk_size"] = row["chunk"]
        options |= {"dt_limit": [*_LIMITS[row["limit"]]]} if row["limit"] else {}
    return inputs, options


def _between_limits(softplus: bool, bias: Tensor | None) -> Tensor | float:
    """Δ before a bias: of softplus(−0.5), which is 0.47; or as large with the low bias of an odd head."""
    if softplus:
        return -0.5 if bias is None else -0.5 - bias
    return 0.5 if bias is None else 0.2


def _in_turn(count: int, *values: float) -> Tensor:
    """Neighbours differ."""
    return torch.tensor(values, dtype=torch.float32)[torch.arange(count) % len(values)]


def _begins_with_a_state(row: Row) -> bool:
    return row["start"] in ("state", "pieces", "state and documents")


def _conv(op: str, row: Row, draw: _Draw) -> tuple[dict[str, Tensor], dict[str, Any]]:
    channels, taps = row["sizes"], row["taps"]
    inputs = {"x": draw.signed((row["batch"], channels, row["length"])), "weight": draw.signed((channels, taps))}
    if row["bias"]:
        inputs["bias"] = draw.signed((channels,))
    if _begins_with_a_state(row):
        inputs["initial_states"] = draw.signed((row["batch"], channels, taps - 1))
    return inputs, {"activation": row["activation"]}


def _norm(op: str, row: Row, draw: _Draw) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """So small that the epsilon counts, and each group larger than the one before."""
    width, groups = row["sizes"], row["groups"]
    shape = (row["batch"], row["length"], width)
    level = (2.0 ** (torch.arange(groups) - 8)).repeat_interleave(width // groups)
    inputs = {"x": draw.signed(shape) * level, "weight": draw.signed((width,))}
    if row["z"]:
        inputs["z"] = draw.signed(shape, 0.5, 3.0)
    return inputs, {"eps": 1e-5, "group_size": width // groups, "norm_before_gate": row["gate"] == "after"}


def _delta(op: str, row: Row, draw: _Draw) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Keys of the length 1, or normed to it, and β below 2: no write lets the state grow."""
    keys_of, keys, values = row["sizes"]
    time, heads = (row["batch"], row["length"]), keys_of * row["spread"]
    q, k = (draw.signed((*time, keys_of, keys)) for _ in range(2))
    if not row["normed"]:
        q, k = (m / m.norm(dim=-1, keepdim=True) for m in (q, k))
    g = draw.of(_DELTA_RATES, (*time, heads)) * draw.between((*time, heads), 0.5, 1)
    beta = draw.of((0.25, 1.25), (*time, heads)) + draw.between((*time, heads), 0, 0.5)
    g[:, 0], beta[:, 0] = 1 - g[:, 0] / 4, 1.75 - beta[:, 0] / 8  # of one position both count
    inputs = {"q": q, "k": k, "v": draw.signed((*time, heads, values)), "g": -g, "beta": beta}
    if _begins_with_a_state(row):
        inputs["initial_state"] = draw.signed((row["batch"], heads, keys, values))
    return inputs, {"chunk_size": row["chunk"], "use_qk_l2norm_in_kernel": row["normed"]}
