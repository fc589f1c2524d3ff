"""What a certificate proves first: every number that Mamba-Δᵀ blocks compute is finite, for every sequence of tokens.

No weight is NaN or infinite. Every number, read or not, is bounded from the weights: an interval for what goes through
silu, a bound on the absolute value for the rest, each sum by the sum of its terms' bounds, so that it holds in every
order of summation. Where all bounds keep below 2^126 nothing overflows, the rounding of sums included; without
infinities there is no NaN.

The state. h ← a·h + w with 0 ≤ a ≤ 1 and |w| ≤ W keeps to |h| ≤ 2^26·W, whatever the length, one step after the other:
let 2^k be the least power of two ≥ W; where |h| = 2^(k+25) the spacing of float32 is 2^(k+2) at least, so that adding w
gives 2^(k+25) again, and rounding is monotone. Up to 2^24 steps it holds in every order of the sum, for (1 +
2^-24)^(2^24) < 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from compiler import digits
from compiler.artifact.model import Stack
from compiler.runtime.block import Block
from verify.certificates.certificate import Refused

MOST = 2.0**126
SATURATED = 2.0**26
SILU_LEAST = 0.28  # silu ≥ −0.2785; softplus(x) ≤ max(x, 0) + log 2
LOG_2 = 0.7


@dataclass(frozen=True, eq=False)
class Range:
    """Numbers between low and high, elementwise."""

    low: np.ndarray
    high: np.ndarray

    @property
    def size(self) -> np.ndarray:
        """The largest absolute value."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def times(self, factors: np.ndarray) -> Range:
        """Elementwise products with fixed numbers."""
        ends = self.low * factors, self.high * factors
        return Range(np.minimum(*ends), np.maximum(*ends))

    def plus(self, other: Range | np.ndarray) -> Range:
        """Elementwise sums."""
        low, high = (other.low, other.high) if isinstance(other, Range) else (other, other)
        return Range(self.low + low, self.high + high)

    def through(self, matrix: np.ndarray) -> Range:
        """matrix · x."""
        up, down = np.maximum(matrix, 0), np.minimum(matrix, 0)
        return Range(up @ self.low + down @ self.high, up @ self.high + down @ self.low)

    def silu(self) -> Range:
        """silu of the numbers, in every implementation that is right to a few ulp."""
        return Range(np.where(self.low >= 0, 0, -SILU_LEAST), np.maximum(self.high, 0) + SILU_LEAST)


@dataclass(frozen=True, eq=False)
class _Scan:
    """Bounds on the absolute values in a scan.

    x: (channels,); delta, write, read: anything that broadcasts to (channels, columns); decay: |A|, likewise; skip:
        (channels,) D.
    """

    x: np.ndarray
    delta: np.ndarray
    write: np.ndarray
    read: np.ndarray
    decay: np.ndarray
    skip: np.ndarray


@np.errstate(over="ignore", invalid="ignore")
def check_finite(stack: Stack) -> None:
    """Refused unless every number that a bare stack computes is finite, whatever the tokens."""
    if stack.norms is not None or stack.final_norm is not None:
        raise Refused("the bounds are for a stack without norms; certify the bare one, whose logits are the same")
    for name, parameter in stack.named_parameters():
        if not parameter.isfinite().all():
            raise Refused(f"{name} holds a number that is not finite")
    embedding = _array(stack.embedding.weight)
    stream = Range(embedding.min(axis=0), embedding.max(axis=0))
    for number, block in enumerate(stack.blocks, start=1):
        rows = _sums(_array(block.in_proj.weight), stream, f"in_proj of block {number}", _bias(block.in_proj))
        out = _Bounds(block, number).out(rows)
        stream = stream.plus(out) if stack.residual else out
        _keep(stream.size, f"what follows block {number}")
    _sums(_array(stack.head.weight), stream, "the head")


def lead(scores: Tensor, right: Tensor) -> float:
    """The least lead of the right token (batch,) over all others in scores (batch, vocabulary).

    Refused where one is not finite.
    """
    if not scores.isfinite().all():
        raise Refused("a score is NaN or infinite, and comparisons with it say nothing")
    others = scores.scatter(1, right[:, None], -torch.inf).max(dim=1).values
    return float((scores.gather(1, right[:, None])[:, 0] - others).min())


