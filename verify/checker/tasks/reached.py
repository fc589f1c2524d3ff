"""The lemma of known letters: a circuit and an automaton, side by side, over all that they can reach.

Where everything that is remembered is a row of numbers, all rows that are not yet gone through are taken on by every
letter at once, as one array. Which row and letter it is takes the place of an open letter: so the rules of `machine`
hold as they stand, and only what is remembered needs rules of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from verify.checker.formats import Rejected
from verify.checker.meaning.conditions import no_rule, place
from verify.checker.tasks.letters import MOST_ENTRIES, Open, Situation, Split, Work, fixed, spread
from verify.checker.tasks.machine import STATES, Machine, Memory, Position, Rule, first_place, lanes
from verify.checker.tasks.readout import NOBODY, least_lead
from verify.checker.tasks.task_forms import States
from verify.checker.values.language import EVERY_LENGTH, Language

MOST_REACHED = 1 << 18
MOST_LETTERS = 1 << 12  # behind which a sequence of every length must come to nothing new
_ROW = 0  # the id of the open letter that says which row


class Unfit(Rejected):
    """The circuit, or its language, remembers what is no row of numbers: another proof may do."""


@dataclass(frozen=True, eq=False)
class _Rows:
    """Situations: where the path is, the automaton's state, and what the circuit remembers, (count,) and (count, n)."""

    path: np.ndarray
    state: np.ndarray
    held: np.ndarray

    def __len__(self) -> int:
        return len(self.path)

    def taken(self, which: np.ndarray) -> _Rows:
        return _Rows(self.path[which], self.state[which], self.held[which])

    def keys(self) -> np.ndarray:
        """(count,) of raw bytes, equal for equal situations."""
        whole = np.column_stack([self.path, self.state, self.held]) + 0.0  # −0 is 0
        return np.ascontiguousarray(whole).view(np.dtype((np.void, 8 * whole.shape[1]))).reshape(-1)


def prove_reached(language: Language, data: dict, task: States) -> Fraction:
    """The least lead of the right letter over all sequences; Rejected where there are too many situations, Unfit where
    another proof may do."""
    if any(edge.distinct for edge in language.edges):
        raise Unfit("letters that are used up are no row of numbers")
    machine = Machine(data, language.tokens)
    for i in machine.needed:
        operation = machine.streams[i]["operation"]
        if operation in STATES and operation not in _REMEMBERED or operation == "Decide":
            raise Unfit(f"{place(machine.streams, i)}: {no_rule(operation)} among rows")
    steps, work, margin = _Steps(language, machine, task), Work(), NOBODY
    rows = steps.start
    seen: set[bytes] = set()
    for letters in range(language.length):
        if letters == MOST_LETTERS and language.length == EVERY_LENGTH:
            raise Rejected(
                f"behind {letters} letters there are still new situations, as where something is counted without "
                "end; a promise with a length would do"
            )
        found = []
        for some in steps.batches(rows):
            after, lead = steps.moved(some, work)
            margin = min(margin, lead)
            keys, first = np.unique(after.keys(), return_index=True)
            fresh = [k for k, key in zip(first, keys.tolist(), strict=True) if key not in seen]
            seen.update(keys.tolist())
            work.keep(len(fresh) * keys.itemsize)
            found.append(after.taken(np.sort(np.array(fresh, dtype=np.int64))))
            if len(seen) > MOST_REACHED:
                raise Rejected(f"there are more than {MOST_REACHED} situations to go through one by one")
        rows = _joined(found)
        if not len(rows):
            break
    return margin


def _joined(parts: list[_Rows]) -> _Rows:
    return _Rows(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("path", "state", "held")))


