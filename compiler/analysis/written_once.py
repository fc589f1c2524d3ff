"""Written once: a proof that no slot of a keyed memory is written at two positions of any sequence of the input
language.

A write happens where all conditions hold and the key is present; its slot is the lane of the one-hot key. One of four
arguments must succeed, each over all paths of the language (`paths`), with "possible" for whatever is not certain:

total        The lanes of the key, or one of the conditions, are on at most once in a sequence.
rising count The key is one_hot(x), and x rises strictly between any two writes. x is a sum Σ c·atom(t − k): a running
             sum of something ≥ 0, a count or the position may only grow (c > 0), except where the count is reset; a
             latch is constant except where it stores. So if, along every path, none of these *events* is possible
             behind a possible write and up to the next one, and some summand certainly grew in between, then two
             writes have different x, and different integers have different slots. (A growing summand that is itself
             a condition of the write grew at the second write.) A reset at which the others certainly grow by more
             than the count ever held is no event: x rises there, as place + L·row does where a row begins.
edges        The key is the one-hot of the token k positions back. A slot belongs to some tokens, and these are taken
             along some edges of the language. Over the edges along which a write is possible, Σ (how often an edge
             can carry such a token) ≤ 1: an edge on no cycle is taken once, a `distinct` one takes each token once.
lane by lane No path makes a write of the same slot possible twice.

Each argument gives up rather than guess; then the reason of the last one is given, with an example where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from compiler.analysis.affine_form import ONE, affine_form
from compiler.analysis.domains import Domains
from compiler.analysis.paths import Step, TooManyPaths, paths
from compiler.language import operations as ops
from compiler.language.graph import operation_of
from compiler.language.operations import Source
from compiler.language.stream import Stream, constant
from compiler.language.types import Bool

_LONGEST_TRAIL = 8
_MOST_LANES = 64


class _Doubt(Exception):
    """Why an argument does not succeed."""


@dataclass(frozen=True)
class _Write:
    """A key, one lane for each slot, `lag` positions back, and the flags that must hold for a write."""

    key: Stream
    lag: int
    conditions: tuple[Stream, ...]


def doubt(memory: Stream, domains: Domains) -> str | None:
    """Why a slot of a MemoryRead might be written twice; None where it is proved that none is."""
    key, when = memory.inputs[1], memory.inputs[3:]
    write = _opened(key, tuple(flag for w in when for flag in _conjuncts(w, 0)))
    if any(domains.of(s).total <= 1 for s in (key, *write.conditions)):
        return None
    try:
        proof = _PROOFS.get(type(write.key.operation), _lane_by_lane)
        try:
            proof(write, domains)
        except _Doubt as reason:
            if proof is _lane_by_lane or key.width > _MOST_LANES:
                return str(reason)
            return None if _succeeds(_lane_by_lane, write, domains) else str(reason)
    except TooManyPaths as limit:
        return f"the input language and what the key depends on make {limit}, and no more are followed"
    return None


def _succeeds(proof: Callable[[_Write, Domains], None], write: _Write, domains: Domains) -> bool:
    try:
        proof(write, domains)
    except _Doubt:
        return False
    return True


def _opened(key: Stream, conditions: tuple[Stream, ...]) -> _Write:
    """The key without the shifts and flags around it, which become a lag and conditions."""
    lag = 0
    while True:
        operation = key.operation
        if operation.delay is not None:
            key, lag = key.inputs[0], lag + operation.delay
        elif operation.conjunction and (single := [s for s in key.inputs if s.width == 1 < key.width]):
            conditions += tuple(_conjuncts(single[0], lag))
            (key,) = (s for s in key.inputs if s is not single[0])
        else:
            return _Write(key, lag, conditions)


def _conjuncts(flag: Stream, lag: int) -> Iterator[Stream]:
    """The flags of which a flag is the conjunction, `lag` positions back."""
    if flag.operation.conjunction and flag.width == 1:
        for part in flag.inputs:
            yield from _conjuncts(part, lag)
    elif flag.operation.delay is not None:
        yield from _conjuncts(flag.inputs[0], lag + flag.operation.delay)
    else:
        yield _back(flag, lag)


def _back(stream: Stream, lag: int) -> Stream:
    return stream.shift(lag) if lag else stream


def _possible(values: Sequence) -> bool:
    """Whether all of these flags can hold."""
    return all(value[0][1] >= 1 for value in values)


# A count that rises at every write ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Summand:
    """A part of the number, which grows by at least step · value at a positive value of `rise`, and only grows but
    where `event` holds: there it falls by at most `drop`, None where nothing is known.
    """

    rise: Stream
    step: Fraction
    event: Stream
    drop: Fraction | None = Fraction(0)


def _rises(moves: Sequence[tuple[_Summand, Sequence, Sequence]]) -> bool:
    """Whether a number certainly rises at a step, by what the `rise` and the `event` of each part can hold there."""
    change = Fraction(0)
    for part, rise, event in moves:
        if not _possible([event]):
            change += part.step * max([0, *(lo for lo, _ in rise)])
        elif part.drop is None:
            return False
        else:
            change -= part.drop
    return change > 0


def _by_rising_count(write: _Write, domains: Domains) -> None:
    number = _back(write.key.inputs[0], write.lag)
    summands = list(_summands(number, write.lag, domains))
    conditions = (*write.conditions, _back(constant(1), write.lag))
    certain = any(_implied(part.rise, conditions) for part in summands)
    watched = [*conditions, *(s for part in summands for s in (part.rise, part.event))]
    found = paths(domains.language, domains.of, watched, work=domains.work)

    def follow(step: Step, past: tuple[str, bool]) -> tuple[str, bool] | None:
        """(what happened since the last possible write, whether an event came behind any).

        None: two writes of one slot.
        """
        last, disturbed = past
        flags, rest = step.values[: len(conditions)], step.values[len(conditions) :]
        if last:
            rose = _rises(list(zip(summands, rest[::2], rest[1::2], strict=True)))
            disturbed = disturbed or (not rose and any(_possible([event]) for event in rest[1::2]))
            last = "rose" if rose else last
        if not _possible(flags):
            return last, disturbed
        if disturbed or (last == "wrote" and not certain):
            return None
        return "wrote", disturbed

    example = _reached(found, ("", False), follow)
    if example is not None:
        raise _Doubt(
            f"its key counts {number.label}, which need not rise from each write to the next"
            f"{_told(example, domains)}; write under a count that is 1 more at every write and is not reset in between"
        )


def _summands(number: Stream, first: int, domains: Domains) -> Iterator[_Summand]:
    """The parts of which a number is the sum, but those that never change; first: no write comes before this
    position.
    """
    never = constant(0)
    for (atom, lag), matrix in affine_form(number).items():
        operation, rises = atom.operation, bool((matrix.data > 0).all())
        read = sorted(set(matrix.indices.tolist()))
        weights = [Fraction(float(abs(weight))) for weight in matrix.data] or [Fraction(0)]
        if atom is ONE and (lag <= first or rises):
            continue
        if operation.latches and operation.keeps_sizes:  # not a latch that adds
            yield _Summand(_back(never, lag), min(weights), _back(atom.inputs[1], lag), None)
        elif operation.source is Source.RUN and rises:  # the position: constants are no atoms
            yield _Summand(_back(constant(1), lag), min(weights), never)
        elif operation.accumulates and rises and domains.of(atom.inputs[0]).lo >= 0:
            added = atom.inputs[0][read] if len(read) < atom.width else atom.inputs[0]
            yield _Summand(_back(added, lag), min(weights), never)
        elif operation.counts and rises:
            held = max(weights) * domains.of(atom).hi
            yield _Summand(_back(atom.inputs[0], lag), min(weights), _back(atom.inputs[1], lag), held)
        else:
            raise _Doubt(
                f"its key is the one-hot of {number.label}, and {atom.label} in it is no count that only grows; "
                "a running sum, a count or the position would do"
            )


def _implied(flag: Stream, conditions: Sequence[Stream]) -> bool:
    """Whether a flag holds wherever all the conditions do, as far as that shows from how they are written."""
    return all(any(_alike(part, known) for known in conditions) for part in _conjuncts(flag, 0))


def _alike(a: Stream, b: Stream) -> bool:
    """Whether two streams are written alike, so that they are equal at every position."""
    if a is b:
        return True
    same = type(a.operation) is type(b.operation) and len(a.inputs) == len(b.inputs)
    return same and a.operation == b.operation and all(map(_alike, a.inputs, b.inputs))


# A token that is taken once ----------------------------------------------------------------------------------------


def _by_edges(write: _Write, domains: Domains) -> None:
    language = domains.language
    if language is None or write.lag > _LONGEST_TRAIL:
        raise _Doubt(
            f"its key is a token {write.lag} positions back, and {_LONGEST_TRAIL} back is the furthest followed"
        )
    operation = operation_of(write.key, ops.Embed)
    present = ops.exact_matrix(np.minimum(abs(operation.table).sum(axis=1), 1).reshape(-1, 1))
    here = Stream(ops.Embed(operation.alphabet, present, Bool()))
    found = paths(language, domains.of, [_back(here, write.lag), *write.conditions], write.lag, domains.work)
    used = {
        step.trail[write.lag - 1] if write.lag else step.edge
        for leaving in found
        for step in leaving
        if _possible(step.values)
    }
    slots = (operation.table != 0).astype(np.int64).tocsc()
    times = np.zeros(slots.shape[1], dtype=np.int64)
    for edge in used - {-1}:
        tokens = np.zeros(language.alphabet.size, dtype=np.int64)
        tokens[list(language.edges[edge].tokens)] = 1
        carried = tokens @ slots
        if not language.is_repeatable(edge):
            carried = np.minimum(carried, 1)
        elif not language.edges[edge].distinct:
            carried = np.minimum(2 * carried, 2)
        times += carried
    if times.max(initial=0) > 1:
        slot = int(times.argmax())
        token = language.alphabet.tokens[int(slots[:, [slot]].nonzero()[0][0])]
        edges = ", ".join(f"{e.source!r} → {e.target!r}" for e in (language.edges[i] for i in sorted(used - {-1})))
        raise _Doubt(
            f"its key is a token, and the input language does not keep {token!r} from being written twice along "
            f"{edges}; make the edge distinct, or write under a count"
        )


# Anything that few slots can hold ---------------------------------------------------------------------------------


def _lane_by_lane(write: _Write, domains: Domains) -> None:
    key = _back(write.key, write.lag)
    if key.width > _MOST_LANES:
        raise _Doubt(
            f"its key {write.key.label} is no one_hot() of a count and no token, and has {key.width} slots; "
            f"{_MOST_LANES} are the most that are followed one by one"
        )
    found = paths(domains.language, domains.of, [key, *write.conditions], work=domains.work)
    for slot in range(key.width):

        def follow(step: Step, written: bool, slot: int = slot) -> bool | None:
            possible = step.values[0][slot][1] >= 1 and _possible(step.values[1:])
            return None if possible and written else possible or written

        example = _reached(found, False, follow)
        if example is not None:
            raise _Doubt(
                f"its key {write.key.label} may name slot {slot} twice{_told(example, domains)}; "
                "write under a one_hot() of a count that rises at every write, or a token of a distinct edge"
            )


def _reached(found: list[list[Step]], start: object, follow) -> list[Step] | None:
    """A shortest path along which `follow` gives None; None where there is none."""
    came: dict[tuple, tuple] = {(0, start): ()}
    pending = [(0, start)]
    for place in pending:  # grows while it is read
        node, past = place
        for step in found[node]:
            after = follow(step, past)
            if after is None:
                return [*_path(came, place), step]
            if (step.target, after) not in came:
                came[(step.target, after)] = (place, step)
                pending.append((step.target, after))
    return None


def _path(came: dict[tuple, tuple], place: tuple) -> list[Step]:
    path = []
    while came[place]:
        place, step = came[place]
        path.append(step)
    return path[::-1]


def _told(example: list[Step], domains: Domains) -> str:
    if domains.language is None or len(example) > domains.max_length:
        return ""
    names = [domains.language.alphabet.tokens[step.token] for step in example if step.token is not None]
    return f", as far as can be seen in {' '.join(names[:16])}{' …' if len(names) > 16 else ''}"


_PROOFS: dict[type, Callable[[_Write, Domains], None]] = {ops.OneHotOf: _by_rising_count, ops.Embed: _by_edges}
