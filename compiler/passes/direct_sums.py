"""Part of schedule: which column groups one block holds as a direct sum (E15).

B and C are shared by all channels of a block, so a channel whose state stands in the columns of one group is also
written to those of another. On Mamba A is a matrix. In *foreign* columns a channel forgets at each step (A = −7.4), so
what it reads there is of its last write alone: Δ·x̂·Σ_n B_n·C_n, and for a channel that is always on that write is
the present one. Say that a memory is *silent* for a value x if key_n·query_n·x = 0 at every position, for all n.

Lemma. A block computes what its memories compute by themselves if each memory is
    open:     silent for the values of all other groups; or
    mirrored: silent for its own values, and its columns stand a second time with the opposite C, where all forget.
Open columns give foreign channels 0. So do mirrored ones: a foreign channel holds the same in a column and in its
mirror, whatever its Δ, and C has opposite signs. The channels of a mirrored memory read their own columns, and from the
mirror minus their present write, which is 0. The constant column gives a channel that is always on Δ·B·C·x̂, a fixed
multiple of x̂, which D takes off. Latches have no D of that kind and so no foreign constant column: it is their own.

Silence is shown over all paths of the input language (`analysis.never_together`), never declared; where it is not
shown the memories take a block each. Every partial sum of what is read, foreign parts included, must be exact.

More than that cannot be had. In a block all channels read their present write with the same factor Σ_n B_n·C_n. So two
memories with the same value and different queries share none if they are ever read where they are written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from compiler.analysis.never_together import never_together
from compiler.context import Context
from compiler.formats import FLOAT16
from compiler.language.stream import Stream
from compiler.lowering.ports import CONSTANT_COLUMN

Group = tuple


LEAST_WORK = 1 << 14  # constructions of ours take 2^9 at most
WORK_FOR_A_STREAM = 1 << 4


class OutOfWork(Exception):
    """The search for groups that share a block has taken as long as it may."""


class DirectSums:
    """What is known of the column groups of a circuit, found with work that is linear in it.

    groups: of each placed operation, None for one without a state. A unit of work is a group looked at, or a step of a
    path; both take some 0.1 ms at most.
    """

    def __init__(self, groups: dict[Stream, Group | None], context: Context):
        self.context, self.domains = context, context.domains
        self.members: dict[Group, list[Stream]] = defaultdict(list)
        for stream, group in groups.items():
            if group is not None:
                self.members[group].append(stream)
        self._group_of = groups
        self._order = {group: i for i, group in enumerate(self.members)}
        self._met: dict[Group, Fraction] = {}
        self._left = LEAST_WORK + WORK_FOR_A_STREAM * len(groups)
        self._silent: dict[tuple[int, int, int], bool] = {}
        self._known: dict[tuple[Group, ...], frozenset[Group] | None] = {}

    def together(self, groups: Sequence[Group], most: int) -> bool:
        """Whether one block is known to hold these groups, at most so many; OutOfWork where that takes too long."""
        self._spend(len(groups))
        return len(groups) <= most and self.mirrored(groups) is not None

    def _spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise OutOfWork

    def mirrored(self, groups: Sequence[Group]) -> frozenset[Group] | None:
        """Which of these groups stand twice in a block that holds them all; None where no block is known to."""
        if len(groups) < 2:
            return frozenset()
        if not self.context.target.sums or self.context.format is FLOAT16:
            return None
        key = tuple(sorted(groups, key=self._order.__getitem__))
        if key not in self._known:
            self._known[key] = self._found(key)
        return self._known[key]

    def in_blocks(self, block_of: Mapping[Stream, int]) -> dict[int, frozenset[Group]]:
        """For each block with several groups those that stand twice."""
        held: dict[int, dict[Group, None]] = defaultdict(dict)
        for stream, block in block_of.items():
            group = self._group_of[stream]
            if group is not None:
                held[block][group] = None
        found = {block: self.mirrored(tuple(groups)) for block, groups in held.items() if len(groups) > 1}
        return {block: mirrored for block, mirrored in found.items() if mirrored is not None}

    def _found(self, groups: tuple[Group, ...]) -> frozenset[Group] | None:
        self._spend(sum(len(self.members[group]) for group in groups))
        if not all(self._summable(s, group) for group in groups for s in self.members[group]):
            return None
        most = self.context.columns.most
        if most is not None and sum(map(self._width, groups)) > most or not self._exact(groups):
            return None  # before any path
        memories = [group for group in groups if group != CONSTANT_COLUMN]
        mirrored = frozenset(g for g in memories if not self._is_open(g, groups))
        columns = sum((1 + (g in mirrored)) * self._width(g) for g in groups)
        if most is not None and columns > most:
            return None
        return mirrored if all(self._is_silent(g, g) for g in mirrored) else None

    def _summable(self, stream: Stream, group: Group) -> bool:
        """Whether it is a memory under whole numbers, or a state of whole steps in the constant column."""
        if group == CONSTANT_COLUMN:
            state = stream.inputs[0] if stream.operation.opens_bank else stream
            kept = state.operation.whole_state
            return kept and all(self.domains.of(s).step > 0 for s in state.inputs)
        if not stream.operation.keyed:
            return False
        value, key, query = (self.domains.of(s) for s in stream.inputs[:3])
        return value.step > 0 and min(key.step, query.step) >= 1

    def _is_open(self, group: Group, groups: Iterable[Group]) -> bool:
        """Whether no channel of another group reads anything in its columns."""
        return all(g == group or (g != CONSTANT_COLUMN and self._is_silent(group, g)) for g in groups)

    def _is_silent(self, group: Group, other: Group) -> bool:
        """Whether a memory is silent for all values of a group."""
        key, query = self.members[group][0].inputs[1:3]
        return all(self._never(key, query, stream.inputs[0]) for stream in self.members[other])

    def _never(self, key: Stream, query: Stream, value: Stream) -> bool:
        three = id(key), id(query), id(value)
        if three not in self._silent:
            self._silent[three] = never_together(key, query, value, self.domains, self._spend)
        return self._silent[three]

    def _width(self, group: Group) -> int:
        return 1 if group == CONSTANT_COLUMN else self.members[group][0].inputs[1].width

    def _exact(self, groups: Sequence[Group]) -> bool:
        """Whether every sum of some of the columns that a channel reads is exact, for all channels."""
        limit = self.context.format.exact_integers
        for group in groups:
            met = sum((self._most_met(g) for g in groups if g != group), Fraction(0))
            for stream in self.members[group]:
                value = self.domains.of(_written(stream))
                if value.step and (self.domains.of(stream).bound + met * value.bound) / value.step > limit:
                    return False
        return True

    def _most_met(self, group: Group) -> Fraction:
        """A bound on Σ_n |key_n·query_n|, of keys and queries of any two positions."""
        if group == CONSTANT_COLUMN:
            return Fraction(1)
        if group not in self._met:
            key, query = (self.domains.of(s) for s in self.members[group][0].inputs[1:3])
            self._met[group] = min(key.l1 * query.bound, key.bound * query.l1)
        return self._met[group]


def _written(stream: Stream) -> Stream:
    """What an operation writes to its state."""
    return _written(stream.inputs[0]) if stream.operation.opens_bank else stream.inputs[0]
