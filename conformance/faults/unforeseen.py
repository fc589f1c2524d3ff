"""Bugs of a kind that no case was made for: their author knew the operations and had not seen the cases.

They show only at some sizes, layouts or borders. Each is a function of the right one and of the arguments by their
names, as in `conformance.faults.reported`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Right = Callable[..., Any]
Given = dict[str, Any]
_TILE = 16


def group_of_four_channels(right: Right, given: Given) -> Any:
    """A vector of four channels reads the group of its first."""
    channels = given["u"].shape[1]
    for name in ("B", "C"):
        if given[name].dim() == 4:
            own = given[name].repeat_interleave(channels // given[name].shape[1], dim=1)
            given[name] = own[:, torch.arange(channels) // 4 * 4]
    return right(**given)


def odd_column_lost(right: Right, given: Given) -> Any:
    """The state handed on at 1,024 is copied in pairs of columns."""
    length, columns = given["u"].shape[2], given["A"].shape[1]
    if length <= 1024 or columns % 2 == 0 or columns == 1 or given.get("seq_idx") is not None:
        return right(**given)
    timed = [name for name in ("u", "delta", "B", "C", "z") if given.get(name) is not None]
    before, state = right(**(given | {name: given[name][..., :1024] for name in timed}))
    state = torch.cat([state[..., :-1], torch.zeros_like(state[..., -1:])], -1)
    behind, last = right(**(given | {name: given[name][..., 1024:] for name in timed} | {"initial_state": state}))
    return torch.cat([before, behind], -1), last


def coarse_beyond_a_tile(right: Right, given: Given) -> Any:
    """The exponent of columns from 16 on has three digits."""
    A = given["A"].clone()
    A[:, _TILE:] *= 1.002
    return right(**(given | {"A": A}))


def padding_clamped(right: Right, given: Given) -> Any:
    """The steps behind the end are 0, then clamped from below."""
    y, last = right(**given)
    least, padding = given.get("dt_limit", (0.0,))[0], -given["x"].shape[1] % given["chunk_size"]
    return y, last * torch.exp(given["A"].float() * least * padding)[:, None, None]


def document_at_a_chunk_missed(right: Right, given: Given) -> Any:
    """After an initial state, a document that begins with a chunk goes on with the state before."""
    ids = given.get("seq_idx")
    if ids is not None and given.get("initial_states") is not None:
        begins = F.pad(ids[:, 1:] != ids[:, :-1], (1, 0))
        begins[:, :: given["chunk_size"]] = False
        given["seq_idx"] = begins.cumsum(1)
    return right(**given)


def skip_of_the_first_channel(right: Right, given: Given) -> Any:
    """In the last tile of a head, and before a gate, every channel has the D of the first."""
    D, width = given.get("D"), given["x"].shape[-1]
    if D is not None and D.dim() == 2 and given.get("z") is not None and width > _TILE:
        whole = width // _TILE * _TILE
        given["D"] = torch.cat([D[:, :whole], D[:, :1].expand(-1, width - whole)], 1)
    return right(**given)


def strides_of_B(right: Right, given: Given) -> Any:
    B, C = given["B"], given["C"]
    if B.stride() != C.stride():
        held = torch.empty(0, dtype=C.dtype).set_(C.untyped_storage())
        places = torch.tensor(C.storage_offset())
        for size, stride in zip(C.shape, B.stride(), strict=True):
            places = places[..., None] + torch.arange(size) * stride
        given["C"] = held[places % len(held)]
    return right(**given)


def state_read_in_whole_tiles(right: Right, given: Given) -> Any:
    """Of a state that comes into a chunk C reads whole tiles of columns."""
    columns, length, size = given["B"].shape[-1], given["x"].shape[1], given["chunk_size"]
    if columns < _TILE or columns % _TILE == 0 or given.get("seq_idx") is not None:
        return right(**given)
    state, ys = given.get("initial_states"), []
    seen = (torch.arange(columns) < columns // _TILE * _TILE).float()
    for start in range(0, length, size):
        timed = [name for name in ("x", "dt", "B", "C", "z") if given.get(name) is not None]
        now = given | {name: given[name][:, start : start + size] for name in timed}
        ys.append(right(**(now | {"initial_states": None if state is None else state * seen}))[0])
        state = right(**(now | {"initial_states": state}))[1]
    return torch.cat(ys, 1), state


def copy_updated(right: Right, given: Given) -> Any:
    """A state that is not dense is made so, and the copy is updated."""
    return right(**(given | {"state": given["state"].contiguous()}))


def bias_after_swish(right: Right, given: Given) -> Any:
    bias = given.get("bias")
    if bias is None or given.get("activation") != "swish" or given["weight"].shape[1] != 2:
        return right(**given)
    y, last = right(**(given | {"bias": None}))
    return (y.float() + bias.float()[:, None]).to(y.dtype), last


def bias_of_whole_vectors(right: Right, given: Given) -> Any:
    """Where channels are neighbours in memory, the last ones that fill no vector of eight have no bias."""
    x, bias = given["x"], given.get("bias")
    if bias is not None and x.stride(1) == 1 and x.shape[2] > 1:
        given["bias"] = bias * (torch.arange(len(bias)) < len(bias) // 8 * 8)
    return right(**given)


def rows_wrap(right: Right, given: Given) -> Any:
    """Where a row begins is held in 16 bits."""
    x = given["x"]
    flat, size = x.flatten(), x[0].numel()
    begins = [i * size % 2**16 for i in range(len(x))]
    rows: list[Tensor] = [flat[begin : begin + size].reshape(x.shape[1:]) for begin in begins]
    return right(**(given | {"x": torch.stack(rows)}))


def carried_in_the_input_s_dtype(right: Right, given: Given) -> Any:
    """The state is handed on every 32 steps in the dtype of u."""
    length = given["u"].shape[2]
    if given.get("seq_idx") is not None:
        return right(**given)
    timed = [name for name in ("u", "delta", "B", "C", "z") if given.get(name) is not None]
    state, ys = given.get("initial_state"), []
    for start in range(0, length, 32):
        now = given | {name: given[name][..., start : start + 32] for name in timed}
        handed = None if state is None else state.to(given["u"].dtype if start else state.dtype).float()
        y, state = right(**(now | {"initial_state": handed}))
        ys.append(y)
    return torch.cat(ys, -1), state


def skip_of_the_first_block(right: Right, given: Given) -> Any:
    """A block of 32 channels of a head reads D from its begin."""
    if given.get("D") is not None and given["D"].dim() == 2:
        given["D"] = given["D"][:, torch.arange(given["D"].shape[1]) % 32]
    return right(**given)


def exponents_from_0(right: Right, given: Given) -> Any:
    """One float32 sum of exponents over the whole sequence, of which each decay is a difference. Only here, where
    nothing stands around the recurrence."""
    around = ("D", "z", "dt_bias", "initial_states", "seq_idx", "dt_limit")
    if given.get("dt_softplus") or any(given.get(name) is not None for name in around):
        return right(**given)
    x, dt, heads = given["x"].float(), given["dt"].float(), given["x"].shape[2]
    B, C = (given[name].float().repeat_interleave(heads // given[name].shape[2], dim=2) for name in ("B", "C"))
    total = F.pad((dt * given["A"].float()).cumsum(1), (0, 0, 1, 0))
    state = torch.zeros(*x.shape[:1], *x.shape[2:], B.shape[-1])
    ys = []
    for t in range(x.shape[1]):
        written = (dt[:, t, :, None] * x[:, t])[..., None] * B[:, t, :, None]
        state = torch.exp(total[:, t + 1] - total[:, t])[..., None, None] * state + written
        ys.append((state * C[:, t, :, None]).sum(-1))
    return torch.stack(ys, 1).to(given["x"].dtype), state


def last_of_16_columns_lost(right: Right, given: Given) -> Any:
    """Of 16 columns the last is not read, where operands are float16."""
    if given["A"].shape[1] == 16 and given["u"].dtype == torch.half:
        given["C"] = given["C"] * (torch.arange(16) < 15)[:, None]
    return right(**given)


def state_of_the_second_row(right: Right, given: Given) -> Any:
    """Every row behind the second begins with the state of the second."""
    for name in ("initial_state", "initial_states"):
        if (initial := given.get(name)) is not None:
            given[name] = initial[torch.arange(len(initial)).clamp(max=1)]
    return right(**given)


def documents_in_8_bits(right: Right, given: Given) -> Any:
    """The number of a document is held in 8 bits."""
    if given.get("seq_idx") is not None:
        given["seq_idx"] = given["seq_idx"] % 2**8
    return right(**given)


def groups_beyond_four(right: Right, given: Given) -> Any:
    """Of more than four groups the first four are read again."""
    for name in ("B", "C"):
        if given[name].dim() == 4:
            given[name] = given[name][:, torch.arange(given[name].shape[1]) % 4]
    return right(**given)


def channels_beyond_a_tile(right: Right, given: Given) -> Any:
    """Of a head of more than 64 channels those behind are not read."""
    given["x"] = given["x"] * (torch.arange(given["x"].shape[3]) < 64)
    return right(**given)


def rows_beyond_64(right: Right, given: Given) -> Any:
    """One block of 64 positions is normalised."""
    y = right(**given)
    return y * (torch.arange(y.shape[-2]) < 64)[:, None]


def epsilon_of_gated_groups(right: Right, given: Given) -> Any:
    """Where there are groups and a gate, epsilon is left out."""
    if given.get("z") is not None and given["group_size"] < given["x"].shape[-1]:
        given["eps"] = 0.0
    return right(**given)


def row_of_four(right: Right, given: Given) -> Any:
    """A row behind the fourth is read as that of its number modulo 4."""
    batch = next(len(given[name]) for name in ("u", "x") if name in given)
    again = torch.arange(batch) % 4
    rows = {name: m[again] for name, m in given.items() if name not in _EVERY_ROW and isinstance(m, Tensor)}
    return right(**(given | rows))


_EVERY_ROW = {"A", "D", "delta_bias", "dt_bias"}


def negative_step_clamped(right: Right, given: Given) -> Any:
    if given.get("delta_bias") is None and not given.get("delta_softplus"):
        given["delta"] = given["delta"].clamp(min=0)
    return right(**given)


def axis_of_one_group(right: Right, given: Given) -> Any:
    """B and C with an axis of groups are read as 0 where there is one."""
    if given["B"].dim() == 4 and given["B"].shape[1] == 1:
        given |= {name: 0 * given[name] for name in ("B", "C")}
    return right(**given)


def step_in_the_input_s_dtype(right: Right, given: Given) -> Any:
    """Δ and its bias are added in the dtype of Δ."""
    if (bias := given.get("delta_bias")) is not None:
        given |= {"delta": given["delta"] + bias[:, None].to(given["delta"].dtype), "delta_bias": None}
    return right(**given)


def limit_from_below_alone(right: Right, given: Given) -> Any:
    """Limits are taken for none where there is none from above."""
    if given.get("dt_limit") and given["dt_limit"][1] == float("inf"):
        given["dt_limit"] = (0.0, float("inf"))
    return right(**given)


def chunks_of_128(right: Right, given: Given) -> Any:
    """In chunks of 128 the state is lost at each."""
    if given["chunk_size"] != 128:
        return right(**given)
    state, ys = given.get("initial_states"), []
    for start in range(0, given["x"].shape[1], 128):
        timed = [name for name in ("x", "dt", "B", "C", "z") if given.get(name) is not None]
        now = given | {name: given[name][:, start : start + 128] for name in timed}
        y, last = right(**(now | {"initial_states": None if start else state}))
        ys.append(y)
    return torch.cat(ys, 1), last


def columns_of_128(right: Right, given: Given) -> Any:
    """Of 128 columns half are read."""
    if given["B"].shape[-1] == 128:
        given["C"] = given["C"] * (torch.arange(128) < 64)
    return right(**given)


def channels_beyond_128(right: Right, given: Given) -> Any:
    y, last = right(**given)
    return y * (torch.arange(y.shape[1]) < 128)[:, None], last


def taps_in_the_input_s_dtype(right: Right, given: Given) -> Any:
    """Every tap's product is rounded to the dtype of x."""
    x, taps = given["x"], given["weight"].shape[1]
    if x.dtype == torch.float32 or given.get("seq_idx") is not None or given.get("initial_states") is not None:
        return right(**given)
    _, last = right(**given)
    padded = F.pad(x, (taps - 1, 0))
    y = sum(padded[..., k : k + x.shape[2]] * given["weight"][:, k, None].to(x.dtype) for k in range(taps))
    y = y if given.get("bias") is None else y + given["bias"][:, None].to(x.dtype)
    return F.silu(y) if given.get("activation") else y, last


