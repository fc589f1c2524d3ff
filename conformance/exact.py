"""The operations in plain Python, one step after the other: what every kernel is held against.

Numbers are of one of three kinds. `Exact` are integers and fractions: exp, softplus, silu and rsqrt are taken only
where every float32 implementation gives the same bits (docs/exactness.md), anything else raises `Inexact`. `Near` are
decimals of 40 digits, for cases whose results are held to a tolerance. `Double` are floats, for random operands.
Nothing here is shared with a kernel: no torch arithmetic, no compiler.

Letters: b batch, l length, d channels, n state columns, h heads, p channels of a head, g groups, w taps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from decimal import ROUND_HALF_EVEN, Context, Decimal, DivisionByZero, InvalidOperation, Overflow, localcontext
from fractions import Fraction
from functools import wraps
from math import isqrt
from typing import Any, TypeVar, cast

import numpy as np
from torch import Tensor

Numbers = np.ndarray
"""Arrays of dtype object: int and Fraction, or Decimal; of float64 where numbers are `Double`."""

DIGITS = 40

Operation = TypeVar("Operation", bound=Callable[..., Any])


class Inexact(ValueError):
    """An operand where implementations differ in their last bits."""


class Exact:
    """Integers and fractions."""

    @staticmethod
    def of(value: float) -> Any:
        return int(value) if float(value).is_integer() else Fraction(value)

    @staticmethod
    def exp(x: Any) -> int:
        if x == 0 or x <= -104:
            return int(x == 0)
        raise Inexact(f"exp({float(x):.9g}) is neither 0 nor 1 in float32.")

    @staticmethod
    def softplus(x: Any) -> Any:
        if x >= 20.1 or x <= -104:
            return x if x > 0 else 0
        raise Inexact(f"softplus({float(x):.9g}) is neither 0 nor its argument in float32.")

    @staticmethod
    def silu(x: Any) -> Any:
        if x == 0 or x >= 20.1 or x <= -104:
            return x if x > 0 else 0
        raise Inexact(f"silu({float(x):.9g}) is neither 0 nor its argument in float32.")

    @staticmethod
    def norm_factor(mean_square: Any, eps: float) -> Fraction:
        """1/√(m + eps) where m is a power of four beside which eps vanishes in float32."""
        if mean_square == 0:
            return Fraction(0)  # of zeros, whatever it is
        root = Fraction(isqrt(Fraction(mean_square).numerator), isqrt(Fraction(mean_square).denominator))
        dyadic = root.numerator & (root.numerator - 1) == 0 and root.denominator & (root.denominator - 1) == 0
        if root * root != mean_square or not dyadic or eps * 2**25 > mean_square:
            raise Inexact(f"1/sqrt({float(mean_square):.9g} + {eps}) is no power of two in float32.")
        return 1 / root


class Faint(Exact):
    """The same where a decay may be so near 1 that float32 takes it for 1: |x| ≤ 2^-26 (docs/exactness.md, E9)."""

    @staticmethod
    def exp(x: Any) -> int:
        return 1 if -(2**-26) <= x <= 0 else Exact.exp(x)


class Near:
    """Decimals of `DIGITS` digits."""

    context = Context(
        DIGITS, ROUND_HALF_EVEN, Emin=-999_999, Emax=999_999, capitals=1, clamp=0, flags=[],
        traps=[InvalidOperation, DivisionByZero, Overflow],
    )  # fmt: skip
    """All of it: what is left out is as the process has it, and a kernel's file may have changed that."""

    @staticmethod
    def of(value: float) -> Decimal:
        return Decimal(float(value))

    @classmethod
    def exp(cls, x: Decimal) -> Decimal:
        return x.exp(cls.context)

    @classmethod
    def softplus(cls, x: Decimal) -> Decimal:
        return (1 + cls.exp(x)).ln(cls.context)

    @classmethod
    def silu(cls, x: Decimal) -> Decimal:
        return x / (1 + cls.exp(-x))

    @classmethod
    def norm_factor(cls, mean_square: Decimal, eps: float) -> Decimal:
        return 1 / (mean_square + Decimal(eps)).sqrt(cls.context)


