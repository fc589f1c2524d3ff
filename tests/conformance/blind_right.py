"""Five right kernels, each organised in another way, by one who had read docs/conformance.md and not seen a case."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

INF = float("inf")


def _by_group(m: Tensor, d: int) -> Tensor:
    """(b, n, l) or (b, g, n, l) for each of d channels: (b, d, n, l)."""
    m = (m[:, None] if m.dim() == 3 else m).float()
    return m.repeat_interleave(d // m.shape[1], 1)


def _around(y: Tensor, u: Tensor, D: Tensor | None, z: Tensor | None) -> Tensor:
    y = y if D is None else y + u.to(y.dtype) * D.to(y.dtype)[:, None]
    return (y if z is None else y * z.to(y.dtype) * torch.sigmoid(z.to(y.dtype))).to(u.dtype)


def double_precision(
    u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False,
    initial_state=None, seq_idx=None,
) -> Any:  # fmt: skip
    """One step after the other, in float64."""
    s = delta.double() if delta_bias is None else delta.double() + delta_bias.double()[:, None]
    s = torch.logaddexp(s, torch.zeros_like(s)) if delta_softplus else s
    B, C = (_by_group(m, u.shape[1]).double() for m in (B, C))
    h = torch.zeros(len(u), *A.shape, dtype=torch.float64) if initial_state is None else initial_state.double()
    ys = []
    for t in range(u.shape[-1]):
        if seq_idx is not None and t:
            h = h * (seq_idx[:, t] == seq_idx[:, t - 1])[:, None, None]
        h = h * torch.exp(s[:, :, t, None] * A.double()) + (s[:, :, t] * u[:, :, t].double())[..., None] * B[..., t]
        ys.append((h * C[..., t]).sum(-1))
    y = _around(torch.stack(ys, -1), u, D, z)
    return (y, h.float()) if return_last_state else y


def doubling(
    u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False,
    initial_state=None,
) -> Any:  # fmt: skip
    """Pairs (decay, sum) over 2, 4, 8, … positions, the initial state as position 0."""
    s = delta.float() if delta_bias is None else delta.float() + delta_bias[:, None]
    s = F.softplus(s) if delta_softplus else s
    h = (s * u.float())[:, :, None] * _by_group(B, u.shape[1])
    begin = torch.zeros_like(h[..., :1]) if initial_state is None else initial_state[..., None]
    h, a = torch.cat([begin, h], -1), F.pad(torch.exp(s[:, :, None] * A[..., None]), (1, 0), value=1.0)
    reach = 1
    while reach < a.shape[-1]:
        h = torch.cat([h[..., :reach], h[..., reach:] + a[..., reach:] * h[..., :-reach]], -1)
        a = torch.cat([a[..., :reach], a[..., reach:] * a[..., :-reach]], -1)
        reach *= 2
    y = _around((h[..., 1:] * _by_group(C, u.shape[1])).sum(2), u, D, z)
    return (y, h[..., -1].clone()) if return_last_state else y


def column_by_column(
    u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, return_last_state=False,
    initial_state=None, seq_idx=None,
) -> Any:  # fmt: skip
    """Chunks of 37 positions, columns in the outer loop, channels last, a document's begin as a decay of 0."""
    (batch, d, length), columns = u.shape, A.shape[1]
    s = delta.float() if delta_bias is None else delta.float() + delta_bias[:, None]
    s = (F.softplus(s) if delta_softplus else s).transpose(1, 2)
    keep = torch.ones(batch, length, 1)
    if seq_idx is not None:
        keep[:, 1:, 0] = (seq_idx[:, 1:] == seq_idx[:, :-1]).float()
    y, last = torch.zeros(batch, length, d), torch.zeros(batch, d, columns)
    for n in reversed(range(columns)):
        h = torch.zeros(batch, d) if initial_state is None else initial_state[..., n]
        b, c = (_by_group(m, d)[:, :, n].transpose(1, 2) for m in (B, C))
        a, w = torch.exp(s * A[:, n]) * keep, s * u.float().transpose(1, 2) * b
        for at in range(0, length, 37):
            hs = []
            for t in range(at, min(length, at + 37)):
                h = torch.addcmul(w[:, t], a[:, t], h)
                hs.append(h)
            y[:, at : at + 37] += torch.stack(hs, 1) * c[:, at : at + 37]
        last[..., n] = h
    found = _around(y.transpose(1, 2), u, D, z)
    return (found, last) if return_last_state else found