class _Steps:
    """One more letter, of every kind that may come. Letters that nothing tells apart are one kind."""

    def __init__(self, language: Language, machine: Machine, task: States):
        self.machine, self.task = machine, task
        ends = [state for edge in language.edges for state in (edge.source, edge.target)]
        number = {state: i for i, state in enumerate(dict.fromkeys([language.start, *ends]))}
        kinds = _representatives(language, machine, task)
        ways = [(number[e.source], number[e.target], v) for e in language.edges for v in kinds if e.letters[v]]
        self.ways = np.array(ways, dtype=np.int64).reshape(-1, 3)
        self.start = _Rows(np.zeros(1, np.int64), np.array([task.start]), np.zeros((1, 0)))
        self.shapes: list[tuple[int, list[int]]] = []  # of what is remembered: the stream, and how wide each part is
        self.widest = 1

    def batches(self, rows: _Rows) -> list[_Rows]:
        """As many rows at once as tables may have entries."""
        many = max(1, MOST_ENTRIES // self.widest // len(self.ways))
        return [rows.taken(np.arange(i, min(i + many, len(rows)))) for i in range(0, len(rows), many)]

    def moved(self, rows: _Rows, work: Work) -> tuple[_Rows, Fraction]:
        """All rows behind one more letter, and the least lead of a right letter there."""
        row, way = np.nonzero(rows.path[:, None] == self.ways[None, :, 0])
        target, letter = self.ways[way, 1], self.ways[way, 2]
        state = self.task.following[rows.state[row], self.task.kinds[letter]]
        asked = state >= 0
        row, target, letter, state = row[asked], target[asked], letter[asked], state[asked]
        here = _Row(self.machine, Situation({_ROW: letter}, (), work), _ROW, self._memory(rows.held[row]))
        if not len(row):
            return _Rows(target, state, np.zeros((0, rows.held.shape[1]))), NOBODY
        try:
            lead = here.lead(self.task.answers[state])
            held = self._flat(here.remembered(), len(row))
        except Split:
            raise Unfit("a number that must be known has several values") from None
        self.widest = max(here.widest(), held.shape[1])
        work.spend(held.size, sum(len(widths) for _, widths in self.shapes))
        return _Rows(target, state, held), lead

    def _memory(self, held: np.ndarray) -> Memory:
        """What each stream remembers, from the rows; nothing before the first letter."""
        found, at = {}, 0
        for i, widths in self.shapes:
            ends = np.cumsum([at, *widths])
            at = int(ends[-1])
            found[i] = tuple(Open((_ROW,), np.ascontiguousarray(held[:, a:b].T)) for a, b in pairwise(ends))
        return found

    def _flat(self, memory: Memory, count: int) -> np.ndarray:
        self.shapes = [(i, [part.width for part in parts]) for i, parts in memory.items()]
        parts = [np.broadcast_to(spread(part, (_ROW,)), (part.width, count)) for all in memory.values() for part in all]
        return np.concatenate([np.zeros((0, count)), *parts]).T


def _representatives(language: Language, machine: Machine, task: States) -> list[int]:
    """One letter of each kind: of one kind are letters that task, edges and embeddings treat alike."""
    tables = [machine.matrices(i)[0] for i in machine.needed if machine.streams[i]["operation"] == "Embed"]
    edges = [edge.letters for edge in language.edges]
    told = np.column_stack([task.kinds, *edges, *(table.T for table in tables)])
    first = np.unique(told, axis=0, return_index=True)[1]
    return sorted(first.tolist())


class _Row(Position):
    """One position of all rows: the open letter `_ROW` says which."""

    @property
    def rules(self) -> dict[str, Rule]:
        return _REMEMBERED

    def widest(self) -> int:
        return max(value.width for value in self._values.values())

    def lead(self, right: np.ndarray) -> Fraction:
        """How far the right letters are ahead of all others, at least; −1 where nothing is asked."""
        scores, rows = spread(self.scores(), (_ROW,)), np.flatnonzero(right >= 0)
        table = np.broadcast_to(scores, (len(scores), len(right)))[:, rows]
        if not table.size or len(scores) < 2:
            return NOBODY
        return least_lead(table, right[rows])


# What is remembered, row by row: nothing before the first letter is 0 ----------------------------------------------


def _flag(value: Open) -> Open:
    if not ((value.data == 0.0) | (value.data == 1.0)).all():
        raise Rejected("a condition is not 0 or 1 everywhere")
    return value


def _counted(p: Position, i: int, s: dict, before: tuple) -> tuple:
    up, reset = _flag(p.input(i, 0)), _flag(p.input(i, 1))
    held = before[0] if before else fixed([0.0])
    return (p.at.apply(lambda c, r, u: np.where(r == 1.0, 0.0, c + u), held, reset, up),)


def _latched(p: Position, i: int, s: dict, before: tuple) -> tuple:
    value, when = p.inputs(i)
    held = before or (fixed([0.0] * value.width),) * when.width
    flags = [_flag(Open(when.ids, when.data[k : k + 1])) for k in range(when.width)]
    return tuple(p.at.apply(_kept, flag, value, old) for flag, old in zip(flags, held, strict=True))


def _kept(flag: np.ndarray, new: np.ndarray, old: np.ndarray) -> np.ndarray:
    return np.where(flag == 1.0, new, old)


def _moved(p: Position, i: int, s: dict, before: tuple) -> tuple:
    held = before[0] if before else fixed(first_place(s))
    swaps = p.input(i, 0)
    for k, (a, b) in enumerate(s["attributes"]["pairs"]):
        order = np.arange(held.width)
        order[[a, b]] = b, a
        held = p.at.apply(_kept, _flag(lanes(swaps, k, 1)), Open(held.ids, held.data[order]), held)
    if len(s["inputs"]) > 1:
        places = _flag(p.input(i, 1))
        put = p.at.sum([lanes(places, k, 1) for k in range(places.width)])
        held = p.at.apply(_kept, _flag(put), places, held)
    return (held,)


def _delayed(p: Position, i: int, s: dict, before: tuple) -> tuple:
    parts = STATES[s["operation"]](p, i, s, before)
    lag = s["attributes"]["k"] if s["operation"] == "Shift" else len(s["attributes"]["kernel"]) - 1
    return (*parts, *[fixed([0.0] * parts[0].width)] * (lag + 1 - len(parts)))


_REMEMBERED: dict[str, Rule] = {
    "Position": STATES["Position"],
    "Cumsum": STATES["Cumsum"],
    "Count": _counted,
    "Latch": _latched,
    "Shift": _delayed,
    "Lti": _delayed,
    "Permute": _moved,
}
