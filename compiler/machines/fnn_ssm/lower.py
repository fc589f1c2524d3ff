"""Pass of fnn+ssm, lower: from values and their layers to matrices.

A layer is found from its outputs: what the layers behind it need decides which rectifiers its network computes, which
numbers it passes on, and so which taps its convolution has. Each tap reads one lane, and the network before makes that
lane, as any linear combination: a sum of many numbers takes one lane. What several read is there once.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import sparse

from compiler.analysis.domains import Domains
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.stream import Stream
from compiler.machines.fnn_ssm.layers import Convolution, Network, Tap
from compiler.machines.fnn_ssm.relu_network import ReluNetwork, SparseAffine
from compiler.machines.fnn_ssm.values import CONSTANT, DELAY, SUM, Row, Value, Values, is_relu, stages


def lower(circuit: Circuit, domains: Domains) -> Network:
    """The network of a circuit over Embed, Constant, Linear, Shift, Relu and Cumsum."""
    values = Values({})
    outputs, decoder = _split(circuit.output, values)
    values.need(outputs)
    stage = stages(values, circuit.max_length)
    layers: list[tuple[Convolution, ReluNetwork]] = []
    for number in range(max(stage.values(), default=0), 0, -1):
        network, taken = _network(number, outputs, values, stage, domains)
        convolution, outputs = _convolution(taken, values, stage, number, circuit.max_length)
        layers.append((convolution, network))
    return Network(_embedding(outputs, circuit), tuple(reversed(layers)), decoder)


def _split(output: Stream, values: Values) -> tuple[list[Row], sparse.csr_array]:
    """The last linear map as decoder · rows, with the fewest rows: a readout takes codewords, or lanes as they are."""
    best: tuple[list[Row], sparse.csr_array] | None = None
    parts: tuple[Stream, ...] = (output,)
    matrix = sparse.csr_array(sparse.eye_array(output.width))
    while True:
        rows = [row for part in parts for row in values.rows_of(part)]
        distinct, decoder = _distinct(rows, matrix)
        if best is None or len(distinct) < len(best[0]):
            best = distinct, decoder
        linear = [part.operation.maps is not None for part in parts]
        if not any(linear):
            return best
        matrix = _expanded(parts, matrix)
        parts = tuple(s for part, opens in zip(parts, linear, strict=True) for s in (part.inputs if opens else (part,)))


def _expanded(parts: tuple[Stream, ...], matrix: sparse.csr_array) -> sparse.csr_array:
    """matrix · (the parts' linear maps): over the lanes of their inputs."""
    blocks, start = [], 0
    for part in parts:
        columns = sparse.csr_array(matrix[:, start : start + part.width])
        start += part.width
        maps = part.operation.maps
        blocks += [columns] if maps is None else [columns @ m for m in maps]
    return ops.exact_matrix(sparse.hstack(blocks, format="csr"))


def _distinct(rows: list[Row], matrix: sparse.csr_array) -> tuple[list[Row], sparse.csr_array]:
    """Each row once, without those that are 0 or that the matrix does not read."""
    place: dict[tuple, int] = {}
    at, column = [], []
    used = np.diff(sparse.csc_array(matrix).indptr) > 0
    kept: list[Row] = []
    for i, row in enumerate(rows):
        if row and used[i]:
            key = _key(row)
            if key not in place:
                place[key] = len(kept)
                kept.append(row)
            at.append(place[key])
            column.append(i)
    fold = sparse.csr_array((np.ones(len(at)), (column, at)), shape=(len(rows), len(kept)))
    return kept, ops.exact_matrix(matrix @ fold)


def _key(row: Row) -> tuple:
    return tuple(sorted((id(v), w) for v, w in row.items()))


# Networks ----------------------------------------------------------------------------------------------


@dataclass
class _Layer:
    """The numbers that stand behind one matrix: where each is, and what was added so that it is not negative."""

    place: dict[Value, int]
    offset: dict[Value, Fraction]


def _network(
    number: int, outputs: list[Row], values: Values, stage: dict[Value, int], domains: Domains
) -> tuple[ReluNetwork, list[Value]]:
    """The network of a layer, and the values that it takes from the convolution."""
    computed, taken = _needed(number, outputs, values, stage)
    depth = _depths(computed, values)
    last = max(depth.values(), default=0) + 1
    until = _last_uses(outputs, computed, depth, last, values)
    layer = _Layer({v: i for i, v in enumerate(taken)}, {})
    maps = []
    for level in range(1, last):
        rows: list[Row] = []
        added: list[Fraction] = []
        place: dict[Value, int] = {}
        offset: dict[Value, Fraction] = {}
        for value in [*taken, *computed]:
            if depth.get(value, 0) < level < until[value]:  # passed on
                rows.append({value: 1.0})
                least = Fraction(float(domains.of(value.atom).low[value.lane]))
                added.append(max(-least, Fraction(0)))
                offset |= {value: added[-1]} if added[-1] else {}
            elif depth.get(value) == level:
                rows.append(values.rows[value])
                added.append(Fraction(0))
            else:
                continue
            place[value] = len(rows) - 1
        maps.append(_affine(rows, added, layer))
        layer = _Layer(place, offset)
    maps.append(_affine(outputs, [Fraction(0)] * len(outputs), layer))
    return ReluNetwork(tuple(maps)), taken


def _needed(
    number: int, outputs: list[Row], values: Values, stage: dict[Value, int]
) -> tuple[list[Value], list[Value]]:
    """(rectifiers that the network computes, values that the convolution hands to it), inputs first."""
    wanted = {v for row in outputs for v in row if v is not CONSTANT}
    pending = list(wanted)
    while pending:
        value = pending.pop()
        if is_relu(value) and stage[value] == number:
            new = {v for v in values.rows[value] if v is not CONSTANT} - wanted
            wanted |= new
            pending += new
    ordered = [v for v in values.order if v in wanted]
    computed = [v for v in ordered if is_relu(v) and stage[v] == number]
    inside = set(computed)
    return computed, [v for v in ordered if v not in inside]


def _depths(computed: list[Value], values: Values) -> dict[Value, int]:
    depth: dict[Value, int] = {}
    for value in computed:
        depth[value] = 1 + max((depth.get(v, 0) for v in values.rows[value]), default=0)
    return depth


def _last_uses(
    outputs: list[Row], computed: list[Value], depth: dict[Value, int], last: int, values: Values
) -> dict[Value, int]:
    """For each value the last matrix that reads it."""
    until: dict[Value, int] = {}
    for value in computed:
        for source in values.rows[value]:
            until[source] = max(until.get(source, 0), depth[value])
    for row in outputs:
        until.update(dict.fromkeys(row, last))
    return until


def _affine(rows: list[Row], added: list[Fraction], layer: _Layer) -> SparseAffine:
    """The rows over what the layer before holds, and their biases."""
    entries, biases = [], []
    for row, constant in zip(rows, added, strict=True):
        total = constant + Fraction(row.get(CONSTANT, 0.0))
        if layer.offset:
            total -= sum(Fraction(row[value]) * layer.offset[value] for value in row if value in layer.offset)
        entries.append({layer.place[value]: weight for value, weight in row.items() if value is not CONSTANT})
        biases.append(total)
    return SparseAffine.of(len(layer.place), entries, biases)


# Convolutions --------------------------------------------------------------------------------------------


def _convolution(
    taken: list[Value], values: Values, stage: dict[Value, int], number: int, max_length: int
) -> tuple[Convolution, list[Row]]:
    """The layer that hands over these values, and the rows that its lanes must hold."""
    lanes: dict[tuple, int] = {}
    rows: list[Row] = []
    taps = []
    for value in taken:
        kind = values.kind(value) if stage[value] == number else None
        row = values.rows[value] if kind else {value: 1.0}
        key = _key(row)
        if key not in lanes:
            lanes[key] = len(rows)
            rows.append(row)
        taps.append(Tap(lanes[key], value.lag if kind == DELAY else 0, kind == SUM, value.name))
    farthest = max((tap.delay for tap in taps), default=0)
    window = max(max_length - 1, farthest) if any(tap.sums for tap in taps) else farthest
    return Convolution(len(rows), window, tuple(taps)), rows


def _embedding(rows: list[Row], circuit: Circuit) -> sparse.csr_array:
    """The table of the first lanes over the vocabulary."""
    size = circuit.token_alphabet.size
    columns = []
    for row in rows:
        column = sparse.csr_array((1, size))
        for value, weight in row.items():
            table = np.ones((size, 1)) if value is CONSTANT else value.atom.operation.token_table
            assert table is not None, "only embeddings stand before the first layer"
            held = sparse.csc_array(table)[:, [value.lane]].T
            column = column + weight * sparse.csr_array(held)
        columns.append(column)
    table = sparse.vstack(columns).T if columns else np.zeros((size, 0))
    return ops.exact_matrix(sparse.csr_array(table))
