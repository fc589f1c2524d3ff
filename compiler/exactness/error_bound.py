"""How far a module can be from a circuit with real numbers: a proved bound, stream by stream, in float32.

u = 2^−24. For each number that a block writes to a lane, `ErrorBound.of` bounds |computed − exact|, from the bounds on
values (`Domains`) and on the errors of what it reads. A bound is 0 where everything is on a lattice and stays within
it. Where an operation on real numbers has no rule here there is no bound, and none is claimed.

Operands are linear maps of lanes, computed in one row: Σ_i m_i·v_i is off by Σ|m_i|·e_i + γ_n·Σ|m_i|·(|v_i| + e_i), n
the number of its terms plus four (taps and bias). Every scale in between is a power of two and rounds nothing. Each of
these numbers may also be flushed to 0 where it is below 2^-126, as may a real input and what an operation gives. Where
a scale is below 1, its numbers are so large that the relative errors, which are of the declared bounds, exceed what is
flushed. What is taken for granted of a backend: sums and products round to nearest, exp, silu and softplus are within
2 ulp.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from compiler.analysis.affine_form import ONE, AffineForm, port_form
from compiler.analysis.domains import Domains
from compiler.formats import FLOAT32, Format
from compiler.gadgets.scaled_sum import step_rate
from compiler.ir.decay import fade_error
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.graph import operation_of
from compiler.language.operations import Source
from compiler.language.stream import Stream

UNIT, FLOAT64_UNIT = 2.0**-24, 2.0**-53
FLUSHED = 2.0**-126  # what is lost at most where a number is too small for float32
SILU_OFF = 0.2785  # |silu(x) − relu(x)| is at most 0.27847, at |x| = 1.2785 (paper B, Lemma 2 has 1)
ELEMENTARY = 8  # roundings of a silu within 2 ulp, its product with the gate and with D, and powers of two between
STEP_ROUNDINGS = 32  # of the step of a scaled sum, relative to |weight| + 1/R
LEAST_SETTLED = 512  # S of the rectifiers that settle a decision: 104/S is below 1/4
OUTWARD = 1 + 2.0**-30  # covers the float64 arithmetic of the bounds themselves


class Unbounded(ValueError):
    """An operation on real numbers of which no error bound is known."""


def error_bound(
    circuit: Circuit, domains: Domains, format: Format, chunk: int = 0, reach: float = float("inf")
) -> float | None:
    """A bound on |logit of the module − output of the core circuit| at every position; None where none is known.

    chunk: over how many steps the target's scan adds up exponents before it forms their exp. reach: the largest size
    of real inputs that the bound is for, where it is less than what they are declared.
    """
    if all(exact_in(domains, s) for s in circuit.streams):
        return 0.0
    if format is not FLOAT32:
        return None
    return _of_output(circuit, ErrorBound(_narrowed(circuit, domains, reach), chunk, domains))


def float64_bound(circuit: Circuit, domains: Domains, chunk: int) -> float | None:
    """The same of the blocks in float64, where only the factors by which states fade are float32's."""
    return _of_output(circuit, ErrorBound(domains, chunk, unit=FLOAT64_UNIT))


def _of_output(circuit: Circuit, errors: ErrorBound) -> float | None:
    read = errors.atoms(circuit.output)
    for stream in reversed(circuit.streams):  # of what meets only zeros no bound need be known
        if stream in read:
            read.update(*map(errors.atoms, stream.inputs))
    try:
        for stream in circuit.streams:
            if stream in read:
                errors.add(stream)
        return float(errors.error(circuit.output).max(initial=0.0))
    except Unbounded:
        return None


def exact_in(domains: Domains, stream: Stream) -> bool:
    """Whether a stream is on a lattice: then a block that gets its inputs exactly gives it exactly."""
    return domains.of(stream).step > 0


def _narrowed(circuit: Circuit, domains: Domains, reach: float) -> Domains:
    """What the streams hold where no real input exceeds `reach`; the same domains where nothing is declared larger."""
    inputs = [s for s in circuit.streams if s.operation.source is Source.NUMBERS and not domains.of(s).step]
    if all(domains.of(s).bound <= reach for s in inputs):
        return domains
    narrow = Domains(domains.language, domains.max_length).draft()
    for stream in inputs:
        narrow.bounded(stream, np.minimum(domains.of(stream).bounds, reach))
    for stream in circuit.streams:
        narrow.meet(stream, domains.of(stream))
    return narrow


