"""The lemma of open letters: a circuit and a task, side by side, over all paths of the input language, letters left
open.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from verify.checker.formats import Rejected
from verify.checker.tasks.letters import Held, Ids, Nobody, Open, Situation, Split, Work, spread
from verify.checker.tasks.machine import Machine, Memory, Position
from verify.checker.tasks.readout import NOBODY, least_lead
from verify.checker.values.language import Language

_MOST_PATHS = 1 << 12
_FIRST = 64  # situations whose answers are looked at before the others are found


@dataclass(frozen=True)
class Known:
    """What a task remembers. control: numbers and marks, hashable; letters: the open letters that it may ask for."""

    control: Any
    letters: Ids = ()


OVER = Known("over")
"""Nothing will be asked any more, whatever comes."""


@dataclass(frozen=True)
class Asked:
    """An answer that is right wherever `given` holds.

    letters: which open letters it depends on; right: the right letter for each combination of them, −1 where nothing
    is asked.
    """

    letters: Ids
    right: np.ndarray
    given: tuple[Held, ...] = ()


class Asking(Protocol):
    """A task as a machine over letters that are left open. kinds: for each letter which kind it is."""

    @property
    def kinds(self) -> np.ndarray: ...

    def begin(self) -> Known: ...

    def step(self, known: Known, kind: int, letter: int) -> Known:
        """After one more letter of this kind."""
        ...

    def asks(self, known: Known, choices: dict[int, np.ndarray]) -> list[Asked]:
        """What is right after it: one of these holds in every case, or nothing is asked."""
        ...


@dataclass(frozen=True, eq=False)
class _Path:
    """Where a path of the language is; taken: by edge, the open letters that stand on a distinct one."""

    state: str
    memory: Memory
    known: Known
    taken: tuple[tuple[int, Ids], ...]
    situation: Situation


def prove_paths(language: Language, data: dict, task: Asking) -> Fraction:
    """The least lead of the right letter over all paths, or one that is none, of the first path with such; Rejected
    where there are too many, or a rule is missing.

    Situations are found before their answers are looked at, which takes longer, so that too many of them are soon told;
    but the answers of the first few at once, for what is wrong is mostly wrong early.
    """
    machine, margin = Machine(data, language.tokens), NOBODY
    later: list[_Path] = []
    left = _FIRST
    for paths in _levels(language, machine, task):
        left -= len(paths)
        if left < 0:
            later += paths
        elif (margin := min([margin, *_leads(language, machine, paths, task)])) <= 0:
            return margin
    for lead in _leads(language, machine, later, task):
        margin = min(margin, lead)
        if margin <= 0:
            break
    return margin


def _leads(language: Language, machine: Machine, paths: list[_Path], task: Asking) -> Iterator[Fraction]:
    """Of the right letter, one more letter on."""
    for path in paths:
        for before, known, now in _steps(language, path, task):
            yield _lead(machine, before, known, now, task)


def _levels(language: Language, machine: Machine, task: Asking) -> Iterator[list[_Path]]:
    """For each number of letters, from 0 on, the new situations that paths of the language lead to, with one more
    letter to come."""
    paths = [_Path(language.start, {}, task.begin(), (), Situation({}, (), Work()))]
    seen: set[Hashable] = set()
    for _ in range(language.length):
        yield paths
        following = []
        for path in paths:
            for before, known, now in _steps(language, path, task):
                for after in _each(before.situation, lambda at: _moved(machine, before, known, now, at)):  # noqa: B023
                    key, small = _canonical(after)
                    if key not in seen:
                        seen.add(key)
                        following.append(small)
            if len(seen) > _MOST_PATHS:
                raise Rejected(f"there are more than {_MOST_PATHS} situations to go through one by one")
        if not following:
            break
        paths = following


def _steps(language: Language, path: _Path, task: Asking) -> Iterator[tuple[_Path, Known, int]]:
    """The path with one more open letter of one kind, what the task then knows, and that letter."""
    now = 1 + max(path.situation.choices, default=-1)
    for number, edge in language.leaving.get(path.state, ()):
        ids = np.flatnonzero(edge.letters)
        for kind in np.unique(task.kinds[ids]).tolist():
            own = ids[task.kinds[ids] == kind]
            taken = dict(path.taken)
            others = taken.get(number, ()) if edge.distinct else ()
            if sum(np.array_equal(path.situation.choices[k], own) for k in others) >= len(own):
                continue  # each letter of this kind has stood on the edge
            choices = path.situation.choices | {now: own}
            held = [((k, now), choices[k][:, None] != own[None, :]) for k in others]
            if edge.distinct:
                taken[number] = (*others, now)
            situation = Situation(choices, (*path.situation.held, *held), path.situation.work)
            known = task.step(path.known, kind, now)
            if known is not OVER and situation.possible((now,)).any():
                yield _Path(edge.target, path.memory, path.known, tuple(sorted(taken.items())), situation), known, now


def _each(situation: Situation, function: Callable) -> Iterator:
    """What a function gives in each of the cases that it asks to be told apart."""
    waiting = [situation]
    while waiting:
        here = waiting.pop()
        try:
            yield function(here)
        except Split as split:
            waiting += [here.with_(case) for case in reversed(split.cases)]
        except Nobody:
            continue
        if len(waiting) > _MOST_PATHS:
            raise Rejected("too many cases are to be told apart")


def _moved(machine: Machine, path: _Path, known: Known, now: int, at: Situation) -> _Path:
    return _Path(path.state, Position(machine, at, now, path.memory).remembered(), known, path.taken, at)


def _lead(machine: Machine, path: _Path, known: Known, now: int, task: Asking) -> Fraction:
    margin = NOBODY
    for asked in task.asks(known, path.situation.choices):
        if (asked.right >= 0).any():
            given = path.situation.with_(*asked.given)
            leads = _each(given, lambda at: _ahead(Position(machine, at, now, path.memory), asked))  # noqa: B023
            margin = min([margin, *leads])
    return margin


def _ahead(position: Position, asked: Asked) -> Fraction:
    """How far the right letter is ahead of all others, at least."""
    at, scores = position.at, position.scores()
    right = Open(asked.letters, asked.right[None])
    ids = at.union(scores, right)
    if ids is None:
        scores = at.fix(scores)
        ids = asked.letters
    shape = [len(at.choices[i]) for i in ids]
    possible = at.possible(ids) if ids else np.ones((), dtype=bool)
    answers = np.broadcast_to(spread(right, ids)[0], shape)
    possible = possible & (answers >= 0)
    if not possible.any():
        return NOBODY
    table = np.broadcast_to(spread(scores, ids), (scores.width, *shape))[:, possible]
    return least_lead(table, answers[possible].astype(np.int64))


# One form for situations that are the same ------------------------------------------------------------------


def _canonical(path: _Path) -> tuple[Hashable, _Path]:
    """A key that equal situations share, and the path with its open letters numbered in the order of their use."""
    order: dict[int, int] = {}
    memory = {i: tuple(_simple(path.situation, v) for v in entry) for i, entry in path.memory.items()}
    for entry in memory.values():
        for value in entry:
            for i in value.ids if value is not None else ():
                order.setdefault(i, len(order))
    for i in (*path.known.letters, *(k for _, own in path.taken for k in own)):
        order.setdefault(i, len(order))
    kept = path.situation.work.kept
    renamed = {i: tuple(v and _renamed(v, order, kept) for v in entry) for i, entry in memory.items()}
    known = Known(path.known.control, tuple(order[i] for i in path.known.letters))
    taken = tuple((edge, tuple(order[i] for i in own)) for edge, own in path.taken)
    choices = {order[i]: kept(path.situation.choices[i]) for i in order}
    held = tuple((own, kept(mask)) for own, mask in _kept(path.situation, order))
    key = (  # equal tables are kept once, and so are one object
        path.state,
        tuple((i, tuple(v and (v.ids, id(v.data)) for v in entry)) for i, entry in renamed.items()),
        known,
        taken,
        tuple((i, id(choices[i])) for i in sorted(choices)),
        tuple((own, id(mask)) for own, mask in held),
    )
    return key, _Path(path.state, renamed, known, taken, Situation(choices, held, path.situation.work))


def _simple(situation: Situation, value: Open | None) -> Open | None:
    """Without the letters that it does not depend on."""
    if value is None:
        return None
    for axis in range(len(value.ids), 0, -1):
        first = value.data.take([0], axis=axis)
        if (value.data == first).all():
            ids = value.ids[: axis - 1] + value.ids[axis:]
            value = Open(ids, value.data.take(0, axis=axis))
    if value.ids and situation.held:
        mask = situation.possible(value.ids)
        columns = value.data[:, mask]
        if columns.shape[1] and (columns == columns[:, :1]).all():
            return Open((), columns[:, 0].copy())
    return value


def _renamed(value: Open, order: dict[int, int], kept: Callable[[np.ndarray], np.ndarray]) -> Open:
    ids = [order[i] for i in value.ids]
    places = np.argsort(ids)
    return Open(tuple(ids[k] for k in places), kept(value.data.transpose(0, *(1 + places))))


def _kept(situation: Situation, order: dict[int, int]) -> tuple[Held, ...]:
    """What is still known of the letters that are in use."""
    found: dict[tuple, Held] = {}
    for own, mask in situation.held:
        gone = tuple(k for k, i in enumerate(own) if i not in order)
        left = tuple(i for i in own if i in order)
        small = np.asarray(mask.any(axis=gone)) if gone else mask
        if left and not small.all():
            value = _renamed(Open(left, small[None]), order, np.ascontiguousarray)
            found[value.ids, value.data.tobytes()] = (value.ids, value.data[0])
    return tuple(found[key] for key in sorted(found))
