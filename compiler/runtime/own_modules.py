"""Mamba and Mamba-2 as modules of ours, for where mamba_ssm is not installed: same weights, same arithmetic.

State dicts, argument names, attributes and `step()` are those of the classes in mamba_ssm, so a checkpoint, a
certificate or a stack cannot tell which of the two it runs on. What mamba_ssm has beyond a compiled circuit (parallel
groups, packed sequences, caches by layer) is left out. The bits agree wherever the circuit is exact
(tests/runtime/test_own_modules.py holds them against the real classes).

Letters: b batch, l length, d d_inner, n d_state, h heads, p head dimension.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compiler.runtime import cpu_layers
from compiler.runtime.fused import is_fused
from compiler.runtime.selective_scan import selective_scan

NO_LIMIT = (0.0, float("inf"))


def _without_decay(*parameters: nn.Parameter) -> None:
    """Mark parameters as mamba_ssm does for its optimiser: no weight decay."""
    for parameter in parameters:
        vars(parameter)["_no_weight_decay"] = True


class _Block(nn.Module):
    """What both share: the convolution and its window."""

    conv1d: nn.Conv1d

    def _convolution(self, channels: int, d_conv: int, bias: bool, **where) -> nn.Conv1d:
        return nn.Conv1d(channels, channels, d_conv, groups=channels, padding=d_conv - 1, bias=bias, **where)

    def _convolved_step(self, x: Tensor, window: Tensor) -> Tensor:
        """silu(conv) at one position x (b, channels); the window (b, channels, taps) is shifted in place."""
        window.copy_(window.roll(-1, dims=-1))
        window[:, :, -1] = x
        y = (window * self.conv1d.weight.squeeze(1)).sum(-1)
        y = y if self.conv1d.bias is None else y + self.conv1d.bias
        return F.silu(y).to(x.dtype)


class Mamba(_Block):
    """The block of `mamba_ssm.Mamba`, u (b, l, d_model) to the same shape; the parameters of its arithmetic only."""

    def __init__(
        self,
        d_model: int,
        d_state: int = 16,
        d_conv: int = 4,
        expand: float = 2,
        dt_rank: int | Literal["auto"] = "auto",
        conv_bias: bool = True,
        bias: bool = False,
        layer_idx: int | None = None,
        device=None,
        dtype=None,
    ):
        super().__init__()
        where = {"device": device, "dtype": dtype}
        self.d_model, self.d_state, self.d_conv, self.expand = d_model, d_state, d_conv, expand
        self.activation = "silu"
        self.d_inner = int(expand * d_model)
        self.dt_rank = dt_rank if isinstance(dt_rank, int) else -(-d_model // 16)
        self.layer_idx = layer_idx
        self.in_proj = nn.Linear(d_model, 2 * self.d_inner, bias=bias, **where)
        self.conv1d = self._convolution(self.d_inner, d_conv, conv_bias, **where)
        self.x_proj = nn.Linear(self.d_inner, self.dt_rank + 2 * d_state, bias=False, **where)
        self.dt_proj = nn.Linear(self.dt_rank, self.d_inner, **where)
        decay = torch.arange(1, d_state + 1, dtype=torch.float32, device=device)
        self.A_log = nn.Parameter(decay.log().repeat(self.d_inner, 1))
        self.D = nn.Parameter(torch.ones(self.d_inner, device=device))
        _without_decay(self.A_log, self.D)
        self.out_proj = nn.Linear(self.d_inner, d_model, bias=bias, **where)

    def forward(self, u: Tensor) -> Tensor:
        """(b, l, d_model) to the same shape."""
        xz = self.in_proj(u).transpose(1, 2)
        if is_fused():
            return self._fused(xz)
        x, z = xz.chunk(2, dim=1)
        x = F.silu(self.conv1d(x)[..., : u.shape[1]])
        ranks = [self.dt_rank, self.d_state, self.d_state]
        dt, B, C = (m.transpose(1, 2) for m in self.x_proj(x.transpose(1, 2)).split(ranks, dim=-1))
        dt = self.dt_proj.weight @ dt
        A = -torch.exp(self.A_log.float())
        y = selective_scan(x, dt, A, B, C, self.D.float(), z, self.dt_proj.bias.float(), delta_softplus=True)
        return self.out_proj(y.transpose(1, 2))

    def _fused(self, xz: Tensor) -> Tensor:
        """All after in_proj at once, as mamba_ssm does on CUDA."""
        weights = (self.conv1d.weight, self.conv1d.bias, self.x_proj.weight, self.dt_proj.weight)
        out, A = (self.out_proj.weight, self.out_proj.bias), -torch.exp(self.A_log.float())
        return cpu_layers.mamba_inner(xz, *weights, *out, A, D=self.D.float(), delta_bias=self.dt_proj.bias.float())

    def step(self, u: Tensor, window: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One position u (b, 1, d_model); window (b, d, taps) and state (b, d, n) are updated in place."""
        x, z = self.in_proj(u.squeeze(1)).chunk(2, dim=-1)
        x = self._convolved_step(x, window)
        dt, B, C = self.x_proj(x).split([self.dt_rank, self.d_state, self.d_state], dim=-1)
        dt, A = F.linear(dt, self.dt_proj.weight), -torch.exp(self.A_log.float())
        bias = self.dt_proj.bias
        y = cpu_layers.selective_state_update(state, x, dt, A, B, C, self.D, z=z, dt_bias=bias, dt_softplus=True)
        return self.out_proj(y).unsqueeze(1), window, state


