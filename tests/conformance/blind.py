"""21 faults of the scan and of ssd, by one who had read docs/conformance.md and not seen a case or an earlier fault.

Each is a function of a right kernel and of the arguments by their names. FAULTS has the case that shows each, and
whether it was there when the fault was written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from conformance.faults.unforeseen import exponents_from_0

Right = Callable[..., Any]
Given = dict[str, Any]


def _part(given: Given, axis: int, start: int, stop: int) -> Given:
    """The positions start … stop of all operands that have positions."""
    timed = ("u", "delta", "x", "dt", "B", "C", "z", "seq_idx")
    cut = lambda m: m.narrow(axis, start, min(stop, m.shape[axis]) - start)
    return {name: cut(m) if name in timed and m is not None else m for name, m in given.items()}


def tree_padded_with_zeros(right: Right, given: Given) -> Any:
    """The tree over chunks of 64 is padded to a power of two with decays of 0, not of 1."""
    y, last = right(**given)
    chunks = -(-y.shape[-1] // 64)
    return y, (0 * last if chunks & (chunks - 1) else last)


def group_from_padded_width(right: Right, given: Given) -> Any:
    """The group is channel // (BLOCK / g), BLOCK the power of two above d."""
    channels = given["u"].shape[1]
    for name in ("B", "C"):
        if given[name].dim() == 4:
            groups = given[name].shape[1]
            own = torch.arange(channels) // max(1, (1 << (channels - 1).bit_length()) // groups)
            given[name] = given[name][:, own.clamp(max=groups - 1)]
    return right(**given)


def biased_step_in_the_dtype_of_u(right: Right, given: Given) -> Any:
    if (bias := given.pop("delta_bias", None)) is not None:
        given["delta"] = (given["delta"].float() + bias[:, None]).to(given["u"].dtype)
    return right(**given)


def threshold_before_bias(right: Right, given: Given) -> Any:
    """Whether softplus(x) is x is asked of Δ before its bias is added."""
    if given.pop("delta_softplus", False):
        raw, bias = given["delta"].float(), given.pop("delta_bias", None)
        biased = raw if bias is None else raw + bias[:, None]
        given["delta"] = torch.where(raw > 20, biased, F.softplus(biased))
    return right(**given)


def skip_along_time(right: Right, given: Given) -> Any:
    """The layout is guessed from the shape: D runs along time where there are as many positions as channels."""
    u, D, z = given["u"], given.get("D"), given.get("z")
    if D is None or u.shape[2] != len(D):
        return right(**given)
    wide = {name: given[name].float() for name in ("u", "delta", "B", "C")}
    y, last = right(**(given | wide | {"D": None, "z": None}))
    y = y + u.float() * D
    return (y if z is None else y * F.silu(z.float())).to(u.dtype), last


def bias_in_the_first_tile(right: Right, given: Given) -> Any:
    """Before a softplus the bias is added to the first 512 positions."""
    if given.get("delta_softplus") and (bias := given.pop("delta_bias", None)) is not None:
        given["delta"] = given["delta"].float() + bias[:, None] * (torch.arange(given["u"].shape[2]) < 512)
    return right(**given)


def initial_state_read_again(right: Right, given: Given) -> Any:
    """Every 128 positions the initial state is added once more."""
    first = state = given.get("initial_state")
    if first is None or given.get("seq_idx") is not None:
        return right(**given)
    ys = []
    for start in range(0, given["u"].shape[2], 128):
        state = state + first if start else state
        y, state = right(**(_part(given, -1, start, start + 128) | {"initial_state": state}))
        ys.append(y)
    return torch.cat(ys, -1), state


def stride_of_dense_rows(right: Right, given: Given) -> Any:
    """Rows of B are walked as if they lay behind one another, where they are one row: nothing stands there."""
    if len(given["B"]) > 1 and given["B"].stride(0) == 0:
        given["B"] = given["B"] * (torch.arange(len(given["B"])) == 0).view(-1, *[1] * (given["B"].dim() - 1))
    return right(**given)


