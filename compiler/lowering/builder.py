"""Building one block: rectified rows, ports and channels, collected sparsely."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy import sparse

from compiler.analysis.affine_form import ONE, AffineForm, form_rows
from compiler.analysis.exact_matrices import gathered
from compiler.analysis.one_channel import ChannelRows, is_rectified, one_channel
from compiler.analysis.scale import half_scale, rectifier_scale
from compiler.exactness.levels import CONSTANT, GATE, ON
from compiler.ir.block import Channels, Columns, Features, SelectiveBlock
from compiler.ir.coordinate import Coordinate, numbered
from compiler.ir.decay import KEEP, Fade
from compiler.language import operations as ops
from compiler.language.stream import Stream
from compiler.lowering.facts import Facts
from compiler.lowering.lanes import Lanes
from compiler.lowering.ports import CONSTANT_COLUMN


@dataclass(frozen=True, eq=False)
class _Group:
    """Columns: their places, and (row, feature, weight) triples of B, of C and, with a bias, of their own step."""

    places: tuple[Coordinate, ...]
    write: list
    read: list
    step: tuple[list, np.ndarray] | None
    beta: float | None = None


class BlockBuilder:
    """Collects the parts of one block.

    Feature ids are positions in the block's list of rectified rows; equal rows are
    shared, so an operand that several ports read is computed once.
    """

    def __init__(self, lanes: Lanes, facts: Facts, mirrored: Collection[tuple] = ()):
        """mirrored: the column groups that stand a second time, read with the opposite sign (`passes.direct_sums`)."""
        self.lanes = lanes
        self._mirrored = mirrored
        self.facts = facts
        self.domains = facts.domains
        self.target = facts.target
        self._ids: dict[bytes, int] = {}
        self._coordinates: list[Coordinate] = []
        self._rows: list[sparse.csr_array] = []
        self._taps: list[np.ndarray] = []
        self._bias: list[float] = []
        self._channels: list[dict] = []
        self._real: set[int] = set()
        self._reader: Stream | None = None
        self._gadget = ""
        self._group: tuple | None = None
        self._groups: dict[tuple | None, int] = {}
        self._columns: list[_Group] = []
        self._open: dict[tuple[int, float], sparse.csr_array] = {}

    def begin(self, reader: Stream, gadget: str, group: tuple | None) -> None:
        """What is added from here on serves this operation, by the gadget of that name.

        group: its column group, None where it has no state.
        """
        self._reader, self._gadget, self._group = reader, gadget, group

    def _stamped(self, places: Sequence[Coordinate]) -> tuple[Coordinate, ...]:
        """The coordinates, with the operation that is being lowered and its gadget."""
        return tuple(replace(place, reader=self._reader, gadget=self._gadget) for place in places)

    def _places(self, stream: Stream, wanted: np.ndarray, unit: float, lag: int = 0) -> list[Coordinate]:
        return numbered(stream, np.flatnonzero(wanted), lag, unit)

    def form(self, stream: Stream) -> AffineForm:
        return self.facts.form(stream)

    # Features ---------------------------------------------------------------------------------

    def features(
        self, channels: ChannelRows, scale: float, places: Sequence[Coordinate], real: bool = False
    ) -> np.ndarray:
        """Feature ids of scale · relu(channels): (count,); real: halves of real numbers."""
        count = len(channels.bias)
        if not self.target.row_bias and channels.bias.any():
            channels = _biased_by_lane(channels)
        rows = self.lanes.joined(zip(channels.rows, channels.atoms, strict=True), count)
        taps, bias = channels.taps * scale, channels.bias * scale
        ids = np.empty(count, dtype=np.int64)
        for i in range(count):
            span = slice(rows.indptr[i], rows.indptr[i + 1])
            key = (
                rows.indices[span].astype(np.int64).tobytes()
                + rows.data[span].tobytes()
                + b"|"
                + taps[i].tobytes()
                + bias[i].tobytes()
            )
            if key not in self._ids:
                self._ids[key] = len(self._coordinates)
                self._coordinates += self._stamped([places[i]])
                self._rows.append((rows.indices[span], rows.data[span]))
                self._taps.append(taps[i])
                self._bias.append(bias[i])
            ids[i] = self._ids[key]
        self._real |= set(ids.tolist()) if real else set()
        return ids

    def constant(self) -> int:
        """The feature that is 32 at every position."""
        one = ChannelRows((), (), np.zeros((1, self.target.d_conv)), np.array([1.0]))
        return int(
            self.features(one, CONSTANT, [Coordinate("constant", ONE, unit=CONSTANT, text="1 at every position")])[0]
        )

    def nothing(self) -> int:
        """The feature that is 0 at every position."""
        none = ChannelRows((), (), np.zeros((1, self.target.d_conv)), np.zeros(1))
        return int(self.features(none, CONSTANT, [Coordinate("nothing", text="0 at every position")])[0])

    def rectifier(self, relu: Stream, wanted: np.ndarray) -> tuple[np.ndarray, float]:
        """(feature ids, scale) of the wanted numbers of a rectifier."""
        pre = relu.inputs[0]
        channels = self._channel_rows(pre, wanted, rectified=True)
        half = relu.operation.silu_scale
        scale = rectifier_scale(channels, self.domains) if half is None else half
        return self.features(channels, scale, self._places(relu, wanted, scale), half is not None), scale

    def _channel_rows(self, stream: Stream, wanted: np.ndarray, rectified: bool) -> ChannelRows:
        """One channel for each wanted number."""
        form, count = form_rows(self.form(stream), np.flatnonzero(wanted)), int(wanted.sum())
        channels = one_channel(form, count, self.target.d_conv, rectified, self.target.row_bias)
        assert channels is not None, "fit has seen to it that one channel computes each row"
        return channels

    def passing(self, stream: Stream, wanted: np.ndarray) -> tuple[np.ndarray, float]:
        """(feature ids, scale) of non-negative numbers that one row each can compute from lanes."""
        channels = self._channel_rows(stream, wanted, rectified=False)
        scale = rectifier_scale(channels, self.domains)
        return self.features(channels, scale, self._places(stream, wanted, scale)), scale

    # Ports ------------------------------------------------------------------------------------

    def written(self, value: Stream, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(feature ids, unit) at the x̂ port: number i is x̂ · unit_i. Rectifiers of this block serve directly.

        Beside them a number may have an empty row, as a zero row of a matrix has: it is 0 in any unit, so it takes that
        of another.
        """
        form = self.form(value)
        if not is_rectified(form):
            ids, scale = self.passing(value, wanted)
            return ids, np.full(len(ids), 1 / scale)
        ids, unit = np.full(wanted.sum(), -1), np.zeros(wanted.sum())
        for (relu, _), matrix in form_rows(form, np.flatnonzero(wanted)).items():
            rows = matrix.tocoo()
            used = np.zeros(relu.width, dtype=bool)
            used[rows.col] = True
            features, scale = self.rectifier(relu, used)
            of_lane = np.cumsum(used) - 1
            ids[rows.row] = features[of_lane[rows.col]]
            unit[rows.row] = rows.data / scale
        empty = ids < 0
        if empty.any():
            ids[empty] = self.nothing()
            unit[empty] = unit.max() or 1.0
        return ids, unit

    def linear(
        self, stream: Stream, rows: np.ndarray | None = None
    ) -> tuple[list[tuple[np.ndarray, np.ndarray, np.ndarray]], np.ndarray]:
        """A stream as Σ weight · x̂ + bias: ([(row, feature, weight) arrays], bias (width,)), for Δ, B and C.

        rows: these numbers of it only, counted from 0.
        """
        form = self.form(stream) if rows is None else form_rows(self.form(stream), rows)
        parts, bias = [], np.zeros(stream.width if rows is None else len(rows))
        for (atom, lag), matrix in form.items():
            if atom is ONE and lag == 0:
                bias += matrix.toarray()[:, 0]
                continue
            coo = matrix.tocoo()
            used = np.zeros(atom.width, dtype=bool)
            used[coo.col] = True
            of_lane = np.cumsum(used) - 1
            for ids, weight in self._lane_features(atom, lag, used):
                parts.append((coo.row, ids[of_lane[coo.col]], coo.data * weight))
        return parts, bias

    def _lane_features(self, atom: Stream, lag: int, used: np.ndarray) -> list[tuple[np.ndarray, float]]:
        """[(feature ids, weight)] with atom(t − lag) = Σ weight · x̂: a rectifier of this block, or lanes (± if
        signed).
        """
        if atom.operation.rectifies and lag == 0:
            ids, scale = self.rectifier(atom, used)
            return [(ids, 1 / scale)]
        real = not self.domains.of(atom).step
        signs = (1.0, -1.0) if real or self.domains.of(atom).lo < 0 else (1.0,)
        result = []
        for sign in signs:
            pick = sparse.csr_array(
                (np.full(used.sum(), sign), (range(used.sum()), np.flatnonzero(used))), shape=(used.sum(), atom.width)
            )
            taps = np.zeros((used.sum(), self.target.d_conv))
            taps[:, lag] = 1
            channels = ChannelRows((atom,), (pick,), taps, np.zeros(used.sum()))
            scale = half_scale(self.domains.of(atom)) if real else rectifier_scale(channels, self.domains)
            result.append(
                (self.features(channels, scale, self._places(atom, used, sign * scale, lag), real), sign / scale)
            )
        return result

    def on_lanes(self, stream: Stream, rows: np.ndarray) -> sparse.csr_array:
        """These numbers of a stream as a linear map of the present lanes: (rows × lanes)."""
        return self.lanes.map(form_rows(self.form(stream), rows), len(rows))

    # Parts ------------------------------------------------------------------------------------

    def head(self, group: tuple) -> None:
        """What is added from here on belongs to this column group, of several that the operation has."""
        self._group = group

    def set_columns(
        self,
        places: Sequence[Coordinate],
        write: list,
        read: list,
        step: tuple[list, np.ndarray] | None = None,
        beta: float | None = None,
    ) -> None:
        """The state columns of an operation; write, read: (rows, features, weights) triples.

        step: such triples and biases; beta: of columns that follow the delta rule. Operations of one group have the
        same columns.
        """
        group = self._group
        if group in self._groups:
            return
        self._groups[group] = len(self._columns)
        stamped = self._stamped(places)
        self._columns.append(_Group(stamped, write, read, step, beta))
        if group in self._mirrored:
            again = tuple(replace(place, name=f"{place.name}, mirrored") for place in stamped)
            self._columns.append(_Group(again, write, [(r, f, -w) for r, f, w in read], step))

    def add_channels(
        self,
        places: Sequence[Coordinate],
        feature: np.ndarray,
        out: tuple[np.ndarray, np.ndarray],
        gate: sparse.csr_array,
        delta_bias: np.ndarray | float,
        decay: Fade = KEEP,
        skip: float = 0.0,
        delta_features: tuple | None = None,
        delta_lanes: sparse.csr_array | None = None,
        real_gate: bool = False,
        real_step: bool = False,
        curved_gate: bool = False,
    ) -> None:
        """Channels. out: (lane, weight) of each; gate: (C × lanes); delta_features: (rows, features, weights).

        real_gate, real_step: their gates or steps are halves of real numbers; curved_gate: their gates stand for silu
            itself.
        """
        count = len(feature)
        self._channels.append(
            {
                "places": self._stamped(places),
                "feature": np.asarray(feature, dtype=np.int64),
                "out": out,
                "gate": gate,
                "delta_bias": np.broadcast_to(np.asarray(delta_bias, dtype=float), (count,)),
                "decay": (decay,) * count,
                "group": self._group,
                "skip": np.full(count, skip),
                "delta_features": delta_features,
                "delta_lanes": delta_lanes,
                "real_gate": np.full(count, real_gate),
                "real_step": np.full(count, real_step),
                "curved_gate": np.full(count, curved_gate),
            }
        )

    def always_open(self, count: int, level: float) -> sparse.csr_array:
        """A gate row of level·one for each of `count` channels."""
        if (count, level) not in self._open:
            one = int(self.lanes.index[ONE][0])
            parts = np.full(count, level), np.full(count, one), np.arange(count + 1)
            self._open[count, level] = sparse.csr_array(parts, shape=(count, self.lanes.count))
        return self._open[count, level]

    def build(self) -> SelectiveBlock:
        n_features, n_lanes = len(self._coordinates), self.lanes.count
        indptr = np.cumsum([0, *(len(i) for i, _ in self._rows)])
        indices = np.concatenate([i for i, _ in self._rows]) if self._rows else np.zeros(0, dtype=np.int64)
        data = np.concatenate([d for _, d in self._rows]) if self._rows else np.zeros(0)
        rows = sparse.csr_array((data, indices, indptr), shape=(n_features, n_lanes))
        taps = np.array(self._taps).reshape(n_features, self.target.d_conv)
        features = Features(tuple(self._coordinates), rows, taps, np.array(self._bias), frozenset(self._real))
        columns = self._column_record(n_features)
        return SelectiveBlock(features, self._channel_record(n_features, n_lanes), columns, self.lanes.coordinates)

    def _column_record(self, n_features: int) -> Columns:
        groups = self._columns
        counts = [len(g.places) for g in groups]
        write, read = (
            _stacked([_entries(part, n, n_features) for part, n in zip(parts, counts, strict=True)], n_features)
            for parts in ([g.write for g in groups], [g.read for g in groups])
        )
        step = groups[0].step if groups else None
        own, bias = (None, None) if step is None else (_entries(step[0], counts[0], n_features), step[1])
        group = np.repeat(np.arange(len(groups)), counts) if len(groups) > 1 or self.target.heads else None
        betas = [g.beta for g in groups if g.beta is not None]
        beta = np.repeat(np.array(betas), counts) if self.target.heads else None
        return Columns(tuple(place for g in groups for place in g.places), write, read, own, bias, group, beta)

    def _channel_record(self, n_features: int, n_lanes: int) -> Channels:
        parts = self._channels
        counts = [len(p["places"]) for p in parts]
        total = sum(counts)

        def joined(key: str) -> np.ndarray:
            return np.concatenate([p[key] for p in parts]) if parts else np.zeros(0)

        deltas = [_entries(p["delta_features"] or (), n, n_features) for p, n in zip(parts, counts, strict=True)]
        lanes = [
            p["delta_lanes"] if p["delta_lanes"] is not None else _nothing(n, n_lanes)
            for p, n in zip(parts, counts, strict=True)
        ]
        group = None
        if len(self._columns) > 1 or self.target.heads:
            own = [self._groups.get(p["group"], -1) for p in parts]
            group = np.repeat(np.array(own, dtype=np.int64), counts)
        target = np.concatenate([p["out"][0] for p in parts]) if parts else np.zeros(0, dtype=np.int64)
        weight = np.concatenate([p["out"][1] for p in parts]) if parts else np.zeros(0)
        return Channels(
            tuple(place for p in parts for place in p["places"]),
            joined("feature").astype(np.int64),
            _stacked(deltas, n_features),
            _stacked(lanes, n_lanes),
            joined("delta_bias"),
            tuple(decay for p in parts for decay in p["decay"]),
            joined("skip") - self._seen_of_constant(joined("delta_bias"), group),
            _stacked([p["gate"] for p in parts], n_lanes),
            sparse.csr_array((weight, (range(total), target)), shape=(total, n_lanes)),
            frozenset(np.flatnonzero(joined("real_gate")).tolist()),
            frozenset(np.flatnonzero(joined("real_step")).tolist()),
            frozenset(np.flatnonzero(joined("curved_gate")).tolist()),
            group,
        )

    def _seen_of_constant(self, step: np.ndarray, group: np.ndarray | None) -> np.ndarray:
        """The multiple of x̂ that a channel of another group reads of the constant column, Δ·B·C: D takes it off."""
        constant = self._groups.get(CONSTANT_COLUMN)
        if group is None or constant is None:
            return np.zeros(len(step))
        return np.where((group >= 0) & (group != constant), step / (ON * GATE), 0.0)


