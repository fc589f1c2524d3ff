"""Bugs of a few more than usual: a fourth row, a third group, dozens of documents, one head; and of what is left out.

An author who had seen no case wrote some eighty of the kind, each beside one option or beyond one size. These are a few
of them, in our own words, as functions of the right one and of the arguments by their names.
"""

from __future__ import annotations

from typing import Any

import torch

from conformance.faults.unforeseen import Given, Right


def _behind(m: torch.Tensor, axis: int, count: int) -> torch.Tensor:
    """0 from this index of an axis on."""
    kept = torch.arange(m.shape[axis]) < count
    return m * kept.reshape(-1, *[1] * (m.dim() - 1 - axis % m.dim()))


def fourth_row(right: Right, given: Given) -> Any:
    """Beside 16 columns or more three rows are computed."""
    y, last = right(**given)
    return (_behind(y, 0, 3) if given["A"].shape[1] >= 16 else y), last


def fifth_row_of_a_window(right: Right, given: Given) -> Any:
    """Of the windows that are handed back four are filled."""
    y, last = right(**given)
    return y, _behind(last, 0, 4)


def documents_behind_the_eighth(right: Right, given: Given) -> Any:
    """Eight borders of documents are kept for a row."""
    ids = given.get("seq_idx")
    if ids is not None:
        begins = torch.nn.functional.pad(ids[:, 1:] != ids[:, :-1], (1, 0)).cumsum(1)
        given["seq_idx"] = begins.clamp(max=8).int()
    return right(**given)


def bias_of_one_head(right: Right, given: Given) -> Any:
    """One head's bias is not read."""
    if given["x"].shape[2] == 1:
        given["dt_bias"] = None
    return right(**given)


def least_step_beside_softplus(right: Right, given: Given) -> Any:
    """Behind a softplus, a limit from below alone is not applied."""
    if given.get("dt_softplus") and given.get("dt_limit") and given["dt_limit"][1] == float("inf"):
        given["dt_limit"] = (0.0, float("inf"))
    return right(**given)


def last_of_odd_heads(right: Right, given: Given) -> Any:
    """Heads are read two at a time where there are several groups."""
    heads = given["x"].shape[2]
    if given["B"].shape[2] > 1 and heads % 2:
        given["x"] = _behind(given["x"], 2, heads - 1)
    return right(**given)


def eight_groups_with_a_gate(right: Right, given: Given) -> Any:
    """Eight groups and a gate are read as four."""
    for name in ("B", "C"):
        if given.get("z") is not None and given[name].dim() == 4 and given[name].shape[1] == 8:
            given[name] = given[name][:, torch.arange(8) // 2 * 2]
    return right(**given)


def window_behind_two(right: Right, given: Given) -> Any:
    """Two positions behind a window that is given leave nothing of it."""
    y, last = right(**given)
    lost = given["x"].shape[2] == 2 and given.get("initial_states") is not None
    return y, 0 * last if lost else last


def window_in_half(right: Right, given: Given) -> Any:
    """Of either narrow dtype, which have as many bytes."""
    y, last = right(**given)
    return y, last.half() if last.dtype == torch.bfloat16 else last


def weight_behind_64(right: Right, given: Given) -> Any:
    """One block of 64 positions has its weight."""
    y = right(**given)
    plain = right(**(given | {"weight": torch.ones_like(given["weight"])}))
    return torch.cat([y[:, :64], plain[:, 64:]], 1)


def pairs_where_no_group_is_named(right: Right, given: Given) -> Any:
    if given.get("group_size") is None:
        given["group_size"] = 2
    return right(**given)


def operand_made_float32(right: Right, given: Given) -> Any:
    """The caller's tensor is another one behind the call."""
    dtype = given["u"].dtype
    given["u"].data = given["u"].data.float()
    y, last = right(**given)
    return y.to(dtype), last