class Double:
    """Arrays of floats of 64 bits, for random operands that are held to a tolerance of float32."""

    of = staticmethod(float)
    exp = staticmethod(lambda x: np.where(x < 88.72, np.exp(np.minimum(x, 88.72)), math.inf))  # as float32 has it
    softplus = staticmethod(lambda x: np.where(x > 40, x, np.log1p(np.exp(np.minimum(x, 40)))))
    silu = staticmethod(lambda x: np.where(x > -700, x / (1 + np.exp(-np.maximum(x, -700))), 0.0))
    norm_factor = staticmethod(lambda mean_square, eps: 1 / np.sqrt(mean_square + eps))


Kind = type[Exact] | type[Near] | type[Double]


def numbers(tensor: Tensor, kind: Kind) -> Numbers:
    """A tensor's values, exactly."""
    values = tensor.detach().double().cpu().numpy()
    if kind is Double:
        return values
    if issubclass(kind, Exact) and (abs(values) < 2.0**62).all() and (np.trunc(values) == values).all():
        return values.astype(np.int64).astype(object)
    return _each(kind.of, values.astype(object))


def _each(function: Any, values: np.ndarray) -> Numbers:
    """A function of every number, computed once for each: most operands have few different ones. Of floats, of which
    hardly any two are the same, it is a function of arrays (`Double`)."""
    if values.dtype == np.float64:
        return function(values)
    if values.dtype == object:
        flat = values.reshape(-1).tolist()
        known = {value: function(value) for value in set(flat)}
        return np.fromiter(map(known.__getitem__, flat), object, len(flat)).reshape(values.shape)
    different, at = np.unique(values, return_inverse=True)
    return np.fromiter(map(function, different.tolist()), object, len(different))[at].reshape(values.shape)


def _in_digits(operation: Operation) -> Operation:
    """An operation whose decimals have `DIGITS` digits, whatever the process has set for others."""

    @wraps(operation)
    def computed(*operands: Any, **options: Any) -> Any:
        with localcontext(Near.context):
            return operation(*operands, **options)

    return cast(Operation, computed)


@_in_digits
def selective_scan(
    kind: Kind, u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False, initial_state=None,
    seq_idx=None, gate_before_skip=False, step_in_skip=False,
) -> dict[str, Numbers]:  # fmt: skip
    """The scan of Mamba: u, delta, z (b, d, l), A (d, n), B and C (b, n, l) or (b, g, n, l), D and delta_bias (d,),
    initial_state (b, d, n), or (documents, d, n) of those in the only row, seq_idx (b, l) the number of the document
    that a position belongs to.

    y (b, d, l), last_state (b, d, n). Channel i reads group i // (d/g). gate_before_skip: y silu(z) + D u, and
    step_in_skip: y + Δ D u, as no right scan has it and `causes` tries it.
    """
    grouped = lambda m: (m[:, None] if m.dim() == 3 else m).permute(0, 3, 1, 2)
    of: Any = lambda m: None if m is None else numbers(m, kind)
    y, last = _scan(
        kind, of(u.transpose(1, 2)), _steps(kind, of(delta.transpose(1, 2)), of(delta_bias), delta_softplus), of(A),
        of(grouped(B)), of(grouped(C)), of(D), None if z is None else of(z.transpose(1, 2)), of(initial_state), seq_idx,
        gate_before_skip, step_in_skip,
    )  # fmt: skip
    return {"y": y.transpose(0, 2, 1), "last_state": last}