def _biased_by_lane(channels: ChannelRows) -> ChannelRows:
    """The same with the bias as a weight of the lane that is 1; such rows read present lanes (`one_channel`)."""
    count = len(channels.bias)
    column = sparse.csr_array(channels.bias.reshape(count, 1))
    taps = channels.taps.copy()
    taps[~taps.any(axis=1), 0] = 1
    return ChannelRows((*channels.atoms, ONE), (*channels.rows, column), taps, np.zeros(count))


def _entries(triples, n_rows: int, n_features: int) -> sparse.csr_array:
    """A (rows × features) matrix from (row, feature, weight) triples, summed."""
    if not len(triples):
        return _nothing(n_rows, n_features)
    rows, columns, weights = (np.concatenate([t[i] for t in triples]) for i in range(3))
    return gathered(rows, columns, weights, shape=(n_rows, n_features))


@lru_cache(maxsize=1 << 6)
def _nothing(rows: int, columns: int) -> sparse.csr_array:
    """Zeros, one shared matrix for each shape; not to be changed in place."""
    return sparse.csr_array((rows, columns))


def _stacked(parts: list[sparse.csr_array], width: int) -> sparse.csr_array:
    return ops.exact_matrix(sparse.vstack(parts)) if parts else sparse.csr_array((0, width))
