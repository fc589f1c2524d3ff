"""The gadgets: one function per operation that a block computes.

Each adds the channels (and columns) of one operation to a block and derives why the
block then computes the operation exactly. S is the scale of an x̂ port (a power of two,
`passes/scale.py`), so x̂ = S·v; every other constant is a power of two too, so each step
multiplies by powers of two and adds lattice values: nothing rounds.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy import sparse

from compiler.block import FAINT, OFF
from compiler.builder import CONSTANT, BlockBuilder
from compiler.errors import CompileError
from compiler.language import operations as ops
from compiler.language.stream import Stream
from compiler.passes.domains import Domains, power_of_two
from compiler.passes.scale import HALF, half_scale

ON = 128.0  # Δ of a channel that writes: softplus(128) = 128, and exp(−128·1) = 0 in float32
COUNT = 32.0  # Δ of a channel that adds and keeps, although its A is not 0
ERASE = 2.0**50  # what a reset adds to it
GATE = 32.0  # z of an open gate: silu(32) = 32


def lower(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
    """Add the wanted numbers of an operation to the block."""
    _GADGETS[type(stream.operation)](stream, wanted, builder)


def _targets(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> np.ndarray:
    return builder.lanes.index[stream][np.flatnonzero(wanted)]


def _names(stream: Stream, wanted: np.ndarray) -> list[str]:
    return [stream.label if stream.width == 1 else f"{stream.label}[{i}]" for i in np.flatnonzero(wanted)]


def rectify(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
    """relu on lanes, by the D path.

    dt_bias = −200 makes Δ = softplus(−200) = 0, so the state stays 0 and y = D·x̂ with D = 1/32;
    the gate is silu(32·one) = 32, so out = (1/S)·32·(1/32)·S·relu(v) = relu(v).
    """
    ids, scale = builder.rectifier(stream, wanted)
    out = (_targets(stream, wanted, builder), np.full(len(ids), 1 / scale))
    builder.add_channels(_names(stream, wanted), ids, out, builder.always_open(len(ids), GATE), OFF, skip=1 / GATE)


def product(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
    """a·b by the D path and the gate (exact-arithmetic E3): silu(z) − silu(−z) = z, z = S_b·b.

    a ≥ 0, or half of a real number. Where b ≥ 0 on a lattice the second channel of the pair is not
    needed. S_b puts every nonzero b of a lattice at 20.1 or beyond, so both silu are relus and their
    difference is exact; for a real b it is 128, and the difference is right within a few ulps.
    """
    a, b = stream.inputs
    ids, unit = builder.written(a, wanted)
    domain = builder.domains.of(b)
    single = domain.lo >= 0 and domain.step > 0
    level = float(GATE / domain.step) if single else half_scale(domain)
    row = builder.on_lanes(b)[np.flatnonzero(wanted)]
    target = _targets(stream, wanted, builder)
    for sign in (1.0,) if single else (1.0, -1.0):
        gate = (row * sign * level).tocsr()
        builder.add_channels(
            _names(stream, wanted), ids, (target, sign * unit / level), gate, OFF, skip=1.0, real_gate=not domain.step
        )


def running_sum(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
    """Σ_{s≤t} v_s: A = −0 (A_log = −200) keeps the state, Δ = 128 by dt_bias, B = 1/128, C = 1/32, gate 32.

    h = Σ 128·(1/128)·S·v and out = (1/S)·32·(1/32)·h (exact-arithmetic E1, E5).
    """
    _constant_column(builder)
    ids, unit = builder.written(stream.inputs[0], wanted)
    out = (_targets(stream, wanted, builder), unit * _column_gain(builder))
    builder.add_channels(_names(stream, wanted), ids, out, builder.always_open(len(ids), GATE), ON)


def latch(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
    """The last value stored: Δ = softplus(256·level − 128) is 128 where the level is 1 and 0 where it is at most 0.

    With A = −1, Δ = 128 erases (exp(−128) = 0) and writes 128·(1/128)·S·v; Δ = 0 leaves the state
    untouched bit for bit (exact-arithmetic E4). Before the start of the sequence the level is 0 or less.
    A sum_where is the same with A = −0: Δ = 128 adds.
    """
    value, when = stream.inputs
    _constant_column(builder)
    flags, lanes = np.divmod(np.flatnonzero(wanted), value.width)
    ids, unit = _per_lane(builder, value, lanes)
    out = (_targets(stream, wanted, builder), unit * _column_gain(builder))
    gate = builder.always_open(len(ids), GATE)
    decay = 1.0 if stream.operation.forgets else 0.0
    builder.add_channels(_names(stream, wanted), ids, out, gate, decay=decay, **_threshold(builder, when, flags))


def counter(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
    """Increments since the last reset: a state that a small step keeps while it adds, and a huge one erases (E9).

    A ≈ −2^−40. Where the flag is 0, Δ = 32 and exp(ΔA) = exp(−2e−11) rounds to 1; where it is 1, Δ = 32 + 2^50
    and exp(ΔA) = exp(−778) = 0, while x̂ is 0 there (value = relu(when − reset)). h = Σ 32·(1/128)·S·v.
    """
    value, reset = stream.inputs
    _constant_column(builder)
    ids, unit = builder.written(value, wanted)
    parts, bias = builder.linear(reset)
    delta = [(r, f, ERASE * w) for r, f, w in parts]
    out = (_targets(stream, wanted, builder), unit * _column_gain(builder) * ON / COUNT)
    gate = builder.always_open(1, GATE)
    builder.add_channels(_names(stream, wanted), ids, out, gate, COUNT + ERASE * bias, FAINT, delta_features=delta)


def gated_state(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
    """Σ_k gate_k · bank_k: the channels of entry k (latches or running sums) behind z = 32·gate_k.

    silu(32·gate_k) is 32 for the selected entry and 0 for all others, and the entries share their output lanes.
    A single gate opens the whole bank.
    """
    state, gate = stream.inputs
    value = state.inputs[0]
    keys = gate.width
    per_key = state.width // keys
    lanes = np.flatnonzero(wanted)
    at = (np.arange(keys)[:, None] * per_key + lanes).reshape(-1)
    selected = np.repeat(np.arange(keys), len(lanes))
    _constant_column(builder)
    latched = isinstance(state.operation, ops.Latch)
    flags, at_value = np.divmod(at, value.width) if latched else (None, at)
    ids, unit = _per_lane(builder, value, at_value)
    level = GATE / float(builder.domains.of(gate).step)
    out = (np.tile(_targets(stream, wanted, builder), keys), unit * _column_gain(builder) * GATE / level)
    rows = (builder.on_lanes(gate)[selected] * level).tocsr()
    names = [f"{stream.label}[{k}][{i}]" for k in range(keys) for i in lanes]
    if latched:
        decay = 1.0 if state.operation.forgets else 0.0
        builder.add_channels(names, ids, out, rows, decay=decay, **_threshold(builder, state.inputs[1], flags))
    else:
        builder.add_channels(names, ids, out, rows, ON)


def outer_product_memory(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
    """Σ_{s≤t} v_s <k_s, q_t>: x̂ = S·v, B = k/128, C = q/32, A = −0, Δ = 128 (paper A, Theorem 2).

    Where nothing linear follows silu at B and C (Mamba-2) the columns stand at their own scales
    S_k·k and S_q·q, and the output is divided by 128·S_k·S_q instead.
    """
    value, key, query = stream.inputs
    if builder.rules.delta == "columns":
        return column_memory(stream, wanted, builder)
    ids, unit = builder.written(value, wanted)
    if builder.rules.columns == "linear":
        write = [(r, f, w / ON) for r, f, w in _column_entries(builder, key)]
        read = [(r, f, w / GATE) for r, f, w in _column_entries(builder, query)]
        gain = 1.0
    else:
        write, key_unit = _single_features(builder, key)
        read, query_unit = _single_features(builder, query)
        gain = key_unit * query_unit / (ON * GATE)
    builder.set_columns([f"{stream.label}.column[{n}]" for n in range(key.width)], write, read)
    out = (_targets(stream, wanted, builder), unit * gain)
    skip = float(stream.operation.skip) / (GATE * gain)
    builder.add_channels(_names(stream, wanted), ids, out, builder.always_open(len(ids), GATE), ON, skip=skip)


def column_memory(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
    """A memory whose columns have the step (Mamba-Δᵀ; paper A, Lemma 3): x̂ = S·v, B = k, C = q/32, and D = skip/32.

    Policy "last": Δ_n = softplus(256·k_n − 128) is 128 where column n is written, which erases it,
    and 0 elsewhere. The paper has softplus(w·k_n) without the shift, which is log 2 where k_n = 0
    and fades what must be kept. Policy "sum": Δ = softplus(−200) = 0, nothing fades.
    """
    value, key, query = stream.inputs
    ids, unit = builder.written(value, wanted)
    write = _column_entries(builder, key)
    read = [(r, f, w / GATE) for r, f, w in _column_entries(builder, query)]
    last = stream.operation.policy == "last"
    step = [(r, f, 2 * ON * w) for r, f, w in write] if last else []
    bias = np.full(key.width, -ON if last else OFF)
    builder.set_columns([f"{stream.label}.column[{n}]" for n in range(key.width)], write, read, (step, bias))
    out = (_targets(stream, wanted, builder), unit)
    gate, skip = builder.always_open(len(ids), GATE), float(stream.operation.skip) / GATE
    builder.add_channels(_names(stream, wanted), ids, out, gate, OFF, skip=skip)


def inner_product(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
    """Σ_n a_n·b_n in one channel: x̂ = 32 everywhere, B = a/128, C = b/32, Δ = 128 and A = −1.

    Δ·|A| = 128 erases the state at every position, so h_n = 128·(a_n/128)·32 and y = Σ a_n b_n; gate 32.
    B and C are linear in x̂, hence signed.
    """
    a, b = stream.inputs
    write = [(r, f, w / ON) for r, f, w in _column_entries(builder, a)]
    read = [(r, f, w / GATE) for r, f, w in _column_entries(builder, b)]
    builder.set_columns([f"{stream.label}.column[{n}]" for n in range(a.width)], write, read)
    out = (_targets(stream, wanted, builder), np.array([1 / GATE]))
    builder.add_channels(_names(stream, wanted), np.array([builder.constant()]), out, builder.always_open(1, GATE), ON, decay=1.0)


def scaled_sum(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
    """gate·Σ value·weight in a state that never fades: Δ = softplus(±R·weight), x̂ = half(value), z = ±S·gate.

    softplus(u) − softplus(−u) = u, so the four channels (Δ±, z±) of each half of the value sum to R·S times
    the product. The step is right within an absolute error of about 2^−22/R of the weight (softplus of a small
    number is near ln 2), so R is as large as the range of float32 leaves room for.
    """
    value, weight, gate = stream.inputs
    _constant_column(builder)
    ids, unit = builder.written(value, wanted)
    level = half_scale(builder.domains.of(gate), HALF)
    rate = step_rate(stream, builder.domains)
    row = builder.on_lanes(gate)[np.flatnonzero(wanted)]
    target = _targets(stream, wanted, builder)
    gain = _column_gain(builder) * ON * GATE / (rate * level)
    for step_sign in (1.0, -1.0):
        delta = _steps(builder, weight, wanted, step_sign * rate)
        for gate_sign in (1.0, -1.0):
            out = (target, step_sign * gate_sign * unit * gain)
            z = (row * gate_sign * level).tocsr()
            builder.add_channels(_names(stream, wanted), ids, out, z, real_gate=True, real_step=True, **delta)


def step_rate(stream: Stream, domains: Domains) -> float:
    """R of a scaled sum: the largest power of two up to 2^60 that leaves a factor of 2^8 below the largest float32."""
    gate = domains.of(stream.inputs[2])
    reach = max(domains.sum_bound(stream), Fraction(1)) * max(gate.bound, Fraction(1)) * HALF**2
    scale = Fraction(stream.inputs[0].operation.scale) * Fraction(half_scale(gate, HALF)) / HALF**2
    rate = min(Fraction(2) ** 60, Fraction(2) ** 119 / power_of_two(reach * scale))
    if rate < HALF:
        raise CompileError([(stream, f"its sums can reach {float(reach / HALF**2):.3g}, which leaves no range for Δ; declare smaller bounds")])
    return float(rate)


def _steps(builder: BlockBuilder, weight: Stream, wanted: np.ndarray, rate: float) -> dict:
    """The Δ port of one channel per wanted number: rate·weight."""
    rows = np.flatnonzero(wanted)
    seat = np.full(weight.width, -1)
    seat[rows] = np.arange(len(rows))
    parts, bias = builder.linear(weight)
    entries = [(seat[r][seat[r] >= 0], f[seat[r] >= 0], rate * w[seat[r] >= 0]) for r, f, w in parts]
    return {"delta_features": entries, "delta_bias": rate * bias[rows]}


# Shared parts -------------------------------------------------------------------------------------


def _per_lane(builder: BlockBuilder, value: Stream, lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x̂ features and units for the listed (repeated) numbers of a value."""
    used = np.zeros(value.width, dtype=bool)
    used[lanes] = True
    ids, unit = builder.written(value, used)
    position = np.cumsum(used) - 1
    return ids[position[lanes]], unit[position[lanes]]