@_in_digits
def ssd(
    kind: Kind, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False, dt_limit=None, initial_states=None,
    seq_idx=None, chunk_size=None, gate_before_skip=False, step_in_skip=False,
) -> dict[str, Numbers]:  # fmt: skip
    """The scan of Mamba-2: x, z (b, l, h, p), dt (b, l, h), A (h,), B and C (b, l, g, n), D (h,) or (h, p), dt_bias
    (h,), initial_states (b, h, p, n), or of each document of the only row, seq_idx (b, l); dt_limit = (least, most)
    clamps the step after its softplus.

    y (b, l, h, p), last_state (b, h, p, n). Head i reads group i // (h/g); chunk_size changes nothing.
    """
    (batch, length, heads, p), n = x.shape, B.shape[-1]
    of: Any = lambda m: None if m is None else numbers(m, kind)
    flat = lambda m: None if m is None else of(m).reshape(batch, length, heads * p)
    steps = _steps(kind, of(dt), of(dt_bias), dt_softplus)
    if dt_limit is not None:
        bounds: list[Any] = [kind.of(bound) if np.isfinite(bound) else None for bound in dt_limit]
        least, most = bounds
        steps = np.maximum(steps, least) if most is None else np.minimum(np.maximum(steps, least), most)
    if D is not None:
        D = (D if D.dim() == 2 else D[:, None].expand(heads, p)).reshape(-1)
    initial = None if initial_states is None else of(initial_states).reshape(-1, heads * p, n)
    decay = of(A).repeat(p)[:, None]
    y, last = _scan(
        kind, flat(x), steps.repeat(p, axis=2), decay, of(B), of(C), of(D), flat(z), initial, seq_idx,
        gate_before_skip, step_in_skip,
    )  # fmt: skip
    return {"y": y.reshape(batch, length, heads, p), "last_state": last.reshape(batch, heads, p, n)}


def _steps(kind: Kind, delta: Numbers, bias: Numbers | None, softplus: bool) -> Numbers:
    delta = delta if bias is None else delta + bias
    return _each(kind.softplus, delta) if softplus else delta


def _scan(kind, u, delta, A, B, C, D, z, initial, seq_idx, gate_before_skip, step_in_skip) -> tuple[Numbers, Numbers]:
    """h ← exp(Δ A) h + Δ u B, y = (C·h + D u) silu(z): u, delta, z (b, l, d), B and C (b, l, g, n), A (d, n or 1).
    Channel i reads group i // (d/g).
    """
    batch, _, channels = u.shape
    h = np.full((batch, channels, B.shape[-1]), kind.of(0), dtype=u.dtype) if initial is None else initial
    if issubclass(kind, Exact):
        y, h = _in_units(kind, u, delta, A, B, C, h, seq_idx)
    else:
        decay = _each(kind.exp, delta[..., None] * A)
        written = delta * u
        if kind is Double:  # the same operations in the same order, in arrays of floats
            decay, written, B, C, h = (m.astype(float) for m in (decay, written, B, C, h))
        y, h = _walked(decay, written, B, C, h, kind.of(0), seq_idx)
    gate = 1 if z is None else _each(kind.silu, z)
    y = y * gate if gate_before_skip else y
    y = y if D is None else y + D * (delta * u if step_in_skip else u)
    y = y if gate_before_skip else y * gate
    return y, h


