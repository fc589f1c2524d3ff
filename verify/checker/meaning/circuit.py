"""The circuit as written: circuit.json read into values, stream by stream, by the rules of `rules.py` (part C)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from verify.checker.files import Matrix
from verify.checker.meaning.cases import zero_at_all_edges
from verify.checker.meaning.conditions import ONE, Conditions, Lanes, Unproved, Unread, no_rule
from verify.checker.meaning.entries import read_matrix
from verify.checker.meaning.normal_form import Meaning
from verify.checker.meaning.quotient import quotient
from verify.checker.meaning.rules import EACH, RULES, maps
from verify.checker.values.exact import number
from verify.checker.values.language import EVERY_LENGTH
from verify.checker.values.values import TOKEN, Value, World, kept

_MOST_LANES = 1 << 16
FEW_LETTERS = 64
_GROWS = 1 << 448  # what reaches this has the length in it


class Reader(Conditions):
    """The streams of a circuit as lanes of values.

    paths: whether what paths leave counts as well: edges by themselves, and normal forms made for it.
    """

    def __init__(self, world: World, data: dict, bent: bool = True, paths: bool = True):
        super().__init__(world, bent)
        self.data, self.paths = data, paths
        self._forms = _forms_of(world)
        self._shown = 0  # the way in which the last value was shown to be 0
        self._lanes: dict[int, Lanes] = {}
        self.made: dict[int, tuple[int, int]] = {}  # by stream: the first root that came with it, and the next one

    def lanes(self, i: int) -> Lanes:
        """The lanes of stream i; streams read earlier ones only, and only those that i needs are read."""
        needed = {i}
        for j in range(i, -1, -1):
            if j in needed and j not in self._lanes:
                needed |= set(self.inputs(j))
        for j in sorted(needed):
            if j not in self._lanes:
                stream = self.data["streams"][j]
                first = len(self.world.roots)
                try:
                    self._lanes[j] = self._read(stream, [self._lanes[k] for k in stream["inputs"]])
                except Unproved as reason:
                    reason.at = j if reason.at is None else reason.at
                    raise
                for lane in self._lanes[j]:
                    if isinstance(lane, Unread) and lane.reason.at is None:
                        lane.reason.at = j
                self._check_growth(self._lanes[j])
                self.made[j] = first, len(self.world.roots)
                count = len(self._lanes[j])
                if not count == self._width(stream, count) <= _MOST_LANES:
                    raise Unproved(f"stream {j} has {count} lanes, by its type {stream.get('type')}")
        return self._lanes[i]

    def _check_growth(self, lanes: Lanes) -> None:
        """Unproved where a lane grows with the length of a promise that has none: the number that stands for the length
        decides nothing then, however large the numbers of a circuit are (lemma of every length).
        """
        if self.world.language.length != EVERY_LENGTH:
            return
        roots = {root for lane in lanes if not isinstance(lane, Unread) for root, _ in lane.terms if root != TOKEN}
        if any(max(abs(self.world.roots[r].lo), abs(self.world.roots[r].hi)) >= _GROWS for r in roots):
            raise Unproved("what grows with the length, in a promise without a length")

    def _read(self, stream: dict, inputs: list[Lanes]) -> Lanes:
        """The lanes of a stream by its rule; one by one where some operand has lanes that no rule reads."""
        rule = RULES.get(stream["operation"])
        if rule is None:
            raise no_rule(stream["operation"])
        width = max(map(len, inputs), default=0)
        unread = any(isinstance(lane, Unread) for lanes in inputs for lane in lanes)
        if not unread or stream["operation"] not in EACH or any(len(lanes) not in (1, width) for lanes in inputs):
            return rule(self, stream, *inputs)
        found: Lanes = []
        for i in range(width):
            try:
                found += rule(self, stream, *([lanes[i % len(lanes)]] for lanes in inputs))
            except Unproved as reason:
                found.append(Unread(reason))
        return found

    def _width(self, stream: dict, count: int) -> int:
        """The lanes of the type that a stream declares, as all do in files; else as many as there are."""
        kind = stream.get("type", {"kind": "Int", "width": count})
        if "book" in kind:
            return read_matrix(self.data["codebooks"][kind["book"]]).shape[1]
        return kind["n"] if kind["kind"] == "OneHot" else kind["width"]

    def inputs(self, i: int) -> list[int]:
        """The streams that stream i reads."""
        return self.data["streams"][i]["inputs"]

    def output(self, place: int, weight: Fraction | None = None) -> list[tuple[Matrix, Lanes]]:
        """The scores of a stream as a sum of matrix · lanes, without one value for each letter.

        weight: W of its rules; a rule adds 2^(number of rules behind it) · W to the score of its token.
        """
        stream = self.data["streams"][place]
        if stream["operation"] == "Decide":
            parts, tokens = self.output(self.inputs(place)[0]), stream["attributes"]["tokens"]
            shape = (parts[0][0].shape[0], 1)
            for i, (token, flag) in enumerate(zip(tokens, stream["inputs"][1:], strict=True)):
                (lane,) = self.lanes(flag)
                size = np.array([number((weight or ONE) * 2 ** (len(tokens) - 1 - i))])
                rule = Matrix(shape, np.array([token]), np.array([0]), size)
                parts.append((rule, [self.flag(lane, "the condition of a rule")]))
            return parts
        if stream["operation"] in ("Linear", "Emit"):
            return maps(stream, [self.lanes(k) for k in stream["inputs"]])
        lanes = self.lanes(place)
        places = np.arange(len(lanes))
        return [(Matrix((len(lanes), len(lanes)), places, places, np.ones(len(lanes))), lanes)]

    def zero(self, value: Value) -> bool:
        """Whether the value is shown to be 0 throughout every sequence: the last way that did is tried first."""
        if value.zero:
            return True
        world, forms = self.world, self._forms
        if world.language.tokens > FEW_LETTERS:
            world, value = quotient(self.world, value)
            forms = _forms_of(world)
        ways: list[Callable[[Value], bool]] = [m.zero for m in forms if not m.paths]
        if self.paths:
            plain = tuple(ways)
            ways.append(lambda v: zero_at_all_edges(world, v, lambda w: w.zero or any(zero(w) for zero in plain)))
            ways += [m.zero for m in forms if m.paths]
        order = sorted(range(len(ways)), key=lambda way: way != self._shown)
        shown = next((way for way in order if ways[way](value)), None)
        self._shown = self._shown if shown is None else shown
        return shown is not None


def given(data: dict) -> tuple[str, ...]:
    """What a circuit takes for granted of its sequences, of the streams that its scores are made of: the kernel says it
    in the same words.
    """
    streams, needed = data["streams"], {data["output"]}
    for i in range(data["output"], -1, -1):
        needed |= set(streams[i]["inputs"]) if i in needed else set()
    memories = [i for i in sorted(needed) if streams[i]["operation"] == "MemoryRead"]
    once = [i for i in memories if streams[i]["attributes"]["policy"] == "once"]
    return tuple(f"no slot of stream {i} is written twice" for i in once)


@kept
def _forms_of(world: World) -> list[Meaning]:
    """The normal forms of a world, which all readings of a circuit share: what one of them found, none finds again."""
    return normal_forms(world)


def normal_forms(world: World) -> list[Meaning]:
    """The normal forms that are tried, the cheapest first."""
    return [Meaning(world, breakpoints, paths) for paths in (False, True) for breakpoints in (False, True)]
