"""CPU versions of the other fused operations in mamba_ssm: convolution, one-step update, norms, whole-block functions.

Each takes the positional arguments of the kernel that it stands in for, computes in float32 (float64 stays) and rounds
to the input dtype where the kernel does. All are differentiable.
"""

import torch
import torch.nn.functional as F

from compiler.runtime.native import exact_inner
from compiler.runtime.selective_scan import selective_scan
from compiler.runtime.ssd import ssd_scan


def wide(tensor):
    """Returns `tensor` in the dtype that is computed in: float32, or float64 if it has that; None stays None."""
    return tensor if tensor is None or tensor.dtype == torch.float64 else tensor.float()


def causal_conv1d(x, weight, bias=None, seq_idx=None, activation=None):
    """Depthwise causal convolution of x (b, d, l) with weight (d, w) and bias (d,), then SiLU if `activation`."""
    if seq_idx is not None:
        raise ValueError("seq_idx is not supported on CPU: run each packed sequence on its own, with seq_idx=None.")
    channels, width = weight.shape
    padded = F.pad(wide(x), (width - 1, 0))
    y = F.conv1d(padded, wide(weight)[:, None], wide(bias), groups=channels)
    return (F.silu(y) if activation else y).to(x.dtype)


def causal_conv1d_update(x, conv_state, weight, bias=None, activation=None):
    """One step of `causal_conv1d`: x (b, d); conv_state (b, d, w or more) is shifted in place. Returns (b, d)."""
    conv_state.copy_(conv_state.roll(-1, dims=-1))
    conv_state[:, :, -1] = x
    y = (wide(conv_state[:, :, -weight.shape[1] :]) * wide(weight)).sum(-1)
    y = y if bias is None else y + wide(bias)
    return (F.silu(y) if activation else y).to(x.dtype)


