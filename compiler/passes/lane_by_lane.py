"""Operations whose lanes are computed one by one, so that some of them may be computed apart, or not at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from compiler.language.lanes import place_matrix
from compiler.language.operations import LaneWise
from compiler.language.stream import Stream


def lane_count(stream: Stream) -> int:
    """How many lanes the operation takes one by one; 0 where it takes them together."""
    kind = stream.operation.lane_wise
    if kind is LaneWise.VALUE:
        return stream.inputs[0].width
    return stream.width if kind is LaneWise.EACH else 0


def on_lanes(stream: Stream, inputs: Sequence[Stream], lanes: np.ndarray) -> Stream:
    """The operation of the stream on these lanes only."""
    one_by_one, width = len(inputs) if stream.operation.lane_wise is LaneWise.EACH else 1, lane_count(stream)
    operands = (s[lanes] if i < one_by_one and s.width == width else s for i, s in enumerate(inputs))
    return Stream(stream.operation, tuple(operands))


def back_in_place(stream: Stream, lanes: np.ndarray) -> sparse.csr_array:
    """(stream.width × lanes computed): where what was computed on these lanes stands, under each flag of a latch."""
    width = lane_count(stream)
    return place_matrix((np.arange(stream.width // width)[:, None] * width + lanes).ravel(), stream.width)


def only_lanes(stream: Stream, inputs: Sequence[Stream], lanes: np.ndarray) -> Stream:
    """The stream, of which only these lanes are computed, and all others are 0."""
    part = on_lanes(stream, inputs, lanes)
    part.name = stream.name
    return back_in_place(stream, lanes) @ part