def mean_of_512_channels(right: Right, given: Given) -> Any:
    """The mean square is of the first 512 channels."""
    x, size = given["x"], given["group_size"]
    if size <= 512 or size < x.shape[-1]:
        return right(**given)
    mean = x[..., :512].float().square().mean(-1, keepdim=True)
    whole = x.float().square().mean(-1, keepdim=True)
    return (right(**given).float() * ((whole + given["eps"]) / (mean + given["eps"])).sqrt()).to(x.dtype)


def relu_behind_the_norm(right: Right, given: Given) -> Any:
    """A gate behind the norm is a relu, which is silu for large z."""
    z = given.get("z")
    if z is None or not given.get("norm_before_gate"):
        return right(**given)
    return (right(**(given | {"z": None})).float() * F.relu(z.float())).to(given["x"].dtype)


def exp_in_half_beside_half(right: Right, given: Given) -> Any:
    return right(**given, bug="exp in half" if given["u"].dtype == torch.half else "")


def hard_exp_of_views(right: Right, given: Given) -> Any:
    """Where u is not dense."""
    return right(**given, bug="" if given["u"].is_contiguous() else "exp is 0 or 1")


def relu_of_the_step_before_a_gate(right: Right, given: Given) -> Any:
    """Where there are a z and no bias."""
    here = given.get("z") is not None and given.get("delta_bias") is None
    return right(**given, bug="softplus is a relu" if here else "")


