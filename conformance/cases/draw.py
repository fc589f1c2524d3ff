"""Drawing operands and putting cases together."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from conformance import exact
from conformance.kernel.arguments import STATE_IN, TIME_AXIS
from conformance.kernel.kernel import piece
from conformance.loader import HOW, Case, ends_of_documents

BF16 = torch.bfloat16
BITS = {torch.float32: 12, BF16: 8, torch.half: 11}
"""Of a wide operand: one more than TF32 and half have, and all that a narrow dtype has."""
LAYER = ("u", "delta", "x", "dt", "B", "C", "z", "weight", "bias", "q", "k", "v", "g", "beta")
"""Operands that a layer computes for every position, or has in its dtype; the others are float32 beside any."""


def name_of(dtype: torch.dtype) -> str:
    """bfloat16, float16 or float32."""
    return str(dtype).removeprefix("torch.")


class Draw:
    """Random operands from a name: the same name gives the same numbers, whatever else is drawn."""

    def __init__(self, name: str):
        self.random = np.random.RandomState(zlib.crc32(name.encode()))

    def integers(self, shape: tuple[int, ...], most: int) -> Tensor:
        """Integers of −most … most without 0: an operand of 0 hides what stands beside it."""
        size = self.random.randint(1, most + 1, size=shape)
        return torch.from_numpy((size * self.random.choice([-1, 1], size=shape)).astype(np.float32))

    def wide(self, name: str, like: Tensor, dtype: torch.dtype) -> Tensor:
        """An operand by its name, in the shape of another: odd integers of `BITS` bits of its dtype, where a layer's
        operands have this one; of float32 2049 … 4095.
        """
        half = 2 ** (BITS[dtype if name in LAYER else torch.float32] - 2)
        odd = 2 * self.random.randint(half, 2 * half, size=tuple(like.shape)) + 1
        return torch.from_numpy(odd.astype(np.float32))

    def few(self, shape: tuple[int, ...], count: int) -> Tensor:
        """1 in `count` places of the last axis, 0 elsewhere: what stands there is added up without many bits."""
        places = self.random.random_sample(shape).argsort(-1).argsort(-1)
        return torch.from_numpy((places < count).astype(np.float32))

    def of(self, values: Iterable[float], shape: tuple[int, ...]) -> Tensor:
        return torch.from_numpy(self.random.choice(np.array(list(values), dtype=np.float32), size=shape))


def assemble(op: str, u: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, **more: Any) -> dict[str, Tensor]:
    """Operands by the names and in the shapes of an operation.

    u, z (b, l, h, p), dt (b, l, h, own), A (h, own, n) of which ssd takes one number for each head, B and C
    (b, l, g, n), D and bias (h, own), initial (b, h, p, n), seq_idx (b, l); own is p for the scan and 1 for ssd.
    """
    given = {name: tensor for name, tensor in more.items() if tensor is not None}
    if op == "ssd":
        named = {"x": u, "dt": dt[..., 0], "A": A[:, 0, 0], "B": B, "C": C}
        names = {"D": "D", "z": "z", "bias": "dt_bias", "initial": "initial_states", "seq_idx": "seq_idx"}
        flat = {"D": lambda m: m[:, 0], "bias": lambda m: m[:, 0]}
    else:
        time_last = lambda m: m.flatten(2).transpose(1, 2)
        one_group = lambda m: m[:, 0] if m.shape[1] == 1 else m
        by_group = lambda m: one_group(m.permute(0, 2, 3, 1))
        named = {"u": time_last(u), "delta": time_last(dt), "A": A.flatten(0, 1), "B": by_group(B), "C": by_group(C)}
        names = {"D": "D", "z": "z", "bias": "delta_bias", "initial": "initial_state", "seq_idx": "seq_idx"}
        flat = {"D": lambda m: m.flatten(), "bias": lambda m: m.flatten(), "z": time_last}
        flat["initial"] = lambda m: m.flatten(1, 2)
    for name, tensor in given.items():
        named[names[name]] = flat.get(name, lambda m: m)(tensor)
    return {name: tensor.contiguous() for name, tensor in named.items()}


def case(
    op: str,
    stage: str,
    name: str,
    asks: str,
    inputs: Mapping[str, Tensor],
    options: Mapping[str, Any] | None = None,
    *,
    last_state: bool = False,
    relative: Tensor | float = 0.0,
    absolute: Tensor | float = 0.0,
    borders: Mapping[str, list[int]] | None = None,
    dtype: torch.dtype = torch.float32,
    kind: exact.Kind | None = None,
    documents: Sequence[int] = (),
) -> Case:
    """A case with its results; relative, absolute: how far y may be from them, 0 for bits; the second, a number, is of
    every result. kind: what is computed in; integers and fractions where bits are asked for, decimals where not.

    borders: those beside cuts, documents and chunks.
    dtype: that of the operands which a layer computes for every position. documents: the lengths of those that one row
    packs; each is computed alone for its last state.
    """
    bits = all(isinstance(near, float) and not near for near in (relative, absolute))
    kind = kind or (exact.Exact if bits else exact.Near)
    options = dict(options or {})
    known = {key: value for key, value in options.items() if key not in (*HOW, "chunk_size")}
    results = getattr(exact, op)(kind, **inputs, **known)
    expected = {key: torch.from_numpy(results[key].astype(np.float64)) for key in ("y", "last_state")[: 1 + last_state]}
    if documents:
        expected["document_states"] = _document_states(op, kind, inputs, known, documents)
    narrow = (*LAYER, "initial_states") if op == "conv" else LAYER
    given = {key: m.to(dtype) if key in narrow and m.is_floating_point() else m for key, m in inputs.items()}
    for key in given:
        if not torch.equal(given[key].to(inputs[key].dtype), inputs[key]):
            raise ValueError(f"case {name}: {key} is not representable in {dtype}.")
    of_y = {"y": (relative, absolute)}
    rest = (0.0, absolute if isinstance(absolute, float) else 0.0)
    near = {key: of_y.get(key, rest) for key in expected}
    tolerance = {} if bits else {key: m.abs() * near[key][0] + near[key][1] for key, m in expected.items()}
    found = {**_borders(inputs, options, expected["y"].shape[TIME_AXIS[op]]), **(borders or {})}
    return Case(op, stage, name, asks, given, options, expected, tolerance, found)


def _borders(inputs: Mapping[str, Tensor], options: Mapping[str, Any], length: int) -> dict[str, list[int]]:
    """Where pieces, the documents of row 0 and chunks meet; chunks begin anew with each piece."""
    numbers, chunk = inputs.get("seq_idx"), options.get("chunk_size")
    ends = [0, *options.get("cuts", []), length]
    found = {
        "cut": [*options.get("cuts", [])],
        "document": [] if numbers is None else ends_of_documents(numbers[0])[:-1],
        "chunk": [place for start, stop in pairwise(ends) for place in range(start + chunk, stop, chunk)]
        if chunk
        else [],
    }
    return {what: places for what, places in found.items() if places}


def _document_states(op: str, kind: exact.Kind, inputs: Mapping[str, Tensor], options: Mapping[str, Any], lengths):
    """The last state of each document, as if nothing else stood in its row; an initial state is that of the first."""
    ends = list(accumulate(lengths))
    alone = {name: tensor for name, tensor in inputs.items() if name != "seq_idx"}
    states = []
    for start, stop in zip([0, *ends], ends, strict=False):
        if start:
            alone.pop(STATE_IN[op], None)
        part = {name: piece(op, name, tensor, start, stop) for name, tensor in alone.items()}
        states.append(getattr(exact, op)(kind, **part, **options)["last_state"].astype(np.float64))
    return torch.from_numpy(np.concatenate(states))
