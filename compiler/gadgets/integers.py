"""The gadgets: one function per operation that a block computes.

Each adds the channels (and columns) of one operation to a block and derives why the
block then computes the operation exactly. S is the scale of an x̂ port (a power of two,
`analysis/scale.py`), so x̂ = S·v; every other constant is a power of two too, so each step
multiplies by powers of two and adds lattice values: nothing rounds.
"""

from __future__ import annotations

import numpy as np

from compiler.analysis.scale import half_scale
from compiler.exactness.levels import COUNT, GATE, OFF, ON, RESET
from compiler.gadgets.parts import (
    column_entries,
    column_gain,
    constant_column,
    names,
    per_lane,
    single_features,
    targets,
    threshold,
)
from compiler.gadgets.reals import inner_product, scaled_sum
from compiler.ir.block import FAINT
from compiler.ir.builder import BlockBuilder
from compiler.language import operations as ops
from compiler.language.stream import Stream


def lower(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
    """Add the wanted numbers of an operation to the block."""
    _GADGETS[type(stream.operation)](stream, wanted, builder)


def rectify(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
    """relu on lanes, by the D path.

    dt_bias = −200 makes Δ = softplus(−200) = 0, so the state stays 0 and y = D·x̂ with D = 1/32;
    the gate is silu(32·one) = 32, so out = (1/S)·32·(1/32)·S·relu(v) = relu(v).
    """
    ids, scale = builder.rectifier(stream, wanted)
    out = (targets(stream, wanted, builder), np.full(len(ids), 1 / scale))
    builder.add_channels(names(stream, wanted), ids, out, builder.always_open(len(ids), GATE), OFF, skip=1 / GATE)


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
    target = targets(stream, wanted, builder)
    for sign in (1.0,) if single else (1.0, -1.0):
        gate = (row * sign * level).tocsr()
        builder.add_channels(
            names(stream, wanted), ids, (target, sign * unit / level), gate, OFF, skip=1.0, real_gate=not domain.step
        )


def running_sum(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
    """Σ_{s≤t} v_s: A = −0 (A_log = −200) keeps the state, Δ = 128 by dt_bias, B = 1/128, C = 1/32, gate 32.

    h = Σ 128·(1/128)·S·v and out = (1/S)·32·(1/32)·h (exact-arithmetic E1, E5).
    """
    constant_column(builder)
    ids, unit = builder.written(stream.inputs[0], wanted)
    out = (targets(stream, wanted, builder), unit * column_gain(builder))
    builder.add_channels(names(stream, wanted), ids, out, builder.always_open(len(ids), GATE), ON)


def latch(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
    """The last value stored: Δ = softplus(256·level − 128) is 128 where the level is 1 and 0 where it is at most 0.

    With A = −1, Δ = 128 erases (exp(−128) = 0) and writes 128·(1/128)·S·v; Δ = 0 leaves the state
    untouched bit for bit (exact-arithmetic E4). Before the start of the sequence the level is 0 or less.
    A sum_where is the same with A = −0: Δ = 128 adds.
    """
    value, when = stream.inputs
    constant_column(builder)
    flags, lanes = np.divmod(np.flatnonzero(wanted), value.width)
    ids, unit = per_lane(builder, value, lanes)
    out = (targets(stream, wanted, builder), unit * column_gain(builder))
    gate = builder.always_open(len(ids), GATE)
    decay = 1.0 if stream.operation.forgets else 0.0
    builder.add_channels(names(stream, wanted), ids, out, gate, decay=decay, **threshold(builder, when, flags))


def counter(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
    """Increments since the last reset: a state that a small step keeps while it adds, and a huge one erases (E9).

    A ≈ −2^−40. Where the flag is 0, Δ = 32 and exp(ΔA) = exp(−2e−11) rounds to 1; where it is 1, Δ = 32 + 2^50
    and exp(ΔA) = exp(−778) = 0, while x̂ is 0 there (value = relu(when − reset)). h = Σ 32·(1/128)·S·v.
    """
    value, reset = stream.inputs
    constant_column(builder)
    ids, unit = builder.written(value, wanted)
    parts, bias = builder.linear(reset)
    delta = [(r, f, RESET * w) for r, f, w in parts]
    out = (targets(stream, wanted, builder), unit * column_gain(builder) * ON / COUNT)
    gate = builder.always_open(1, GATE)
    builder.add_channels(names(stream, wanted), ids, out, gate, COUNT + RESET * bias, FAINT, delta_features=delta)


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
    constant_column(builder)
    latched = isinstance(state.operation, ops.Latch)
    flags, at_value = np.divmod(at, value.width) if latched else (None, at)
    ids, unit = per_lane(builder, value, at_value)
    level = GATE / float(builder.domains.of(gate).step)
    out = (np.tile(targets(stream, wanted, builder), keys), unit * column_gain(builder) * GATE / level)
    rows = (builder.on_lanes(gate)[selected] * level).tocsr()
    entries = [f"{stream.label}[{k}][{i}]" for k in range(keys) for i in lanes]
    if latched:
        decay = 1.0 if state.operation.forgets else 0.0
        builder.add_channels(entries, ids, out, rows, decay=decay, **threshold(builder, state.inputs[1], flags))
    else:
        builder.add_channels(entries, ids, out, rows, ON)


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
        write = [(r, f, w / ON) for r, f, w in column_entries(builder, key)]
        read = [(r, f, w / GATE) for r, f, w in column_entries(builder, query)]
        gain = 1.0
    else:
        write, key_unit = single_features(builder, key)
        read, query_unit = single_features(builder, query)
        gain = key_unit * query_unit / (ON * GATE)
    builder.set_columns([f"{stream.label}.column[{n}]" for n in range(key.width)], write, read)
    out = (targets(stream, wanted, builder), unit * gain)
    skip = float(stream.operation.skip) / (GATE * gain)
    builder.add_channels(names(stream, wanted), ids, out, builder.always_open(len(ids), GATE), ON, skip=skip)


def column_memory(stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
    """A memory whose columns have the step (Mamba-Δᵀ; paper A, Lemma 3): x̂ = S·v, B = k, C = q/32, and D = skip/32.

    Policy "last": Δ_n = softplus(256·k_n − 128) is 128 where column n is written, which erases it,
    and 0 elsewhere. The paper has softplus(w·k_n) without the shift, which is log 2 where k_n = 0
    and fades what must be kept. Policy "sum": Δ = softplus(−200) = 0, nothing fades.
    """
    value, key, query = stream.inputs
    ids, unit = builder.written(value, wanted)
    write = column_entries(builder, key)
    read = [(r, f, w / GATE) for r, f, w in column_entries(builder, query)]
    last = stream.operation.policy == "last"
    step = [(r, f, 2 * ON * w) for r, f, w in write] if last else []
    bias = np.full(key.width, -ON if last else OFF)
    builder.set_columns([f"{stream.label}.column[{n}]" for n in range(key.width)], write, read, (step, bias))
    out = (targets(stream, wanted, builder), unit)
    gate, skip = builder.always_open(len(ids), GATE), float(stream.operation.skip) / GATE
    builder.add_channels(names(stream, wanted), ids, out, gate, OFF, skip=skip)


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
