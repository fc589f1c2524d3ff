"""Gadget of a state that swaps move: reflections of pairs of coordinates."""

from __future__ import annotations

import numpy as np

from compiler.exactness.levels import CONSTANT, GATE, ON
from compiler.gadgets.gadget import Gadget, Operands
from compiler.gadgets.parts import targets
from compiler.ir.coordinate import Coordinate, numbered
from compiler.ir.decay import ERASE
from compiler.language import operations as ops
from compiler.language.graph import operation_of
from compiler.language.stream import Stream
from compiler.lowering.builder import BlockBuilder
from compiler.lowering.fitter import Fitter
from compiler.lowering.ports import Ports

POSITIVE = (
    "its state is multiplied by factors of at least 0, which cannot swap two places for ever (Sarrof, Veitsman, Hahn "
    "2024); gated-deltanet has reflections"
)
HALVES = 2.0  # 1/½: four equal numbers have a norm of twice one of them


class Reflections(Gadget):
    """β = 2: S ← (I − 2kkᵀ) S + 2 k vᵀ with k = ½ on the four coordinates P_i ∪ P_j of the places that are swapped.

    Place i has two coordinates P_i and the vector u_i = c_i·1_{P_i}, c_i = ±1 its colour. Where c_i = −c_j the
    reflection swaps u_i and u_j: <k, u_i> = c_i and u_i − 2c_i·k = −c_i·1_{P_j} = u_j. It leaves all others. k is not
    negative, so silu passes it, and its four equal numbers have a norm of twice their level exactly.

    No state has to be loaded. Let w = V·1_{P_start}. A swap (i, j) writes v = <k, w> = V·([i = start] + [j = start]),
    so S − w is reflected and nothing else: (I − 2kkᵀ)S + 2k<k, w> − w = (I − 2kkᵀ)(S − w). It begins as −w =
    −V·c_start·u_start, so S = w − V·c_start·u_place for ever, and the entries are 0, ±V (2V at the start itself). The
    query ½ on P_m and two coordinates that nothing writes reads −V·c_start·c_m where the state is on m ≠ start, and 0
    elsewhere. A restart forgets S, which puts the state on its start. The norm of the head maps ±V to its weight's
    level times ± a constant: it needs no ballast. (Grazzi et al. 2024: negative eigenvalues; here the orbit is finite,
    so what holds of its states and letters holds at every length.)
    """

    def operands(self, stream: Stream, target: Ports) -> Operands:
        touched, restart = stream.inputs
        return [(touched, "written"), (restart, "lanes")]

    def rows(self, stream: Stream, wanted: np.ndarray) -> list[np.ndarray]:
        return [np.ones(s.width, dtype=bool) for s in stream.inputs]

    def column_group(self, stream: Stream) -> tuple:
        return ("swaps", id(stream))

    def fit(self, stream: Stream, inputs: tuple[Stream, ...], fitter: Fitter) -> Stream:
        if not fitter.target.reflects:
            raise NotImplementedError(f"{fitter.target.name} has no lowering of permute: {POSITIVE}")
        return super().fit(stream, inputs, fitter)

    def lower(self, stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
        """A head for each place that is read."""
        touched, restart = stream.inputs
        moved = operation_of(stream, ops.Moved)
        ids, unit = builder.written(touched, np.ones(moved.n, dtype=bool))
        one = builder.constant()
        erase = builder.on_lanes(restart, np.zeros(1, dtype=np.int64)) * (2 * ON)
        lanes = targets(stream, wanted, builder)
        for lane, number in zip(lanes, np.flatnonzero(wanted).tolist(), strict=True):
            place = moved.others[number]
            builder.head(("swaps", id(stream), place))
            write = [(2 * np.arange(moved.n) + side, ids, unit / HALVES) for side in (0, 1)]
            read = np.array([2 * place, 2 * place + 1, 2 * moved.n, 2 * moved.n + 1])
            level = np.full(4, 1 / (HALVES * CONSTANT))
            builder.set_columns(_coordinates(stream, moved.n, place), write, [(read, np.full(4, one), level)], beta=2.0)
            sign = -moved.colours[moved.start] * moved.colours[place]
            out = (np.array([lane]), np.array([sign * unit[moved.start] / GATE]))
            builder.add_channels(
                numbered(stream, [number]),
                ids[[moved.start]],
                out,
                builder.always_open(1, GATE),
                -ON,
                decay=ERASE,
                delta_lanes=erase,
            )


def _coordinates(stream: Stream, n: int, read: int) -> list[Coordinate]:
    """P_0 … P_(n − 1), two of each, and two that only the query has, of the head that reads a place."""
    name = f"{stream.label}@{read}"
    of_places = [Coordinate(f"{name}.place[{i}].{side}", stream.inputs[0], i) for i in range(n) for side in "ab"]
    return [*of_places, *(Coordinate(f"{name}.beside[{i}]", text="never written") for i in (0, 1))]