def _in_units(kind, u, delta, A, B, C, h, seq_idx) -> tuple[Numbers, Numbers]:
    """The same of integers and fractions, as whole numbers of one unit each: fractions take some fifty times as long.
    The whole numbers have 64 bits where nothing that is added up can be larger, and any size elsewhere.
    """
    (u, a), (delta, b), (A, c), (B, d), (C, e), (h, f) = map(_whole, (u, delta, A, B, C, h))
    unit = math.lcm(a * b * d, f)
    B, h = B * (unit // (a * b * d)), h * (unit // f)
    top = lambda m: max(map(abs, m.reshape(-1).tolist()), default=0)
    summed = top(h) + u.shape[1] * top(u) * top(delta) * top(B)
    most = max(top(delta) * top(A), summed * max(top(C), 1) * max(B.shape[-1], 1))
    u, delta, A, B, C, h = (m.astype(np.int64 if most < 2**62 else object) for m in (u, delta, A, B, C, h))
    decay = _each(lambda x: kind.exp(Fraction(x, b * c)), delta[..., None] * A).astype(u.dtype)
    y, h = _walked(decay, delta * u, B, C, h, 0, seq_idx)
    plain = lambda x, unit: Fraction(x, unit) if x % unit else x // unit
    return _each(lambda x: plain(x, unit * e), y), _each(lambda x: plain(x, unit), h)


def _whole(values: Numbers) -> tuple[Numbers, int]:
    """(whole numbers, n) of integers and fractions: each is its whole number over n."""
    flat = values.reshape(-1).tolist()
    if set(map(type, flat)) <= {int}:
        return values, 1
    unit = math.lcm(*{x.denominator for x in flat})
    out = np.empty(values.shape, dtype=object)
    out.reshape(-1)[:] = [x.numerator * (unit // x.denominator) for x in flat]
    return out, unit


def _walked(decay, written, B, C, h, zero, seq_idx) -> tuple[Numbers, Numbers]:
    """h ← decay h + written B, y = C·h, one position after the other: written (b, l, d), B and C (b, l, g, n)."""
    y = np.empty(written.shape, dtype=written.dtype)
    h, later = h[: len(written)], iter(h[len(written) :])
    of_each = written.shape[2] // B.shape[2]
    for t in range(written.shape[1]):
        if seq_idx is not None and t:
            begins = (seq_idx[:, t] != seq_idx[:, t - 1]).numpy()
            h = np.where(begins[:, None, None], next(later, zero), h) if begins.any() else h
        h = decay[:, t] * h + written[:, t, :, None] * B[:, t].repeat(of_each, axis=1)
        terms = h * C[:, t].repeat(of_each, axis=1)
        # Floats one after the other: along a last axis numpy adds them in pairs.
        y[:, t] = np.moveaxis(terms, -1, 0).copy().sum(axis=0) if terms.dtype == float else terms.sum(axis=-1)
    return y, h


@_in_digits
def conv(kind: Any, x, weight, bias=None, activation=None, initial_states=None, seq_idx=None) -> dict[str, Numbers]:
    """Depthwise causal convolution: x (b, d, l), weight (d, w), bias (d,), initial_states (b, d, w−1) what stood before
    the first position; taps never reach into another document. activation: None or "silu".

    y (b, d, l), last_state (b, d, w−1) the last inputs.
    """
    (batch, channels, length), taps = x.shape, weight.shape[1]
    values, w = numbers(x, kind), numbers(weight, kind)
    if initial_states is None:
        before = np.full((batch, channels, taps - 1), kind.of(0), dtype=values.dtype)
    else:
        before = numbers(initial_states, kind)
    past = np.concatenate([before, values], axis=2)
    y = np.full(values.shape, kind.of(0), dtype=values.dtype)
    for k in range(taps):
        seen, back = past[:, :, k : k + length], taps - 1 - k
        if seq_idx is not None and back:
            ids = seq_idx.numpy()
            same = np.ones((batch, length), dtype=bool)
            same[:, back:] = ids[:, back:] == ids[:, :-back]
            seen = np.where(same[:, None], seen, kind.of(0))
        y = y + w[None, :, k, None] * seen
    y = y if bias is None else y + numbers(bias, kind)[None, :, None]
    return {"y": _each(kind.silu, y) if activation else y, "last_state": past[:, :, past.shape[2] - taps + 1 :]}


@_in_digits
def norm(kind: Kind, x, weight, z=None, eps=1e-5, group_size=None, norm_before_gate=False) -> dict[str, Numbers]:
    """x / √(mean of x² over each group of group_size channels + eps) · weight, times silu(z) before it or after:
    x, z (…, d), weight (d,). y (…, d).
    """
    values = numbers(x, kind)
    gate = None if z is None else _each(kind.silu, numbers(z, kind))
    if gate is not None and not norm_before_gate:
        values = values * gate
    grouped = values.reshape(*x.shape[:-1], -1, group_size or x.shape[-1])
    total = (grouped * grouped).sum(axis=-1)
    size = grouped.shape[-1]
    mean = total / (Fraction(size) if issubclass(kind, Exact) else kind.of(size))
    factor = _each(lambda m: kind.norm_factor(m, eps), mean)
    y = _times(kind, grouped, factor[..., None]).reshape(values.shape) * numbers(weight, kind)
    if gate is not None and norm_before_gate:
        y = y * gate
    return {"y": y}


@_in_digits
def delta_rule(
    kind: Any, q, k, v, g, beta, initial_state=None, use_qk_l2norm_in_kernel=False, seq_idx=None
) -> dict[str, Numbers]:
    """The gated delta rule: q, k (b, l, n, d_k), v (b, l, h, d_v), g and beta (b, l, h), initial_state
    (b, h, d_k, d_v), or of each document of the only row, seq_idx (b, l); with the flag q and k are divided by the root
    of their sum of squares + 1e-6.

    S ← exp(g)·S, then S ← S + β k (v − Sᵀk)ᵀ, y = Sᵀq/√d_k (b, l, h, d_v), last_state S. Head i reads q and k of head
    i // (h/n).
    """
    (batch, _, heads, _), d_k = v.shape, k.shape[-1]
    spread = lambda m: _unit(kind, numbers(m, kind), use_qk_l2norm_in_kernel).repeat(heads // m.shape[2], axis=2)
    queries, keys = spread(q), spread(k)
    values, decays, betas = numbers(v, kind), _each(kind.exp, numbers(g, kind)), numbers(beta, kind)
    root = kind.norm_factor(kind.of(d_k), 0.0)
    state = np.full((batch, heads, d_k, v.shape[-1]), kind.of(0), dtype=values.dtype)
    state = state if initial_state is None else numbers(initial_state, kind)
    operands = (queries, keys, values, decays, betas, state)
    begins = None if seq_idx is None else (seq_idx[:, 1:] != seq_idx[:, :-1]).numpy()
    if all(set(map(type, m.reshape(-1).tolist())) <= {int} for m in operands):
        with suppress(OverflowError):
            y, state = _written(0, begins, *(m.astype(np.int64) for m in operands))
            return {"y": _each(lambda total: total * root, y), "last_state": state.astype(object)}
    y, state = _written(kind.of(0), begins, *operands)
    return {"y": y * root, "last_state": state}


def _written(zero, begins, queries, keys, values, decays, betas, state) -> tuple[Numbers, Numbers]:
    """S ← d S, S ← S + β k (v − Sᵀk)ᵀ, y = Sᵀq, one position after the other. begins: (b, l − 1) whether the next
    position begins a document. OverflowError where whole numbers of 64 bits might not do.
    """
    y = np.empty(values.shape, dtype=values.dtype)
    state, later = state[: len(values)], iter(state[len(values) :])
    for t in range(values.shape[1]):
        if begins is not None and t and begins[:, t - 1].any():
            state = np.where(begins[:, t - 1, None, None, None], next(later, zero), state)
        state = decays[:, t, :, None, None] * state
        if state.dtype == np.int64:
            _check_room(state, keys[:, t], queries[:, t], values[:, t], betas[:, t])
        held = (state * keys[:, t, :, :, None]).sum(axis=2)
        change = betas[:, t, :, None] * (values[:, t] - held)
        state = state + keys[:, t, :, :, None] * change[:, :, None]
        y[:, t] = (state * queries[:, t, :, :, None]).sum(axis=2)
    return y, state


def _check_room(state, key, query, value, beta) -> None:
    """OverflowError unless a position's sums stay below 2^62, whatever their signs."""
    held, k, q, v, b = (int(np.abs(m).max()) for m in (state, key, query, value, beta))
    after = held + k * b * (v + state.shape[2] * held * k)
    if state.shape[2] * after * max(q, 1) >= 1 << 62:
        raise OverflowError


def _unit(kind: Any, m: Numbers, normed: bool) -> Numbers:
    if not normed:
        return m
    return _times(kind, m, _each(lambda total: kind.norm_factor(total, 1e-6), (m * m).sum(axis=-1))[..., None])


def _times(kind: Any, m: Numbers, factor: Numbers) -> Numbers:
    """m times factors, which are fractions where numbers are exact."""
    if not issubclass(kind, Exact):
        return m * factor
    above, below = _each(lambda f: f.numerator, factor), _each(lambda f: f.denominator, factor)
    return _quotient(m * above, below)


def _quotient(above: Numbers, below: Numbers) -> Numbers:
    """Integers where they are integers, which are added some ten times faster than fractions."""
    return np.frompyfunc(lambda a, b: a // b if a % b == 0 else Fraction(a) / b, 2, 1)(above, below)
