"""What is not proved, for people: which token, which stream of the circuit and where it was written, and what would be
provable instead. Names and places come from circuit.json; nothing here is part of a proof.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from verify.checker.formats import EXACT, Rejected
from verify.checker.meaning.circuit import Reader
from verify.checker.meaning.conditions import Unproved, Unread, place
from verify.checker.meaning.quotient import roots_of
from verify.checker.unexpected import UNEXPECTED
from verify.checker.values.bounds import bounds
from verify.checker.values.values import TOKEN, Value, World
from verify.checker.values.windows import TooLarge, is_window_root

_MOST_NAMED = 3


def letter(data: dict, row: int) -> str:
    """A score by its letter: `the score of ']' (token 3)`."""
    letters = data.get("alphabet")
    if not isinstance(letters, list) or row >= len(letters):
        return f"the score of token {row}"
    return f"the score of {letters[row]!r} (token {row})"


def differing(reader: Reader, row: int, left: Value, met: int) -> str:
    """Of a score that is not shown: the first stream of which nothing in the weights is shown to hold the same.

    left: what is left of the difference; met: how many roots there were when the weights had been read, and the circuit
    had not.
    """
    streams, said = reader.data["streams"], f"{letter(reader.data, row)} is not shown to be the circuit's"
    new = [number for number in roots_of(reader.world, left) if number >= met]
    made = [(i, number) for number in new for i, (first, last) in reader.made.items() if first <= number < last]
    if not made:
        return said
    i, number = made[0]
    lanes = enumerate(reader.lanes(i))
    lane = next((k for k, v in lanes if not isinstance(v, Unread) and (number, 0) in v.terms), None)
    shown = f"{place(streams, i, lane)}{_block(reader.world, left)}"
    memories = [place(streams, k) for k, _ in made if streams[k]["operation"] == "MemoryRead"]
    memories = list(dict.fromkeys(memories))
    if len(memories) > 1:
        instead = (
            f"it is asked beside {_listed(memories[1:])}, and each by itself may be proved: such as a latch of each"
        )
    else:
        instead = _hint(reader, i, number)
    return f"{said}: no number of the weights is shown to be {shown}; {instead}"


def _block(world: World, left: Value) -> str:
    """The last block of the weights that computes a part of what is left of a difference; nothing where none does."""
    weights = [number for number in roots_of(world, left) if world.blocks and number < world.blocks[-1]]
    return f" after block {1 + bisect_right(world.blocks, max(weights))}" if weights else ""


_MOSTLY = {
    "MemoryRead": "a memory is mostly proved where its key and flag are functions of letters, of one count or of flags",
    "Latch": "a latch is mostly proved where its flag is a function of letters, of one count or of other flags",
    "Cumsum": "a running sum is mostly proved where what it adds is a function of letters or of flags",
    "Count": "a count is mostly proved where its flags are functions of letters or of other flags",
}
_ELSE = "it is mostly proved where it is a function of letters, of one count or of flags"


def _hint(reader: Reader, i: int, number: int) -> str:
    """What would be provable: steps that read one of the numbers at a time, or what is usually proved of its kind."""
    names = [name for k in _below(reader.world, number) if (name := _named(reader, k)) is not None and k != number]
    names = list(dict.fromkeys(names))
    if len(names) > 1:
        return f"it is made of {_listed(names)}; it may be in steps of which each reads one of them beside letters"
    return _MOSTLY.get(reader.data["streams"][i]["operation"], _ELSE)


def _below(world: World, number: int) -> list[int]:
    """The states that a root is a function of at one position."""
    root = world.roots[number]
    if root.kind not in ("form", "product"):
        return [number]
    values = [p for p in root.parts if isinstance(p, Value)]
    inner = {n for v in values for n, _ in v.ramps if not is_window_root(world, world.roots[n])}
    return [k for n in sorted(inner) for k in _below(world, n)]


def _named(reader: Reader, number: int) -> str | None:
    """The first stream one lane of which is a function of this root alone."""
    for i in sorted(reader.made):
        for lane, value in enumerate(reader.lanes(i)):
            if not isinstance(value, Unread) and list(value.terms) == [(number, 0)]:
                return place(reader.data["streams"], i, lane)
    return None


def unread(reader: Reader, reason: Unproved) -> str:
    """Of a stream that no rule reads: which, and which operand is at fault, with what is known of it."""
    i = reason.at
    if i is None:
        return str(reason)
    streams, value = reader.data["streams"], reason.value
    said = f"{place(streams, i)}: {reason}"
    if value is None:
        return said
    found = ((k, lane) for k in reader.inputs(i) for lane, v in enumerate(reader.lanes(k)) if v is value)
    k, lane = next(found, (None, None))
    lo, hi = bounds(reader.world, value)
    known = f"of which only {float(lo):g} to {float(hi):g} is known"
    operand = "an operand" if k is None else place(streams, k, lane)
    return f"{said}: {operand}, {known}; {_INSTEAD[reason.kind]} would be"


_INSTEAD = {"flag": "a comparison, such as `x > 0`,", "whole": "a number that only whole numbers make"}


def inexact(reason: Rejected, data: dict) -> str:
    """Of an operation of the weights that may not be exact: the streams of the circuit that it computes with."""
    if reason.world is None:
        return str(reason)
    try:
        names = list(dict.fromkeys(_streams(reason.world, data, reason.about)))
    except (Unproved, Rejected, TooLarge, *UNEXPECTED):  # a circuit that is none says nothing of the weights
        names = []
    if not names:
        return str(reason)
    bound = "a bound on one of them that the circuit states, such as `.clip(lo, hi)`, may make it provable"
    return f"{reason}; it computes with {_listed(names)}, and {bound}"


def _streams(world: World, data: dict, values: Iterable[Value]) -> Iterable[str]:
    """The streams that some values are functions of, by the states that both are made of."""
    world.format = EXACT
    reader = Reader(world, data)
    reader.lanes(data["output"])
    for value in values:
        for number, _ in value.terms:
            for k in _below(world, number) if number != TOKEN else ():
                name = _named(reader, k)
                if name is not None:
                    yield name


def _listed(names: list[str]) -> str:
    few, more = names[:_MOST_NAMED], len(names) - _MOST_NAMED
    if more > 0:
        return f"{', '.join(few)} and {more} more"
    return few[0] if len(few) == 1 else f"{', '.join(few[:-1])} and {few[-1]}"
