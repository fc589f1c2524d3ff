"""How much the state still feels an early input: Lemmas 1 and 2 of paper A, on any Mamba or S4D layer.

For one state h of the layer (channel d, column n; λ = exp(A_log)) and the inputs x̂_j of its scan,

    ∂h_t/∂x̂_j = exp(−λ Σ_{r=j+1}^t Δ(x̂_r)) · c̃_j,   t ≥ j,
    c̃_j = ∂(B_n Δ_d x̂_d)/∂x̂_j − λ e^(−λΔ_d(j)) h_{j−1} ∂Δ_d/∂x̂_j,

an equality, as Lemma 1 is printed, though its c̃ is a bound on this one (39): c̃_j does not depend on t. For S4D Δ (1
in the paper, a parameter here) and B do not see the input, and only the exponential is left. In Mamba-2 (Remark 1) Δ
has a projection of its own, beside the convolution, and B is shared by the channels of a group: the inputs are then x̂,
B̂, Ĉ and the numbers that Δ is made of, λ is a head's, and the same equality holds. If λ Σ_r Δ(x̂_r) ≤ c at every t, then
|∂h_t/∂x̂_j| ≥ e^(−c) |c̃_j| at every t ≥ j. That is Lemma 2, corrected: it speaks of the limit alone, and its bound,
(13), is printed without the second term of c̃_j, which (38) has, and where Δ's own dependence on x̂_j enters; without it
the bound is wrong in general, see `printed_bound`.

The left side is computed by autograd through the recurrence, the right side in closed form; both
in float64 from the layer's own weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compiler.runtime.block import Block, as_block

if TYPE_CHECKING:
    from compiler.artifact.model import Stack

MOST_NUMBERS = 1 << 32  # derivatives
AT_ONCE = 1 << 25  # of them, in one pass through the recurrence: 256 MB


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Euclidean norms over the components of x̂_j, (T, T) with t first; 0 for j > t.

    measured:  |∂h_t/∂x̂_j| by autograd.
    predicted: the closed form.
    exponent:  λ Σ_{r=j+1}^t Δ(x̂_r), (T, T).
    total:     λ Σ_{r≤t} Δ(x̂_r), (T,): Lemma 2 asks for a bound c; the least is its supremum.
    prefactor: |c̃_j|, (T,); printed: |∂(BΔx̂)/∂x̂_j| alone, (T,).
    """

    measured: Tensor
    predicted: Tensor
    exponent: Tensor
    total: Tensor
    prefactor: Tensor
    printed: Tensor

    @property
    def lower_bound(self) -> Tensor:
        """e^(−c) |c̃_j| with c the largest total: Lemma 2 with both terms of (38), and at every t, (T,)."""
        return torch.exp(-self.total.max()) * self.prefactor

    @property
    def printed_bound(self) -> Tensor:
        """e^(−c) |∂(BΔx̂)/∂x̂_j| as equation (13) prints it, (T,)."""
        return torch.exp(-self.total.max()) * self.printed

    def disagreement(self) -> float:
        """The largest |measured − predicted| over the largest measured value."""
        return float((self.measured - self.predicted).abs().max() / self.measured.abs().max().clamp_min(1e-300))

    def to_json(self) -> dict:
        """Plain numbers: both curves over the distance t − j, how far they agree, and Lemma 2's c and bounds."""
        measured, predicted = self.by_distance()
        return {
            "measured": measured.tolist(),
            "predicted": predicted.tolist(),
            "disagreement": self.disagreement(),
            "c": float(self.total.max()),
            "lower_bound": self.lower_bound.tolist(),
            "lower_bound_as_printed": self.printed_bound.tolist(),
        }

    def by_distance(self) -> tuple[Tensor, Tensor]:
        """The measured and the predicted sensitivity of the last state to x̂_{T−k}, k = 0 … T − 1."""
        return self.measured[-1].flip(0), self.predicted[-1].flip(0)


@dataclass(frozen=True, eq=False)
class _Scan:
    """What one state of a layer sees.

    x: (T, d_inner) inputs, of Mamba-2 (T, channels, groups' B and C, heads' Δ before softplus); channel d; λ;
    functions of one x̂: Δ_d and B_n, both differentiable.
    """

    x: Tensor
    channel: int
    rate: Tensor
    delta: Callable[[Tensor], Tensor]
    write: Callable[[Tensor], Tensor]


