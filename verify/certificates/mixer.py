"""The ports of a real mixer on windows of tokens, read from its tensors.

The numbers are float64 and equal, bit for bit, to what the module computes in float32: every sum in front of
the state is checked once, for all windows, not to round (`lattice.py`), and silu and softplus are torch's own,
accepted where they agree with relu on every backend (exact-arithmetic E2, E4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import nn

from compiler.exactness.levels import SAFE_NEGATIVE, SAFE_POSITIVE
from compiler.runtime.block import Block, as_block
from compiler.targets.s4d.mixer import S4DMixer
from verify.certificates.ask import Windows
from verify.certificates.certificate import Refused
from verify.certificates.lattice import Lattice, product

_Port = TypeVar("_Port", np.ndarray, Lattice)


@dataclass(frozen=True, eq=False)
class Ports(Generic[_Port]):
    """What enters and leaves the state at n windows, or its lattices.

    x, delta: (n, channels); write, read: B and C, (n, columns).
    """

    x: _Port
    delta: _Port
    write: _Port
    read: _Port


@dataclass(frozen=True, eq=False)
class Mixer:
    """A real mixer over a fixed table of tokens; row 0 of every token table is the position before the start.

    rows:  (tokens + 1, features) in_proj of the convolved part; taps: (features, d_conv) by lag; bias: (features,).
    gate:  (tokens + 1, channels) silu(z); decay: (channels,) or (channels, columns) A; skip: (channels,) D.
    out:   (d_model, channels) out_proj.
    split: x̂ of all features, the present token → `Ports`.
    lattices: the lattices of (x, delta, write, read), true at every window, as a `Ports`.
    """

    rows: np.ndarray
    taps: np.ndarray
    bias: np.ndarray
    gate: np.ndarray
    decay: np.ndarray
    skip: np.ndarray
    out: np.ndarray
    split: Callable[[np.ndarray, np.ndarray], Ports[np.ndarray]]
    lattices: Ports[Lattice]

    @cached_property
    def reach(self) -> int:
        """How many tokens the convolution reads: one more than the last lag with a nonzero tap."""
        used = ((self.taps != 0) & (self.rows != 0).any(axis=0)[:, None]).any(axis=0)
        return 1 + int(np.flatnonzero(used).max(initial=0))

    def ports(self, windows: Windows) -> Ports[np.ndarray]:
        """The ports at windows of `reach` tokens or more."""
        total = np.tile(self.bias, (len(windows), 1))
        for lag in range(self.reach):
            total += self.rows[windows[:, lag] + 1] * self.taps[:, lag]
        return self.split(_rectified(nn.functional.silu, total, "silu of convolved channel"), windows[:, 0] + 1)


def read_mixer(module: nn.Module, inputs: np.ndarray) -> Mixer:
    """The mixer of a real Mamba, Mamba2 or S4DMixer whose input is one row of `inputs` per token: (tokens, d_model)
    float64.
    """
    projections = (as_block(module).in_proj, as_block(module).out_proj)
    if any(layer.bias is not None for layer in projections):
        raise Refused("the certificate reads in_proj and out_proj without bias, and this module has one")
    if any(p.dtype != torch.float32 for p in module.parameters()):
        raise Refused("the certificate is about float32 weights, and this module has others")
    u = np.vstack([np.zeros(inputs.shape[1]), inputs])
    if isinstance(module, S4DMixer):
        return _s4d(module, u)
    block = as_block(module)
    return _mamba2(block, u) if hasattr(block, "headdim") else _mamba(block, u)


def _mamba(module: Block, u: np.ndarray) -> Mixer:
    inner, rank, state = module.D.shape[0], module.dt_rank, module.d_state
    projected = product(_array(module.in_proj.weight), u, "in_proj row")
    x_proj, dt_proj, dt_bias = _array(module.x_proj.weight), _array(module.dt_proj.weight), _array(module.dt_proj.bias)

    def split(x: np.ndarray, present: np.ndarray) -> Ports[np.ndarray]:
        low, write, read = np.split(x @ x_proj.T, [rank, rank + state], axis=1)
        return Ports(x, _softplus(low @ dt_proj.T + dt_bias), write, read)

    features, convolution = _convolution(module, projected[:, :inner])
    ports = features.through(x_proj).exact("x_proj row")
    low, write, read = (
        Lattice(ports.bound[s], ports.exponent[s])
        for s in (slice(rank), slice(rank, rank + state), slice(rank + state, None))
    )
    delta = low.through(dt_proj).plus(Lattice.of(dt_bias[None])).exact("Δ of channel")
    decay = -torch.exp(module.A_log.float())
    return Mixer(
        **convolution,
        gate=_rectified(nn.functional.silu, projected[:, inner:], "the gate of channel"),
        decay=_array(decay),
        skip=_array(module.D),
        out=_array(module.out_proj.weight),
        split=split,
        lattices=Ports(features, delta, write, read),
    )


def _mamba2(module: Block, u: np.ndarray) -> Mixer:
    inner, state, heads, head_dim = module.d_ssm, module.d_state, module.nheads, module.headdim
    if (
        module.rmsnorm
        or module.ngroups != 1
        or module.d_inner != inner
        or module.D_has_hdim
        or module.dt_limit != (0.0, float("inf"))
    ):
        raise Refused(
            "the certificate reads Mamba-2 with rmsnorm=False, one group, one D per head, no MLP part and no limit on Δ"
        )
    projected = product(_array(module.in_proj.weight), u, "in_proj row")
    z, convolved, low = np.split(projected, [inner, 2 * inner + 2 * state], axis=1)
    step = np.hstack([low, np.ones((len(u), 1))])
    bias = np.hstack([np.eye(heads), _array(module.dt_bias)[:, None]])
    delta = np.repeat(_softplus(product(bias, step, "Δ of head")), head_dim, axis=1)

    def split(features: np.ndarray, present: np.ndarray) -> Ports[np.ndarray]:
        x, write, read = np.split(features, [inner, inner + state], axis=1)
        return Ports(x, delta[present], write, read)

    features, convolution = _convolution(module, convolved)
    x, write, read = (
        Lattice(features.bound[s], features.exponent[s])
        for s in (slice(inner), slice(inner, inner + state), slice(inner + state, None))
    )
    return Mixer(
        **convolution,
        gate=_rectified(nn.functional.silu, z, "the gate of channel"),
        decay=np.repeat(_array(-torch.exp(module.A_log.float())), head_dim),
        skip=np.repeat(_array(module.D), head_dim),
        out=_array(module.out_proj.weight),
        split=split,
        lattices=Ports(x, Lattice.of(delta), write, read),
    )


def _s4d(module: S4DMixer, u: np.ndarray) -> Mixer:
    inner = module.D.shape[0]
    projected = product(_array(module.in_proj.weight), u, "in_proj row")
    columns = [_array(m) for m in (module.B, module.C)]
    if any((m != m[:1]).any() for m in columns):
        raise Refused(
            "the certificate reads an S4D mixer whose B and C are the same for all channels, and these differ"
        )
    write, read = (m[:1] for m in columns)
    delta = _softplus(_array(module.dt_bias)[None])

    def split(x: np.ndarray, present: np.ndarray) -> Ports[np.ndarray]:
        return Ports(x, *(np.repeat(row, len(x), axis=0) for row in (delta, write, read)))

    features, convolution = _convolution(module, projected[:, :inner])
    return Mixer(
        **convolution,
        gate=_rectified(nn.functional.silu, projected[:, inner:], "the gate of channel"),
        decay=_array(-torch.exp(module.A_log.float())),
        skip=_array(module.D),
        out=_array(module.out_proj.weight),
        split=split,
        lattices=Ports(features, *map(Lattice.of, (delta, write, read))),
    )


def _convolution(module: Block | S4DMixer, rows: np.ndarray) -> tuple[Lattice, dict[str, np.ndarray]]:
    """The lattice of every x̂ (relu keeps to it), and rows, taps and bias."""
    taps = _array(module.conv1d.weight)[:, 0, ::-1]
    bias = _array(module.conv1d.bias) if module.conv1d.bias is not None else np.zeros(len(taps))
    lattice, total = Lattice.of(rows), Lattice.of(bias[None])
    for lag in range(taps.shape[1]):
        total = total.plus(lattice.times(Lattice.of(taps[None, :, lag])))
    return total.exact("the convolution of channel"), {"rows": rows, "taps": taps, "bias": bias}


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy().astype(np.float64)


def _softplus(x: np.ndarray) -> np.ndarray:
    return _rectified(nn.functional.softplus, x, "softplus of Δ of channel")


def _rectified(function: Callable, x: np.ndarray, what: str) -> np.ndarray:
    """silu or softplus of (n, width) numbers, refused where it is not relu."""
    positive = np.maximum(x, 0)
    value = function(torch.from_numpy(x.astype(np.float32))).numpy()
    unsafe = (value != positive) | ((x > 0) & (x < SAFE_POSITIVE)) | ((x < 0) & (x > SAFE_NEGATIVE))
    if unsafe.any():
        row, channel = np.argwhere(unsafe)[0]
        raise Refused(
            f"{what} {channel} is taken of {x[row, channel]:.6g}, and it is exact at 0, "
            "from 20.1 up and from −104 down only"
        )
    return positive
