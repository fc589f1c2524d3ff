"""The scan of Mamba-2 by chunks, each a masked matrix product: right, or with one bug."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from conformance.faults import numerics
from conformance.faults.reported import reportable
from conformance.faults.scan import _keeps


@reportable("ssd")
def ssd(
    x, dt, A, B, C, chunk_size, D=None, z=None, dt_bias=None, dt_softplus=False, dt_limit=(0.0, float("inf")),
    initial_states=None, seq_idx=None, bug="",
):  # fmt: skip
    """y (b, l, h, p) and the last state (b, h, p, n); arguments as `conformance.exact.ssd` has them."""
    dtype, (batch, length, heads, p) = x.dtype, x.shape
    x, dt, B, C = (m.float() for m in (x, dt, B, C))
    padding = -length % chunk_size
    early = bug == "padding of the last chunk read"
    pad = lambda m: torch.cat([m, m.new_zeros(batch, padding, *m.shape[2:])], 1)
    dt = numerics.steps(pad(dt) if early else dt, dt_bias, dt_softplus, bug)
    dt = dt if bug == "limits of the step ignored" else dt.clamp(*dt_limit)
    x, dt, B, C = pad(x), dt if early else pad(dt), pad(_by_head(B, heads, bug)), pad(_by_head(C, heads, bug))
    if bug == "last column left out" and C.shape[-1] > 4:
        C = torch.cat([C[..., :-1], torch.zeros_like(C[..., -1:])], -1)
    keeps = None
    if seq_idx is not None and bug != "documents ignored":
        keeps = _keeps(seq_idx, padding, bug)[:, 0, 0, :, None]
    h = x.new_zeros(batch, heads, p, B.shape[-1]) if initial_states is None else initial_states.float()
    h = torch.zeros_like(h) if bug == "initial state ignored" else numerics.handed(h, bug)
    ys, states = [], [h]
    for start in range(0, length + padding, chunk_size):
        h = _at_border(states, bug) if start else h
        now = slice(start, start + chunk_size)
        run = partial(_chunk, x[:, now], dt[:, now], A, B[:, now], C[:, now],
                      keeps=keeps if keeps is None else keeps[:, now], bug=bug, first=not start)  # fmt: skip
        y, h = run(h)
        if bug == "states summed over the wrong axis":
            h = run(torch.zeros_like(h))[1] * _decays_behind(dt[:, start + chunk_size :], A, chunk_size)
        ys.append(y)
        states.append(h)
    y = torch.cat(ys, 1)[:, :length]
    last = states[-2] if bug == "last state is of the chunk before" and len(states) > 2 else h
    if D is not None and bug not in ("D left out", "gate before D"):
        y = y + x[:, :length] * _wide(D[:1].expand_as(D) if bug == "D of head 0 for all" else D)
    y = y if z is None else numerics.gate(y, z.float(), bug)
    if D is not None and bug == "gate before D":
        y = y + x[:, :length] * _wide(D)
    return _hidden_tile(y, bug).to(dtype), last


def _wide(D: Tensor) -> Tensor:
    """D (h,) or (h, p) beside x (b, l, h, p)."""
    return D if D.dim() == 2 else D[:, None]


def _by_head(m: Tensor, heads: int, bug: str) -> Tensor:
    """B or C of each head: (b, l, h, n)."""
    if bug == "row 0 of B and C for all":
        m = m[:1].expand_as(m)
    groups = m.shape[2]
    if bug == "heads tiled, not interleaved":
        return m.repeat(1, 1, heads // groups, 1)
    if bug == "group 0 for all":
        return m[:, :, :1].expand(-1, -1, heads, -1)
    return m.repeat_interleave(heads // groups, dim=2)


def _at_border(states: list[Tensor], bug: str) -> Tensor:
    h = numerics.handed(states[-1], bug)
    match bug:
        case "state lost at chunks":
            return torch.zeros_like(h)
        case "a thousandth lost at chunks":
            return h * 0.999
        case "state of the chunk before the last":
            return states[-2]
        case "rows of the cache mixed":
            return h.roll(1, 0)
        case "heads of the state mixed":
            return h.roll(1, 1)
    return h


def _chunk(x, dt, A, B, C, state, keeps, bug: str, first: bool) -> tuple[Tensor, Tensor]:
    """x (b, t, h, p), dt (b, t, h), B and C (b, t, h, n), state (b, h, p, n), keeps (b, t, 1) 0 where a document
    begins.
    """
    t = x.shape[1]
    exponents = (dt * A).transpose(1, 2)  # (b, h, t)
    inputs = x if bug == "B without the step" else x * dt[..., None]
    begins = x.new_zeros(x.shape[0], 1, t) if keeps is None else (1 - keeps).cumsum(1).transpose(1, 2)
    same = begins[..., :, None] == begins[..., None, :]  # of one document
    lower = torch.ones(t, t, dtype=torch.bool).tril(-1 if bug == "the diagonal left out" else 0)
    decays = numerics.exp(_segments(exponents, bug), bug)
    mask = decays.where(lower & same, 0.0)
    operand = lambda m: numerics.operand(m, bug)
    scores = torch.einsum("bthn,bshn->bhts", operand(C), operand(B))
    if bug == "B and C exchanged":
        scores = scores.transpose(2, 3)
    y = torch.einsum("bhts,bshp->bthp", scores * mask, operand(inputs))
    since = numerics.exp(exponents.cumsum(-1), bug)
    if bug == "initial state not decayed" and first:
        since = torch.ones_like(since)
    alive = since * (begins == 0)
    y = y + torch.einsum("bthn,bhpn,bht->bthp", operand(C), operand(state), alive)
    ends = mask[:, :, -1]
    if bug == "wrong axis between chunks":
        ends = decays[:, :, :, 0] * same[:, :, -1]
    if bug == "the diagonal left out":
        ends = torch.cat([ends[..., :-1], torch.ones_like(ends[..., -1:])], -1)
    fresh = torch.einsum("bsh,bshp,bshn->bhpn", ends.transpose(1, 2).expand(-1, -1, x.shape[2]), inputs, operand(B))
    return y, state * alive[..., -1, None, None] + fresh


def _decays_behind(dt: Tensor, A: Tensor, chunk_size: int) -> Tensor:
    """The sum, over a border between chunks and all that follow, of what is left there of 1: (b, h, 1, 1)."""
    total = dt.new_ones(dt.shape[0], dt.shape[2])
    for start in reversed(range(0, dt.shape[1], chunk_size)):
        total = 1 + (dt[:, start : start + chunk_size].sum(1) * A).exp() * total
    return total[..., None, None]


def _segments(exponents: Tensor, bug: str) -> Tensor:
    """(b, h, t, s): the sum over s+1 … t."""
    sums = exponents.cumsum(-1)
    if bug == "decay of a step too much":
        sums = torch.cat([torch.zeros_like(sums[..., :1]), sums], -1)
        return (sums[..., 1:, None] - sums[..., None, :-1]).tril()
    if bug == "decay of a step too little":
        return (sums[..., :, None] - sums[..., None, :] - exponents[..., :, None]).tril(-1)
    return (sums[..., :, None] - sums[..., None, :]).tril()


def _hidden_tile(y: Tensor, bug: str) -> Tensor:
    if bug == "last head left out" and y.shape[2] > 8:
        y = torch.cat([y[:, :, :-1], torch.zeros_like(y[:, :, -1:])], 2)
    if bug == "last tile of a head left out" and y.shape[3] > 8:
        y = torch.cat([y[..., : y.shape[3] // 8 * 8], torch.zeros_like(y[..., y.shape[3] // 8 * 8 :])], 3)
    return y
