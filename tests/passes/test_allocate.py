"""Lanes: one for each number that must stand in the residual, none for others, and what the embedding writes there."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from compiler.analysis.affine_form import ONE, affine_form
from compiler.context import Context
from compiler.language.circuit import Circuit
from compiler.language.source import numbers
from compiler.language.stream import Stream
from compiler.language.types import Int
from compiler.language.words import concatenate, latch
from compiler.lowering.lanes import Lanes
from compiler.passes.allocate import allocate
from compiler.passes.schedule import Schedule, schedule
from compiler.targets import target_of
from tests.circuits import abc, is_a, is_b, over_abc, token

VALUE = abc.number({"a": 4, "b": -3, "c": 0}, name="value")
COUNTS = token.cumsum()


def _planned(stream: Stream) -> Schedule:
    circuit = over_abc("lanes", stream)
    return schedule(circuit, Context.of(circuit, target_of("mamba")))


def _allocated(stream: Stream) -> Lanes:
    return allocate(_planned(stream))


def _held(lanes: Lanes) -> list[int]:
    """The lanes of what blocks write, and of the constant."""
    return [int(i) for atom, index in lanes.index.items() if atom.inputs or atom is ONE for i in index if i >= 0]


def test_every_number_that_is_read_has_a_lane_of_its_own():
    plan = _planned(concatenate(COUNTS, latch(token, is_b), is_a.cumsum().relu(), is_b.cumsum().relu()))
    lanes = allocate(plan)
    for block in plan.blocks:
        for stream in block:
            assert ((lanes.index[stream] >= 0) == plan.on_lanes[stream]).all()
    assert sorted(_held(lanes)) == list(range(3, lanes.count))  # all but the three of the token, each once
    assert lanes.count == 3 + 1 + 3 + 3 + 2 + 2  # token, one, COUNTS, the latch, two sums, their rectifiers


def test_what_nobody_reads_has_none():
    lanes = _allocated(concatenate(COUNTS[2], COUNTS[0]))
    assert lanes.index[COUNTS].tolist() == [3, -1, 4]  # in the order of the stream, whoever reads them
    assert lanes.index[token].tolist() == [0, -1, 1]
    assert lanes.names == ("token[0]", "token[2]", "one", "token.cumsum()[0]", "token.cumsum()[2]")


def test_the_constant_has_one_lane_behind_the_inputs_and_is_1_whatever_the_token():
    for stream in (token, COUNTS, VALUE, concatenate(is_a + 5, COUNTS * 2 - 1)):
        lanes = _allocated(stream)
        (one,) = lanes.index[ONE]
        assert one == lanes.n_inputs - 1 and lanes.names.count("one") == 1
        assert lanes.embedding.toarray()[:, one].tolist() == [1, 1, 1]


def test_a_row_of_the_embedding_is_what_its_token_writes_and_0_where_blocks_write():
    lanes = _allocated(concatenate(VALUE, token[1], COUNTS[2]))
    of = dict(zip(lanes.names, lanes.embedding.toarray().T.tolist(), strict=True))
    assert of == {
        "value": [4, -3, 0],
        "token[1]": [0, 1, 0],
        "token[2]": [0, 0, 1],
        "one": [1, 1, 1],
        "token.cumsum()[2]": [0, 0, 0],
    }


def test_equal_columns_of_the_embedding_share_a_lane():
    same, other = abc.number({"a": 0, "b": 1, "c": 0}), abc.number({"a": 0, "b": 2, "c": 0})
    lanes = _allocated(concatenate(token, same, is_b, other))
    assert lanes.index[same].tolist() == lanes.index[is_b].tolist() == [lanes.index[token][1]]
    assert lanes.index[other][0] not in lanes.index[token] and lanes.n_inputs == 3 + 1 + 1


def test_numeric_inputs_have_lanes_before_those_of_blocks():
    x, unread = numbers(Int(-3, 3, 2), "x"), numbers(Int(-3, 3), "unread")
    circuit = Circuit("numeric", concatenate(x, x[1].cumsum(), unread * 0), length=8)
    lanes = allocate(schedule(circuit, Context.of(circuit, target_of("mamba"))))
    assert lanes.names == ("one", "x[0]", "x[1]", "x[1].cumsum()") and lanes.n_inputs == 3
    assert lanes.embedding.toarray().tolist() == [[1, 0, 0, 0]] and unread not in lanes.index


def test_a_name_that_comes_again_is_counted():
    again = abc.number({"a": 1, "b": 7, "c": 2}, name="value")
    assert _allocated(concatenate(VALUE, again, COUNTS[0])).names[:2] == ("value", "value#2")


def test_a_form_is_mapped_to_the_lanes_of_its_atoms():
    stream = concatenate(3 * COUNTS[2] - VALUE + 5, COUNTS[1] - is_a)
    lanes = _allocated(stream)
    rows = lanes.map(affine_form(stream), 2).toarray()
    read = [{name: w for name, w in zip(lanes.names, row, strict=True) if w} for row in rows.tolist()]
    assert read == [{"token.cumsum()[2]": 3, "value": -1, "one": 5}, {"token.cumsum()[1]": 1, "is_a": -1}]
    same = sparse.csr_array(np.eye(COUNTS.width))
    assert np.array_equal(lanes.joined([(same, COUNTS)], 3).toarray().nonzero(), ([1, 2], lanes.index[COUNTS][1:]))
    twice = lanes.joined([(same, COUNTS), (same, COUNTS)], 3)
    assert np.array_equal(twice.toarray(), 2 * lanes.joined([(same, COUNTS)], 3).toarray())
