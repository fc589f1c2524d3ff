"""Gadget of the product of two numbers."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from compiler.analysis.scale import half_scale
from compiler.exactness.levels import GATE, OFF
from compiler.gadgets.gadget import Gadget, Operands
from compiler.gadgets.parts import places, targets
from compiler.language import operations as ops
from compiler.language.stream import Stream
from compiler.language.words import concatenate
from compiler.lowering.builder import BlockBuilder
from compiler.lowering.fitter import Fitter
from compiler.lowering.ports import Ports


class Product(Gadget):
    """a·b by the D path and the gate (exactness E3): silu(z) − silu(−z) = z, z = S_b·b.

    a ≥ 0, or half of a real number. Where b ≥ 0 on a lattice the second channel of the pair is not
    needed. S_b puts every nonzero b of a lattice at 20.1 or beyond, so both silu are relus and their
    difference is exact; for a real b it is 128, and the difference is right within a few ulps.
    """

    def operands(self, stream: Stream, target: Ports) -> Operands:
        a, b = stream.inputs
        return [(a, "written"), (b, "lanes")]

    def fit(self, stream: Stream, inputs: tuple[Stream, ...], fitter: Fitter) -> Stream:
        """The operand that is negative or of the past stands where that is possible; two signed ones are split."""
        (a, b), domains = inputs, fitter.domains
        split = isinstance(a.operation, ops.Half)
        if not split and (domains.of(a).lo < 0 <= domains.of(b).lo or any(lag for _, lag in fitter.form(b))):
            a, b = b, a
        width = stream.width
        a, b = (s if s.width == width else np.ones((width, 1)) @ s for s in (a, b))
        if domains.of(a).lo < 0:
            return self._signed(a, b, fitter)
        return fitter.rebuilt(stream, stream.operation, (fitter.written(a), fitter.landed(b)))

    def _signed(self, a: Stream, b: Stream, fitter: Fitter) -> Stream:
        """a·b = relu(a)·b − relu(−a)·b, for the x̂ port passes non-negative values only."""
        pair = fitter.fitted_new(Stream(ops.Relu(), (concatenate(a, -1 * a),)))
        twice = Stream(ops.Multiply(), (pair, fitter.landed(concatenate(b, b))))
        eye = sparse.eye_array(a.width)
        return sparse.hstack([eye, -eye], format="csr") @ twice

    def lower(self, stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
        a, b = stream.inputs
        ids, unit = builder.written(a, wanted)
        domain = builder.domains.of(b)
        single = domain.lo >= 0 and domain.step > 0
        level = float(GATE / domain.step) if single else half_scale(domain)
        row = builder.on_lanes(b, np.flatnonzero(wanted))
        target = targets(stream, wanted, builder)
        for sign in (1.0,) if single else (1.0, -1.0):
            gate = (row * sign * level).tocsr()
            out = (target, sign * unit / level)
            builder.add_channels(places(stream, wanted), ids, out, gate, OFF, skip=1.0, real_gate=not domain.step)