def _constant_column(builder: BlockBuilder) -> None:
    """The one column of running sums and latches: B = 1/128 and C = 1/32 at every position (x̂ = 32 where nothing follows silu)."""
    on = np.array([builder.constant()])
    linear = builder.rules.columns != "features"
    write, read = (1 / (ON * CONSTANT), 1 / (GATE * CONSTANT)) if linear else (1.0, 1.0)
    row = np.zeros(1, dtype=np.int64)
    builder.set_columns(["constant"], [(row, on, np.array([write]))], [(row, on, np.array([read]))])


def _column_gain(builder: BlockBuilder) -> float:
    """What undoes 128·B·C·32 of the constant column."""
    return 1.0 if builder.rules.columns != "features" else 1 / (ON * CONSTANT * CONSTANT * GATE)


def _threshold(builder: BlockBuilder, when: Stream, flags: np.ndarray) -> dict:
    """The Δ port of one channel per listed flag: 256·level − 128."""
    if builder.rules.delta == "lanes":
        rows = builder.on_lanes(when)[flags]
        return {"delta_lanes": ops.exact_matrix(2 * ON * rows), "delta_bias": -ON}
    parts, bias = builder.linear(when)
    count = np.bincount(flags, minlength=when.width)
    order = np.argsort(flags, kind="stable")
    start = np.cumsum(count) - count
    entries = []
    for row, feature, weight in parts:
        repeat = count[row]
        offset = np.concatenate([np.arange(n) for n in repeat]) if len(repeat) else np.zeros(0, dtype=np.int64)
        channel = order[np.repeat(start[row], repeat) + offset.astype(np.int64)]
        entries.append((channel, np.repeat(feature, repeat), np.repeat(2 * ON * weight, repeat)))
    return {"delta_features": entries, "delta_bias": (2 * ON * bias - ON)[flags]}


