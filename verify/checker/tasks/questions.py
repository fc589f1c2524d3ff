"""What each task asks, one question after the other, as what a sequence must come to for it (`witness`).

Each letter that a task's sentence names is part of one: each key is asked, each value is an answer, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from verify.checker.formats import Rejected
from verify.checker.tasks.paths import Asking, Known
from verify.checker.tasks.task_chains import NUMBER, ROW, Paths, Recurrence, TwoWords
from verify.checker.tasks.task_copies import BAR, ENTRY, POINTER, TEXT, Back, Entries, Places, Written
from verify.checker.tasks.task_forms import KEY, VALUE, Pairs, States
from verify.checker.tasks.task_matches import Behind, Nearest
from verify.checker.tasks.witness import (
    MOST_STEPS,
    Automaton,
    Controlled,
    NeverAsked,
    Pattern,
    Question,
    Search,
    Walk,
)

_LETTERS_SURE = 1 << 16  # of a sequence that is spelled out
_LETTERS_FREE = 1 << 20  # of one where no letter is used up


class Ask:
    """Makes questions about letters, by name."""

    def __init__(self, search: Search, letters: Sequence[str]):
        self.search, self.letters, self.count = search, letters, len(letters)

    def name(self, letter: int) -> str:
        return repr(self.letters[letter])

    def pattern(self, *items: object, right: int | None = None) -> Pattern:
        """Of a letter, letters, or None for all; `Many` of letters."""
        each = [item if isinstance(item, Many) else Many(item, once=True) for item in items]
        return Pattern(self.count, [(part.ids, not part.once) for part in each], right)

    def others(self, *parts: np.ndarray) -> np.ndarray:
        return np.setdiff1d(np.arange(self.count), np.concatenate([np.atleast_1d(part) for part in parts]))


class Many:
    """Any number of letters of a set; once: exactly one. None: of all."""

    def __init__(self, ids: object = None, once: bool = False):
        self.ids, self.once = None if ids is None else np.atleast_1d(np.asarray(ids, dtype=np.int64)), once


ANY = Many()


def of_pairs(ask: Ask, keys: np.ndarray, values: np.ndarray, number: int = 1) -> Iterator[Question]:
    """At each key, and for each value: the value of the number-th pair of this key, or of its only one."""
    if not len(keys) or not len(values):
        raise NeverAsked("the task asks for no value of a key: it names no key, or no value")
    told = np.zeros(ask.count, dtype=np.int64)
    told[keys] += KEY
    told[values] += VALUE
    each_key, each_value = (ask.search.one_of_each(ids, told) for ids in (keys, values))
    if 2 * number > min(ask.search.language.length, MOST_STEPS):
        refused = NeverAsked if 2 * number > ask.search.language.length else Rejected
        raise refused(f"the task asks for the value of pair {number} of a key, and sequences are too short for it")

    def way(key: int, value: int) -> Pattern:
        if key == value:  # a pair of one letter twice, and the second one asks
            return ask.pattern(ANY, *[key] * (number + 1), right=key)
        some, here = values[values != key], Many(key, once=True)
        before = [ANY, here, Many(some, once=True)] * (number - 1)
        return ask.pattern(*before, ANY, here, value, ANY, here, right=value)

    for key in each_key:
        says = f"asks at {ask.name(key)} for a letter that stood right after it before"
        yield Question({0: says}, (way(key, value) for value in chain(each_value, [key] * (key in values))))
    for value in each_value:
        says = f"has the answer {ask.name(value)}, as a letter that stood right after another before"
        yield Question({0: says}, (way(key, value) for key in chain(each_key, [value] * (value in keys))))


def of_position(ask: Ask, n: int) -> Iterator[Question]:
    """The letter at position n."""
    language = ask.search.language
    if n > language.length:
        raise NeverAsked(f"the task asks for position {n}, and sequences have at most {language.length}")
    most = _LETTERS_SURE if any(edge.distinct for edge in language.edges) else _LETTERS_FREE
    if n > most:
        raise Rejected(f"whether a sequence has {n} letters is only looked for up to {most}")
    yield Question({0: f"has a letter at position {n}"}, [Pattern(ask.count, [(None, False)] * n, None)])


def of_states(ask: Ask, machine: States) -> Iterator[Question]:
    """Each letter that the automaton answers is right somewhere."""
    answers = np.unique(machine.answers[machine.answers >= 0]).tolist()
    says = {answer: f"has the answer {ask.name(answer)}" for answer in answers}
    yield Question(says, [Automaton(machine)], anywhere=True)


def of_machine(ask: Ask, machine: Asking) -> Iterator[Question]:
    """Of the tasks that copy or write a table."""
    if type(machine) not in _MACHINES:
        raise Rejected("no rule says when this task asks anything")
    return _MACHINES[type(machine)](ask, machine)


def _written(ask: Ask, task: Written) -> Iterator[Question]:
    text, bar = _of(task, TEXT), _of(task, BAR)
    for letter in ask.search.one_of_each(text):
        way = ask.pattern(Many(ask.others(text, bar)), letter, Many(ask.others(bar)), bar, right=letter)
        yield Question({0: f"asks for a copy of {ask.name(letter)}"}, [way])

    def goal(known: Known) -> str | None:
        phase, written = known.control
        return "end" if phase == "copy" and written == len(known.letters) > 0 else None

    yield Question({"end": "asks for the end of a copy"}, [Controlled(task, goal, {"end": task.end})])


def _back(ask: Ask, task: Back) -> Iterator[Question]:
    if task.n >= min(ask.search.language.length, _LETTERS_SURE):
        refused = NeverAsked if task.n >= ask.search.language.length else Rejected
        raise refused(f"the task asks for the letter {task.n} back, and sequences are too short for it")
    for letter in ask.search.one_of_each(ask.search.language.used):
        way = ask.pattern(letter, *[None] * task.n, right=letter)
        yield Question({0: f"asks for {ask.name(letter)}, {task.n} back"}, [way])


def _places(ask: Ask, task: Places) -> Iterator[Question]:
    text, asking = _of(task, TEXT), np.flatnonzero(task.kinds >= POINTER)
    counted = np.append(text, asking) if task.own else text
    gap, some = Many(ask.others(counted)), Many(counted, once=True)
    for here in ask.search.one_of_each(asking, task.place):
        place = int(task.place[here])

        def ways(here: int = here, place: int = place) -> Iterator[Walk]:
            before = [gap, some] * place
            for letter in ask.search.one_of_each(counted, task.says):
                yield ask.pattern(*before, gap, letter, ANY, here, right=int(task.says[letter]))
            if task.own:
                yield ask.pattern(*before, gap, here, right=int(task.says[here]))

        yield Question({0: f"asks at {ask.name(here)} for a letter of the text"}, ways())


def _entries(ask: Ask, task: Entries) -> Iterator[Question]:
    names, text, mark = (_of(task, kind) for kind in (ENTRY, TEXT, BAR))
    before, behind = Many(ask.others(mark)), Many(ask.others(names))
    each_name, each_text = ask.search.one_of_each(names), ask.search.one_of_each(text)

    def way(name: int, letter: int) -> Pattern:
        return ask.pattern(before, name, letter, before, mark, behind, name, right=letter)

    for name in each_name:
        ways = (way(name, letter) for letter in each_text)
        yield Question({0: f"asks for a text behind {ask.name(name)}"}, ways)
    for letter in each_text:
        yield Question({0: f"has the answer {ask.name(letter)}"}, (way(name, letter) for name in each_name))


def _two_words(ask: Ask, task: TwoWords) -> Iterator[Question]:
    def goal(known: Known) -> str | None:
        phase, m, n, r, c = known.control
        if phase != "table" or not (m and n):
            return None
        if c <= n:
            return "entry" if r and c else None
        return "row" if r < m else "end"

    says = {"entry": "asks for an entry of the table", "row": "asks for another row", "end": "asks for the end"}
    yield Question(says, [Controlled(task, goal, {"row": task.row, "end": task.end})])


def _recurrence(ask: Ask, task: Recurrence) -> Iterator[Question]:
    numbers, row = _of(task, NUMBER), _of(task, ROW)
    some = Many(numbers, once=True)
    yield Question({0: "asks for entry 0"}, [ask.pattern(some, row)])
    by_size = sorted(numbers.tolist(), key=lambda n: int(task.numbers.of[n]))
    ways = (ask.pattern(n, row, *[some] * (int(task.numbers.of[n]) + 1), right=task.end) for n in by_size)
    yield Question({0: "asks for the end"}, ways)


def _paths(ask: Ask, task: Paths) -> Iterator[Question]:
    def goal(known: Known) -> str | None:
        phase, b = known.control
        return None if phase != "chain" or not b else "end" if b == task.nodes else "distance"

    says = {"end": "asks for the end"} | ({"distance": "asks for a distance"} if task.nodes > 1 else {})
    yield Question(says, [Controlled(task, goal, {"end": task.end})])


def _pairs(ask: Ask, task: Pairs) -> Iterator[Question]:
    keys, values = (np.flatnonzero(task.kinds & kind) for kind in (KEY, VALUE))
    return of_pairs(ask, keys, values, task.which if isinstance(task.which, int) else 1)


def _of(task: Asking, kind: int) -> np.ndarray:
    return np.flatnonzero(task.kinds == kind)


_MACHINES: dict[type, Callable[[Ask, Any], Iterator[Question]]] = {
    Written: _written,
    Back: _back,
    Places: _places,
    Entries: _entries,
    TwoWords: _two_words,
    Recurrence: _recurrence,
    Paths: _paths,
    Pairs: _pairs,
    States: of_states,
}


def of_matches(ask: Ask, task: Behind | Nearest) -> Iterator[Question]:
    """Of the tasks that ask what earlier items say."""
    return _nearest(ask, task) if isinstance(task, Nearest) else _behind(ask, task)


def _behind(ask: Ask, task: Behind) -> Iterator[Question]:
    if task.n == 1 and not len(task.stops):
        yield from of_pairs(ask, task.text, task.values)
        return
    stops = Many(task.stops, once=True)
    for letter in ask.search.one_of_each(task.text):
        said = int(task.said[task.values.tolist().index(letter)])
        way = ask.pattern(ANY, stops, letter, ANY, stops, right=said)
        yield Question({0: f"asks for {ask.name(said)}, behind the same letters as before"}, [way])


def _nearest(ask: Ask, task: Nearest) -> Iterator[Question]:
    said = np.zeros(ask.count, dtype=np.int64)
    said[task.items] = task.said
    each_item, each_query = ask.search.one_of_each(task.items.reshape(-1), said), ask.search.one_of_each(task.queries)

    def way(item: int, query: int) -> Pattern:
        return ask.pattern(ANY, item, ANY, query, right=int(said[item]))

    for query in each_query:
        ways = (way(item, query) for item in each_item)
        yield Question({0: f"asks at {ask.name(query)} for an item before it"}, ways)
    for item in each_item:
        yield Question({0: f"is asked for {ask.name(item)}"}, (way(item, query) for query in each_query))