class _Bounds:
    """Bounds on what one block computes; number: its place in the stack, from 1."""

    def __init__(self, block: Block, number: int):
        self.block, self.number = block, number

    def out(self, rows: Range) -> Range:
        """From in_proj's rows to out_proj's."""
        gate, scan = self._scan(rows)
        weight = _array(self.block.out_proj.weight)
        y = self._keep(self._y(scan) * gate, "the gated channels")
        return _sums(weight, Range(-y, y), f"out_proj of block {self.number}", _bias(self.block.out_proj))

    def _y(self, scan: _Scan) -> np.ndarray:
        """A bound on the read state and the D path, (channels,)."""
        self._keep(scan.delta * scan.decay, "Δ·A")
        x = scan.x[:, None]
        for part in (x * scan.write, scan.write * scan.read):
            self._keep(part, "a product of B, C and x")
        added = x * scan.write
        state = self._keep(SATURATED * added, "the state")
        read = self._keep((state * scan.read).sum(axis=1), "C·h")
        self._keep((scan.write * scan.read).sum(axis=-1), "C·B")
        return self._keep(read + np.abs(scan.skip) * scan.x, "y")

    def _scan(self, rows: Range) -> tuple[np.ndarray, _Scan]:
        x, gate = self._split(rows)
        write, read = np.split(self._rows("BC_proj", x).size, 2)
        delta = self._step(self._rows("dt_proj", x))
        decay, skip = self._decay(), _array(self.block.D)
        return gate, _Scan(x.size, delta[None], write[None], read[None], decay, skip)

    def _split(self, rows: Range) -> tuple[Range, np.ndarray]:
        """x̂ and a bound on the gate, from in_proj's two halves."""
        half = len(rows.low) // 2
        return self._convolved(Range(rows.low[:half], rows.high[:half])), self._gate(
            Range(rows.low[half:], rows.high[half:])
        )

    def _convolved(self, rows: Range) -> Range:
        """silu of the convolution; before the start stand zeros."""
        rows = Range(np.minimum(rows.low, 0), np.maximum(rows.high, 0))
        conv = self.block.conv1d
        total = Range(*[_bias(conv)] * 2)
        for tap in _array(conv.weight)[:, 0].T:
            total = self._sum(total, rows.times(tap))
        return total.silu()

    def _gate(self, rows: Range) -> np.ndarray:
        return rows.silu().size

    def _step(self, rows: Range) -> np.ndarray:
        """A bound on Δ = softplus(rows)."""
        return self._keep(np.maximum(rows.high, 0) + LOG_2, "Δ")

    def _decay(self) -> np.ndarray:
        """|A|, bounded."""
        return self._keep(np.exp(_array(self.block.A_log)), "exp(A_log)")

    def _rows(self, name: str, x: Range) -> Range:
        layer = getattr(self.block, name)
        return _sums(_array(layer.weight), x, f"{name} of block {self.number}", _bias(layer))

    def _sum(self, one: Range, other: Range) -> Range:
        self._keep(one.size + other.size, "a sum")
        return one.plus(other)

    def _keep(self, bound: np.ndarray, what: str) -> np.ndarray:
        return _keep(bound, f"{what} of block {self.number}")


def _sums(matrix: np.ndarray, x: Range, what: str, bias: np.ndarray | None = None) -> Range:
    """matrix · x + bias, after checking that no partial sum overflows."""
    bias = np.zeros(len(matrix)) if bias is None else bias
    _keep(np.abs(matrix) @ x.size + np.abs(bias), what)
    return x.through(matrix).plus(bias)


def _keep(bound: np.ndarray, what: str) -> np.ndarray:
    """The bound, refused where it is beyond 2^126 or no number."""
    if not (bound <= MOST).all():
        raise Refused(f"{what} can reach {digits.at_most(bound.max())}, and float32 overflows at 3.4e+38")
    return bound


def _bias(layer: nn.Linear | nn.Conv1d) -> np.ndarray:
    return np.zeros(len(layer.weight)) if layer.bias is None else _array(layer.bias)


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().cpu().double().numpy()
