"""What a report says of single weights: their values, and what stands at each index of each axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from compiler.ir.coordinate import Coordinate
from compiler.layout import ROW, Axis, Layout

MOST_WEIGHTS = 300_000  # nonzero ones: some 5 MB of page


def weights_data(tensors: Mapping[str, torch.Tensor], layout: Layout) -> dict[str, Any]:
    """The nonzero weights with their axes, as weights.js takes them. ValueError where they are too many.

    coordinates: [name, what is said of it, meaning, gadget, operation, source] each, shared by all axes; an axis has
    the number of the coordinate of each index that has one.
    """
    count = sum(int(tensor.count_nonzero()) for tensor in tensors.values())
    if count > MOST_WEIGHTS:
        raise ValueError(f"it has {count:,} weights that are not 0, and a page takes at most {MOST_WEIGHTS:,}")
    coordinates: dict[tuple[str, ...], int] = {}
    named = {name: tensor for name, tensor in tensors.items() if name in layout.axes}
    found = [_tensor(name, tensor, layout.axes[name], coordinates) for name, tensor in named.items()]
    return {"coordinates": [list(each) for each in coordinates], "tensors": found}


def _tensor(
    name: str, tensor: torch.Tensor, axes: tuple[Axis, ...], known: dict[tuple[str, ...], int]
) -> dict[str, Any]:
    live = tensor.nonzero()
    return {
        "name": name,
        "shape": list(tensor.shape),
        "axes": [_axis(axis, known) for axis in axes],
        "at": live.tolist(),
        "values": [float(value) for value in tensor[tuple(live.T)].tolist()],
    }


def _axis(axis: Axis, known: dict[tuple[str, ...], int]) -> dict[str, Any]:
    places = {i: known.setdefault(_coordinate(c), len(known)) for i, c in axis.places.items()}
    return {"kind": "" if axis.kind == ROW else axis.kind, "size": axis.size, "padding": axis.padding, "places": places}


def _coordinate(c: Coordinate) -> tuple[str, ...]:
    return c.name, str(c), c.meaning, c.gadget, c.operation, c.source