def selective_state_update(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False):
    """One step of the scan; `state` is updated in place. Returns y, shaped and typed like x.

    state (b, d, n), x, dt, z (b, d), A (d, n), B, C (b, n), D, dt_bias (d,); or with heads: state (b, h, p, n),
    x, dt, z (b, h, p), A (h, p, n), B, C (b, g, n), D, dt_bias (h, p).
    """
    heads = state.dim() == 4
    dt = wide(dt) if dt_bias is None else wide(dt) + wide(dt_bias)
    dt = (F.softplus(dt) if dt_softplus else dt)[..., None]
    groups = (x.shape[1] // B.shape[1]) if heads else None
    B, C = (wide(m).repeat_interleave(groups, dim=1) if heads else wide(m) for m in (B, C))
    x_wide = wide(x)
    new_state = wide(state) * (dt * wide(A)).exp() + dt * B.unsqueeze(-2) * x_wide[..., None]
    state.copy_(new_state)
    y = (new_state * C.unsqueeze(-2)).sum(-1)
    y = y if D is None else y + wide(D) * x_wide
    return (y if z is None else y * F.silu(wide(z))).to(x.dtype)


def gated_norm(x, weight, bias, z=None, eps=1e-6, group_size=None, norm_before_gate=True, is_rms_norm=False):
    """Norm of x (..., d) over groups of `group_size` channels, times SiLU(z) before or after; weight, bias (d,)."""
    y = wide(x)
    if z is not None and not norm_before_gate:
        y = y * F.silu(wide(z))
    grouped = y.unflatten(-1, (-1, group_size or x.shape[-1]))
    y = _normalise(grouped, eps, is_rms_norm).flatten(-2) * wide(weight)
    y = y if bias is None else y + wide(bias)
    if z is not None and norm_before_gate:
        y = y * F.silu(wide(z))
    return y.to(x.dtype)


def _normalise(x, eps, is_rms_norm):
    """Returns x (..., d) over its root mean square, or standardised when not `is_rms_norm`."""
    if not is_rms_norm:
        x = x - x.mean(-1, keepdim=True)
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()


def add_norm(
    x,
    weight,
    bias,
    residual=None,
    x1=None,
    weight1=None,
    bias1=None,
    eps=1e-6,
    dropout_p=0.0,
    rowscale=None,
    prenorm=False,
    residual_in_fp32=False,
    is_rms_norm=False,
    return_dropout_mask=False,
):
    """Norm of x + residual (..., d) in x's dtype; with `prenorm`, also that sum in the residual's dtype."""
    unsupported = {"x1": x1, "weight1": weight1, "bias1": bias1, "rowscale": rowscale}
    for name, value in (unsupported | {"dropout_p": dropout_p or None}).items():
        if value is not None:
            raise ValueError(f"{name} is not supported on CPU: leave it at its default.")
    total = wide(x) if residual is None else wide(x) + wide(residual)
    y = _normalise(total, eps, is_rms_norm) * wide(weight)
    y = (y if bias is None else y + wide(bias)).to(x.dtype)
    if not prenorm:
        return y
    kept = residual.dtype if residual is not None else torch.float32 if residual_in_fp32 else x.dtype
    return y, total.to(kept)


def mamba_inner(
    xz,
    conv1d_weight,
    conv1d_bias,
    x_proj_weight,
    delta_proj_weight,
    out_proj_weight,
    out_proj_bias,
    A,
    B=None,
    C=None,
    D=None,
    delta_bias=None,
    B_proj_bias=None,
    C_proj_bias=None,
    delta_softplus=True,
    *unused,
):
    """A Mamba block after in_proj: xz (b, 2 d_inner, l) to (b, l, d_model); weights as the fused kernel takes them.

    Where nothing is rounded, the native path gives the same numbers without the zeros.
    """
    if B is not None or C is not None or B_proj_bias is not None or C_proj_bias is not None:
        raise ValueError("B, C, B_proj_bias and C_proj_bias are not supported on CPU: leave them None.")
    conv1d_weight = conv1d_weight.squeeze(1)
    if D is not None and delta_bias is not None and delta_softplus:
        weights = (conv1d_weight, conv1d_bias, x_proj_weight, delta_proj_weight, delta_bias, A, D)
        exact = exact_inner(xz, *weights, out_proj_weight, out_proj_bias)
        if exact is not None:
            return exact
    rank, d_state = delta_proj_weight.shape[1], A.shape[1]
    x, z = xz.chunk(2, dim=1)
    x = causal_conv1d(x, conv1d_weight, conv1d_bias, activation="silu")
    dt, B, C = F.linear(x.transpose(1, 2), x_proj_weight).split([rank, d_state, d_state], dim=-1)
    delta = F.linear(dt, delta_proj_weight).transpose(1, 2)
    y = selective_scan(x, delta, A, B.transpose(1, 2), C.transpose(1, 2), D, z, delta_bias, delta_softplus)
    return F.linear(y.transpose(1, 2), out_proj_weight, out_proj_bias)


def split_conv1d_scan(
    zxbcdt,
    conv1d_weight,
    conv1d_bias,
    dt_bias,
    A,
    D,
    chunk_size,
    initial_states=None,
    seq_idx=None,
    dt_limit=(0.0, float("inf")),
    return_final_states=False,
    activation="silu",
    rmsnorm_weight=None,
    rmsnorm_eps=1e-6,
    outproj_weight=None,
    outproj_bias=None,
    headdim=None,
    ngroups=1,
    norm_before_gate=True,
):
    """A Mamba-2 block after in_proj: zxbcdt (b, l, d_in_proj) to (b, l, d_model), or (b, l, d_inner) if no out_proj."""
    heads = A.shape[0]
    headdim = D.shape[1] if D.dim() == 2 else headdim
    d_ssm = heads * headdim
    bc = conv1d_weight.shape[0] - d_ssm  # 2 * ngroups * d_state
    d_mlp = (zxbcdt.shape[-1] - 2 * d_ssm - bc - heads) // 2
    z0, x0, z, xBC, dt = zxbcdt.split([d_mlp, d_mlp, d_ssm, d_ssm + bc, heads], dim=-1)
    xBC = causal_conv1d(xBC.transpose(1, 2), conv1d_weight, conv1d_bias, seq_idx, activation).transpose(1, 2)
    x, B, C = xBC.split([d_ssm, bc // 2, bc // 2], dim=-1)
    y, state = ssd_scan(
        x.unflatten(-1, (heads, headdim)),
        dt,
        A,
        B.unflatten(-1, (ngroups, -1)),
        C.unflatten(-1, (ngroups, -1)),
        chunk_size,
        D=D,
        z=None if rmsnorm_weight is not None else z.unflatten(-1, (heads, headdim)),
        dt_bias=dt_bias,
        initial_states=initial_states,
        dt_softplus=True,
        dt_limit=dt_limit,
        return_final_states=True,
    )
    y = y.flatten(-2)
    if rmsnorm_weight is not None:
        y = gated_norm(y, rmsnorm_weight, None, z, rmsnorm_eps, d_ssm // ngroups, norm_before_gate, True)
    if d_mlp:
        y = torch.cat([(F.silu(wide(z0)) * wide(x0)).to(y.dtype), y], dim=-1)
    if outproj_weight is not None:
        y = F.linear(y, outproj_weight, outproj_bias)
    return (y, state) if return_final_states else y