def gate_of_a_clamped_channel(right: Right, given: Given) -> Any:
    """Channels of an incomplete tile of 8 read the gate of the last channel."""
    if (z := given.get("z")) is not None and (channels := z.shape[1]) > 8:
        own = torch.arange(channels)
        given["z"] = z[:, torch.where(own < channels // 8 * 8, own, channels - 1)]
    return right(**given)


def tail_of_a_vector_of_C(right: Right, given: Given) -> Any:
    """C of groups is read four positions at a time; beyond 64 an incomplete vector repeats its first."""
    C, length = given["C"], given["u"].shape[2]
    if C.dim() == 4 and length > 64 and length % 4:
        place = torch.arange(length)
        given["C"] = C[..., place.clamp(max=length // 4 * 4)]
    return right(**given)


def documents_must_rise(right: Right, given: Given) -> Any:
    """A document begins where its number is larger than the one before."""
    if (ids := given.get("seq_idx")) is not None:
        given["seq_idx"] = F.pad((ids[:, 1:] > ids[:, :-1]).int(), (1, 0)).cumsum(1)
    return right(**given)


def limits_with_softplus_only(right: Right, given: Given) -> Any:
    return right(**(given if given.get("dt_softplus") else given | {"dt_limit": (-float("inf"), float("inf"))}))


def skip_along_channels(right: Right, given: Given) -> Any:
    """D broadcasts along the channels of a head, where they are as many as the heads."""
    D, size = given.get("D"), given["x"].shape[3]
    if D is not None and D.dim() == 1 and len(D) == size:
        given["D"] = D.expand(size, size)
    return right(**given)


def chunk_of_one_ungated(right: Right, given: Given) -> Any:
    """A last chunk of one position goes through the decode step, which has no gate."""
    length, size = given["x"].shape[1], given["chunk_size"]
    y, last = right(**given)
    if length > size and length % size == 1:
        y = torch.cat([y[:, :-1], right(**(given | {"z": None}))[0][:, -1:]], 1)
    return y, last


def product_of_two_groups(right: Right, given: Given) -> Any:
    """Within a chunk the group has one bit."""
    groups, size, length = given["B"].shape[2], given["chunk_size"], given["x"].shape[1]
    y, last = right(**given)
    if groups < 3 or given.get("z") is not None:
        return y, last
    y, bit = y.clone(), torch.arange(groups) % 2
    for start in range(0, length, size):
        alone = _part(given, 1, start, start + size) | {"D": None, "initial_states": None}
        wrong = alone | {name: alone[name][:, :, bit] for name in ("B", "C")}
        y[:, start : start + size] += right(**wrong)[0] - right(**alone)[0]
    return y, last


def rate_in_the_dtype_of_x(right: Right, given: Given) -> Any:
    return right(**(given | {"A": given["A"].to(given["x"].dtype).float()}))


def square_state_not_turned(right: Right, given: Given) -> Any:
    """Inside states are (n, p); one that comes in is turned where its shape shows that it must be."""
    state = given.get("initial_states")
    if state is not None and state.shape[-1] == state.shape[-2]:
        given["initial_states"] = state.mT
    return right(**given)


def initial_state_in_every_document(right: Right, given: Given) -> Any:
    """Documents are kept apart, but the initial state reaches all of the first chunk."""
    y, last = right(**given)
    if given.get("seq_idx") is None or given.get("initial_states") is None or given.get("z") is not None:
        return y, last
    size = given["chunk_size"]
    empty = _part(given | {"x": torch.zeros_like(given["x"])}, 1, 0, size)
    leak = right(**(empty | {"seq_idx": None}))[0] - right(**empty)[0]
    return torch.cat([y[:, :size] + leak, y[:, size:]], 1), last


def bias_of_the_first_heads(right: Right, given: Given) -> Any:
    """A block of 16 heads reads the bias of the first."""
    if (bias := given.get("dt_bias")) is not None:
        given["dt_bias"] = bias[torch.arange(len(bias)) % 16]
    return right(**given)


def chunks_of_a_power_of_two(right: Right, given: Given) -> Any:
    """A chunk is padded to a power of two by the first steps of the next, "
    "which then count twice in what it hands on."""
    if given.get("seq_idx") is not None:
        return right(**given)
    size, length = given["chunk_size"], given["x"].shape[1]
    block, state, ys = 1 << (size - 1).bit_length(), given.get("initial_states"), []
    for start in range(0, length, size):
        held = {"initial_states": state}
        ys.append(right(**(_part(given, 1, start, start + size) | held))[0])
        state = right(**(_part(given, 1, start, start + block) | held))[1]
    return torch.cat(ys, 1), state


SCAN, SSD = "selective_scan", "ssd"
FAULTS: dict[Callable[[Right, Given], Any], tuple[str, str, bool]] = {
    tree_padded_with_zeros: (SCAN, "bfloat16, carried", True),
    group_from_padded_width: (SCAN, "groups of three", True),
    biased_step_in_the_dtype_of_u: (SCAN, "bfloat16, step", False),
    threshold_before_bias: (SCAN, "softplus of 160 - 288", False),
    skip_along_time: (
        *(
            SCAN,
            "19 positions, bfloat16, views, pieces, last state, 4 heads of 2, 16 columns, D, softplus, 2 groups",
        ),
        True,
    ),
    bias_in_the_first_tile: (
        *(
            SCAN,
            "1025 positions, float32, 3 rows, initial state and documents, 16 heads of 1, 2 columns, bias, "
            "softplus, 4 groups, 20 documents more, borders of row 2",
        ),
        True,
    ),
    initial_state_read_again: (
        *(
            SCAN,
            "129 positions, float32, views mixed, initial state, last state, 3 heads of 2, 2 columns, D, "
            "bias, softplus",
        ),
        True,
    ),
    stride_of_dense_rows: (SCAN, "one B for all rows", False),
    gate_of_a_clamped_channel: (
        *(
            SCAN,
            "1 position, float32, 2 rows, views, documents, last state, 15 heads of 1, 3 columns, D, z, "
            "softplus, 5 groups",
        ),
        True,
    ),
    tail_of_a_vector_of_C: (
        *(
            SCAN,
            "127 positions, float32, 9 rows, views, initial state, last state, 9 heads of 1, 3 columns, D, "
            "bias, 3 groups",
        ),
        True,
    ),
    documents_must_rise: (SCAN, "numbers that fall", False),
    limits_with_softplus_only: (SSD, "limit from above", True),
    skip_along_channels: (SSD, "skip and gate", True),
    chunk_of_one_ungated: (
        *(
            SSD,
            "65 positions, float32, 2 rows, views, initial state, last state, 6 heads of 1, 3 columns, z, "
            "3 groups, chunks of 64, limit both",
        ),
        True,
    ),
    product_of_two_groups: (SSD, "four groups", True),
    rate_in_the_dtype_of_x: (SSD, "rates beside bfloat16", False),
    square_state_not_turned: (SSD, "kept", True),
    initial_state_in_every_document: (
        *(
            SSD,
            "63 positions, bfloat16, 9 rows, initial state and documents, last state, 16 heads of 1, "
            "2 columns, D of channels, 4 groups, chunks of 64, 20 documents more",
        ),
        True,
    ),
    exponents_from_0: (SSD, "a step of 2^24", True),
    bias_of_the_first_heads: (SSD, "bias of many channels", False),
    chunks_of_a_power_of_two: (SSD, "chunks of 37", True),
}
