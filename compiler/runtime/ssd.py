"""The chunked scan of Mamba-2 (state-space duality) in plain PyTorch: CPU, exact, differentiable.

Per head, with scalar decay a_t = exp(dt_t A):  h_t = a_t h_{t-1} + dt_t x_t B_t^T,  y_t = h_t C_t + D x_t.
Inside a chunk this is a masked matrix product (Dao and Gu 2024, section 6), between chunks a recurrence on h.

Letters: b batch, l length, t steps of one chunk, h heads, p head dimension, g groups (heads share B and C), n d_state.
"""

import torch
import torch.nn.functional as F

MAX_CHUNK = 64  # on a CPU longer chunks only cost time: the work in a chunk grows with its square
_AT_ONCE = 2**21  # decays of a chunk, of all rows and heads: beyond, fresh pages take most of the time


def ssd_scan(
    x,
    dt,
    A,
    B,
    C,
    chunk_size,
    D=None,
    z=None,
    dt_bias=None,
    initial_states=None,
    seq_idx=None,
    dt_softplus=False,
    dt_limit=(0.0, float("inf")),
    return_final_states=False,
):
    """Returns y (b, l, h, p) in x's dtype, and with `return_final_states` also the last state (b, h, p, n).

    x (b, l, h, p), dt (b, l, h), A (h,), B and C (b, l, g, n), D (h,) or (h, p), z (b, l, h, p), dt_bias (h,),
    initial_states (b, h, p, n). Mirrors mamba_ssm's `mamba_chunk_scan_combined`, whatever the length.

    Computes in float32 (float64 if x is), rounding once at the end. Exact on lattice data whenever every
    dt*A is 0 or <= -104, because every decay between two steps is then exactly 1 or 0.
    """
    _check(x, B, chunk_size, seq_idx)
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    out_dtype = x.dtype
    x, A, B, C = (m.to(dtype) for m in (x, A, B, C))
    dt = _step_sizes(dt.to(dtype), dt_bias, dt_softplus, dt_limit)
    batch, length, heads, headdim = x.shape
    state = x.new_zeros(batch, heads, headdim, B.shape[-1]) if initial_states is None else initial_states.to(dtype)
    steps = min(chunk_size, MAX_CHUNK)
    rows = max(1, _AT_ONCE // (max(heads, 1) * min(steps, length) ** 2))  # a block may have no heads
    parts = zip(*(m.split(rows) for m in (x, dt, B, C, state)), strict=True)
    scanned = [_rows(A, steps, *part) for part in parts]
    y, state = (torch.cat(found) for found in zip(*scanned, strict=True))
    if D is not None:
        y = y + x * (D.to(dtype) if D.dim() == 2 else D.to(dtype)[:, None])
    if z is not None:
        y = y * F.silu(z.to(dtype))
    y = y.to(out_dtype)
    return (y, state) if return_final_states else y


def _check(x, B, chunk_size, seq_idx):
    """Raises ValueError for what this scan does not do."""
    if seq_idx is not None:
        raise ValueError("seq_idx is not supported on CPU: run each packed sequence on its own, with seq_idx=None.")
    if x.shape[1] == 0:
        raise ValueError("x has length 0, but the scan needs at least 1 step.")
    if chunk_size < 1:
        raise ValueError(f"chunk_size is {chunk_size}, but must be at least 1.")
    if x.shape[2] % B.shape[2]:
        raise ValueError(f"B has {B.shape[2]} groups, which must divide the number of heads, {x.shape[2]}; 1 works.")


def _step_sizes(dt, dt_bias, dt_softplus, dt_limit):
    """Returns the step sizes (b, l, h) after bias, softplus and clamping."""
    if dt_bias is not None:
        dt = dt + dt_bias.to(dt.dtype)
    if dt_softplus:
        dt = F.softplus(dt)
    return dt if dt_limit == (0.0, float("inf")) else dt.clamp(*dt_limit)


def _rows(A, steps, x, dt, B, C, state):
    """The scan of some rows, chunk by chunk: y (b, l, h, p) and the last state."""
    outputs = []
    for start in range(0, x.shape[1], steps):
        chunk = slice(start, start + steps)
        y, state = _chunk(x[:, chunk], dt[:, chunk], A, B[:, chunk], C[:, chunk], state)
        outputs.append(y)
    return torch.cat(outputs, dim=1), state


def _chunk(x, dt, A, B, C, state):
    """One chunk of t steps: x (b, t, h, p), dt (b, t, h), B and C (b, t, g, n), state (b, h, p, n) before it.

    Returns y (b, t, h, p) and the state after it.
    """
    per_group = x.shape[2] // B.shape[2]
    log_decay = (dt * A).transpose(1, 2)  # (b, h, t)
    between = _segment_sums(log_decay).exp()  # (b, h, t, s): decay from just after step s to step t
    since_start = log_decay.cumsum(-1).exp()  # (b, h, t)
    inputs = (x * dt[..., None]).transpose(1, 2)  # (b, h, t, p)
    scores = torch.einsum("btgn,bsgn->bgts", C, B).repeat_interleave(per_group, dim=1)
    B, C = (m.transpose(1, 2).repeat_interleave(per_group, dim=1) for m in (B, C))  # (b, h, t, n)

    y = (scores * between) @ inputs + (C @ state.transpose(2, 3)) * since_start[..., None]
    fresh = (inputs * between[:, :, -1, :, None]).transpose(2, 3) @ B  # (b, h, p, n)
    return y.transpose(1, 2), state * since_start[:, :, -1, None, None] + fresh


def _segment_sums(log_decay):
    """Returns S (b, h, t, t) with S[t, s] = sum of log_decay over s+1..t, and -inf above the diagonal.

    Every sum is formed directly. A difference of two prefix sums would lose small decays beside a large reset.
    """
    steps = log_decay.shape[-1]
    lower = torch.ones(steps, steps, dtype=torch.bool, device=log_decay.device).tril()
    terms = log_decay[..., None].expand(*log_decay.shape, steps).masked_fill(~lower.tril(-1), 0.0)
    return terms.cumsum(-2).masked_fill(~lower, float("-inf"))
