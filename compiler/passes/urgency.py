"""Part of schedule: blocks by urgency, where conflicts over state columns decide how many there are.

Block by block, of the column groups that could stand there the one goes first that holds the head of the longest chain
of blocks still to come; of equally urgent groups the one with the fewest operations, for those of a larger group find
another block of theirs more easily. (List scheduling. Placing in graph order lets a state that nobody is in a hurry
for take the columns from one that everything waits for.)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from heapq import heappop, heappush

from compiler.language.stream import Stream

# What a stream reads of others: (the stream, whether a port of its own block computes that).
Reads = Mapping[Stream, Sequence[tuple[Stream, bool]]]


def by_urgency(
    reads: Reads,
    placed: Sequence[Stream],
    groups: Mapping[Stream, Hashable | None],
    together: Callable[[tuple], bool] = lambda groups: False,
) -> dict[Stream, int]:
    """The block of each placed stream.

    reads: of every stream, inputs first. placed: those that take a place; groups: the columns that these need, None
    for any. together: whether one block holds some groups, the most urgent first (`passes.direct_sums`).
    """
    return _Placing(reads, placed, groups).run(together)


class _Placing:
    def __init__(self, reads: Reads, placed: Sequence[Stream], groups: Mapping[Stream, Hashable | None]):
        self.reads = reads
        self.groups = groups
        self.urgency = _urgency(reads)
        self.size = Counter(groups[s] for s in placed)
        self.order = {stream: i for i, stream in enumerate(reads)}
        self.readers: dict[Stream, list[tuple[Stream, bool]]] = defaultdict(list)
        for stream, sources in reads.items():
            for source, in_port in sources:
                self.readers[source].append((stream, in_port))
        self.missing = {stream: len(sources) for stream, sources in reads.items()}
        self.earliest = dict.fromkeys(reads, 0)
        self.block: dict[Stream, int] = {}
        self.later: list[tuple[int, int, Stream]] = []  # by the first block that they could take
        self.urgent: list[tuple[int, int, int, Hashable]] = []
        self.waiting: dict[Hashable, list[Stream]] = defaultdict(list)

    def run(self, together: Callable[[tuple], bool]) -> dict[Stream, int]:
        for stream in [s for s, missing in self.missing.items() if not missing]:
            self._known(stream)
        now = 0
        while self.later or self.urgent:
            while self.later and self.later[0][0] <= now:
                _, order, stream = heappop(self.later)
                group = self.groups[stream]
                self.waiting[group].append(stream)
                heappush(self.urgent, (-self.urgency[stream], self.size[group], order, group))
            chosen = self._chosen(together)
            if chosen:
                for stream in [s for group in chosen for s in self.waiting.pop(group)]:
                    self._place(stream, now)
                now += 1
            elif self.later:
                now = self.later[0][0]
        return {stream: self.block[stream] for stream in self.reads if stream in self.block}

    def _chosen(self, together: Callable[[tuple], bool]) -> tuple:
        """The most urgent group that waits, and those that go with it; () where none waits."""
        chosen: tuple = ()
        left = []
        while self.urgent:
            entry = heappop(self.urgent)
            if not self.waiting[entry[3]] or entry[3] in chosen:
                continue
            if not chosen or together((*chosen, entry[3])):
                chosen += (entry[3],)
            else:
                left.append(entry)
        for entry in left:
            heappush(self.urgent, entry)
        return chosen

    def _known(self, stream: Stream) -> None:
        """All that a stream reads has its block; so have those without columns that only wait for it."""
        pending = [stream]
        while pending:
            ready = pending.pop()
            if self.groups.get(ready, ready) is None:
                self.block[ready] = self.earliest[ready]
            elif ready in self.groups:
                heappush(self.later, (self.earliest[ready], self.order[ready], ready))
            for reader, in_port in self.readers[ready]:
                if in_port or ready in self.block:
                    pending += self._reached(ready, reader, in_port)

    def _place(self, stream: Stream, block: int) -> None:
        self.block[stream] = block
        for reader, in_port in self.readers[stream]:
            if not in_port:
                for ready in self._reached(stream, reader, in_port):
                    self._known(ready)

    def _reached(self, source: Stream, reader: Stream, in_port: bool) -> list[Stream]:
        """A reader may now know one of its sources; [the reader] where that was the last."""
        at = self.earliest[source] if in_port else self.block[source] + 1
        self.earliest[reader] = max(self.earliest[reader], at)
        self.missing[reader] -= 1
        return [] if self.missing[reader] else [reader]


def _urgency(reads: Reads) -> dict[Stream, int]:
    """How many blocks come after a stream's own on the longest chain of its readers."""
    found = dict.fromkeys(reads, 0)
    for stream in reversed(list(reads)):
        for source, in_port in reads[stream]:
            found[source] = max(found[source], found[stream] + (not in_port))
    return found
