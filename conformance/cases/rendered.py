"""The case of a row: its operands, drawn so that every result is exact, and its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from conformance.cases import delta
from conformance.cases.draw import Draw, assemble, case
from conformance.cases.factors import DTYPES, LIMITS, PLAIN
from conformance.cases.packing import cuts_of, documents_of, inside_of_chunks
from conformance.kernel.layouts import same_in_all_rows
from conformance.loader import Case
from conformance.lots import lot

_ERASES = -256.0
_BELOW = (-16.0, 16.0)  # limits between which a step may be below 0
_AFTER_A_STATE = ("state", "pieces", "state and documents")


def render(op: str, row: Mapping[str, Any]) -> Case:
    """The case of a row."""
    return {"conv": _conv, "norm": _norm, "delta_rule": _delta}.get(op, _scan)(op, row)


def called(row: Mapping[str, Any]) -> str:
    """A row in words: "129 positions, float32, D, z, 2 groups"."""
    said = [f"{row['length']} positions" if row["length"] > 1 else "1 position", row["dtype"]]
    for name, value in row.items():
        match name:
            case "length" | "dtype":
                continue
            case "groups" | "batch" | "taps":
                said += [f"{value} {'rows' if name == 'batch' else name}"] if value > 1 or name == "taps" else []
            case "start":
                said += [] if value == "nothing" else [f"initial {value}" if value.startswith("state") else value]
            case "sizes":
                said += [] if value in (PLAIN, 8, 16) else [_sized(value)]
            case "spread":
                said += [f"{value} heads of v for each of k"] if value > 1 else []
            case "documents":
                said += [f"{value} documents more"] if value else []
            case "whole":
                said += ["one for a row"] if value else []
            case "told":
                said += [f"told by {value} alone"] if value else []
            case "asked":
                said += [value] if value else []
            case "shift":
                said += [f"borders of row {value}"] if value else []
            case "unit":
                said.append(f"borders in {value}s")
            case "chunk":
                said.append(f"chunks of {value}")
            case _:
                said += [name if value is True else f"{name} {value}"] if value not in (False, None, "no") else []
    return ", ".join(said)


def _sized(sizes: int | tuple[int, int, int]) -> str:
    """Sizes in words: "6 heads of 20, 5 columns"."""
    if isinstance(sizes, int):
        return f"{sizes} channels"
    heads, channels, columns = sizes
    return f"{heads} heads of {channels}, {columns} columns"


def crossing(
    row: Mapping[str, Any],
    op: str,
    inputs: dict[str, Tensor],
    options: dict[str, Any],
    documents: Sequence[Sequence[int]] = (),
    **more: Any,
) -> Case:
    """The case of a row; documents: their lengths, of each row of a batch."""
    cuts, options, inputs = cuts_of(row), {**options}, {**inputs}
    if documents:
        numbers = [_numbers(row, len(lengths)) for lengths in documents]
        ids = [
            [number for number, size in zip(of_row, lengths, strict=True) for _ in range(size)]
            for of_row, lengths in zip(numbers, documents, strict=True)
        ]
        inputs["seq_idx"] = torch.tensor(ids, dtype=torch.int32)
    if row.get("axis of one group"):
        inputs |= {name: inputs[name][:, None] for name in ("B", "C")}
    if shared := row.get("shared"):
        inputs |= same_in_all_rows(inputs, shared)
        options["shared"] = shared
    options |= {"cuts": cuts} if cuts else {}
    options |= {"views": row["views"]} if row["views"] else {}
    name = called(row)
    return case(
        op, "crossing", name, f"these together: {name}", inputs, options, last_state=row["last state"],
        dtype=DTYPES[row["dtype"]],
        documents=documents[0] if documents and row["batch"] == 1 and op != "conv" else (), **more,
    )  # fmt: skip


def _numbers(row: Mapping[str, Any], count: int) -> list[int]:
    """Of so many documents: from 0 or not, neighbours or not, or so large that no float tells neighbours apart; rising,
    or falling. After an initial state the first is 0, and only those behind it fall: kernels in use take the state for
    that of document 0, which is asked by one case alone (*packed*).
    """
    drawn = lot(called(row), 12)
    state, step = "state" in row["start"], (1, 2, 7)[drawn // 4 % 3]
    first = 0 if state else (0, 1, 5, 2**24)[drawn % 4]
    numbers = [first + step * i for i in range(count)]
    if row.get("numbers") != "falling":
        return numbers
    return [0, *numbers[:0:-1]] if state else numbers[::-1]


def _scan(op: str, row: Mapping[str, Any]) -> Case:
    """Writes are rare, and an operand fits into 8 bits; of a float32 state 11 are used, of a narrower one 8. "wide
    states" are of more bits than float16 has.
    """
    draw, wide, long = Draw(f"{op} crossed {called(row)}"), row["dtype"] == "float32", row.get("wide states", False)
    heads, channels, columns = row["sizes"]
    own = 1 if op == "ssd" else channels
    time, sizes = (row["batch"], row["length"]), (heads, channels)
    softplus, limit = row["softplus"], LIMITS.get(row.get("limit"))
    below = row.get("steps below 0", False)
    limit = _BELOW if below and limit else limit
    write, idle = (32.0 if softplus or limit else 1.0), (-128.0 if softplus else -8.0 if limit and not below else 0.0)
    raw = draw.of((idle,) * (3 if long else 7) + (write,), (*time, heads, own))
    bias = draw.of((-64, 32, 64) if softplus else (1, 2, 3), (heads, own)) if row["bias"] else None
    step = min(limit[1], write) if limit else write
    # Results are multiples of a step, or, as half has no room for them behind a gate, B is divided by it.
    unit = 1.0 if row["dtype"] == "float16" else step
    # Drawn, not in turn: in any order that repeats, channels that are exchanged may have the same decay.
    A = draw.of((-0.0, _ERASES), (heads, own, 1 if op == "ssd" else columns))
    if below:  # where nothing fades: exp(ΔA) would be infinite
        kept = draw.of((0, 1), (heads, own, 1))
        kept[0] = 0
        A = A * kept
        raw = torch.where(kept[..., 0] == 0, raw * draw.of((-1, 1), tuple(raw.shape)), raw)
    u = draw.integers((*time, *sizes), 8000 if long else 60 if wide else 2)
    if limit and limit[0] > 0:  # every step writes: what is kept would grow too long
        u = u * ((raw == write) | (A[..., 0] == _ERASES))
    C = draw.integers((*time, row["groups"], columns), 2 if wide else 1)
    inputs = assemble(
        op,
        u,
        raw if bias is None else raw - bias,
        A,
        draw.integers((*time, row["groups"], columns), 1) * (unit / step),
        C if wide else C * draw.few(C.shape, 2),
        D=unit * draw.integers((heads, own), 9) if row["D"] not in (False, "no") else None,
        z=draw.of((32, 64, 64, -128), (*time, *sizes)) if row["z"] else None,
        bias=bias,
        initial=unit * draw.integers((row["batch"], *sizes, columns), 60000 if long else 1000 if wide else 20)
        if row["start"] in _AFTER_A_STATE
        else None,
    )
    if row["D"] == "of channels":
        inputs["D"] = unit * draw.integers(sizes, 9)
    options: dict[str, Any] = {"delta_softplus" if op == "selective_scan" else "dt_softplus": softplus}
    if op == "ssd":
        options |= {"chunk_size": row["chunk"]} | ({"dt_limit": [*limit]} if limit else {})
    return crossing(row, op, inputs, options, (inside_of_chunks if long else documents_of)(row))


def _conv(op: str, row: Mapping[str, Any]) -> Case:
    """With an activation every sum is a multiple of 128, of which silu is 0 or the number itself."""
    draw, scale, channels = Draw(f"conv crossed {called(row)}"), 128 if row["activation"] else 1, row["sizes"]
    inputs = {
        "x": scale * draw.integers((row["batch"], channels, row["length"]), 9),
        "weight": draw.integers((channels, row["taps"]), 3),
    }
    if row["bias"]:
        inputs["bias"] = scale * draw.integers((channels,), 9)
    if row["start"] in ("state", "pieces"):
        inputs["initial_states"] = scale * draw.integers((row["batch"], channels, row["taps"] - 1), 9)
    return crossing(row, op, inputs, {"activation": row["activation"]}, documents_of(row))


def _norm(op: str, row: Mapping[str, Any]) -> Case:
    """Magnitudes that are one power of two in each group, so that the root mean square is one."""
    draw, width, groups = Draw(f"norm crossed {called(row)}"), row["sizes"], row["groups"]
    shape = (row["batch"], row["length"])
    level = torch.tensor([2.0**9, 2.0**7] * groups)[:groups].repeat_interleave(width // groups)
    rows = 2.0 ** (torch.arange(row["length"]) % 5)[:, None]
    inputs = {"x": draw.integers((*shape, width), 1) * level * rows, "weight": draw.integers((width,), 9)}
    if row["z"]:
        # One for all channels of a position cancels in its mean: each has its own, but where rows share an operand.
        gates = draw.of((32.0, 64.0), (*shape, 1 if row.get("shared") else width)).expand(*shape, width)
        if row["gate"] == "before" and not row.get("shared"):  # what is normed stays one power of two
            inputs["x"] = inputs["x"] * (64 / gates)
        inputs["z"] = gates
    options = {"eps": 1e-5, "group_size": width // groups, "norm_before_gate": row["gate"] == "after"}
    return crossing({**row, "start": "nothing", "last state": False}, op, inputs, options)


def _delta(op: str, row: Mapping[str, Any]) -> Case:
    """Keys and queries of one place, and writes of every kind."""
    heads, keys, values = row["sizes"]
    long = row.get("wide states", False)
    name, documents = called(row), (inside_of_chunks if long else documents_of)(row)
    initial = (60000 if long else 20) if row["start"] in _AFTER_A_STATE else 0
    return delta.rendered(
        delta.Row(
            stage="crossing", name=name, asks=f"these together: {name}", length=row["length"], heads=heads, keys=keys,
            values=values, spread=row["spread"], batch=row["batch"], beta=delta.ANY, g=delta.RARELY,
            normed=row["normed"], u=8000 if long else 2, initial=initial, cuts=tuple(cuts_of(row)),
            documents=tuple(documents[0]) if documents else (), chunk=row["chunk"], last=row["last state"],
            dtype=DTYPES[row["dtype"]], views=row["views"], shared=row.get("shared") or "",
        )
    )  # fmt: skip
