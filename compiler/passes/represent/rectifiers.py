"""Identities of rectifiers that several rules share."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from compiler.analysis.affine_form import affine_form
from compiler.analysis.domains import Domains
from compiler.analysis.domains.linear import difference_within, interval_within
from compiler.analysis.least_size import least_size
from compiler.exactness.saturation import rising_count
from compiler.language import operations as ops
from compiler.language.lanes import placed
from compiler.language.stream import Stream, constant
from compiler.lattice.domain import down, power_of_two
from compiler.lowering.conditions import need_gap

if TYPE_CHECKING:  # its rules call these
    from compiler.passes.represent.rewriter import Rewriter


def step(x: Stream) -> Stream:
    """[x > 0] for integers: relu(x) − relu(x − 1)."""
    return x.relu() - (x - 1).relu()


def rectified(rewriter: Rewriter, a: Stream, b: Stream | None = None) -> Stream:
    """relu(a − b), or relu(a); where bounds say so that number itself, or 0, whatever the format holds of it."""
    low, high = _interval(rewriter, a, b)
    bent, kept = np.flatnonzero((low < 0) & (high > 0)), np.flatnonzero((low >= 0) & (high > 0))
    if not len(bent) and not len(kept):
        return constant(0, a.width)
    x = a if b is None else a - b
    if not len(bent) and len(kept) == a.width:
        return x
    if len(bent) == a.width:
        return x.relu()
    line = placed(x[kept], kept, a.width) if len(kept) else constant(0, a.width)
    return line + placed(x[bent].relu(), bent, a.width) if len(bent) else line


def _interval(rewriter: Rewriter, a: Stream, b: Stream | None) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of a − b, or of a; none where the rewriter leaves to the blocks what bounds decide."""
    if not rewriter.decides:
        return np.full(a.width, -np.inf), np.full(a.width, np.inf)
    return interval_within(a, rewriter.domains) if b is None else difference_within(a, b, rewriter.domains)


def positive(domains: Domains, x: Stream) -> Stream:
    """[x > 0] for integers; of a growing count by falling ramps, which stay exact where the count saturates."""
    if x.width == 1 and rising_count(affine_form(x), domains):
        return 1 - step(1 - x)
    return step(x)


def decided(rewriter: Rewriter, a: Stream, b: Stream) -> Stream:
    """[a > b] for multiples of a step, and for real numbers x = a − b of which none but 0 is near 0.

    With u = 4x/g − 2, g at most the least size of any but 0: u is at most −2 or at least 2, so relu(u) is 0 or at least
    2, and 1 − relu(1 − relu(u)) is the flag to the last bit, even where u is off by 1/2. Two blocks.
    Lanes that the bounds of x decide are constants: where none but 0 is near 0, those that end below the gap as well.
    """
    low, high = _interval(rewriter, a, b)
    near = np.flatnonzero((low <= 0) & (high > 0) & (high >= _least(rewriter.domains, a - b)))
    if len(near) < a.width:
        sure = Stream(ops.Constant(tuple(Fraction(int(least > 0)) for least in low)))
        return sure + placed(_computed(rewriter.domains, a[near], b[near]), near, a.width) if len(near) else sure
    return _computed(rewriter.domains, a, b)


def _least(domains: Domains, x: Stream) -> float:
    """The size that every number of x but 0 has at least; 0 where none is known, and of multiples of a step, which two
    ramps decide wherever they end.
    """
    return 0.0 if domains.of(x).step else down(least_size(domains, x))


def _computed(domains: Domains, a: Stream, b: Stream) -> Stream:
    """[a > b] where bounds do not decide it."""
    x = a - b
    domain = domains.of(x)
    if domain.step:
        return positive(domains, x if domain.step >= 1 else x / domain.step)
    gap = need_gap(domains, x)
    beyond = (x * (4 / gap) - 2).relu()
    return 1 - Stream(ops.Settled(), (1 - beyond,))


def masked(domains: Domains, x: Stream, flag: Stream) -> Stream:
    """x where the flag is 1, 0 where it is at most 0: relu(±x + M(flag − 1)) for a power of two M ≥ |x|."""
    domain = domains.of(x)
    room = power_of_two(domain.bound) * (flag - 1)
    if domain.hi <= 0:
        return -(room - x).relu()
    above = (x + room).relu()
    return above - (room - x).relu() if domain.lo < 0 else above
