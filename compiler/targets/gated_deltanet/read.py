"""The tensors of a Gated DeltaNet read back, from what the module computes, and compared with the block.

Both sides become what each head computes: β, decay, its pairs of key and query rows, and its channels (value row, gate,
output), with no order and no padding. Heads with equal keys, β and decay are one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from scipy import sparse
from torch import Tensor

from compiler.exactness.compare import MISTAKE, Miscompiled
from compiler.exactness.levels import ERASE_LOG, ON
from compiler.exactness.read_back import csr, keys, moved
from compiler.ir.block import SelectiveBlock
from compiler.targets.gated_deltanet.heads import LEVEL, RAISED, DeltaSizes, height, one_lane

Row = tuple[bytes, bytes]  # weights over d_model and taps
Held = dict[tuple, Counter]  # (β, decay, step row, step bias, {(key row, query row)}) → {(value row, gate, out)}


def check_heads(
    tensors: Mapping[str, Tensor], size: DeltaSizes, block: SelectiveBlock, lane_in: np.ndarray, lane_out: np.ndarray
) -> None:
    """Raise Miscompiled unless the tensors hold the block, nothing less and nothing more."""
    one = int(lane_in[one_lane(block)])
    printed, meant = held_in(tensors, size, one), held_by(block, size, lane_in, lane_out)
    for head in meant:
        if printed.get(head) != meant[head]:
            name = block.channels.names[0] if block.channels.names else "the block"
            raise Miscompiled(f"{MISTAKE} the weights that were printed do not hold a head of {name} and its block.")
    if printed.keys() != meant.keys():
        raise Miscompiled(f"{MISTAKE} the weights that were printed hold a head that their block lacks.")


def held_in(tensors: Mapping[str, Tensor], size: DeltaSizes, one: int) -> Held:
    """What the tensors compute, K of the heads' norms divided out; one: the coordinate of d_model that holds 1."""
    arrays = {name: tensor.numpy().astype(np.float64) for name, tensor in tensors.items()}
    taps = arrays["conv1d.weight"][:, 0, ::-1]
    keyed = size.heads * size.d_state
    query, key, value = (
        _rows(csr(arrays[f"{name}_proj.weight"]), taps[start:end])
        for name, start, end in (("q", 0, keyed), ("k", keyed, 2 * keyed), ("v", 2 * keyed, len(taps)))
    )
    gates, outs = keys(csr(arrays["g_proj.weight"])), csr(arrays["out_proj.weight"].T)
    steps, strengths = keys(csr(arrays["a_proj.weight"])), arrays["b_proj.weight"]
    level = arrays["o_norm.weight"]
    if not (level == level[0]).all():
        raise Miscompiled(f"{MISTAKE} the norm of the heads that was printed is not the same for all columns.")
    found: Held = {}
    for head in range(size.heads):
        rows = slice(head * size.d_state, (head + 1) * size.d_state)
        columns = np.arange(head * size.headdim, (head + 1) * size.headdim)
        pairs = Counter(pair for pair in zip(key[rows], query[rows], strict=True) if pair != (None, None))
        if not pairs:  # without keys nothing is kept, so 0 is read
            continue
        if all(value[c] is None for c in columns):  # nothing is ever written, so 0 is read
            continue
        beta = _beta(strengths[head], one, size.largest_beta)
        written = Counter(
            (row, gates[c], keys(outs[[c]] * put)[0])
            for c, row, put in _norm(value, columns, size.headdim, level[0], one)
            if outs[[c]].nnz or gates[c]
        )
        if not written:  # nothing is put in, and the norm of nothing is nothing
            continue
        name = (beta, arrays["A_log"][head], steps[head], arrays["dt_bias"][head], frozenset(pairs.items()))
        found.setdefault(name, Counter()).update(written)
    return found


def _rows(rows: sparse.csr_array, taps: np.ndarray) -> list[Row | None]:
    """(weights, taps) of each convolved row; None where it is 0."""
    return [(key, (taps[i] + 0.0).tobytes()) if key and taps[i].any() else None for i, key in enumerate(keys(rows))]


def _beta(strength: np.ndarray, one: int, largest: int) -> float:
    """c·σ(b) of a head whose b is 0 or at least 64 everywhere; Miscompiled for another."""
    others = np.delete(strength, one)
    if others.any() or not (strength[one] == 0 or strength[one] >= 64):
        raise Miscompiled(f"{MISTAKE} the β of a head that was printed depends on its input, or is no whole number.")
    return largest * (0.5 if strength[one] == 0 else 1.0)


