"""Exact cases in which any three options of an operation meet: what works alone may fail together.

Rows come from `covering`, four times: with lengths around every usual size of a chunk and few channels; with sizes
beyond a tile and few positions; and, any two of the other options together, with sizes as layers have them over more
than a chunk, and with sizes of which several are equal. Options that a kernel does not take are left out of its rows,
which then cover what is left. Every term of a result is a multiple of one power of two, so that bfloat16 and half hold
it without rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from conformance.cases import delta
from conformance.cases.beginnings import at_every_border
from conformance.cases.covering import Allowed, covering
from conformance.cases.draw import BF16, Draw, assemble, case, name_of
from conformance.cases.equal import equal_sizes
from conformance.cases.finer import finer
from conformance.cases.kept import kept
from conformance.cases.packing import WIDE_LENGTHS, cuts_of, documents_of, inside_of_chunks
from conformance.kernel.layouts import same_in_all_rows
from conformance.loader import Case
from conformance.lots import lot

LENGTHS = (1, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1025)
CHUNK_SIZES = (64, 16, 128, 256, 32, 8)
"""All that are crossed, of a kernel that is told the size of a chunk."""
DELTA_LENGTHS = (1, 15, 16, 17, 63, 64, 65, 128, 129)  # whose equations take longer
STEPS = (1, 4)  # positions, of a kernel that takes one at a time
CONV_LENGTHS = (1, 2, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1025)  # 2: fewer than a window holds
LAYER_LENGTHS = (65, 130, 260)  # beyond a chunk of 64, 128 and 256, where sizes are those of layers
STRENGTH, LAYER_STRENGTH = 3, 2
DTYPES = {"float32": torch.float32, "bfloat16": BF16, "float16": torch.half}
_ERASES = -256.0
_LIMITS: dict[Any, tuple[float, float]] = {"above": (0.0, 16.0), "both": (8.0, 16.0), "below": (16.0, math.inf)}
_BELOW = (-16.0, 16.0)  # limits between which a step may be below 0
_PLAIN = (4, 2, 2)  # heads, channels of a head, state columns
_SIZES: dict[
    str, Sequence[Any]
] = {  # groups of 3 channels, which no vector of 2 or 4 divides, and columns that are no power of two
    "selective_scan": [_PLAIN, (6, 1, 3)],
    "ssd": [_PLAIN, (6, 1, 3)],
    "conv": [8, 12, 64],
    "delta_rule": [(1, 4, 3), (2, 16, 5)],
}
_WIDE_SIZES = {  # a tile of 16 and what is usual, then columns and channels of a head beyond it and no multiple of it
    "selective_scan": [(4, 2, 16), (6, 1, 17), (10, 1, 24), (14, 1, 40), (2, 9, 5)],
    "ssd": [(2, 64, 16), (4, 3, 64), (6, 20, 5), (2, 17, 20), (10, 3, 24)],
    "delta_rule": [(1, 16, 40), (3, 64, 9), (1, 256, 2)],
}
_LAYER_SIZES: dict[
    str, Sequence[Any]
] = {  # those of released models, heads, channels and columns beyond 64 or 128, two of them at a time; then few or odd
    "selective_scan": [
        *((64, 1, 16), (16, 1, 32), (16, 1, 64), (132, 1, 3), (4, 1, 130), (68, 1, 66)),
        *((1, 1, 8), (3, 7, 1)),
    ],
    "ssd": [
        *((4, 64, 128), (4, 128, 16), (8, 32, 64), (68, 1, 130), (4, 66, 66), (36, 34, 2)),
        *((1, 48, 8), (3, 80, 1), (1, 7, 16), (2, 96, 8)),
    ],
    "conv": [128, 130, 258, 1],
    "norm": [2048, 512],
    "delta_rule": [(2, 64, 64), (1, 16, 128), (1, 16, 256), (66, 4, 3), (1, 64, 66), (1, 256, 3)],
}

Factors = dict[str, Sequence[Any]]
Option = tuple[str, Any]
"""A factor, and a value of it that not every kernel takes."""
PACKED_ROWS: Option = ("documents", "in each of several rows")
"""What a kernel does not take that is told of documents by offsets alone: a row with both would not be run."""


@kept
def crossed_cases(op: str, without: frozenset[Option] = frozenset(), lengths: tuple[int, ...] = LENGTHS) -> list[Case]:
    """The crossed cases of an operation; without: values that its factors do not take."""
    crossed = (
        (factors_of(op, lengths), STRENGTH),
        (wide_factors_of(op, lengths), STRENGTH),
        (layer_factors_of(op, lengths), LAYER_STRENGTH),
    )
    rows = [row for factors, strength in crossed for row in rows_without(factors, without, strength)]
    return [render(op, row) for row in (*at_every_border(finer(op, rows)), *equal_rows(op, without, lengths))]


def render(op: str, row: Mapping[str, Any]) -> Case:
    """The case of a row."""
    return {"conv": _conv, "norm": _norm, "delta_rule": _delta}.get(op, _scan)(op, row)


def equal_rows(
    op: str, without: frozenset[Option] = frozenset(), lengths: Sequence[int] = LENGTHS
) -> Iterator[dict[str, Any]]:
    """Rows of sizes of which several are equal, each with any two of the options; positions: no more than `lengths`."""
    sizes = equal_sizes(op, max(lengths), without)
    options = {name: values for name, values in factors_of(op, lengths).items() if sizes and name not in sizes[0]}
    for row in rows_without(options | {"equal": range(len(sizes))}, without, LAYER_STRENGTH) if sizes else ():
        found = {**{k: v for k, v in row.items() if k != "equal"}, **sizes[row["equal"]]}
        if ("chunk", found.get("chunk")) in without:
            found["chunk"] = rows_without({"chunk": [found["chunk"]]}, without, 1)[0]["chunk"]
        yield found


def rows_without(factors: Factors, without: frozenset[Option], strength: int = STRENGTH) -> list[dict[str, Any]]:
    """Rows in which any so many of the factors meet, without values that a kernel does not take."""
    kept: Factors = {name: [v for v in values if option_of(name, v) not in without] for name, values in factors.items()}
    if "chunk" in kept and not kept["chunk"]:  # at a size that it takes
        kept["chunk"] = [size for size in CHUNK_SIZES if ("chunk", size) not in without][:1] or [*factors["chunk"]]
    op = {"op": "conv"} if "activation" in kept else {}
    allowed = lambda levels: meets({**levels, **op}) and not (PACKED_ROWS in without and _is_packed_in_rows(levels))
    kept = {name: [v for v in values if _stands(name, v, kept, allowed)] for name, values in kept.items()}
    return covering(kept, strength, allowed) if kept and all(kept.values()) else []


def _is_packed_in_rows(levels: Mapping[str, Any]) -> bool:
    """Or must be: rows share operands where there are several, and numbers are those of documents."""
    several = levels.get("batch", 1) > 1 or levels.get("shared")
    return bool(several) and ("documents" in levels.get("start", "") or bool(levels.get("numbers")))


def _stands(name: str, value: Any, factors: Factors, allowed: Allowed) -> bool:
    """Whether every other factor has a value that may stand beside this one."""
    others = ((other, values) for other, values in factors.items() if other != name)
    return all(any(allowed({name: value, other: each}) for each in values) for other, values in others)


def meets(levels: Mapping[str, Any]) -> bool:
    """Whether there are as many heads as groups at least: one head has one group. Of a convolution no last state is
    asked for beside documents: its window may hold inputs of the document before, or none of them. Rows share operands
    where there are several; numbers are those of documents; B and C have an axis for one group; and a step is below 0
    where no softplus follows, and of ssd, whose limits are 0 and more by default, where both are given.
    """
    sizes = levels.get("sizes")
    if levels.get("shared") and levels.get("batch", 2) == 1:
        return False
    if levels.get("numbers") and "documents" not in levels.get("start", "documents"):
        return False
    if levels.get("axis of one group") and levels.get("groups", 1) > 1:
        return False
    if levels.get("steps below 0") and (levels.get("softplus") or levels.get("limit", "both") != "both"):
        return False
    if not _may_be_told(levels):
        return False
    packed = levels.get("start") == "documents" or bool(levels.get("numbers"))
    if levels.get("op") == "conv" and packed and levels.get("last state"):
        return False
    return not isinstance(sizes, tuple) or levels.get("groups", 1) == 1 or sizes[0] > 1


def _may_be_told(levels: Mapping[str, Any]) -> bool:
    """Whether a call may be told of documents and asked for states as `told` has it: offsets are of one row, and beside
    them alone stands a state only where there is one document, for kernels may take one for each; numbers alone give no
    states of documents; and what is not asked for is no last state.
    """
    told, asked, last = (levels.get(name) for name in ("told", "asked", "last state"))
    if (told or asked) and levels.get("batch", 1) > 1:
        return False
    if told == "offsets" and not levels.get("whole", True) and "state" in levels.get("start", ""):
        return False
    if (told == "numbers" and asked) or (told == "offsets" and asked == "no states of documents"):
        return False
    return not (asked == "no states" and last) and not (asked == "no states of documents" and last is False)


def option_of(name: str, value: Any) -> Option:
    """What `options_of` says of a value: several groups or rows are one option."""
    if name in ("groups", "batch"):
        return name, min(2, value)
    return name, False if value == "no" else value


def factors_of(op: str, lengths: Sequence[int] = LENGTHS) -> Factors:
    """What is crossed; the first value of a factor is what every kernel takes."""
    common: Factors = {"length": lengths, "dtype": [*DTYPES], "batch": [1, 2], "views": [False, True, "mixed"]}
    start = ["nothing", "state", "pieces", "documents", "state and documents"]
    if op == "delta_rule":
        own: Factors = {"length": DELTA_LENGTHS, "start": start, "normed": [False, True], "last state": [False, True]}
        return common | own | {"spread": [1, 2, 3], "sizes": _SIZES[op], "chunk": [64, 16, 128]}
    if op == "norm":
        return common | {
            "length": (1, 3, 70, 140),
            "groups": [1, 2],
            "z": [False, True],
            "gate": ["before", "after"],
            "sizes": [16],
        }
    if op == "conv":
        more: Factors = {"start": start[:-1], "bias": [False, True], "taps": [4, 3, 2], "sizes": _SIZES[op]}
        more["length"] = CONV_LENGTHS
        return common | more | {"activation": [None, "silu", "swish"], "last state": [False, True]}
    found: Factors = common | {"start": start, "last state": [False, True], "sizes": _SIZES[op]}
    found |= {name: [False, True] for name in ("D", "z", "bias", "softplus")} | {"groups": [1, 2]}
    if op == "ssd":
        found |= {"D": ["no", "of heads", "of channels"], "chunk": [64, 16, 256], "limit": [None, *_LIMITS]}
    return found


def wide_factors_of(op: str, lengths: Sequence[int] = LENGTHS) -> Factors:
    """What is crossed with sizes beyond a tile, over so few positions that the plain equations are quick."""
    if op not in _WIDE_SIZES:
        return {}
    few = [length for length in WIDE_LENGTHS if length <= max(lengths)]
    found = dict(factors_of(op)) | {"length": few, "sizes": _WIDE_SIZES[op]}
    return found | ({"chunk": [16, 8]} if "chunk" in found else {})


def layer_factors_of(op: str, lengths: Sequence[int] = LENGTHS) -> Factors:
    """What is crossed with sizes as layers have them, over more than a chunk: a tile of heads, channels or columns that
    is lost only there, or only with a state, documents or a narrow dtype, is lost in every layer.
    """
    found = dict(factors_of(op, lengths)) | {"sizes": _LAYER_SIZES[op], "batch": [1, 3]}
    if op == "norm":
        return found | {"length": (1, 9, 128), "groups": [1, 2, 8]}
    if "chunk" in found:
        found["chunk"] = [64, 32, 128, 256]
    if "groups" in found:
        found["groups"] = [1, 2]
    if max(lengths) < max(LAYER_LENGTHS):
        return found
    return found | {"length": (*LAYER_LENGTHS[:-1], 520) if op == "conv" else LAYER_LENGTHS}


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
                said += [] if value in (_PLAIN, 8, 16) else [_sized(value)]
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
    softplus, limit = row["softplus"], _LIMITS.get(row.get("limit"))
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


def varied(op: str) -> Iterator[Option]:
    """Every value of a factor that a kernel may not take."""
    for name, values in factors_of(op).items():
        if name not in ("length", "chunk", "last state", "sizes", "spread"):
            yield from ((name, value) for value in values[1:])


def firsts(op: str) -> Iterator[Option]:
    """The first value of each of these factors, which most kernels take."""
    varying = {name for name, _ in varied(op)}
    yield from (option_of(name, values[0]) for name, values in factors_of(op).items() if name in varying)


def options_of(case: Case) -> frozenset[Option]:
    """The values of factors that a case has, of those that not every kernel takes."""
    inputs, options, op = case.inputs, case.options, case.op
    operand = inputs[{"selective_scan": "u", "delta_rule": "v"}.get(op, "x")]
    found: dict[str, Any] = {"dtype": name_of(operand.dtype), "batch": min(2, len(operand))}
    state, packed = bool(_STATES & inputs.keys()), "seq_idx" in inputs
    begun = " and ".join([*["state"] * state, *["documents"] * packed]) or "nothing"
    found["start"] = "pieces" if "cuts" in options else begun
    found |= {"z": "z" in inputs, "bias": bool(_BIASES & inputs.keys()), "views": options.get("views", False)}
    limit = options.get("dt_limit")
    found |= {"limit": limit and _side(*limit), "D": "D" in inputs}
    found["softplus"] = bool(options.get("delta_softplus") or options.get("dt_softplus"))
    if op == "ssd" and "D" in inputs:
        found["D"] = "of heads" if inputs["D"].dim() == 1 else "of channels"
    if op in ("selective_scan", "ssd"):
        B = inputs["B"]
        found["groups"] = min(2, B.shape[2] if op == "ssd" else B.shape[1] if B.dim() == 4 else 1)
    if op == "conv":
        found |= {"activation": options["activation"], "taps": inputs["weight"].shape[1]}
    if op == "delta_rule":
        found["normed"] = options["use_qk_l2norm_in_kernel"]
    if op == "norm":
        found["groups"] = min(2, operand.shape[-1] // options["group_size"])
        found["gate"] = "after" if options["norm_before_gate"] else "before"
    return frozenset(found.items())


def _side(least: float, most: float) -> str:
    return "above" if least <= 0 else "both" if math.isfinite(most) else "below"


_AFTER_A_STATE = ("state", "pieces", "state and documents")
_STATES = {"initial_state", "initial_states"}
_BIASES = {"delta_bias", "dt_bias", "bias"}