class ErrorBound:
    """Bounds on the errors of the streams of a core circuit, found in order, inputs first.

    Half of a pair stands for silu(S·x)/S itself, for what is read is the difference of such pairs, and that is exact.
    `beyond` bounds by how much such a number, or what is computed from it, may exceed its domain (which is relu's).
    """

    def __init__(self, domains: Domains, chunk: int, compiled: Domains | None = None, unit: float = UNIT):
        self.domains = domains
        self.chunk, self.unit = chunk, unit
        self.compiled = compiled or domains  # by which the weights' scales were chosen
        self.errors: dict[Stream, np.ndarray] = {ONE: np.zeros(1)}
        self.beyond: dict[Stream, np.ndarray] = {ONE: np.zeros(1)}
        self._forms: dict[Stream, AffineForm] = {}

    def gamma(self, roundings: int | np.ndarray) -> float | np.ndarray:
        """γ_n = nu/(1 − nu): the most that n roundings change a product, relatively."""
        return roundings * self.unit / (1 - roundings * self.unit)

    def add(self, stream: Stream) -> None:
        """Bound a stream whose inputs are known: (width,) errors of an operation.

        Linear maps are left to their readers.
        """
        if stream.operation.free and not stream.operation.source or stream.operation.constants:
            return
        self.beyond[stream] = self.errors[stream] = np.zeros(stream.width)
        if stream.operation.source is Source.NUMBERS:
            self.errors[stream] = np.where(self.domains.of(stream).units > 0, 0.0, FLUSHED)
        exact = exact_in(self.domains, stream) and not any(self.error(s).any() for s in stream.inputs)
        if exact or not stream.inputs:
            return
        rule = _RULES.get(type(stream.operation))
        if rule is None:
            raise Unbounded(stream.label)
        errors, beyond = rule(self, stream)
        off = (errors > 0) | (self.domains.of(stream).units == 0)
        self.errors[stream] = np.where(off, (errors + FLUSHED) * OUTWARD, 0.0)
        self.beyond[stream] = beyond * OUTWARD

    def atoms(self, stream: Stream) -> set[Stream]:
        """What a linear map of lanes is made of."""
        return {atom for atom, _ in port_form(stream, self._forms)}

    def error(self, stream: Stream) -> np.ndarray:
        """A bound on the error of a linear map of lanes: (width,)."""
        propagated, sizes, terms = (np.zeros(stream.width) for _ in range(3))
        for (atom, _), matrix in port_form(stream, self._forms).items():
            weights, error = abs(matrix), self.errors[atom]
            propagated += weights @ error
            sizes += weights @ (self.domains.of(atom).bounds + self.beyond[atom] + error)
            terms += np.diff(matrix.indptr)
        exact = (self.domains.of(stream).units > 0) & (propagated == 0)  # lane by lane: integers may stand beside reals
        rounded = self.gamma(terms + 4) * sizes + (terms + 4) * FLUSHED
        return np.where(exact, 0.0, (propagated + rounded) * OUTWARD)

    def excess(self, stream: Stream) -> np.ndarray:
        """`beyond` of a linear map of lanes: (width,)."""
        form = port_form(stream, self._forms).items()
        return sum((abs(matrix) @ self.beyond[atom] for (atom, _), matrix in form), np.zeros(stream.width))

    def size(self, stream: Stream) -> np.ndarray:
        """A bound on |exact value| of a linear map of lanes: (width,)."""
        return self.domains.of(stream).bounds + self.excess(stream)


Bounds = tuple[np.ndarray, np.ndarray]  # (errors, beyond) of a stream


def _half(known: ErrorBound, stream: Stream) -> Bounds:
    """|silu(S·x̃)/S − silu(S·x)/S| ≤ 1.1·|x̃ − x|, and a relative error of the evaluation; relu is 0.2785/S away."""
    (x,), half = stream.inputs, operation_of(stream, ops.Half)
    if half.settled:
        return _settled(known, stream, half)
    error, away = known.error(x), np.full(stream.width, SILU_OFF / half.scale)
    off = 1.1 * error + known.gamma(ELEMENTARY) * (known.size(x) + error)
    return (off + away, 0 * away) if half.alone else (off, away)


def _settled(known: ErrorBound, stream: Stream, half: ops.Half) -> Bounds:
    """0 where x = 1 − silu(S·u)/S for a u that is off by at most 1/2 and at least 2 in size.

    −S·3/2 is below −104, so the inner one is 0 or at least 3/2 less its rounding; then x is 1 to the last bit or at
    most −1/4, and so is the outer one 1 or 0.
    """
    for (atom, _), _matrix in port_form(stream.inputs[0], known._forms).items():
        if atom is ONE:
            continue
        inner = operation_of(atom, ops.Half)
        if min(inner.scale, half.scale) < LEAST_SETTLED or known.error(atom.inputs[0]).max(initial=0) > 0.5:
            raise Unbounded(stream.label)
    return np.zeros(stream.width), np.zeros(stream.width)