class GatedNorm(nn.Module):
    """The RMSNorm of Mamba-2 over groups of channels, gated by silu(z) before it or after."""

    def __init__(self, width: int, group_size: int, norm_before_gate: bool, eps: float = 1e-5, device=None, dtype=None):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, device=device, dtype=dtype))
        self.eps, self.group_size, self.norm_before_gate = eps, group_size, norm_before_gate

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        """x, z (..., width) to the same shape."""
        return cpu_layers.gated_norm(x, self.weight, None, z, self.eps, self.group_size, self.norm_before_gate, True)


class Mamba2(_Block):
    """The block of `mamba_ssm.Mamba2`, u (b, l, d_model) to the same shape; the parameters of its arithmetic only."""

    def __init__(
        self,
        d_model: int,
        d_state: int = 128,
        d_conv: int = 4,
        expand: float = 2,
        headdim: int = 64,
        ngroups: int = 1,
        rmsnorm: bool = True,
        norm_before_gate: bool = False,
        dt_limit: tuple[float, float] = NO_LIMIT,
        bias: bool = False,
        conv_bias: bool = True,
        chunk_size: int = 256,
        layer_idx: int | None = None,
        device=None,
        dtype=None,
    ):
        super().__init__()
        where = {"device": device, "dtype": dtype}
        self.d_model, self.d_state, self.d_conv, self.expand = d_model, d_state, d_conv, expand
        self.d_inner = self.d_ssm = int(expand * d_model)
        if self.d_inner % headdim:
            raise ValueError(f"headdim is {headdim}, which must divide d_inner = {self.d_inner}; 1 works.")
        self.headdim, self.nheads, self.ngroups = headdim, self.d_inner // headdim, ngroups
        self.rmsnorm, self.norm_before_gate, self.dt_limit = rmsnorm, norm_before_gate, dt_limit
        self.chunk_size, self.layer_idx = chunk_size, layer_idx
        self.D_has_hdim, self.activation = False, "silu"  # as there; other values are not offered
        columns = ngroups * d_state
        self.in_proj = nn.Linear(d_model, 2 * self.d_inner + 2 * columns + self.nheads, bias=bias, **where)
        self.conv1d = self._convolution(self.d_inner + 2 * columns, d_conv, conv_bias, **where)
        self.dt_bias = nn.Parameter(torch.zeros(self.nheads, **where))
        self.A_log = nn.Parameter(torch.zeros(self.nheads, **where))
        self.D = nn.Parameter(torch.ones(self.nheads, device=device))
        _without_decay(self.dt_bias, self.A_log, self.D)
        if rmsnorm:
            self.norm = GatedNorm(self.d_inner, self.d_inner // ngroups, norm_before_gate, **where)
        self.out_proj = nn.Linear(self.d_inner, d_model, bias=bias, **where)

    def forward(self, u: Tensor) -> Tensor:
        """(b, l, d_model) to the same shape."""
        return cpu_layers.split_conv1d_scan(
            self.in_proj(u),
            self.conv1d.weight.squeeze(1),
            self.conv1d.bias,
            self.dt_bias,
            -torch.exp(self.A_log.float()),
            self.D,
            self.chunk_size,
            dt_limit=self.dt_limit,
            rmsnorm_weight=self.norm.weight if self.rmsnorm else None,
            rmsnorm_eps=self.norm.eps if self.rmsnorm else 1e-6,
            outproj_weight=self.out_proj.weight,
            outproj_bias=self.out_proj.bias,
            headdim=self.headdim,
            ngroups=self.ngroups,
            norm_before_gate=self.norm_before_gate,
        )

    def step(self, u: Tensor, window: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One position u (b, 1, d_model); window (b, d + 2 groups n, taps) and state (b, h, p, n) change in place."""
        columns, heads, p = self.ngroups * self.d_state, self.nheads, self.headdim
        z, xBC, dt = self.in_proj(u.squeeze(1)).split([self.d_inner, self.d_inner + 2 * columns, heads], dim=-1)
        x, B, C = self._convolved_step(xBC, window).split([self.d_inner, columns, columns], dim=-1)
        per_channel = lambda m: m[..., None].expand(*m.shape, p)
        A = per_channel(-torch.exp(self.A_log.float()))[..., None].expand(heads, p, self.d_state)
        y = cpu_layers.selective_state_update(
            state,
            x.unflatten(-1, (heads, p)),
            per_channel(dt),
            A,
            B.unflatten(-1, (self.ngroups, -1)),
            C.unflatten(-1, (self.ngroups, -1)),
            per_channel(self.D),
            z=None if self.rmsnorm else z.unflatten(-1, (heads, p)),
            dt_bias=per_channel(self.dt_bias),
            dt_softplus=True,
        ).flatten(-2)
        y = self.norm(y, z) if self.rmsnorm else y
        return self.out_proj(y).unsqueeze(1), window, state