def group_0_of_one_position(right: Right, given: Given) -> Any:
    """One position that begins with nothing is read with C of the first group."""
    C = given["C"]
    if C.dim() == 4 and C.shape[3] == 1 and given.get("initial_state") is None:
        given["C"] = C[:, :1].expand_as(C)
    return right(**given)


def last_channel_behind_64(right: Right, given: Given) -> Any:
    """With documents, the last channel's state is lost where a chunk of 64 has one position."""
    y, last = right(**given)
    if given.get("seq_idx") is not None and y.shape[2] > 1 and y.shape[2] % 64 == 1:
        last = last * (torch.arange(last.shape[1]) < last.shape[1] - 1)[:, None]
    return y, last


def lost_at_64_of_128(right: Right, given: Given) -> Any:
    """Two chunks of 64 with documents are two sequences."""
    ids = given.get("seq_idx")
    if ids is not None and ids.shape[1] == 128:
        given["seq_idx"] = 2 * ids + (torch.arange(128) // 64)
    return right(**given)


def bias_beside_a_limit_from_above(right: Right, given: Given) -> Any:
    """The bias is forgotten where Δ is clamped from above alone, and has no softplus."""
    least, most = given.get("dt_limit") or (0.0, float("inf"))
    if least == 0 and most < float("inf") and not given.get("dt_softplus"):
        given["dt_bias"] = None
    return right(**given)


def hard_exp_behind_a_state(right: Right, given: Given) -> Any:
    """Where there are documents and an initial state."""
    here = given.get("seq_idx") is not None and given.get("initial_states") is not None
    return right(**given, bug="exp is 0 or 1" if here else "")


def relu_of_fewer_taps(right: Right, given: Given) -> Any:
    """The activation of less than four taps is a relu."""
    if given["weight"].shape[1] == 4 or not given.get("activation"):
        return right(**given)
    narrow = given["x"].dtype
    y, last = right(**(given | {"x": given["x"].float(), "activation": None}))
    return F.relu(y).to(narrow), last.to(narrow)
