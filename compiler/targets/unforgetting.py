"""Latches that need not forget, by running sums: for targets where Δ cannot erase, or erases all channels at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scipy import sparse

from compiler.analysis.affine_form import constant_levels
from compiler.language import operations as ops
from compiler.language.lanes import repeated, tiled
from compiler.language.stream import Stream

if TYPE_CHECKING:
    from compiler.lowering.fitter import Fitter


def sums_where(value: Stream, when: Stream, fitter: Fitter) -> Stream:
    """Lane k·w + i: the sum of value_i where flag k holds; each has a channel relu(±value_i + M(flag_k − 1))."""
    from compiler.passes.represent.rectifiers import masked

    gated = masked(fitter.domains, tiled(value, when.width), repeated(when, value.width))
    return fitter.fitted_parts(gated.cumsum())


def latches_without_erasure(operation: ops.Latch, value: Stream, when: Stream, fitter: Fitter) -> Stream | None:
    """A sum where the operation or its flags say so; a constant is there from the first time on; None for others.

    `present` is such a constant: [Σ flags > 0]. Where a flag holds at most once, the last value is the sum.
    """
    from compiler.passes.represent.rectifiers import positive

    if not operation.forgets or fitter.domains.of(when).total <= 1:
        return sums_where(value, when, fitter)
    levels = constant_levels(fitter.form(value), value.width)
    if levels is None:
        return None
    seen = fitter.fitted_parts(positive(fitter.domains, when.cumsum()))
    return sparse.kron(sparse.eye_array(when.width), levels, format="csr") @ seen