def _product(known: ErrorBound, stream: Stream) -> Bounds:
    """|ã·b̃ − a·b| ≤ |a|·e_b + |b|·e_a + e_a·e_b; b enters as silu(z) − silu(−z), each half within |b|."""
    a, b = stream.inputs
    return _of_product(known, a, b, 2 * ELEMENTARY)


def _silu_product(known: ErrorBound, stream: Stream) -> Bounds:
    """|ã·b̃ − a·b| + s⁴/(48λ²) + λ·s·(1 + s/2λ)·γ, s ≥ |ã| + |b̃|.

    f(z) = z·tanh(z/2) is z²/2 less at most z⁴/24, in two terms of opposite sign, times λ²/2. Each silu is at most
    (z/2)(1 + z/2) for z = s/λ, four of them times λ²/2; twelve roundings: silu 4, of its argument 2·1, the gate, the
    sum.
    """
    a, b = stream.inputs
    scale = float(operation_of(stream, ops.SiluProduct).scale)
    off, _ = _of_product(known, a, b, 0)
    reach = known.size(a) + known.error(a) + known.size(b) + known.error(b)
    rounded = scale * reach * (1 + reach / (2 * scale)) * known.gamma(12)
    return off + reach**4 / (48 * scale**2) + rounded, known.size(a) * known.excess(b) + known.size(b) * known.excess(a)


def _of_product(known: ErrorBound, a: Stream, b: Stream, roundings: int) -> Bounds:
    (size_a, error_a, more_a), (size_b, error_b, more_b) = (
        (known.size(s), known.error(s), known.excess(s)) for s in (a, b)
    )
    off = size_a * error_b + size_b * error_a + error_a * error_b
    rounded = known.gamma(roundings) * (size_a + error_a) * (size_b + error_b)
    return off + rounded, size_a * more_b + size_b * more_a


def _running_sum(known: ErrorBound, stream: Stream) -> Bounds:
    """T errors of the value, and T roundings of a sum of at most the total."""
    return _summed(known, *stream.inputs)


def _summed(known: ErrorBound, value: Stream) -> Bounds:
    length, error, more = known.domains.max_length, known.error(value), known.excess(value)
    total = known.domains.of(value).totals + length * (more + error)
    return length * error + known.gamma(length + ELEMENTARY) * total, length * more


def _sum_where(known: ErrorBound, stream: Stream) -> Bounds:
    """A running sum for each of several exact flags."""
    value, when = stream.inputs
    if known.error(when).any() or not known.domains.of(when).is_flag:
        raise Unbounded(stream.label)
    off, more = _summed(known, value)
    return np.tile(off, when.width), np.tile(more, when.width)


def _latch(known: ErrorBound, stream: Stream) -> Bounds:
    value, when = stream.inputs
    if known.error(when).any():
        raise Unbounded(stream.label)
    error = known.error(value)
    off = error + known.gamma(ELEMENTARY) * (known.size(value) + error)
    return np.tile(off, when.width), np.tile(known.excess(value), when.width)


def _gated(known: ErrorBound, stream: Stream) -> Bounds:
    """Entries of the bank that an exact gate weighs: at most the largest one times the sum of the gate."""
    bank, gate = stream.inputs
    if known.error(gate).any():
        raise Unbounded(stream.label)
    error = known.error(bank)
    off = error + known.gamma(ELEMENTARY + gate.width) * (known.size(bank) + error)
    weight = float(known.domains.of(gate).l1) * OUTWARD
    off, more = (weight * part.reshape(gate.width, -1).max(axis=0) for part in (off, known.excess(bank)))
    return off, more


def _dot(known: ErrorBound, stream: Stream) -> Bounds:
    a, b = stream.inputs
    off, more = _of_product(known, a, b, 2 * ELEMENTARY + a.width)
    return np.array([off.sum()]), np.array([more.sum()])


def _fading_sum(known: ErrorBound, stream: Stream) -> Bounds:
    (value,) = stream.inputs
    return _faded(
        known, operation_of(stream, ops.FadingSum).decay, known.size(value), known.error(value), known.excess(value), 0
    )


def _memory(known: ErrorBound, stream: Stream) -> Bounds:
    """A memory that keeps everything: T times what is written at a position, and T more roundings."""
    operation = operation_of(stream, ops.MemoryRead)
    if operation.policy not in ("sum", "once") or operation.skip:
        raise Unbounded(stream.label)
    size, error, more, roundings = _written(known, *stream.inputs)
    length = known.domains.max_length
    return length * (error + known.gamma(length + roundings) * (size + error)), length * more


