"""Dynamic programs whose table is written entry by entry: each entry by its recurrence from those that stand there.

What is asked is local: the entry that follows from the letters and entries that were written, whatever these are, as
long as it has a token. A chain that is right so far therefore goes on right, up to its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from string import ascii_lowercase

import numpy as np

from verify.checker.formats import Rejected
from verify.checker.tasks.letters import Ids
from verify.checker.tasks.names import Names, Stated
from verify.checker.tasks.paths import OVER, Asked, Asking, Known
from verify.checker.tasks.task_copies import (
    BAR,
    END,
    OTHER,
    TEXT,
    TEXT_BAR,
    Choices,
    always,
    kinds_of,
    known,
    nothing,
    number,
)

ROW, NUMBER = 6, 7


@dataclass(frozen=True, eq=False)
class Numbers:
    """of: the number of each letter; tokens: the letter of each number from 0 on."""

    of: np.ndarray
    tokens: np.ndarray

    def entry(self, read: Ids, choices: Choices, function: Callable[..., np.ndarray | int]) -> Asked:
        """The token of a function of the numbers of these letters; nothing is asked where it has none."""
        ids = tuple(sorted(set(read)))
        axes = [self.of[choices[i]].reshape([-1 if k == i else 1 for k in ids]) for i in read]
        found = np.broadcast_to(np.asarray(function(*axes)), [len(choices[i]) for i in ids])
        inside = (found >= 0) & (found < len(self.tokens))
        return Asked(ids, np.where(inside, self.tokens[np.where(inside, found, 0)], -1))


@dataclass(frozen=True, eq=False)
class TwoWords:
    """`word | word ;`, then a table by rows, each ended by the mark `row`, the last by `end`: entry (r, c) from its
    neighbours above, to the left and between them, and from letter r of the first and c of the second word.

    edit: the least number of letters put in, dropped or changed; else the length of the longest common subsequence.
    Nothing is asked behind a row of another length than the table has.
    """

    kinds: np.ndarray
    numbers: Numbers
    row: int
    end: int
    edit: bool

    def begin(self) -> Known:
        return Known(("first", 0, 0, 0, 0))

    def step(self, known: Known, kind: int, here: int) -> Known:
        """control: phase, letters of both words, row, entries written in it. letters: the words, the row above from the
        entry between on, the present row."""
        phase, m, n, r, c = known.control
        if phase == "first":
            if kind == TEXT:
                return Known((phase, m + 1, 0, 0, 0), (*known.letters, here))
            return Known(("second", m, 0, 0, 0), known.letters) if kind == BAR else OVER
        if phase == "second":
            if kind == TEXT:
                return Known((phase, m, n + 1, 0, 0), (*known.letters, here))
            return Known(("table", m, n, 0, 0), known.letters) if kind == ROW else OVER
        if kind == NUMBER and c <= n:
            return Known((phase, m, n, r, c + 1), (*known.letters, here))
        if kind == ROW and c == n + 1 and r < m:
            return Known((phase, m, n, r + 1, 0), (*known.letters[: m + n], *known.letters[-n - 1 :]))
        return OVER

    def asks(self, known: Known, choices: Choices) -> list[Asked]:
        phase, m, n, r, c = known.control
        if phase != "table":
            return nothing()
        if c == n + 1:
            return [always(self.row if r < m else self.end)]
        rows = known.letters[m + n :]
        left = rows[-1:] if c else ()
        if not r:
            return [self.numbers.entry(left, choices, lambda *x: x[0] + self.edit if x else 0)]
        if not c:
            return [self.numbers.entry(rows[:1], choices, lambda up: up + self.edit if self.edit else up)]
        between, up = rows[c - 1], rows[c]
        return [self._inner(known.letters[r - 1], known.letters[m + c - 1], up, rows[-1], between, choices)]

    def _inner(self, a: int, b: int, up: int, left: int, between: int, choices: Choices) -> Asked:
        def step(up: np.ndarray, left: np.ndarray, between: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
            if self.edit:
                return np.minimum(np.minimum(up, left) + 1, between + (a != b))
            return np.maximum(np.maximum(up, left), between + (a == b))

        return self.numbers.entry((up, left, between, a, b), choices, step)


@dataclass(frozen=True, eq=False)
class Recurrence:
    """`n ;`, then entries 0 … n and `end`: entry i from those before it. rule: (i, entry i − 1, …, entry i − reach)."""

    kinds: np.ndarray
    numbers: Numbers
    end: int
    reach: int
    rule: Callable[..., np.ndarray | int]

    def begin(self) -> Known:
        return Known(("start", 0))

    def step(self, known: Known, kind: int, here: int) -> Known:
        """letters: n, then the last entries."""
        phase, i = known.control
        if phase == "start":
            return Known(("asked", 0), (here,)) if kind == NUMBER else OVER
        if phase == "asked":
            return Known(("chain", 0), known.letters) if kind == ROW else OVER
        if kind != NUMBER:
            return OVER
        return Known((phase, i + 1), (known.letters[0], *(*known.letters[1:], here)[-self.reach :]))

    def asks(self, known: Known, choices: Choices) -> list[Asked]:
        phase, i = known.control
        if phase != "chain":
            return nothing()
        n, before = known.letters[0], known.letters[:0:-1]
        written = self.numbers.of[choices[n]] >= i
        entry = self.numbers.entry(before, choices, lambda *x: self.rule(i, *x))
        return [
            Asked(entry.letters, entry.right, (((n,), written),)),
            Asked((), np.array(self.end), (((n,), ~written),)),
        ]


@dataclass(frozen=True, eq=False)
class Paths:
    """Lengths of edges 01 02 12 03 13 23 … and `;`, then for each node its least distance from node 0, and `end`.

    kinds: TEXT: an edge; ROW: `;`. missing: the number of the letter for no edge; far: the distance of a node that is
    not reached.
    """

    kinds: np.ndarray
    numbers: Numbers
    end: int
    nodes: int
    far: int

    def begin(self) -> Known:
        return Known(("edges", 0))

    def step(self, known: Known, kind: int, here: int) -> Known:
        phase, count = known.control
        edges = self.nodes * (self.nodes - 1) // 2
        if phase == "edges":
            if kind == TEXT and count < edges:
                return Known((phase, count + 1), (*known.letters, here))
            return Known(("chain", 0), known.letters) if kind == ROW and count == edges else OVER
        if kind != NUMBER or count == self.nodes:
            return OVER
        return Known((phase, count + 1), (*known.letters, here))

    def asks(self, known: Known, choices: Choices) -> list[Asked]:
        phase, b = known.control
        if phase != "chain":
            return nothing()
        if b == self.nodes:
            return [always(self.end)]
        if not b:
            return [self.numbers.entry((), choices, lambda: 0)]
        edges = self.nodes * (self.nodes - 1) // 2
        first = b * (b - 1) // 2
        read = (*known.letters[first : first + b], *known.letters[edges : edges + b])

        def least(*x: np.ndarray) -> np.ndarray:
            ways = [np.where(e == 0, self.far, d + e) for e, d in zip(x[:b], x[b:], strict=True)]
            found = ways[0]
            for way in ways[1:]:
                found = np.minimum(found, way)
            return np.minimum(found, self.far)

        return [self.numbers.entry(read, choices, least)]


# From the claim of a manifest -----------------------------------------------------------------------------------

ASK, CHAIN_END, NOTHING = ";", ".", "-"
_MOST = 1 << 12


def read_two_words(claim: dict, names: Names) -> Stated[Asking]:
    """{}: words of a, b, c, … with | between, then ; before each row, numbers 0, 1, …, and . as end."""
    letters, numbers = names.present(ascii_lowercase), names.numbered("")
    bar, row, end = (names.one(name) for name in (TEXT_BAR, ASK, CHAIN_END))
    of = _numbers(names, numbers)
    of[letters] = np.arange(len(letters))
    kinds = kinds_of(names, {TEXT: letters, NUMBER: numbers, BAR: [bar], ROW: [row], END: [end]})
    edit = claim["name"] == "edit-distance"
    what = "least number of letters put in, dropped or changed" if edit else "length of the longest common subsequence"
    says = (
        f"of a text that begins with two words of {names.shown(letters)}, {TEXT_BAR!r} between: the table of the "
        f"{what}, row by row, {ASK!r} before each row, then {CHAIN_END!r}; {_as_long(names, numbers)}"
    )
    task = TwoWords(kinds, Numbers(of, numbers), row, end, edit)
    return Stated(task, says, CHAIN_END, known(kinds), _read(kinds))


def read_fibonacci(claim: dict, names: Names) -> Stated[Asking]:
    """{"modulus"}: 0, one more than it, then the sum of the last two, modulo that."""
    modulus = number(claim["modulus"], _MOST)

    def rule(i: int, *x: np.ndarray) -> np.ndarray | int:
        return (x[0] + x[1] if i > 1 else x[0] + 1) % modulus if i else 0

    numbers = names.numbered("")
    said = f"of a text that begins with `n {ASK}`: the Fibonacci numbers 0 … n modulo {modulus}, then {CHAIN_END!r}"
    task = _recurrence(names, numbers, 2, rule)
    return Stated(task, f"{said}; {_as_long(names, numbers)}", CHAIN_END, known(task.kinds), _read(task.kinds))


def read_coin_change(claim: dict, names: Names) -> Stated[Asking]:
    """{"coins", "most"}: the fewest coins of each amount, at most `most`; the number of `-` is one more."""
    coins, most = sorted({number(c, _MOST) for c in claim["coins"]}), number(claim["most"], _MOST)
    none, numbers = names.one(NOTHING), names.numbered("")
    if most >= len(numbers):  # else `-` would be taken for the letter of a smaller number
        raise Rejected(
            f"coin change with at most {most} coins needs the letters 0 … {most}, and {names.shown(numbers)} are there"
        )

    def rule(i: int, *x: np.ndarray) -> np.ndarray | int:
        found: np.ndarray | int = most + 1
        for coin in coins:
            if coin <= i:
                found = np.minimum(found, x[coin - 1] + 1)
        return found if i else 0

    made = _recurrence(names, numbers, coins[-1], rule, none)
    made.numbers.of[none] = most + 1
    tokens = Numbers(made.numbers.of, np.append(numbers[: most + 1], none))
    counted = f"the fewest of the coins {', '.join(map(str, coins))} for each amount 0 … n"
    says = (
        f"of a text that begins with `n {ASK}`: {counted}, {NOTHING!r} where no {most} or fewer make it, then "
        f"{CHAIN_END!r}; {_as_long(names, tokens.tokens)}"
    )
    return Stated(
        Recurrence(made.kinds, tokens, made.end, coins[-1], rule), says, CHAIN_END, known(made.kinds), _read(made.kinds)
    )


def read_shortest_path(claim: dict, names: Names) -> Stated[Asking]:
    """{"nodes"}: the letter - for no edge, e1, e2, … for one of this length; a node that is not reached has the
    distance (nodes − 1) · (largest length) + 1."""
    lengths, numbers = names.numbered("e", 1), names.numbered("")
    edges = np.append(names.one(NOTHING), lengths)
    ask, end, nodes = names.one(ASK), names.one(CHAIN_END), number(claim["nodes"], _MOST)
    of = _numbers(names, numbers)
    of[edges] = np.arange(len(edges))
    far = (nodes - 1) * len(lengths) + 1
    kinds = kinds_of(names, {TEXT: edges, NUMBER: numbers, ROW: [ask], END: [end]})
    says = (
        f"of a text that begins with the edges 01 02 12 03 … of {nodes} nodes, from the first to the second, and "
        f"{ASK!r} ({NOTHING!r} for no edge, {names.shown(lengths)} for one of this length): the least distance of each "
        f"node from node 0, {far} where none leads there, then {CHAIN_END!r}; {_as_long(names, numbers)}"
    )
    return Stated(Paths(kinds, Numbers(of, numbers), end, nodes, far), says, CHAIN_END, known(kinds), _read(kinds))


def _recurrence(names: Names, numbers: np.ndarray, reach: int, rule, *more: int) -> Recurrence:
    ask, end = names.one(ASK), names.one(CHAIN_END)
    kinds = kinds_of(names, {NUMBER: np.append(numbers, more).astype(int), ROW: [ask], END: [end]})
    return Recurrence(kinds, Numbers(_numbers(names, numbers), numbers), end, reach, rule)


def _as_long(names: Names, numbers: np.ndarray) -> str:
    return f"each entry from those that stand there, asked as long as it is one of {names.shown(numbers)}"


def _read(kinds: np.ndarray) -> np.ndarray:
    """The letters that stand before the end: a text may be promised without it."""
    return np.flatnonzero((kinds != OTHER) & (kinds != END))


def _numbers(names: Names, numbers: np.ndarray) -> np.ndarray:
    of = np.full(names.count, OTHER)
    of[numbers] = np.arange(len(numbers))
    return of
