"""The machine as torch modules, its convolution in three forms (paper D, Appendices A and B, as we restore them).

    shift      y_t = Σ_{j=0}^{U} h_j u_{t−j}, tap by tap
    fft        the same sum as a product of Fourier transforms
    recurrent  x_t = A x_{t−1} + B u_t,  x'_t = A x'_{t−1} + B u_{t−U−1},  y_t = C (x_t − A^{U+1} x'_t)

with A = diag(rot(2π·a1/(U+1)), rot(2π·a2/(U+1))), B = (1, 0, 1, 0), C = (c1, 0, 0, c2), for each channel: four states,
and a buffer of the last U + 1 inputs where a sequence is longer than the window. Letters: b batch, l length, D
channels.
"""

from __future__ import annotations

from math import tau
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from compiler.machines.fnn_ssm.layers import Convolution, Network, over_channels

Form = Literal["shift", "fft", "recurrent"]


class ConvolutionSSM(nn.Module):
    """g(X)_t = Σ_{j=0}^{U} h_j ⊙ (W^V X_{t−j}) + D ⊙ (W^V X_t); h_j = c1 cos(2π a1 j/(U+1)) + c2 sin(2π a2 j/(U+1)).

    value: W^V, (D, lanes). c1, a1, c2, a2, skip: (D,).
    """

    c1: Tensor
    a1: Tensor
    c2: Tensor
    a2: Tensor
    skip: Tensor

    def __init__(self, lanes: int, channels: int, window: int, form: Form = "shift", dtype: torch.dtype | None = None):
        super().__init__()
        if form not in get_args(Form):
            raise ValueError(f"form is {form!r}, and it must be one of {', '.join(get_args(Form))}")
        self.window, self.form = window, form
        self.value = nn.Linear(lanes, channels, bias=False, dtype=dtype)
        for name in ("c1", "a1", "c2", "a2", "skip"):
            setattr(self, name, nn.Parameter(torch.zeros(channels, dtype=dtype)))

    @classmethod
    def of(cls, convolution: Convolution, form: Form, dtype: torch.dtype) -> ConvolutionSSM:
        """The layer with the parameters of a bank of filters."""
        bank = convolution.bank
        layer = cls(convolution.lanes, bank.channels, bank.window, form, dtype)
        columns = {name: [float(getattr(f, name)) for f in bank.filters] for name in ("c1", "a1", "c2", "a2")}
        with torch.no_grad():
            layer.value.weight.zero_()
            layer.value.weight[range(bank.channels), list(bank.lane)] = 1
            for name, numbers in (columns | {"skip": list(map(float, bank.skip))}).items():
                getattr(layer, name).copy_(torch.tensor(numbers, dtype=torch.float64))
        return layer

    def kernel(self, length: int) -> Tensor:
        """h_j for j = 0 … min(U, length − 1): (taps, D)."""
        j = torch.arange(min(self.window + 1, length), dtype=self.c1.dtype, device=self.c1.device)[:, None]
        turn = j * (tau / (self.window + 1))
        return self.c1 * torch.cos(self.a1 * turn) + self.c2 * torch.sin(self.a2 * turn)

    def forward(self, x: Tensor) -> Tensor:
        """(b, l, lanes) to (b, l, D)."""
        u = self.value(x)
        filtered = {"shift": self._by_shifts, "fft": self._by_fft, "recurrent": self._by_recurrence}[self.form](u)
        return filtered + self.skip * u

    def _by_shifts(self, u: Tensor) -> Tensor:
        out = torch.zeros_like(u)
        for j, tap in enumerate(self.kernel(u.shape[1])):
            out[:, j:] += tap * u[:, : u.shape[1] - j]
        return out

    def _by_fft(self, u: Tensor) -> Tensor:
        h, length = self.kernel(u.shape[1]), u.shape[1]
        n = 1 << (length + len(h) - 1).bit_length()
        product = torch.fft.rfft(u, n, dim=1) * torch.fft.rfft(h, n, dim=0)
        return torch.fft.irfft(product, n, dim=1)[:, :length]

    def _by_recurrence(self, u: Tensor) -> Tensor:
        turns = [tau * a / (self.window + 1) for a in (self.a1, self.a2)]
        x = dropped = u.new_zeros(len(u), u.shape[2], 4)
        ys = []
        for t in range(u.shape[1]):
            x = _driven(_rotated(x, turns), u[:, t])
            gone = t - self.window - 1
            if gone >= 0:
                dropped = _driven(_rotated(dropped, turns), u[:, gone])
            kept = x - _rotated(dropped, [(self.window + 1) * turn for turn in turns])
            ys.append(self.c1 * kept[..., 0] + self.c2 * kept[..., 3])
        return torch.stack(ys, dim=1)


def _rotated(x: Tensor, turns: list[Tensor]) -> Tensor:
    """diag(rot(θ1), rot(θ2)) x, x: (b, D, 4)."""
    parts = []
    for i, turn in enumerate(turns):
        cos, sin, first, second = torch.cos(turn), torch.sin(turn), x[..., 2 * i], x[..., 2 * i + 1]
        parts += [cos * first - sin * second, sin * first + cos * second]
    return torch.stack(parts, dim=-1)


def _driven(x: Tensor, u: Tensor) -> Tensor:
    """x + B u."""
    return x + torch.stack([u, torch.zeros_like(u), u, torch.zeros_like(u)], dim=-1)


class FnnSsm(nn.Module):
    """Token ids (b, l) to scores (b, l, outputs): embedding, (convolution, ReLU network) M times, decoder."""

    def __init__(self, network: Network, dtype: torch.dtype | None = None, form: str = "shift"):
        super().__init__()
        dtype = torch.float64 if dtype is None else dtype
        self.embedding = nn.Embedding(network.embedding.shape[0], network.embedding.shape[1], dtype=dtype)
        self.convolutions = nn.ModuleList(ConvolutionSSM.of(c, form, dtype) for c, _ in network.layers)  # type: ignore[arg-type]
        self.networks = nn.ModuleList(over_channels(c, f).module(dtype) for c, f in network.layers)
        self.decoder = nn.Linear(network.decoder.shape[1], network.decoder.shape[0], bias=False, dtype=dtype)
        with torch.no_grad():
            self.embedding.weight.copy_(torch.from_numpy(network.embedding.toarray()))
            self.decoder.weight.copy_(torch.from_numpy(network.decoder.toarray()))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for convolution, network in zip(self.convolutions, self.networks, strict=True):
            x = network(convolution(x))
        return self.decoder(x)
