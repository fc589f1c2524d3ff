"""The scan of Mamba by chunks of 16 steps, each an associative scan of pairs (a, b): right, or with one bug."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from conformance.faults import numerics
from conformance.faults.reported import reportable

CHUNK = 16


@reportable("selective_scan")
def selective_scan(
    u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, initial_state=None, seq_idx=None, bug=""
):  # fmt: skip
    """y (b, d, l) and the last state (b, d, n); arguments as `conformance.exact.selective_scan` has them."""
    dtype, (batch, channels, length), n = u.dtype, u.shape, A.shape[1]
    u, delta, B, C = (m.float() for m in (u, delta, B, C))
    padding = -length % CHUNK
    # Right: padding gets a step of 0. The bug: it is padded before bias and softplus, which make a step of it.
    early = bug == "padding of the last chunk read"
    pad = lambda m: F.pad(m, (0, padding))
    delta = pad(delta) if early else delta
    delta = numerics.steps(delta, None if delta_bias is None else delta_bias[:, None], delta_softplus, bug)
    u, delta, B, C = (
        pad(u),
        delta if early else pad(delta),
        pad(_grouped(B, channels, bug)),
        pad(_grouped(C, channels, bug)),
    )
    B, C = _misplaced(B, C, bug)

    a = numerics.exp(delta[:, :, None] * A[..., None], bug)  # (b, d, n, l)
    b = _driven(u, delta, A, numerics.operand(B, bug), a, bug)
    if seq_idx is not None and bug != "documents ignored":
        a = a * _keeps(seq_idx, padding, bug)
    h = u.new_zeros(batch, channels, n) if initial_state is None else initial_state.float()
    h = torch.zeros_like(h) if bug == "initial state ignored" else numerics.handed(h, bug)
    y, last = _chunks(a, b, numerics.operand(C, bug), h, bug)
    y = y[..., :length]
    if bug == "last state is of the chunk before":
        last = last if length < CHUNK else _chunks(a[..., :-CHUNK], b[..., :-CHUNK], C[..., :-CHUNK], h, bug)[1]
    y = _skip_and_gate(y, u[..., :length], D, None if z is None else z.float(), bug)
    return _hidden_tile(y, bug).to(dtype), last


def _grouped(m: Tensor, channels: int, bug: str) -> Tensor:
    """B or C of each channel: (b, d, n, l)."""
    m = m[:, None] if m.dim() == 3 else m
    if bug == "row 0 of B and C for all":
        m = m[:1].expand_as(m)
    groups = m.shape[1]
    if bug == "groups tiled, not interleaved":
        return m.repeat(1, channels // groups, 1, 1)
    if bug == "group 0 for all":
        return m[:, :1].expand(-1, channels, -1, -1)
    return m.repeat_interleave(channels // groups, dim=1)


def _misplaced(B: Tensor, C: Tensor, bug: str) -> tuple[Tensor, Tensor]:
    B = B.roll(1, -1) if bug == "B of the step before" else B
    C = C.roll(1, -1) if bug == "C of the step before" else C
    if bug == "last column left out":
        C = torch.cat([C[:, :, :-1], torch.zeros_like(C[:, :, -1:])], 2) if C.shape[2] > 4 else C
    return B, C


def _driven(u, delta, A, B, a, bug: str) -> Tensor:
    u = numerics.operand(u, bug)
    if bug == "zero-order hold for B":
        held = torch.where(A[..., None] == 0, delta[:, :, None], (a - 1) / torch.where(A == 0, 1.0, A)[..., None])
        return held * u[:, :, None] * B
    step = 1.0 if bug == "B without the step" else delta
    return (step * u)[:, :, None] * B


def _keeps(seq_idx: Tensor, padding: int, bug: str) -> Tensor:
    """0 where a document begins: (b, 1, 1, l)."""
    keeps = torch.ones_like(seq_idx, dtype=torch.float32)
    keeps[:, 1:] = (seq_idx[:, 1:] == seq_idx[:, :-1]).float()
    if bug == "documents begin one step late":
        keeps = torch.cat([torch.ones_like(keeps[:, :1]), keeps[:, :-1]], 1)
    if bug == "documents begin at chunks only":
        keeps[:, torch.arange(keeps.shape[1]) % CHUNK != 0] = 1.0
    return F.pad(keeps, (0, padding), value=1.0)[:, None, None]


def _chunks(a: Tensor, b: Tensor, C: Tensor, h: Tensor, bug: str) -> tuple[Tensor, Tensor]:
    """a, b, C (b, d, n, whole chunks), h (b, d, n): y (b, d, l) and the state after it."""
    ys = []
    for start in range(0, a.shape[-1], CHUNK):
        if start:
            h = _at_border(numerics.handed(h, bug), start, bug)
        now = slice(start, start + CHUNK)
        if bug == "state of every step in bfloat16":
            states = _one_by_one(a[..., now], b[..., now], h)
        else:
            products, sums = _associative(a[..., now], b[..., now], bug)
            if bug == "initial state not decayed" and not start:
                products = torch.cat([torch.ones_like(products[..., :1]), products[..., 1:]], -1)
            states = products * h[..., None] + sums
        seen = torch.cat([h[..., None], states[..., :-1]], -1) if bug == "y before the update" else states
        ys.append((seen * C[..., now]).sum(2))
        h = states[..., -1]
    return torch.cat(ys, -1) if ys else a.new_zeros(*a.shape[:2], 0), h


def _at_border(h: Tensor, start: int, bug: str) -> Tensor:
    match bug:
        case "state lost at chunks":
            return torch.zeros_like(h)
        case "a thousandth lost at chunks":
            return h * 0.999
        case "state lost at 256":
            return torch.zeros_like(h) if start == 256 else h
        case "rows of the cache mixed":
            return h.roll(1, 0)
    return h


def _one_by_one(a: Tensor, b: Tensor, h: Tensor) -> Tensor:
    states = []
    for t in range(a.shape[-1]):
        h = (a[..., t] * h + b[..., t]).bfloat16().float()
        states.append(h)
    return torch.stack(states, -1)


def _associative(a: Tensor, b: Tensor, bug: str) -> tuple[Tensor, Tensor]:
    """The inclusive scan of (a, b) under (a, b)·(a', b') = (a a', a' b + b'), by doubling."""
    if bug == "divides by running products":
        products = a.cumprod(-1)
        return products, products * (b / products).cumsum(-1)
    reach = 1
    while reach < a.shape[-1]:
        before_a, before_b = a[..., :-reach], b[..., :-reach]
        later_a, later_b = a[..., reach:], b[..., reach:]
        if bug == "operands swapped in the sweep":
            joined = before_a * later_b + before_b
        else:
            joined = later_a * before_b + later_b
        a = torch.cat([a[..., :reach], before_a * later_a], -1)
        b = torch.cat([b[..., :reach], joined], -1)
        reach *= 2
    return a, b


def _skip_and_gate(y: Tensor, u: Tensor, D: Tensor | None, z: Tensor | None, bug: str) -> Tensor:
    if D is not None and bug == "D of channel 0 for all":
        D = D[:1].expand_as(D)
    if D is not None and bug not in ("D left out", "gate before D"):
        y = y + u * D[:, None]
    y = y if z is None else numerics.gate(y, z, bug)
    return y + u * D[:, None] if D is not None and bug == "gate before D" else y


def _hidden_tile(y: Tensor, bug: str) -> Tensor:
    """The channels of a last tile of 64, not computed."""
    if bug == "last tile of channels left out" and y.shape[1] > 64:
        y = y.clone()
        y[:, y.shape[1] // 64 * 64 :] = 0
    return y
