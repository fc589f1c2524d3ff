"""Bugs of kernels as people have reported them, each with its report, or written without knowing the cases: our
functions, wrong where theirs were.

The reports were written by people who do not know the cases here. A bug is a function of the right one and of the
arguments by their names; a class is one that remembers from call to call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from conformance.faults import many, numerics, unforeseen
from conformance.faults.sized import from_size

Right = Callable[..., Any]
Given = dict[str, Any]


@dataclass(frozen=True)
class Reported:
    """stage: where the vectors must catch it, "" where they do not; source: the report; twist: the wrong function,
    or a class of it; more: arguments of it that the right function has not.
    """

    stage: str
    source: str
    twist: Any
    more: tuple[str, ...] = ()


OFFSETS = ("cu_seqlens", "return_varlen_states")


def reportable(op: str) -> Callable[[Right], Right]:
    """Let a function have the bugs of its operation that are listed here, by its argument `bug`."""

    def decorate(right: Right) -> Right:
        signature = inspect.signature(right)

        @wraps(right)
        def function(*positional: Any, **named: Any) -> Any:
            more = {name: named.pop(name) for name in OFFSETS if name in named}
            given = signature.bind(*positional, **named).arguments
            found = REPORTED.get((op, given.get("bug", "")))
            if found is None:
                return right(**given)
            del given["bug"]
            twist = found.twist() if isinstance(found.twist, type) else found.twist
            return twist(right, given | more)

        return function

    return decorate


def _zeros(right: Right, given: Given, **changed: Any) -> tuple[Tensor, Tensor]:
    """What the state alone gives: no input, and so no skip."""
    name = "u" if "u" in given else "x"
    return right(**(given | {name: torch.zeros_like(given[name]), "D": None} | changed))


def _part(given: Given, start: int, stop: int) -> Given:
    """Positions start … stop of what ssd is given."""
    cut = {name: m[:, start:stop] for name in ("x", "dt", "B", "C", "z") if (m := given.get(name)) is not None}
    return given | cut | {"seq_idx": None}


def ungated_skip(right: Right, given: Given) -> Any:
    y, last = right(**given)
    D, z, u = given.get("D"), given.get("z"), given["u"]
    if D is not None and z is not None and u.shape[2] > 128:
        y = (y.float() + D[:, None] * u.float()).to(y.dtype)
    return y, last


def decayed_from_blocks(right: Right, given: Given) -> Any:
    y, last = right(**given)
    state, length, chunk = given.get("initial_states"), given["x"].shape[1], given["chunk_size"]
    if state is None or given.get("seq_idx") is not None:
        return y, last
    y, alone = y.float(), _zeros(right, given)[0].float()
    for start in range(64, min(length, chunk), 64):
        stop = min(start + 64, length, chunk)
        y[:, start:stop] += _zeros(right, _part(given, start, stop))[0].float() - alone[:, start:stop]
    return y.to(given["x"].dtype), last


def states_on_the_grid(right: Right, given: Given) -> Any:
    offsets, asked = given.pop("cu_seqlens", None), given.pop("return_varlen_states", False)
    y, last = right(**given)
    if offsets is None or not asked:
        return y, last
    ends, chunk, states = offsets.tolist(), given["chunk_size"], []
    for start, end in zip(ends, ends[1:], strict=False):
        stop = max(start, end // chunk * chunk) if start % chunk else end
        states.append(right(**_part(given, start, stop))[1] if stop > start else torch.zeros_like(last))
    return y, last, torch.cat(states)


def softplus_overflows_in_half(right: Right, given: Given) -> Any:
    if given["delta"].dtype == torch.half and given.get("delta_softplus"):
        bias = given.get("delta_bias")
        raw = given["delta"] + (0 if bias is None else bias.half()[:, None])
        step = (1 + raw.exp()).log()
        given |= {"delta": step.where(step.isfinite(), 0.0), "delta_bias": None, "delta_softplus": False}
    return right(**given)


def both_branches_of_softplus(right: Right, given: Given) -> Any:
    if given.get("dt_softplus"):
        raw = given["dt"].float() + (0 if given.get("dt_bias") is None else given["dt_bias"])
        below = (raw <= 20).float()
        given |= {"dt": below * raw.exp().log1p() + (1 - below) * raw, "dt_bias": None, "dt_softplus": False}
    return right(**given)


def softplus_of_far_below(right: Right, given: Given) -> Any:
    if given.get("delta_softplus"):
        raw = given["delta"].float() + (0 if given.get("delta_bias") is None else given["delta_bias"][:, None])
        step = torch.where(raw < -8.72e6, torch.inf, F.softplus(raw))
        given |= {"delta": step, "delta_bias": None, "delta_softplus": False}
    return right(**given)


def offsets_wrap(right: Right, given: Given) -> Any:
    y, last = right(**given)
    y[:, 61_440:] = 0
    return y, last


class WindowOfTheCallBefore:
    def __init__(self) -> None:
        self.kept: Tensor | None = None

    def __call__(self, right: Right, given: Given) -> Any:
        x, taps = given["x"], given["weight"].shape[1]
        fits = self.kept is not None and self.kept.shape == (*x.shape[:2], taps - 1)
        if given.get("initial_states") is None and fits:
            given["initial_states"] = self.kept
        y, last = right(**given)
        self.kept = last.clone()
        return y, last


def window_into_the_given(right: Right, given: Given) -> Any:
    y, last = right(**given)
    window = given.get("initial_states")
    if window is not None and given["x"].shape[2] < given["weight"].shape[1] - 1:
        window.copy_(last)
        last = torch.zeros_like(last)
    return y, last


def five_taps_as_four(right: Right, given: Given) -> Any:
    if given["weight"].shape[1] == 5:
        given["weight"] = F.pad(given["weight"][:, 1:], (1, 0))
    return right(**given)


def window_in_reverse(right: Right, given: Given) -> Any:
    y, last = right(**given)
    if given.get("initial_states") is not None and given["x"].shape[2] == 1:
        y = right(**(given | {"initial_states": given["initial_states"].flip(-1)}))[0]
    return y, last


def short_window_padded(right: Right, given: Given) -> Any:
    y, last = right(**given)
    missing = given["weight"].shape[1] - 1 - given["x"].shape[2]
    return y, last if missing <= 0 else F.pad(given["x"], (missing, 0))


def tail_state_not_decayed(right: Right, given: Given) -> Any:
    y, last = right(**given)
    length, chunk = given["x"].shape[1], given["chunk_size"]
    border = length // chunk * chunk
    if 0 < border < length and given.get("seq_idx") is None:
        carried = right(**_part(given, 0, border))[1]
        last = carried + right(**(_part(given, border, length) | {"initial_states": None}))[1]
    return y, last


def bias_twice_for_one(right: Right, given: Given) -> Any:
    if given["u"].shape[2] == 1 and given.get("delta_bias") is not None:
        given["delta_bias"] = 2 * given["delta_bias"]
    return right(**given)


def bias_overwritten(right: Right, given: Given) -> Any:
    y = right(**given)
    if given.get("dt_bias") is not None and given["x"].shape[-1] % 64:
        given["dt_bias"][..., -1] += 3
    return y


def weight_left_out_in_groups(right: Right, given: Given) -> Any:
    if given.get("group_size") not in (None, given["x"].shape[-1]):
        given["weight"] = torch.ones_like(given["weight"])
    return right(**given)


def gate_of_one_row(right: Right, given: Given) -> Any:
    if given["x"].shape[:-1].numel() == 1:
        given["norm_before_gate"] = not given.get("norm_before_gate", False)
    return right(**given)


def masked_after_exp(right: Right, given: Given) -> Any:
    y, last = right(**given)
    length, chunk = given["x"].shape[1], given["chunk_size"]
    if border := length % chunk:
        steps = numerics.steps(given["dt"].float(), given.get("dt_bias"), given.get("dt_softplus", False), "")
        sums = (steps.clamp(*given.get("dt_limit", (0.0, torch.inf))) * given["A"])[:, -border:].cumsum(1)
        least = sums.flip(1).cummin(1).values.flip(1)
        y[:, -border:] = y[:, -border:].where((sums - least <= 88)[..., None], torch.nan)
    return y, last


def columns_beyond_128(right: Right, given: Given) -> Any:
    C = given["C"].clone()
    C[..., 128:, :] = 0
    return right(**(given | {"C": C}))


def documents_of_row_0(right: Right, given: Given) -> Any:
    if given.get("seq_idx") is not None:
        given["seq_idx"] = given["seq_idx"][:1].expand_as(given["seq_idx"])
    return right(**given)


def gate_read_as_dense(right: Right, given: Given) -> Any:
    z = given.get("z")
    if z is not None and not z.is_contiguous():
        dense = torch.empty(z.shape).stride()
        given["z"] = z.as_strided(z.shape, dense)
    return right(**given)


_SCAN, _SSD, _STEP, _CONV, _NORM = "selective_scan", "ssd", "step", "conv", "norm"
REPORTED: dict[tuple[str, str], Reported] = {
    (_SCAN, "D u once more, not gated, beyond 128"): Reported("crossing", "", ungated_skip),
    (_SCAN, "softplus overflows in half"): Reported(
        "one rounding", "apple/coremltools#2725", softplus_overflows_in_half
    ),
    (_SCAN, "softplus of less than -2^23"): Reported("step", "tenstorrent/tt-metal#55798", softplus_of_far_below),
    (_SCAN, "bias twice for one token"): Reported("crossing", "ml-explore/mlx-lm#1153", bias_twice_for_one),
    (_SCAN, "columns beyond 128 left out"): Reported("occupancy", "vllm-project/vllm#28295", columns_beyond_128),
    (_SCAN, "a view of z read as if it were dense"): Reported("crossing", "ROCm/aiter#5292", gate_read_as_dense),
    (_SSD, "state decayed from each block on"): Reported(
        "crossing", "vllm-project/vllm#21783", decayed_from_blocks
    ),
    (_SSD, "states of documents from the grid of chunks"): Reported(
        "packed", "sgl-project/sglang#31833", states_on_the_grid, OFFSETS
    ),
    (_SSD, "both branches of softplus weighed"): Reported("step", "inclusionAI/cuLA#107", both_branches_of_softplus),
    (_SSD, "offsets wrap beyond 61,440"): Reported("", "state-spaces/mamba#1038", offsets_wrap),
    (_SSD, "state of the last chunk not decayed"): Reported(
        "last state", "inclusionAI/cuLA#38", tail_state_not_decayed
    ),
    (_SSD, "exp before the mask in the last chunk"): Reported("decay", "state-spaces/mamba#352", masked_after_exp),
    (_SSD, "documents of row 0 for all"): Reported(
        "crossing", "fla-org/flash-linear-attention#955", documents_of_row_0
    ),
    (_STEP, "bias overwritten"): Reported("step", "state-spaces/mamba#1046", bias_overwritten),
    (_CONV, "window of the call before"): Reported(
        "window", "vllm-project/vllm-ascend#10558", WindowOfTheCallBefore
    ),
    (_CONV, "short window written into the one given"): Reported(
        "continuation", "vllm-project/vllm#56196", window_into_the_given
    ),
    (_CONV, "five taps as four"): Reported("", "sgl-project/sglang#38622", five_taps_as_four),
    (_CONV, "window given read in reverse"): Reported(
        "continuation", "vllm-project/vllm-ascend#8544", window_in_reverse
    ),
    (_CONV, "window of a short piece padded"): Reported(
        "continuation", "vllm-project/vllm-ascend#8561", short_window_padded
    ),
    (_NORM, "weight left out where there are groups"): Reported(
        "groups", "1bit-MONSTER/1bit-MONSTER#1154", weight_left_out_in_groups
    ),
    (_NORM, "gate on the other side for one row"): Reported(
        "crossing", "fla-org/flash-linear-attention#63", gate_of_one_row
    ),
    (_SCAN, "group of a vector of four channels"): Reported("groups", "", unforeseen.group_of_four_channels),
    (_SCAN, "last of odd columns lost at 1,024"): Reported("crossing", "", unforeseen.odd_column_lost),
    (_SCAN, "exp to 1e-3 in columns beyond 16"): Reported("accuracy", "", unforeseen.coarse_beyond_a_tile),
    (_SCAN, "state handed on in the dtype of u"): Reported("dtype", "", unforeseen.carried_in_the_input_s_dtype),
    (_SCAN, "last of 16 columns lost in float16"): Reported("crossing", "", unforeseen.last_of_16_columns_lost),
    (_SCAN, "state of the second row for those behind"): Reported(
        "initial state", "", unforeseen.state_of_the_second_row
    ),
    (_SCAN, "documents in 8 bits"): Reported("packed", "", unforeseen.documents_in_8_bits),
    (_SCAN, "groups beyond four"): Reported("groups", "", unforeseen.groups_beyond_four),
    (_SSD, "channels of a head beyond 64"): Reported("occupancy", "", unforeseen.channels_beyond_a_tile),
    (_SSD, "padding clamped from below"): Reported("last state", "", unforeseen.padding_clamped),
    (_SSD, "document at a chunk missed after a state"): Reported(
        "packed", "", unforeseen.document_at_a_chunk_missed
    ),
    (_SSD, "D of the first channel in the last tile"): Reported(
        "crossing", "", unforeseen.skip_of_the_first_channel
    ),
    (_SSD, "C read with the strides of B"): Reported("crossing", "", unforeseen.strides_of_B),
    (_SSD, "state read in whole tiles of columns"): Reported("crossing", "", unforeseen.state_read_in_whole_tiles),
    (_SSD, "D of the first block of 32"): Reported("skip and gate", "", unforeseen.skip_of_the_first_block),
    (_SSD, "exponents added up from 0"): Reported("precision", "", unforeseen.exponents_from_0),
    (_STEP, "copy of a state updated"): Reported("crossing", "", unforeseen.copy_updated),
    (_CONV, "bias after swish, of two taps"): Reported("crossing", "", unforeseen.bias_after_swish),
    (_CONV, "bias of whole vectors of channels"): Reported("crossing", "", unforeseen.bias_of_whole_vectors),
    (_CONV, "state of the second row for those behind"): Reported(
        "initial state", "", unforeseen.state_of_the_second_row
    ),
    (_CONV, "documents in 8 bits"): Reported("packed", "", unforeseen.documents_in_8_bits),
    (_NORM, "rows beyond 64"): Reported("batch", "", unforeseen.rows_beyond_64),
    (_NORM, "epsilon of gated groups"): Reported("groups", "", unforeseen.epsilon_of_gated_groups),
    (_CONV, "offsets of rows in 16 bits"): Reported("crossing", "", unforeseen.rows_wrap),
    (_SCAN, "rows modulo 4"): Reported("batch", "", unforeseen.row_of_four),
    (_SCAN, "step of less than 0 clamped"): Reported("step", "", unforeseen.negative_step_clamped),
    (_SCAN, "axis of one group"): Reported("groups", "", unforeseen.axis_of_one_group),
    (_SCAN, "bias added in the dtype of the step"): Reported("one rounding", "", unforeseen.step_in_the_input_s_dtype),
    (_SSD, "limit from below alone ignored"): Reported("step", "", unforeseen.limit_from_below_alone),
    (_SSD, "state lost in chunks of 128"): Reported("initial state", "", unforeseen.chunks_of_128),
    (_SSD, "half of 128 columns"): Reported("occupancy", "", unforeseen.columns_of_128),
    (_CONV, "channels beyond 128 left out"): Reported("occupancy", "", unforeseen.channels_beyond_128),
    (_CONV, "products in the dtype of x"): Reported("dtype", "", unforeseen.taps_in_the_input_s_dtype),
    (_NORM, "mean of the first 512 channels"): Reported("occupancy", "", unforeseen.mean_of_512_channels),
    (_NORM, "gate behind the norm is a relu"): Reported("accuracy", "", unforeseen.relu_behind_the_norm),
    (_SCAN, "exp in half beside half"): Reported("rounding, crossed", "", unforeseen.exp_in_half_beside_half),
    (_SCAN, "exp of views is 0 or 1"): Reported("crossing", "", unforeseen.hard_exp_of_views),
    (_SCAN, "softplus is a relu before a gate"): Reported(
        "crossing", "", unforeseen.relu_of_the_step_before_a_gate
    ),
    (_SCAN, "C of group 0 over one position"): Reported("crossing", "", unforeseen.group_0_of_one_position),
    (_SCAN, "last channel lost behind 64, with documents"): Reported(
        "crossing", "", unforeseen.last_channel_behind_64
    ),
    (_SCAN, "state lost at 64 of 128, with documents"): Reported("crossing", "", unforeseen.lost_at_64_of_128),
    (_SSD, "bias forgotten beside a limit from above"): Reported(
        "crossing", "", unforeseen.bias_beside_a_limit_from_above
    ),
    (_SSD, "exp behind a state with documents is 0 or 1"): Reported(
        "crossing", "", unforeseen.hard_exp_behind_a_state
    ),
    (_CONV, "silu of fewer taps is a relu"): Reported("crossing", "", unforeseen.relu_of_fewer_taps),
    (_SCAN, "products in TF32 from 16 columns"): Reported("crossing", "", from_size("products in TF32", columns=16)),
    (_SCAN, "exp in bfloat16 from 64 columns"): Reported("crossing", "", from_size("exp in bfloat16", columns=64)),
    (_SCAN, "softplus is a relu from 64 columns"): Reported(
        "crossing", "", from_size("softplus is a relu", columns=64)
    ),
    (_SSD, "products of whole tiles in TF32"): Reported(
        "crossing", "", from_size("products in TF32", channels=16, columns=16)
    ),
    (_SSD, "products in half from 64 columns"): Reported("crossing", "", from_size("products in half", columns=64)),
    (_SSD, "exp of whole tiles in half"): Reported(
        "crossing", "", from_size("exp in half", channels=16, columns=16)
    ),
    (_SSD, "softplus is a relu in heads of 32 channels"): Reported(
        "crossing", "", from_size("softplus is a relu", channels=32)
    ),
    (_STEP, "products in half from 32 channels"): Reported(
        "crossing", "", from_size("products in half", channels=32)
    ),
    (_STEP, "exp in bfloat16 from 64 columns"): Reported("crossing", "", from_size("exp in bfloat16", columns=64)),
    (_CONV, "taps in bfloat16 from 128 channels"): Reported(
        "crossing", "", from_size("taps in bfloat16", channels=128)
    ),
    (_CONV, "silu is a relu from 128 channels"): Reported("crossing", "", from_size("silu is a relu", channels=128)),
    (_NORM, "weight in bfloat16 from 512 channels"): Reported(
        "crossing", "", from_size("products in bfloat16", channels=512)
    ),
    (_NORM, "epsilon twice from 512 channels"): Reported("crossing", "", from_size("epsilon twice", channels=512)),
    (_SCAN, "rows from the fourth on lost from 16 columns"): Reported("crossing", "", many.fourth_row),
    (_SCAN, "borders of documents behind the eighth"): Reported("crossing", "", many.documents_behind_the_eighth),
    (_SCAN, "eight groups with a gate as four"): Reported("crossing", "", many.eight_groups_with_a_gate),
    (_SCAN, "operand made float32 in place"): Reported("dtype", "", many.operand_made_float32),
    (_SSD, "borders of documents behind the eighth"): Reported("crossing", "", many.documents_behind_the_eighth),
    (_SSD, "bias of one head left out"): Reported("crossing", "", many.bias_of_one_head),
    (_SSD, "limit from below alone ignored behind a softplus"): Reported(
        "crossing", "", many.least_step_beside_softplus
    ),
    (_SSD, "last of odd heads lost in groups"): Reported("crossing", "", many.last_of_odd_heads),
    (_CONV, "windows from the fifth row on lost"): Reported("crossing", "", many.fifth_row_of_a_window),
    (_CONV, "window lost behind two positions"): Reported("crossing", "", many.window_behind_two),
    (_CONV, "window in half beside bfloat16"): Reported("dtype", "", many.window_in_half),
    (_NORM, "weight left out behind 64 positions"): Reported("crossing", "", many.weight_behind_64),
    (_NORM, "pairs where no group is named"): Reported("occupancy", "", many.pairs_where_no_group_is_named),
}  # fmt: skip
