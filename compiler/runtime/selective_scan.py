"""The selective scan of Mamba on CPU: exact for transitions 0 and 1, any length, any d_state, memory bounded.

    h_t = exp(delta_t A) h_{t-1} + delta_t u_t B_t,   y_t = <h_t, C_t> + D u_t,   out_t = y_t silu(z_t)

(Gu and Dao 2023, equation 2; arguments and shapes of mamba_ssm's `selective_scan_ref`.) The recurrence runs in its
natural order, so no product of transitions is ever divided by and sums of lattice values are exact.

Letters: b batch, d channels, l length, g groups of channels sharing B and C, e = d/g, n d_state.
"""

import torch
import torch.nn.functional as F

from compiler.runtime.native import is_native, native_scan

CHUNK_ELEMENTS = 2**17  # of the (steps, b, d, n) temporaries; two such float32 blocks fit a 2 MB cache


def selective_scan(
    u,
    delta,
    A,
    B,
    C,
    D=None,
    z=None,
    delta_bias=None,
    delta_softplus=False,
    return_last_state=False,
    initial_state=None,
):
    """Returns out (b, d, l) in u's dtype, and with `return_last_state` also h after the last step (b, d, n).

    u, delta, z (b, d, l), A (d, n) real, B and C (b, n, l) or (b, g, n, l), D and delta_bias (d,), initial_state
    (b, d, n), the h before the first step (mamba_ssm's scan has no such argument), None for zeros.
    Computes in float32 (float64 if u is), whatever the inputs, and rounds once at the end, like the CUDA kernel.
    """
    _check(u, delta, A, B, C)
    dtype = torch.float64 if u.dtype == torch.float64 else torch.float32
    out_dtype = u.dtype
    u, A = u.to(dtype), A.to(dtype)
    delta = _step_sizes(delta.to(dtype), delta_bias, delta_softplus)
    B, C = _same_groups(*(m.to(dtype) if m.dim() == 4 else m.to(dtype)[:, None] for m in (B, C)))
    initial = None if initial_state is None else initial_state.to(dtype)
    y, last = _recurrence(u, delta, A, B, C)(u, delta, A, B, C, initial)
    if D is not None:
        y = torch.addcmul(y, u, D.to(dtype)[:, None])
    if z is not None:
        y = y * F.silu(z.to(dtype))
    y = y.to(out_dtype)
    return (y, last) if return_last_state else y


def _check(u, delta, A, B, C):
    """Raises ValueError, in one sentence, for shapes and types that the scan does not take."""
    batch, channels, length = u.shape
    if u.numel() == 0 or A.numel() == 0:
        raise ValueError(f"u {tuple(u.shape)} and A {tuple(A.shape)} must have at least 1 entry in every dimension.")
    if A.is_complex():
        raise ValueError("A is complex, but this scan takes real A only.")
    if A.shape[0] != channels or delta.shape != u.shape:
        raise ValueError(f"A {tuple(A.shape)} and delta {tuple(delta.shape)} do not match u {tuple(u.shape)}.")
    for name, m in (("B", B), ("C", C)):
        if m.dim() not in (3, 4) or (m.shape[0], *m.shape[-2:]) != (batch, A.shape[1], length):
            raise ValueError(
                f"{name} has shape {tuple(m.shape)}, but must be (batch, d_state, length) or (batch, groups, d_state, "
                f"length), here ({batch}, {A.shape[1]}, {length}); expand a matrix that is constant in time."
            )
        if m.dim() == 4 and channels % m.shape[1]:
            raise ValueError(f"{name} has {m.shape[1]} groups, which must divide the {channels} channels; 1 works.")
    groups = [m.shape[1] if m.dim() == 4 else 1 for m in (B, C)]
    if max(groups) % min(groups):
        raise ValueError(f"B has {groups[0]} groups and C has {groups[1]}, but one must divide the other; 1 works.")


def _step_sizes(delta, delta_bias, delta_softplus):
    """Returns the step sizes (b, d, l) after bias and softplus."""
    if delta_bias is not None:
        delta = delta + delta_bias.to(delta.dtype)[:, None]
    return F.softplus(delta) if delta_softplus else delta


def _same_groups(B, C):
    """Returns B and C (b, g, n, l) with the same g, the larger, which the smaller must divide."""
    groups = max(B.shape[1], C.shape[1])
    return (m.repeat_interleave(groups // m.shape[1], dim=1) if m.shape[1] < groups else m for m in (B, C))


def _recurrence(*inputs):
    """Returns the function that runs the recurrence: the only place where the paths part."""
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs):
        return _differentiable
    native = all(tensor.dtype == torch.float32 and tensor.device.type == "cpu" for tensor in inputs) and is_native()
    return native_scan if native else _chunked


def _differentiable(u, delta, A, B, C, initial=None):
    """The recurrence one step at a time, for autograd; keeps every state, so memory is b d n l.

    Takes and returns what `_chunked` does.
    """
    groups = B.shape[1]
    u, delta, A = u.unflatten(1, (groups, -1)), delta.unflatten(1, (groups, -1)), A.unflatten(0, (groups, -1))
    B, C = B.unsqueeze(2), C.unsqueeze(2)  # (b, g, 1, n, l)
    h = u.new_zeros(u.shape[0], *A.shape) if initial is None else initial.unflatten(1, (groups, -1))  # (b, g, e, n)
    ys = []
    for t in range(u.shape[-1]):
        step = delta[..., t, None]
        h = (step * A).exp() * h + step * u[..., t, None] * B[..., t]
        ys.append((h * C[..., t]).sum(-1))
    return torch.stack(ys, dim=-1).flatten(1, 2), h.flatten(1, 2)


def _chunked(u, delta, A, B, C, initial=None):
    """The recurrence with everything but the recurrence itself done for a chunk of steps at once, in place.

    u, delta (b, d, l), A (d, n), B and C (b, g, n, l), initial (b, d, n) or None for zeros, all of one dtype.
    Returns y (b, d, l) and the last state (b, d, n).
    """
    batch, channels, length = u.shape
    groups, n = B.shape[1], A.shape[1]
    lanes = channels // groups
    rows = [batch, groups, n, lanes]
    time_first = lambda m: m.movedim(-1, 0).contiguous()
    delta_t = time_first(delta.view(batch, groups, 1, lanes, length))
    driven = time_first((delta * u).view(batch, groups, 1, lanes, length))
    B_t, C_t = time_first(B)[..., None], time_first(C)[..., None, :]
    A_t = A.view(groups, lanes, n).transpose(1, 2).contiguous()  # (g, n, e)

    steps = max(1, min(length, CHUNK_ELEMENTS // (batch * channels * n)))
    decay, h = u.new_empty(steps, *rows), u.new_empty(steps, *rows)
    last = u.new_zeros(rows)  # of its own: it is written below, and the caller keeps the initial state
    if initial is not None:
        last.copy_(initial.view(batch, groups, lanes, n).transpose(2, 3))
    y = u.new_empty(length, batch, groups, 1, lanes)
    for start in range(0, length, steps):
        k = min(steps, length - start)
        now = slice(start, start + k)
        torch.mul(delta_t[now], A_t, out=decay[:k]).exp_()
        torch.mul(driven[now], B_t[now], out=h[:k])
        h[0].addcmul_(decay[0], last)
        for t in range(1, k):
            h[t].addcmul_(decay[t], h[t - 1])
        last.copy_(h[k - 1])
        torch.matmul(C_t[now], h[:k], out=y[now])
    return y.view(length, batch, channels).movedim(0, -1), last.transpose(2, 3).reshape(batch, channels, n)
