"""One-block models to train beside built ones, several seeds at once: every parameter has a leading axis of seeds.

The blocks are those of paper A's Table 2 with the parts that an experiment leaves out left out, and of paper C's
Section 4.1 where the transition is another. The sizes are tiny, so that a seed costs almost nothing beside the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Mixer = Literal["s6", "s4d", "s6-transposed", "mamba2", "attention"]
Transition = Literal["exp", "sigmoid", "taylor", "affine"]


class ControlModel(nn.Module):
    """Embedding, `layers` mixers (with a skip connection from the second on) and a linear head.

    features: how many tokens, or 1 for real inputs; scores: how many outputs at a position. width: d; columns: N.
    position: the last lane of the embedding is t; convolution: a window of two, then SiLU; gate: SiLU.
    transition: what makes Ā of an S6, and "sigmoid" and "affine" leave the discretisation of B out (paper C: its Eq 6,
    which is lost, read with σ, and the affine P of its proofs; the Eq 5 that it trained has Taylor polynomials of
    degree 3).
    """

    def __init__(
        self,
        mixer: Mixer,
        features: int,
        scores: int,
        width: int,
        columns: int,
        seeds: int = 1,
        layers: int = 1,
        position: bool = False,
        convolution: bool = False,
        gate: bool = False,
        transition: Transition = "exp",
    ):
        super().__init__()
        self.position, self.tokens = position, features > 1
        self.embedding = nn.Parameter(torch.randn(seeds, features, width - position))
        kind: Callable[..., nn.Module] = Attention if mixer == "attention" else Selective
        options = {} if mixer == "attention" else {"convolution": convolution, "gate": gate, "transition": transition}
        self.blocks = nn.ModuleList(kind(mixer, seeds, width, columns, **options) for _ in range(layers))
        self.head = Linear(seeds, width, scores)

    def forward(self, inputs: Tensor) -> Tensor:
        """inputs (seeds, batch, time) tokens or numbers; scores (seeds, batch, time, scores)."""
        x = self.embedded(inputs)
        for number, block in enumerate(self.blocks):
            x = block(x) + (x if number else 0)
        return self.head(x)

    def embedded(self, inputs: Tensor) -> Tensor:
        seeds, batch, time = inputs.shape
        if self.tokens:
            offset = torch.arange(seeds)[:, None, None] * self.embedding.shape[1]
            x = self.embedding.flatten(0, 1)[inputs + offset]
        else:
            x = inputs[..., None] * self.embedding[:, None]
        if not self.position:
            return x
        at = torch.arange(1.0, time + 1)
        return torch.cat([x, at[:, None].expand(seeds, batch, time, 1)], dim=-1)


class Linear(nn.Module):
    """A linear map for each seed."""

    def __init__(self, seeds: int, inputs: int, outputs: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(seeds, inputs, outputs).uniform_(-1, 1) / inputs**0.5)
        self.bias = nn.Parameter(torch.zeros(seeds, 1, 1, outputs))

    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum("sbti,sio->sbto", x, self.weight) + self.bias


class Convolution(nn.Module):
    """u_t = SiLU(w₀ x_{t−1} + w₁ x_t + b), for each channel by itself."""

    def __init__(self, seeds: int, width: int):
        super().__init__()
        self.taps = nn.Parameter(torch.empty(2, seeds, 1, 1, width).uniform_(-1, 1) / 2**0.5)
        self.bias = nn.Parameter(torch.zeros(seeds, 1, 1, width))

    def forward(self, x: Tensor) -> Tensor:
        before = F.pad(x, (0, 0, 1, 0))[:, :, :-1]
        return F.silu(self.taps[0] * before + self.taps[1] * x + self.bias)


class Selective(nn.Module):
    """S4D, S6, S6 with Δ along the columns (Mamba-Δᵀ), or the one head of Mamba-2 with its three convolutions."""

    def __init__(
        self, mixer: Mixer, seeds: int, width: int, columns: int, convolution: bool, gate: bool, transition: Transition
    ):
        super().__init__()
        self.mixer, self.transition = mixer, transition
        heads = mixer == "mamba2"
        inward = lambda outputs: Branch(seeds, width, outputs, linear=True, convolution=heads and convolution)
        self.x = Branch(seeds, width, width, linear=heads, convolution=convolution)
        rate = torch.arange(1.0, columns + 1).log().expand(seeds, width, columns)
        self.rate = nn.Parameter(torch.zeros(seeds, 1, 1) if heads else rate.clone())
        if mixer == "s4d":
            self.write, self.read = (nn.Parameter(torch.randn(seeds, 1, 1, columns)) for _ in range(2))
        else:
            steps = {"s6": width, "s6-transposed": columns, "mamba2": 1}[mixer]
            self.step, self.to_write, self.to_read = Linear(seeds, width, steps), inward(columns), inward(columns)
        self.gate = Linear(seeds, width, width) if gate else None

    def forward(self, x: Tensor) -> Tensor:
        inner = self.x(x)
        y = self.read_out(x, inner)
        return y if self.gate is None else y * F.silu(self.gate(x))

    def read_out(self, x: Tensor, inner: Tensor) -> Tensor:
        """y_t = h_t C_t, with h_t = Ā_t h_{t−1} + x̄_t."""
        shape = (*inner.shape, self.rate.shape[-1] if self.mixer != "mamba2" else self.to_write.outputs)
        keep, written, read = (part.expand(shape) for part in self.parts(x, inner))
        state, states = torch.zeros_like(keep[:, :, 0]), []
        for before, now in zip(keep.unbind(2), written.unbind(2), strict=True):
            state = before * state + now
            states.append(state)
        return (torch.stack(states, 2) * read).sum(-1)

    def parts(self, x: Tensor, inner: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(Ā, what is added, C), each (seeds, batch, time, d, N) or with axes of 1."""
        rate = -self.rate.exp()[:, None, None]
        if self.mixer == "s4d":
            return rate.exp(), inner[..., None] * self.write[..., None, :], self.read[..., None, :]
        source = x if self.mixer == "mamba2" else inner
        write, read = self.to_write(source)[..., None, :], self.to_read(source)[..., None, :]
        raw = self.step(source)
        raw = raw[..., None, :] if self.mixer == "s6-transposed" else raw[..., None]
        keep, step = self.transitions(raw, rate)
        added = inner[..., None] * write
        return keep, added if step is None or self.mixer == "s6-transposed" else step * added, read

    def transitions(self, raw: Tensor, rate: Tensor) -> tuple[Tensor, Tensor | None]:
        """(Ā, Δ or None where B is not discretised)."""
        if self.transition == "sigmoid":
            return torch.sigmoid(raw), None
        if self.transition == "affine":
            return raw, None
        if self.transition == "taylor":  # of softplus and exp, to the third order: the paper says it of Eq 5
            step = 0.6931472 + raw / 2 + raw**2 / 8
            z = step * rate
            return 1 + z + z**2 / 2 + z**3 / 6, step
        step = F.softplus(raw)
        return (step * rate).exp(), step

    @torch.no_grad()
    def kept(self, x: Tensor) -> Tensor:
        """exp(−λΔ_t) (seeds, batch, time, d, N): the distribution of paper A's Figure 1."""
        inner = self.x(x)
        return self.parts(x, inner)[0].expand(*inner.shape, self.rate.shape[-1])


class Branch(nn.Module):
    """A linear map, a convolution with SiLU, both, or neither."""

    def __init__(self, seeds: int, width: int, outputs: int, linear: bool, convolution: bool):
        super().__init__()
        self.outputs = outputs
        parts: list[nn.Module] = [Linear(seeds, width, outputs)] if linear else []
        self.parts = nn.Sequential(*parts, *([Convolution(seeds, outputs)] if convolution else []))

    def forward(self, x: Tensor) -> Tensor:
        return self.parts(x)


class Attention(nn.Module):
    """One causal softmax head."""

    def __init__(self, mixer: Mixer, seeds: int, width: int, columns: int):
        super().__init__()
        self.query, self.key = Linear(seeds, width, columns), Linear(seeds, width, columns)
        self.value = Linear(seeds, width, width)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.query(x), self.key(x), self.value(x)
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)
