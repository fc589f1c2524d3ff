"""An automaton's answers beside a circuit whose states are moved (lemma of states together)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from verify.checker.formats import Rejected
from verify.checker.meaning.circuit import Reader
from verify.checker.tasks.readout import NOBODY, least
from verify.checker.tasks.task_forms import States
from verify.checker.values.exact import number, plus, times
from verify.checker.values.followed import followed
from verify.checker.values.machines import moved
from verify.checker.values.tables import Ramp
from verify.checker.values.values import ZERO, Root, Value, World, normal, of_letters

_MOST_SCORES = 1 << 24


def prove_answered(reader: Reader, task: States) -> Fraction:
    """The least lead of the right letter over all sequences: the circuit's states and the automaton's are one machine,
    all of which is gone through. TooLarge or Unproved where the scores are no function of letters and moved states.
    """
    world, place = reader.world, reader.data["output"]
    if reader.data["streams"][place]["operation"] == "Decide":
        raise Rejected("rules over scores are not gone through with states together")
    parts = reader.output(place)
    walked, order = _walked(world, task)
    lanes = {lane.key: lane for _, own in parts for lane in own if not lane.constant}
    stage = normal({(walked.id, 0): _numbers(len(order))}, ZERO)
    moments = followed(world, [*lanes.values(), stage], late=[walked]).attained()
    answers = np.append(task.answers, -1)[np.array(order)][moments[:, -1].astype(np.int64)]
    moments, answers = moments[answers >= 0], answers[answers >= 0]
    if len(moments) * world.language.tokens > _MOST_SCORES:
        raise Rejected(f"{len(moments)} situations of {world.language.tokens} scores each")
    column = {key: moments[:, i] for i, key in enumerate(lanes)}
    scores = np.zeros((world.language.tokens, len(moments)))
    for matrix, own in parts:
        told = np.stack([column.get(lane.key, np.full(len(moments), _constant(lane))) for lane in own])
        dense = np.zeros((world.language.tokens, len(own)))
        np.add.at(dense, (matrix.rows, matrix.cols), matrix.data)
        scores = plus(scores, times(dense, told))
    return _lead(scores, answers)


def _constant(lane: Value) -> float:
    """Of a lane that is no column, and so a constant."""
    return number(lane.const)


def _lead(scores: np.ndarray, right: np.ndarray) -> Fraction:
    if not len(right) or len(scores) < 2:
        return NOBODY
    here = np.arange(len(right))
    ahead = plus(scores[right, here][None], -scores)
    ahead[right, here] = np.inf
    return least(ahead)


def _walked(world: World, task: States) -> tuple[Root, list[int]]:
    """(the automaton's state as a moved one, which of its states each number is; the last of them leads nowhere)."""
    last = len(task.following)
    following = np.where(task.following < 0, last, task.following)
    swap = np.arange(last + 1)
    swap[[0, task.start]] = task.start, 0  # numbers begin at the first state
    moves = []
    for kind in range(following.shape[1]):
        move = np.append(following[:, kind], last)[swap]
        moves.append((of_letters((task.kinds == kind) * 1.0), tuple(swap[move].tolist())))
    root, order = moved(world, moves)
    return root, [int(swap[state]) for state in order]


def _numbers(count: int) -> Ramp:
    return Ramp(range(count), [Fraction(i) for i in range(count)])
