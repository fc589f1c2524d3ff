"""Tasks that copy letters of the text: each a machine over letters that are left open (`paths.Asking`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verify.checker.formats import Rejected
from verify.checker.tasks.letters import Held, Ids
from verify.checker.tasks.names import Names, Stated
from verify.checker.tasks.paths import OVER, Asked, Asking, Known

OTHER, TEXT, BAR, END, ENTRY = range(5)
POINTER = 5
Choices = dict[int, np.ndarray]
Members = dict[int, Sequence[int] | np.ndarray]


def nothing() -> list[Asked]:
    return []


def letter(asked: int, choices: Choices, named: np.ndarray | None = None) -> Asked:
    """An open letter itself, or what `named` says of it."""
    return Asked((asked,), choices[asked] if named is None else named[choices[asked]])


def always(answer: int) -> Asked:
    return Asked((), np.array(answer))


def answers(task: Asking, letters: Sequence[int]) -> list[int | None]:
    """The right letter at each position of a text, None where nothing is asked: the machine, with known letters."""
    known, found, choices = task.begin(), [], {}
    for t, here in enumerate(letters):
        choices[t] = np.array([here])
        known = known if known is OVER else task.step(known, int(task.kinds[here]), t)
        asked = [] if known is OVER else task.asks(known, choices)
        held = [a for a in asked if all(mask.all() for _, mask in a.given)]
        right = int(held[0].right.reshape(-1)[0]) if held else -1
        found.append(right if right >= 0 else None)
    return found


@dataclass(frozen=True, eq=False)
class Written:
    """After a bar: the text letters that stood before it, in their order, then `end`; nothing is asked behind an end.

    Each letter that was written since the bar takes one step, right or not.
    """

    kinds: np.ndarray
    end: int

    def begin(self) -> Known:
        return Known(("text", 0))

    def step(self, known: Known, kind: int, here: int) -> Known:
        phase, written = known.control
        if phase == "text":
            if kind == TEXT:
                return Known(known.control, (*known.letters, here))
            return Known(("copy", 0), known.letters) if kind == BAR else known
        if kind == TEXT and phase == "copy":
            return Known(("copy", written + 1), known.letters)
        return OVER if kind == END else known

    def asks(self, known: Known, choices: Choices) -> list[Asked]:
        phase, written = known.control
        if phase != "copy":
            return nothing()
        return [letter(known.letters[written], choices)] if written < len(known.letters) else [always(self.end)]


@dataclass(frozen=True, eq=False)
class Back:
    """The letter n positions back; `end` where there is none."""

    kinds: np.ndarray
    n: int
    end: int

    def begin(self) -> Known:
        return Known(())

    def step(self, known: Known, kind: int, here: int) -> Known:
        return Known((), (*known.letters, here)[-self.n - 1 :])

    def asks(self, known: Known, choices: Choices) -> list[Asked]:
        return [letter(known.letters[0], choices) if len(known.letters) > self.n else always(self.end)]


@dataclass(frozen=True, eq=False)
class Places:
    """A letter may name a place: the letter of the text there, the present one included, is right; else `end`.

    kinds: TEXT stands in the text; from POINTER on a letter asks. place: from 0 on, of each letter that names one;
    says: the letter that a text letter is copied as; own: whether letters that ask are text as well.
    """

    kinds: np.ndarray
    place: np.ndarray
    says: np.ndarray
    end: int
    own: bool

    def begin(self) -> Known:
        return Known(False)

    def step(self, known: Known, kind: int, here: int) -> Known:
        return Known(kind >= POINTER, (*self._text(known), here))

    def _text(self, known: Known) -> Ids:
        """Without a letter that asked last and is no text."""
        return known.letters[:-1] if known.control and not self.own else known.letters

    def asks(self, known: Known, choices: Choices) -> list[Asked]:
        if not known.control:
            return nothing()
        text, now = self._text(known), known.letters[-1]
        named = self.place[choices[now]]
        found = []
        for place in np.unique(named).tolist():
            given: Held = ((now,), named == place)
            right = letter(text[place], choices, self.says) if place < len(text) else always(self.end)
            found.append(Asked(right.letters, right.right, (given,)))
        return found


@dataclass(frozen=True, eq=False)
class Entries:
    """`name text ;` at most `entries` times, a mark, a name: the text behind that name, letter by letter, then `end`;
    `end` at once if the name is not there. Nothing is asked where more letters were written than that.

    kinds: ENTRY: a name; TEXT, END as they are called; BAR: the mark. A name that stands twice asks for both texts.
    """

    kinds: np.ndarray
    end: int
    entries: int

    def begin(self) -> Known:
        return Known(("book", (), 0))

    def step(self, known: Known, kind: int, here: int) -> Known:
        phase, texts, written = known.control
        letters = known.letters
        if phase == "book":
            if kind == BAR:
                return Known(("mark", texts, 0), letters)
            if kind == ENTRY:
                if len(texts) == self.entries:
                    return OVER
                return Known(("book", (*texts, 0), 0), (*letters, here))
            if kind == TEXT and texts:
                return Known(("book", (*texts[:-1], texts[-1] + 1), 0), (*letters, here))
            return known
        if phase == "mark":
            return Known(("copy", texts, 0), (*letters, here)) if kind == ENTRY else known
        if kind == END:
            return OVER
        return Known(("copy", texts, written + (kind == TEXT)), letters) if phase == "copy" else known

    def asks(self, known: Known, choices: Choices) -> list[Asked]:
        phase, texts, written = known.control
        if phase != "copy":
            return nothing()
        asked, start, names, found = known.letters[-1], 0, [], []
        for length in texts:
            names.append(known.letters[start])
            place = start + 1 + written
            start += 1 + length
            if written <= length:
                right = letter(known.letters[place], choices) if written < length else always(self.end)
                found.append(Asked(right.letters, right.right, (self._same(names[-1], asked, choices, True),)))
        if not written:
            absent = tuple(self._same(name, asked, choices, False) for name in names)
            found.append(Asked((), np.array(self.end), absent))
        return found

    @staticmethod
    def _same(name: int, asked: int, choices: Choices, same: bool) -> Held:
        return (name, asked), (choices[name][:, None] == choices[asked][None, :]) == same


# From the claim of a manifest -----------------------------------------------------------------------------------

TEXT_BAR, TEXT_END = "|", "."


def read_copy(claim: dict, names: Names) -> Stated[Asking]:
    """{"form": "string" | "pointer" | "place"}, or "delay" with "n": what the construction `copy` asks.

    x0, x1, … are copied; | stands before a copy and . behind it; @1, @2, … name places, x0@1 one with its own letter.
    """
    form, copied, end = claim["form"], names.numbered("x"), names.one(TEXT_END)
    text = names.shown(copied)
    if form == "string":
        return _written(names, copied)
    if form == "delay":
        n = number(claim["n"])
        back = "one position" if n == 1 else f"{n} positions"
        says = f"the one of {text} that stood {back} back; {TEXT_END!r} where there is none"
        return Stated(Back(kinds_of(names, {}), n, end), says, known=copied, needed=copied)
    says_as, place = np.arange(names.count), np.zeros(names.count, dtype=np.int64)
    if form == "pointer":
        asking = names.numbered("@", 1)
        place[asking] = np.arange(len(asking))
        said = f"at each of {names.shown(asking)}: the one of {text} so far with this number, from 1 on"
    elif form == "place":
        asking = _with_places(names, copied, says_as, place)
        said = (
            f"at each of {names.shown(asking)}, which are {text} with a place: the one of them so far with this "
            "number, from 1 on"
        )
    else:
        raise ValueError(f"form = {form!r}")
    kinds = kinds_of(names, {TEXT: copied, POINTER: asking})
    task = Places(kinds, place, says_as, end, form == "place")
    return Stated(
        task,
        f"{said}; {TEXT_END!r} where there is none",
        known=known(kinds),
        needed=asking if task.own else known(kinds),
    )


def _with_places(names: Names, copied: np.ndarray, says_as: np.ndarray, place: np.ndarray) -> np.ndarray:
    """The letters x0@1, x0@2, …, x1@1, …: says_as and place are filled in."""
    places = len(names.numbered("x0@", 1))
    for v, letter in enumerate(copied.tolist()):
        own = names.numbered(f"x{v}@", 1)
        if len(own) != places:
            raise Rejected(f"x{v}@… names {len(own)} places, and x0@… {places}")
        says_as[own], place[own] = letter, np.arange(places)
    return names.these([f"x{v}@{p}" for v in range(len(copied)) for p in range(1, places + 1)])


def read_selective_copy(claim: dict, names: Names) -> Stated[Asking]:
    """{}: of the letters before the bar x0, x1, … are copied, and _ is noise."""
    return _written(names, names.numbered("x"), [names.one("_")])


def _written(names: Names, copied: np.ndarray, noise: Sequence[int] = ()) -> Stated[Asking]:
    end, bar = names.one(TEXT_END), names.one(TEXT_BAR)
    text = names.shown(copied)
    says = f"behind the first {TEXT_BAR!r}: the letters of {text} before it in their order, then {TEXT_END!r}"
    kinds = kinds_of(names, {TEXT: copied, BAR: [bar], END: [end]})
    return Stated(Written(kinds, end), says, TEXT_END, known(kinds, noise), np.append(copied, bar))


def read_phonebook(claim: dict, names: Names) -> Stated[Asking]:
    """{"entries"}: names n0, n1, …, the digits as text, ? before the name that is asked for, . as end."""
    people, text = names.numbered("n"), names.numbered("")
    mark, end, entries = names.one("?"), names.one(TEXT_END), number(claim["entries"])
    kinds = kinds_of(names, {ENTRY: people, TEXT: text, BAR: [mark], END: [end]})
    says = (
        f"behind the first '?' and the first of {names.shown(people)} behind it: the digits of {names.shown(text)} "
        f"behind this name in the book before it (names, digits, ';') of {entries} "
        f"{'entry' if entries == 1 else 'entries'} or fewer, none where it is not there, then {TEXT_END!r}"
    )
    needed = np.concatenate([people, text, [mark]])
    return Stated(Entries(kinds, end, entries), says, TEXT_END, known(kinds, [names.one(";")]), needed)


def kinds_of(names: Names, members: Members) -> np.ndarray:
    """For each letter which kind it is, OTHER where none names it."""
    kinds = np.full(names.count, OTHER)
    for kind, ids in members.items():
        if (kinds[ids] != OTHER).any():
            raise ValueError("a letter is of two kinds")
        kinds[ids] = kind
    return kinds


def known(kinds: np.ndarray, noise: Sequence[int] = ()) -> np.ndarray:
    """The letters that a task has a kind for, and those that it passes over by name."""
    return np.union1d(np.flatnonzero(kinds != OTHER), np.array(noise, dtype=np.int64))


def number(value: object, most: int = 1 << 53) -> int:
    """A whole number from 1 on; ValueError for anything else."""
    if type(value) is not int or not 1 <= value <= most:
        raise ValueError(f"the number {value!r}")
    return value