def head_by_head(
    x, dt, A, B, C, chunk_size, D=None, z=None, dt_bias=None, initial_states=None, seq_idx=None, dt_softplus=False,
    dt_limit=(0.0, INF), return_final_states=False,
) -> Any:  # fmt: skip
    """One step after the other, in float64; the size of a chunk changes nothing."""
    (batch, length, heads, p), groups = x.shape, B.shape[2]
    y, last = torch.zeros(x.shape, dtype=torch.float64), torch.zeros(batch, heads, p, B.shape[-1])
    for k in range(heads):
        s = dt[..., k].double() + (0.0 if dt_bias is None else dt_bias[k].double())
        s = (torch.logaddexp(s, torch.zeros_like(s)) if dt_softplus else s).clamp(*dt_limit)
        h = last[:, k].double() if initial_states is None else initial_states[:, k].double()
        a, b, c = torch.exp(s * A[k]), *(m[:, :, k * groups // heads].double() for m in (B, C))
        for t in range(length):
            if seq_idx is not None and t:
                h = h * (seq_idx[:, t] == seq_idx[:, t - 1])[:, None, None]
            h = a[:, t, None, None] * h + s[:, t, None, None] * x[:, t, k, :, None].double() * b[:, t, None]
            y[:, t, k] = (h * c[:, t, None]).sum(-1)
        last[:, k] = h.float()
    if D is not None:
        y = y + x.double() * (D.double()[:, None] if D.dim() == 1 else D.double())
    y = (y if z is None else y * z.double() * torch.sigmoid(z.double())).to(x.dtype)
    return (y, last) if return_final_states else y


def one_square(
    x, dt, A, B, C, chunk_size, D=None, z=None, dt_bias=None, initial_states=None, seq_idx=None, dt_softplus=False,
    dt_limit=(0.0, INF), return_final_states=False,
) -> Any:  # fmt: skip
    """One square of all positions; the sum of exponents begins anew in each of its columns."""
    (_, length, heads, _), groups = x.shape, B.shape[2]
    s = dt.float() if dt_bias is None else dt.float() + dt_bias
    s = (F.softplus(s) if dt_softplus else s).clamp(*dt_limit)
    e = (s * A).permute(0, 2, 1)
    below = torch.tril(torch.ones(length, length, dtype=torch.bool), -1)
    decay = torch.exp((e[..., :, None] * below).cumsum(-2)) * torch.tril(torch.ones(length, length))
    fade = torch.exp(e.cumsum(-1))
    if seq_idx is not None:
        number = F.pad((seq_idx[:, 1:] != seq_idx[:, :-1]).int(), (1, 0)).cumsum(1)
        decay = decay * (number[:, None, :, None] == number[:, None, None, :])
        fade = fade * (number == 0)[:, None]
    b, c = (m.float().repeat_interleave(heads // groups, 2).permute(0, 2, 1, 3) for m in (B, C))
    w = (s[..., None] * x.float()).permute(0, 2, 1, 3)
    y, last = (decay * (c @ b.transpose(-1, -2))) @ w, torch.einsum("bhl,bhlp,bhln->bhpn", decay[..., -1, :], w, b)
    if initial_states is not None:
        y = y + fade[..., None] * torch.einsum("bhpn,bhln->bhlp", initial_states, c)
        last = last + fade[..., -1, None, None] * initial_states
    y = y.permute(0, 2, 1, 3)
    y = y if D is None else y + x.float() * (D[:, None] if D.dim() == 1 else D)
    y = (y if z is None else y * F.silu(z.float())).to(x.dtype)
    return (y, last) if return_final_states else y
