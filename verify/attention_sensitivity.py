"""The attention counterpart of the sensitivity lemmas (paper A, Appendix B, equations 44 and 45).

For a scalar input and one softmax head, with q·k = W_Q W_K, v = W_V, scores s_r = x_t (q·k) x_r,

    ∂y_t/∂x_j = e^(s_j)/Σ_r e^(s_r) · (v + x_t (q·k)(v x_j − y_t)),   j < t,
    |∂y_t/∂x_j| ≤ C/t · e^(max_r s_r − min_r s_r),   C = |v| (1 + 2|q·k| |x|²_max),

so attention loses an early token like 1/t, not exponentially. Equation (45) has (min_r e^(s_r))⁻¹ alone; so
its C has to bound the numerator e^(s_j) as well, and not only the second factor, as the text before it says.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class AttentionSensitivity:
    """(T, T), t first, for j < t and 0 elsewhere: |∂y_t/∂x_j| by autograd, in closed form, and its bound."""

    measured: Tensor
    predicted: Tensor
    bound: Tensor

    def by_distance(self) -> tuple[Tensor, Tensor]:
        """The measured sensitivity of the last output to x_{T−k} and its bound, k = 1 … T − 1."""
        return self.measured[-1, :-1].flip(0), self.bound[-1, :-1].flip(0)


def attention_sensitivity(x: Tensor, query_key: float, value: float) -> AttentionSensitivity:
    """The sensitivities of causal softmax attention over the numbers x (T,)."""
    x = x.detach().double().requires_grad_(True)
    count = len(x)
    later = torch.ones(count, count, dtype=torch.bool).triu(1)
    scores = (query_key * x[:, None] * x[None, :]).masked_fill(later, -torch.inf)
    y = torch.softmax(scores, dim=1) @ (value * x)
    measured = torch.stack([torch.autograd.grad(out, x, retain_graph=True)[0].abs() for out in y])
    with torch.no_grad():
        weights = torch.softmax(scores, dim=1)
        inner = value + query_key * x[:, None] * (value * x[None, :] - y[:, None])
        spread = scores.max(dim=1).values - scores.masked_fill(later, torch.inf).min(dim=1).values
        constant = abs(value) * (1 + 2 * abs(query_key) * x.abs().max() ** 2)
        bound = (constant / torch.arange(1, count + 1) * torch.exp(spread))[:, None].expand(count, count)
    return AttentionSensitivity(measured.tril(-1), (weights * inner).abs().detach().tril(-1), bound.tril(-1))
