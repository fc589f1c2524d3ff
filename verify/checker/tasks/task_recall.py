"""Recall: a key reads what was stored under it, whatever else was stored (lemma of recall)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from verify.checker.formats import Rejected
from verify.checker.meaning.circuit import Reader
from verify.checker.meaning.conditions import Lanes
from verify.checker.meaning.entries import read_number
from verify.checker.tasks.readout import NOBODY, Heard, Readout
from verify.checker.tasks.scores import Scores
from verify.checker.tasks.task_pairs import Pair, Sets
from verify.checker.values.exact import plus, product, times

_POLICIES = {"first": ("first",), "last": ("last",), "only": ("sum", "once", "first", "last")}
_MOST_KINDS = 64


def prove_recall(reader: Reader, keys: np.ndarray, values: np.ndarray, keeps: str, blank: int | None) -> Fraction:
    """The least lead of the right letter, for the task of the same arguments (`task.Recall`)."""
    scores = Scores.of(reader, "MemoryRead")
    stream, sets = reader.data["streams"][scores.state], Sets(reader.world.language, keys, values)
    if not np.isin(keys, reader.world.language.used).any() or blank is None and not sets.most_pairs()[0].any():
        raise Rejected("no sequence of the language asks for what stands after a key")
    policy = stream["attributes"]["policy"]
    if policy not in _POLICIES[keeps]:
        raise Rejected(f"the memory keeps the {policy!r} of a key's values, and the task asks for the {keeps!r} one")
    memory = Memory.of(reader, scores.state)
    memory.check_writes(sets)
    codes = np.stack([lane.alone(0, values, keys) for lane in memory.values], axis=1)
    heard = memory.heard(sets)
    margin = NOBODY
    for own, places in scores.own(keys):
        readout = Readout(scores.head, own, values, codes)
        kinds = {heard[i] for i in places}
        if len(kinds) > _MOST_KINDS:
            kinds = {Heard(min(h.low for h in kinds), max(h.high for h in kinds), max(h.others for h in kinds))}
        margin = min([margin, *(readout.margin(h) for h in kinds)])
        if blank is not None:
            if any(h.others for h in kinds):
                raise Rejected("where nothing is stored under a key, other pairs are read")
            margin = min(margin, readout.empty(blank))
    return margin


@dataclass(frozen=True, eq=False)
class Memory:
    """A read memory: its operands as functions of two neighbouring letters; when: none or one flag."""

    adds: bool
    values: list[Pair]
    keys: list[Pair]
    queries: list[Pair]
    when: list[Pair]

    @classmethod
    def of(cls, reader: Reader, index: int) -> Memory:
        known: dict[str, Pair] = {}

        def pairs(lanes: Lanes) -> list[Pair]:
            for lane in lanes:
                if lane.key not in known:
                    known[lane.key] = Pair(reader.world, lane)
            return [known[lane.key] for lane in lanes]

        attributes = reader.data["streams"][index]["attributes"]
        if read_number(attributes.get("skip", 0)):
            raise Rejected("the memory adds what it stores to what it reads")
        value, key, query, *when = (pairs(reader.lanes(i)) for i in reader.inputs(index))
        if len(key) != len(query) or any(len(w) != 1 for w in when):
            raise Rejected("the memory's operands are of different widths")
        return cls(attributes["policy"] in ("sum", "once"), value, key, query, [w[0] for w in when])

    def check_writes(self, sets: Sets) -> None:
        """A value right after a key is stored, and nothing else is."""
        for is_key, _, before in [(False, False, None), *sets.kinds]:
            for _, is_value, now in sets.kinds:
                if is_key and is_value:
                    if any((flag.on(before, now) != 1).any() for flag in self.when):
                        raise Rejected("a value right after a key is not always stored")
                elif not self._silent(before, now):
                    raise Rejected("something is stored where no value follows a key")

    def _silent(self, before: np.ndarray | None, now: np.ndarray) -> bool:
        """Whether nothing is stored: the flag, all keys or all values are 0 (a value of 0 overwrites the last)."""
        operands = [self.when, self.keys, *([self.values] if self.adds else [])]
        return any(lanes and not any(lane.on(before, now).any() for lane in lanes) for lanes in operands)

    def heard(self, sets: Sets) -> list[Heard]:
        """For each key what its query reads: with which weight its own code, and how much of others."""
        written = np.stack([lane.alone(1, sets.keys, sets.values) for lane in self.keys])  # (columns, keys)
        base = sets.another  # a letter that may stand before a query
        asked = np.stack([_after(lane, base)[lane.classes(0, sets.keys)] for lane in self.queries])  # (columns, keys)
        leaks = [(n, lane) for n, lane in enumerate(self.queries) if lane.varies(1)]
        if not self.adds:
            return self._exclusive(asked, (written != 0) * 1.0, bool(leaks))
        weights = times(asked.T, written)  # (queries, keys)
        own = np.diagonal(weights)
        most, fewer, most_of_all = sets.most_pairs()
        away = np.abs(weights - np.diag(own))
        others = np.minimum(times(away, most[:, None])[:, 0], product(away.max(axis=1), np.array(most_of_all)))
        low, high, leak, everything = own.copy(), own.copy(), np.zeros(sets.size), np.arange(sets.size)
        for n, lane in leaks:
            more = plus(lane.table, -_after(lane, base)[:, None])  # (classes now, classes before)
            rows = more[lane.classes(0, sets.keys)]
            mine = product(rows, written[n][:, None])
            low, high = plus(low, mine.min(axis=1)), plus(high, mine.max(axis=1))
            holders = np.flatnonzero(written[n])
            strangers = np.delete(rows, holders, axis=0) if len(holders) == 1 else rows
            worst = np.abs(strangers).max(axis=0, initial=0.0)
            leak = plus(
                leak, product(worst, times(np.abs(written[n][None]), most[:, None])[0])[lane.classes(1, everything)]
            )
            twice = product(product(np.abs(written[n]), plus(most, -fewer)), worst[lane.classes(1, sets.keys)])
            leak[sets.keys] = plus(leak[sets.keys], -twice)  # what its own key stands there for is no pair
        others = plus(others, leak.max())
        return [Heard(*row) for row in np.stack([low, high, others], axis=1).tolist()]

    def _exclusive(self, asked: np.ndarray, written: np.ndarray, leaks: bool) -> list[Heard]:
        """A memory that keeps one value for each column: a key's columns must be its own."""
        strange = times(np.abs(asked).T, written)
        np.fill_diagonal(strange, 0.0)
        if leaks or strange.any():
            raise Rejected("a query reads what another key stores")
        return [Heard(w, w) for w in np.diagonal(times(asked.T, written)).tolist()]


def _after(lane: Pair, before: int) -> np.ndarray:
    """A query as a function of the class of the present letter, after one letter."""
    return lane.table[:, lane.classes(1, np.array([before]))[0]]