def _column_entries(builder: BlockBuilder, stream: Stream) -> list[tuple]:
    """(column, feature, weight) triples of a key or query; its constants come from the channel that is always on."""
    parts, bias = builder.linear(stream)
    constant = np.flatnonzero(bias)
    if len(constant):
        parts.append((constant, np.full(len(constant), builder.constant()), bias[constant] / CONSTANT))
    return parts


def _single_features(builder: BlockBuilder, stream: Stream) -> tuple[list[tuple], float]:
    """Columns that are one feature each, and their common unit."""
    ids, unit = builder.written(stream, np.ones(stream.width, dtype=bool))
    if len(set(unit)) != 1:
        raise CompileError([(stream, f"its columns stand at {len(set(unit))} different scales, and {builder.rules.name} needs one for all")])
    return [(np.arange(stream.width), ids, np.ones(stream.width))], float(unit[0])


_GADGETS = {
    ops.Relu: rectify,
    ops.Multiply: product,
    ops.Cumsum: running_sum,
    ops.Latch: latch,
    ops.SumWhere: latch,
    ops.GateSum: gated_state,
    ops.MemoryRead: outer_product_memory,
    ops.Half: rectify,
    ops.Dot: inner_product,
    ops.ScaledSum: scaled_sum,
    ops.Count: counter,
}