def _scaled_sum(known: ErrorBound, stream: Stream) -> Bounds:
    """T times a product of three, of which the step is within 32u·(|weight| + 1/R).

    softplus(u) − softplus(−u) = u, u = R·weight: both are at most |u| + ln 2, and of what the two lose by rounding the
    argument (d roundings of a sum), by two ulp and by the products behind them 32 units remain an upper bound.
    """
    value, weight, gate = stream.inputs
    length, rate = known.domains.max_length, step_rate(stream, known.compiled)
    (size_v, error_v), (size_w, error_w), (size_g, error_g) = ((known.size(s), known.error(s)) for s in stream.inputs)
    reached = (size_v + error_v) * (size_w + error_w) * (size_g + error_g)
    stepped = (size_v + error_v) * (size_w + error_w + 1 / rate) * (size_g + error_g)
    off = reached - size_v * size_w * size_g + STEP_ROUNDINGS * known.unit * stepped
    rounded = known.gamma(length + 2 * ELEMENTARY) * stepped
    return length * (off + rounded), length * known.excess(value) * size_w * size_g


def _fading_memory(known: ErrorBound, stream: Stream) -> Bounds:
    """What is written at a position, in a state that fades."""
    return _faded(known, operation_of(stream, ops.FadingMemory).decay, *_written(known, *stream.inputs))


def _written(known: ErrorBound, value: Stream, key: Stream, query: Stream) -> tuple:
    """(size, error, beyond, roundings) of one product of three for each column: what is written, times <key, query>."""
    key_size, query_size = known.size(key), known.size(query)
    met = (key_size @ query_size) * OUTWARD
    met_off = ((key_size + known.error(key)) @ (query_size + known.error(query)) - key_size @ query_size) * OUTWARD
    more = known.excess(key) @ query_size + key_size @ known.excess(query)
    size, error = known.size(value), known.error(value)
    off = size * met_off + error * (met + met_off)
    beyond = known.excess(value) * met + size * more
    return size * met, off, beyond, key.width + 2 * ELEMENTARY


def _selective_sum(known: ErrorBound, stream: Stream) -> Bounds:
    """As a fading sum of values Δ times as large, each position right within Δ of its steps (and a product rounded).

    Where Δ = 0 nothing fades or is added, bit for bit; so the k-th last of what was added has faded by d^k at least,
    in k positions that round.
    """
    value, level = stream.inputs
    if known.error(level).any():
        raise Unbounded(stream.label)
    most = max(float(2 * known.domains.of(level).hi - 1), 0.0)
    size, error, more = (most * part for part in (known.size(value), known.error(value), known.excess(value)))
    return _faded(known, operation_of(stream, ops.SelectiveSum).decay, size, error, more, 2, most)


def _faded(known: ErrorBound, factor: Fraction, size, error, more, roundings: int, steps: float = 1.0) -> Bounds:
    """Σ_k |d̃_k − d^k|·size + Σ_k d̃_k·error over k < T, where k steps leave d̃_k within d^k·(1 + η)^k·(1 + γ).

    With D = d(1 + η): Σ D^k ≤ min(1/(1 − D), T·(1 + η)^T), and Σ (D^k − d^k) is at most (D − d)/((1 − D)(1 − d)) and
    η·(1 + η)^T·T(T − 1)/2, for D^k − d^k ≤ k·η·(1 + η)^k. Where D ≥ 1 only the second of each is there. steps: how many
    are taken at once at most; η is that of all of them.
    """
    decay, length = float(factor), known.domains.max_length
    step_off = max(steps, 1.0) * fade_error(factor, known.chunk + (steps > 1))
    rounded = known.gamma(ELEMENTARY + known.chunk + roundings)
    grown = float(np.exp(min(length * step_off, 700.0)))
    left = 1 - decay * (1 + step_off)
    kept, off = length * grown, step_off * grown * length * (length - 1) / 2
    if left > 0:
        kept, off = min(kept, 1 / left), min(off, decay * step_off / (left * (1 - decay)))
    fresh = size * (off * (1 + rounded) + rounded * kept)
    return fresh + error * (1 + rounded) * kept, more * min(length, 1 / (1 - decay))


_RULES: dict[type[ops.Operation], Callable[[ErrorBound, Stream], Bounds]] = {
    ops.Half: _half,
    ops.Multiply: _product,
    ops.SiluProduct: _silu_product,
    ops.Cumsum: _running_sum,
    ops.SumWhere: _sum_where,
    ops.MemoryRead: _memory,
    ops.ScaledSum: _scaled_sum,
    ops.Latch: _latch,
    ops.GateSum: _gated,
    ops.Dot: _dot,
    ops.FadingSum: _fading_sum,
    ops.SelectiveSum: _selective_sum,
    ops.FadingMemory: _fading_memory,
}