def _norm(
    value: list[Row | None], columns: np.ndarray, headdim: int, level: float, one: int
) -> list[tuple[int, Row, float]]:
    """(column, its row as the block has it, what is put out for it) of the columns of a head that hold data.

    Where a head has constants a_i·K with Σ a_i² = headdim, its norm divides by K and its weight is K. Where all its
    columns hold multiples a_i·RAISED of one row with such a sum, ±V·a_i or 0, the norm gives ±a_i for it, whatever V
    is: what is put out is told for V = 1.
    """
    held = {int(c): row for c in columns if (row := value[c]) is not None}
    constants = {c: weight for c, row in held.items() if (weight := _constant(row, one)) >= level}
    if constants:
        if sum((w / level) ** 2 for w in constants.values()) != headdim:
            raise Miscompiled(f"{MISTAKE} the ballast of a head that was printed is not that of its norm.")
        return [(c, row, 1.0) for c, row in held.items() if c not in constants]
    if not held:
        return []
    heights = {
        c: float(np.abs(_entries(row)[1]).max() * np.abs(np.frombuffer(row[1])).sum()) for c, row in held.items()
    }
    # of the row's weights: those of a ramp may be larger than V
    unit = (sum(h * h for h in heights.values()) / headdim) ** 0.5
    rows = {c: _divided(row, RAISED * heights[c] / unit) for c, row in held.items()}
    if len(set(rows.values())) != 1:
        raise Miscompiled(f"{MISTAKE} a head that was printed has no ballast and more than one value.")
    return [(c, row, level * heights[c] / unit) for c, row in rows.items()]


def _entries(row: Row) -> tuple[np.ndarray, np.ndarray]:
    """(coordinates of d_model, weights) of a row."""
    middle = len(row[0]) // 2
    return np.frombuffer(row[0][:middle], dtype=np.int64), np.frombuffer(row[0][middle:])


def _divided(row: Row, factor: float) -> Row:
    """A row over a factor."""
    places, weights = _entries(row)
    return places.tobytes() + (weights / factor).tobytes(), row[1]


def _constant(row: Row, one: int) -> float:
    """The weight of a row that reads the constant lane alone, at the present position; 0 for another."""
    (places, weights), taps = _entries(row), np.frombuffer(row[1])
    return float(weights[0]) if places.tolist() == [one] and taps[0] == 1 and not taps[1:].any() else 0.0


def held_by(block: SelectiveBlock, size: DeltaSizes, lane_in: np.ndarray, lane_out: np.ndarray) -> Held:
    """What a block computes, in the same terms."""
    channels, columns, features = block.channels, block.columns, block.features
    of_channels, of_columns, betas = block.heads
    rows = _rows(moved(features.rows, lane_in, size.d_model), features.taps)
    gates = keys(moved(channels.gate, lane_in, size.d_model))
    steps = keys(moved(channels.delta_lanes, lane_in, size.d_model))
    outs = moved(channels.out, lane_out, size.d_model)
    row = np.array([lane_in[one_lane(block)]], dtype=np.int64).tobytes() + np.array([LEVEL]).tobytes()
    first = np.zeros(size.d_conv)
    first[0] = 1
    constant = (row, first.tobytes())
    passing = (1.0, ERASE_LOG, b"", ON, frozenset({((constant, constant), 1)}))
    found: Held = {}
    for c in range(len(channels.names)):
        if of_channels[c] >= 0:
            own = np.flatnonzero(of_columns == of_channels[c]).tolist()
            pairs = Counter((_single(columns.write, n, rows), _single(columns.read, n, rows)) for n in own)
            pairs.pop((None, None), None)
            if not pairs:  # keys that are 0 in every sequence of the language: nothing is kept, so 0 is read
                continue
            name = (
                float(betas[own[0]]),
                channels.decay[c].a_log,
                steps[c],
                float(channels.delta_bias[c]),
                frozenset(pairs.items()),
            )
            scale = height(block, c) if betas[own[0]] == 2 else 1.0
        else:
            name, scale = passing, float(channels.skip[c])
        entry = (rows[channels.feature[c]], gates[c], keys(outs[[c]] * scale)[0])
        if entry[0] and (gates[c] or entry[2]):  # a gate may be 0 in every sequence of the language
            found.setdefault(name, Counter())[entry] += 1
    return found


def _single(matrix: sparse.csr_array, column: int, rows: list[Row | None]) -> Row | None:
    """The row of the one feature of a key or query column."""
    span = slice(matrix.indptr[column], matrix.indptr[column + 1])
    (feature,) = matrix.indices[span] if span.stop > span.start else (None,)
    return None if feature is None else rows[feature]
