"""Tasks that copy letters of the text: each a machine over letters that are left open (`walks.Asking`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verify.checker.letters import Held, Ids
from verify.checker.walks import OVER, Asked, Asking, Known

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


def read_copy(claim: dict, tokens: int) -> Written | Back | Places:
    """{"form": "string" | "delay" | "pointer" | "place", "copied", "end", …}: what the construction `copy` asks."""
    form, copied, end = claim["form"], _ids(claim["copied"], tokens), _id(claim["end"], tokens)
    if form == "string":
        return Written(_kinds(tokens, {TEXT: copied, BAR: [_id(claim["bar"], tokens)], END: [end]}), end)
    n = claim["n"]
    if type(n) is not int or n < 1:
        raise ValueError(f"n = {n!r}")
    if form == "delay":
        return Back(_kinds(tokens, {}), n, end)
    asking, says, place = _ids(claim["asking"], tokens), np.arange(tokens), np.zeros(tokens, dtype=np.int64)
    place[asking] = np.arange(len(asking)) % n
    if form == "place":
        says[asking] = copied[np.arange(len(asking)) // n]
    elif form != "pointer":
        raise ValueError(f"form = {form!r}")
    return Places(_kinds(tokens, {TEXT: copied, POINTER: asking}), place, says, end, form == "place")


def read_selective_copy(claim: dict, tokens: int) -> Written:
    """{"copied", "bar", "end"}; every other letter is noise."""
    return read_copy(claim | {"form": "string"}, tokens)  # type: ignore[return-value]


def read_phonebook(claim: dict, tokens: int) -> Entries:
    """{"names", "text", "mark", "end", "entries"}."""
    names, text = (_ids(claim[what], tokens) for what in ("names", "text"))
    end, mark = (_id(claim[what], tokens) for what in ("end", "mark"))
    if type(claim["entries"]) is not int:
        raise ValueError(f"entries = {claim['entries']!r}")
    return Entries(_kinds(tokens, {ENTRY: names, TEXT: text, BAR: [mark], END: [end]}), end, claim["entries"])


def _kinds(tokens: int, members: Members) -> np.ndarray:
    kinds = np.full(tokens, OTHER)
    for kind, ids in members.items():
        if (kinds[ids] != OTHER).any():
            raise ValueError("a letter is of two kinds")
        kinds[ids] = kind
    return kinds


def _id(value: object, tokens: int) -> int:
    if type(value) is not int or not 0 <= value < tokens:
        raise ValueError(f"the letter {value!r}")
    return value


def _ids(value: object, tokens: int) -> np.ndarray:
    """[first, last]"""
    if not isinstance(value, list) or len(value) != 2 or not _id(value[0], tokens) <= _id(value[1], tokens):
        raise ValueError(f"the letters {value!r}")
    return np.arange(value[0], value[1] + 1)