def sensitivity(
    layer: nn.Module, u: Tensor, channel: int = 0, column: int = 0, progress: Callable[[int], None] = lambda done: None
) -> Sensitivity:
    """The sensitivities of state (channel, column) of a layer to the inputs of its scan, for the block input u (T,
    d_model).

    layer: `mamba_ssm.Mamba`, `Mamba2`, a mixer of transformers' Mamba or Mamba-2, or our `S4DMixer`; compiled, trained
    or random. progress hears of so many positions more. ValueError for other layers, and for more work than is tried
    (`check_work`).
    """
    scan = _scan_of(as_block(layer), u, channel, column)
    check_work(*scan.x.shape)
    x = scan.x.clone().requires_grad_(True)
    state, states = torch.zeros((), dtype=torch.float64), []
    for here in x.unbind():  # x[t] would give a gradient as large as x for each t
        step = scan.delta(here)
        state = torch.exp(-scan.rate * step) * state + step * scan.write(here) * here[channel]
        states.append(state)
    over = torch.stack(states)
    return _beside(scan, _gradients(over, x, progress), over.detach())


def _gradients(states: Tensor, x: Tensor, progress: Callable[[int], None]) -> Tensor:
    """|∂h_t/∂x_j|, (T, T), of as many states together as memory allows: each pass goes through the whole recurrence."""
    rows = []
    for chosen in torch.eye(len(states), dtype=states.dtype).split(max(1, AT_ONCE // x.numel())):
        (found,) = torch.autograd.grad(states, x, chosen, retain_graph=True, is_grads_batched=True)
        rows.append(found.norm(dim=2))
        progress(len(chosen))
    return torch.cat(rows)


def check_work(length: int, inputs: int) -> None:
    """ValueError where the gradients of all states by all inputs, length² × inputs numbers, are more than is tried."""
    if length * length * inputs > MOST_NUMBERS:
        raise ValueError(
            f"{length:,} positions of {inputs:,} channels take {length * length * inputs:,} derivatives, and "
            f"{MOST_NUMBERS:,} are the most; {isqrt(MOST_NUMBERS // inputs):,} positions are possible here."
        )


def stack_sensitivity(stack: Stack, tokens: Tensor, block: int, channel: int = 0, column: int = 0) -> Sensitivity:
    """The same for one block of a `compiler.artifact.model.Stack`, bare or a language model, while it reads tokens
    (T,).
    """
    return sensitivity(stack.blocks[block], layer_input(stack, stack.hidden(tokens[None], 0), block), channel, column)


def layer_input(stack: Stack, first: Tensor, block: int) -> Tensor:
    """(T, d_model): what a block of a stack reads, from the stream before the first block (1, T, d_model)."""
    with torch.no_grad():
        stream = list(stack.streams(first))[block]
        return (stack.norms[block](stream) if stack.norms is not None else stream)[0]


def _scan_of(layer: Block, u: Tensor, channel: int, column: int) -> _Scan:
    if not hasattr(layer, "A_log") or not hasattr(layer, "conv1d"):
        raise ValueError(_no_such(layer))
    if layer.A_log.dim() == 1 and not (hasattr(layer, "d_ssm") or hasattr(layer, "ssm_state_size")):
        raise ValueError(_no_such(layer))  # as of Gated DeltaNet, whose state is multiplied by a matrix
    if layer.A_log.dim() == 2 and not (hasattr(layer, "x_proj") or hasattr(layer, "dt_bias")):
        raise ValueError(_no_such(layer))  # as of Mamba-Δᵀ, where every column has a Δ
    if layer.A_log.dim() == 1:
        return _mamba2_scan(layer, u, channel, column)
    inner, columns = layer.A_log.shape
    _check_place(channel, column, inner, columns)
    weights = {name: p.detach().double() for name, p in layer.named_parameters()}
    mixed = F.linear(u.detach().double(), weights["in_proj.weight"], weights.get("in_proj.bias"))[:, :inner]
    x = _convolved(mixed, weights)
    rate = torch.exp(weights["A_log"][channel, column])
    if "x_proj.weight" in weights:
        delta, write = _selective(weights, weights["dt_proj.weight"].shape[1], channel, column)
    else:
        step, b = F.softplus(weights["dt_bias"][channel]), weights["B"][channel, column]
        delta, write = (lambda x: step + 0 * x.sum()), (lambda x: b + 0 * x.sum())
    return _Scan(x, channel, rate, delta, write)


def _no_such(layer: Block) -> str:
    return f"{type(layer).__name__} is no Mamba, Mamba-2 or S4D layer; the lemmas speak of these."


def _check_place(channel: int, column: int, channels: int, columns: int) -> None:
    if not (0 <= channel < channels and 0 <= column < columns):
        raise ValueError(
            f"there is no state ({channel}, {column}): the layer has {channels} channels and {columns} columns."
        )


def _convolved(mixed: Tensor, weights: dict[str, Tensor]) -> Tensor:
    """(T, features) behind the causal convolution and SiLU."""
    taps = weights["conv1d.weight"].shape[-1]
    padded = F.pad(mixed.T[None], (taps - 1, 0))
    convolved = F.conv1d(padded, weights["conv1d.weight"], weights.get("conv1d.bias"), groups=mixed.shape[1])
    return F.silu(convolved)[0].T


def _mamba2_scan(layer: Block, u: Tensor, channel: int, column: int) -> _Scan:
    """in_proj gives gates, then x, B and C, which are convolved, and last a number for each head's Δ."""
    inner, columns, groups, (low, high) = _mamba2_sizes(layer)
    _check_place(channel, column, inner, columns)
    weights = {name: p.detach().double() for name, p in layer.named_parameters()}
    heads = len(weights["A_log"])
    projected = F.linear(u.detach().double(), weights["in_proj.weight"], weights.get("in_proj.bias"))
    convolved = inner + 2 * groups * columns
    mixed, steps = projected[:, -convolved - heads :].split([convolved, heads], dim=1)
    inputs = torch.cat([_convolved(mixed, weights), steps], dim=1)
    head = channel // (inner // heads)
    place = inner + head // (heads // groups) * columns + column
    bias = weights["dt_bias"][head]
    delta = lambda x: F.softplus(x[convolved + head] + bias).clamp(low, high)
    return _Scan(inputs, channel, torch.exp(weights["A_log"][head]), delta, lambda x: x[place])


def _mamba2_sizes(layer: Block) -> tuple[int, int, int, tuple[float, float]]:
    """(channels, columns, groups, limits of Δ) by the names of mamba_ssm, or by those of transformers."""
    if hasattr(layer, "d_ssm"):
        return layer.d_ssm, layer.d_state, layer.ngroups, layer.dt_limit
    mixer: Any = layer
    return mixer.intermediate_size, mixer.ssm_state_size, mixer.n_groups, tuple(mixer.time_step_limit)


def _selective(weights: dict[str, Tensor], rank: int, channel: int, column: int):
    """Δ_d and B_n of a Mamba layer as functions of x̂ (d_inner,)."""
    row = weights["dt_proj.weight"][channel] @ weights["x_proj.weight"][:rank]
    bias, b_row = weights["dt_proj.bias"][channel], weights["x_proj.weight"][rank + column]
    return (lambda x: F.softplus(x @ row + bias)), (lambda x: x @ b_row)


def _beside(scan: _Scan, measured: Tensor, states: Tensor) -> Sensitivity:
    """The closed form next to what was measured."""
    steps = torch.stack([scan.delta(x) for x in scan.x]).detach()
    total = scan.rate * torch.cumsum(steps, 0)
    exponent = (total[:, None] - total[None, :]).tril()
    full, printed = _prefactors(scan, steps, states)
    predicted = (torch.exp(-exponent) * full[None, :]).tril()
    return Sensitivity(measured, predicted, exponent, total, full, printed)


def _prefactors(scan: _Scan, steps: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    """(|c̃_j|, its first term alone) for every j, from the derivatives of Δ and B at single positions."""
    before = torch.cat([states.new_zeros(1), states[:-1]])
    full, printed = [], []
    for j in range(len(scan.x)):
        x = scan.x[j].clone().requires_grad_(True)
        (d_delta,) = torch.autograd.grad(scan.delta(x), x)
        (d_write,) = torch.autograd.grad(scan.write(x), x)
        own = x.detach()[scan.channel]
        first = own * (scan.write(x).detach() * d_delta + steps[j] * d_write)
        first[scan.channel] += steps[j] * scan.write(x).detach()
        second = -scan.rate * torch.exp(-scan.rate * steps[j]) * before[j] * d_delta
        full.append((first + second).norm())
        printed.append(first.norm())
    return torch.stack(full), torch.stack(printed)
