"""Tasks by name, as machines, made of the ids of letters by their names and the parameters of the manifest.

The sentence of each is what it asks, as the paper or the construction defines it, and what a proof says. None knows a
circuit. A task that asks the same at several letters is a machine for each of them, which remembers only what that one
needs. *The numbers* are the letters 0, 1, …; the letters x0, x1, … are all that there are of such names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from string import ascii_lowercase
from typing import Any

from verify.kernel.floats import Unproved
from verify.kernel.machines import Machine
from verify.kernel.readout import numbered

Ids = Sequence[int]
Letters = tuple[int, ...]
Names = dict[str, int]
_STOP, _STRANGE = -1, -2  # no ids
_MOST_WORDS = 1 << 8  # letters of two words, of which a table has a number for each pair


def number(given: Any, most: int = 1 << 12) -> int:
    if type(given) is not int or not 1 <= given < most:
        raise Unproved(f"the task has the number {given!r:.20}, expected one from 1 on, below {most}")
    return given


# What stands at a place ------------------------------------------------------------------------------------------


def absolute_time(names: Names) -> list[Machine]:
    """The position, from 1 on, as one of t1, t2, …, the last one also from there on."""
    times = numbered(names, "t", 1)
    return [Machine(0, lambda t, a: min(t + 1, len(times)), lambda t: times[t - 1] if t else None)]


def keep_nth(names: Names, n: int) -> list[Machine]:
    """From position n on: the letter that stood at it."""
    number(n, 1 << 40)
    step = lambda held, a: (min(held[0] + 1, n), a if held[0] + 1 == n else held[1])
    return [Machine((0, None), step, lambda held: held[1])]


def count_in_row(names: Names) -> list[Machine]:
    """How many letters 1 end here without a break, as one of c0, c1, …, the last one also for all longer runs."""
    counts, one = numbered(names, "c"), names["1"]
    return [Machine(0, lambda n, a: min(n + 1, len(counts) - 1) if a == one else 0, counts.__getitem__)]


def copy(names: Names, form: str, n: int | None = None) -> list[Machine]:
    """Form string: behind the first |, the letters x0, x1, … before it in their order, then "."; each of them that is
    written there counts as one, right or not. Form delay: the letter that stood n positions back. Form pointer: at @p,
    letter p, from 1 on, of the text of x0, x1, … so far; form place: the same at each xv@p, which is xv in the text.
    The letter "." where there is none.
    """
    if (n is None) == (form == "delay") or form not in ("string", "delay", "pointer", "place"):
        raise Unproved(f"copies have no form {form!r:.20}, or it has an n where it needs none, or none where it does")
    if form == "string":
        return selective_copy(names)
    if form == "delay":
        back, end = number(n), names["."]
        right = lambda text: (text[0] if len(text) > back else end) if text else None
        return [Machine((), lambda text, a: (*text, a)[-back - 1 :], right)]
    said: dict[int, tuple[int | None, int | None]] = {a: (a, None) for a in numbered(names, "x")}
    before: dict[str, Names] = {}
    for name, i in names.items():
        before.setdefault(name.partition("@")[0], {})[name] = i
    for v, a in enumerate([*said] if form == "place" else [None]):
        own = "" if a is None else f"x{v}"
        asking = numbered(before.get(own, {}), f"{own}@", 1)
        said |= {ask: (a, p) for p, ask in enumerate(asking)}
    return [_places(said, names["."])]


def _places(said: dict[int, tuple[int | None, int | None]], end: int) -> Machine:
    """said: by letter, what it is in the text and which place, from 0 on, it asks for; None: nothing."""

    def step(held: Any, a: int) -> Any:
        letter, place = said.get(a, (None, None))
        return (held[0] if letter is None else (*held[0], letter), place)

    def right(held: Any) -> int | None:
        text, place = held
        return None if place is None else text[place] if place < len(text) else end

    return Machine(((), None), step, right)


def selective_copy(names: Names) -> list[Machine]:
    """Behind the first |: the letters x0, x1, … before it in their order, then ".". Each of them that is written there
    counts as one, right or not; behind a "." there nothing is asked.
    """
    text, bar, end = set(numbered(names, "x")), names["|"], names["."]

    def step(held: Any, a: int) -> Any:
        letters, written = held
        if a == end and written is not None:
            return None
        if a in text:
            return ((*letters, a), None) if written is None else (letters, written + 1)
        return (letters, 0) if a == bar and written is None else held

    def right(held: Any) -> int | None:
        letters, written = held
        return None if written is None else letters[written] if written < len(letters) else end

    return [Machine(((), None), step, right, ".")]


# What earlier items say ------------------------------------------------------------------------------------------


def behind(
    text: Ids, values: Collection[int], keeps: str, among: str, n: int = 1, stops: Ids = (), blank: Any = None
) -> Machine:
    """The letter of `values` that stood right behind the last n letters of `text` before, the present one included;
    these may be fewer, down to none, right behind one of `stops`. keeps: the "first" or the "last" such letter;
    "alike": asked where it was one and the same each time; "one" or "sum": where there was one only; which of them a
    task may say stands in `among`. blank: what is right where there was none.

    What is remembered: these last letters (of others that they are strange), and what is kept of each such context.
    """
    if keeps not in among.split():
        raise Unproved(f"the task keeps {keeps!r:.20}")
    known, values = frozenset(text), frozenset(values)

    def step(held: Any, a: int) -> Any:
        last, seen = held[0], dict(held[1])
        if a in values and _STRANGE not in last:
            again = last in seen
            if keeps == "last" or not again:
                seen[last] = a
            elif keeps in ("one", "sum") or keeps == "alike" and seen[last] != a:
                seen[last] = None
        return ((*last, a)[-n:] if a in known else (_STOP if a in stops else _STRANGE,)), frozenset(seen.items())

    def right(held: Any) -> int | None:
        return None if _STRANGE in held[0] else dict(held[1]).get(held[0], blank)

    return Machine(((_STRANGE,), frozenset()), step, right, at=text[0] if len(text) == n == 1 and not stops else None)


def behind_each(names: Names, asked: str, keeps: str, among: str, blank: Any = None) -> list[Machine]:
    """The same at each letter of this name, 0, 1, …, of v0, v1, …: a machine for each."""
    values = frozenset(numbered(names, "v"))
    return [behind([a], values, keeps, among, blank=blank) for a in numbered(names, asked)]


def mqar(names: Names, write: str) -> list[Machine]:
    """At each key k0, k1, …: the value v0, v1, … that stood right behind it the first, or the last time before."""
    return behind_each(names, "k", write, "first last sum")


def induction_heads(names: Names) -> list[Machine]:
    """At each letter v0, v1, …: which of them stood right behind it the last time, × where none did."""
    return behind_each(names, "v", "last", "last", names["×"])


def recall(names: Names, matches: str) -> list[Machine]:
    """At each key k0, k1, …: the value v0, v1, … that stood right behind it before, where that was alike each time; or
    where there was one only.
    """
    return behind_each(names, "k", matches, "alike one")


def unique_induction(names: Names, matches: str) -> list[Machine]:
    """At each letter v0, v1, …: which of them stood right behind it before, where that was alike each time; or where
    there was one only.
    """
    return behind_each(names, "v", matches, "alike one")


def copy_ngram(names: Names, n: int, matches: str) -> list[Machine]:
    """Which of x0, x1, … and | stood right behind the last n of x0, x1, … before, fewer right behind ^ or |, where that
    was alike each time; or where there was one only. For | "." is written.
    """
    text, bar, end = numbered(names, "x"), names["|"], names["."]
    found = behind(text, [*text, bar], matches, "alike one", number(n), [names["^"], bar])
    return [found._replace(right=lambda held: end if found.right(held) == bar else found.right(held), end=".")]


def token_selection(names: Names, points: str, size: int) -> list[Machine]:
    """At each query qj: the value v of the item ki=v seen so far whose key ki is nearest to it, where the nearest ones
    have one value. Points angle: keys and queries 0, 1, … divide the circle in `size` parts, in their order.
    """
    queries, values = numbered(names, "q"), numbered(names, "v")
    if points != "angle" or len(queries) != number(size):
        raise Unproved(f"points of the kind {points!r:.20} have no rule, or not as many queries as points")
    items = {names[f"k{i}=v{v}"]: (i, value) for i in range(size) for v, value in enumerate(values)}
    places = {a: i for i, a in enumerate(queries)}

    step = lambda held, a: (places.get(a), held[1] | {items[a]} if a in items else held[1])

    def right(held: Any) -> int | None:
        asked, seen = held
        apart = {} if asked is None else {(i, v): min((i - asked) % size, (asked - i) % size) for i, v in seen}
        least = min(apart.values(), default=0)
        nearest = {v for (_, v), far in apart.items() if far == least}
        return nearest.pop() if len(nearest) == 1 else None

    return [Machine((None, frozenset()), step, right)]


# What a table says -----------------------------------------------------------------------------------------------


def answering(ask: int, answer: Callable[[Letters], Letters | None], end: int) -> list[Machine]:
    """A text up to the letter `ask`, then what `answer` makes of it, letter by letter, then the end; None where it is
    no such text. What is remembered: (whether the text is over, the text so far or what is still to be written).
    Behind a wrong letter nothing is asked.
    """

    def step(held: tuple[bool, Letters], a: int) -> tuple[bool, Letters] | None:
        over, letters = held
        if over:
            return (True, letters[1:]) if letters[0] == a and len(letters) > 1 else None
        found = answer(letters) if a == ask else letters
        return None if found is None else (a == ask, (*found, end if a == ask else a))

    return [Machine((False, ()), step, lambda held: held[1][0] if held[0] else None, ".")]


def spelled(letters: Sequence[int], numbers: Sequence[int]) -> Letters:
    """Each of these numbers as its letter."""
    if max(numbers) >= len(letters):
        raise Unproved(f"the number {max(numbers)} has no letter")
    return tuple(letters[x] for x in numbers)


def edit_distance(names: Names) -> list[Machine]:
    """Behind two words of a, b, … with | between and ;: the rows of a table with ; between, then ".". Entry c of row r,
    both from 0 on: how many letters must be put in, dropped or changed, at least, to make the first r letters of the
    first word the first c of the second. Each letter as long as those before it are right.
    """
    words, numbers = {names[x] for x in ascii_lowercase if x in names}, numbered(names, "")
    bar, ask, end = (names[x] for x in "|;.")

    def answer(text: Letters) -> Letters | None:
        if text.count(bar) != 1 or not words | {bar} >= set(text):
            return None
        number(len(text), _MOST_WORDS)
        first, second = text[: text.index(bar)], text[text.index(bar) + 1 :]
        rows = [list(range(len(second) + 1))]
        for a in first:
            above, row = rows[-1], [len(rows)]
            for c, b in enumerate(second):
                row.append(min(above[c + 1] + 1, row[c] + 1, above[c] + (a != b)))
            rows.append(row)
        return tuple(x for row in rows for x in (*spelled(numbers, row), ask))[:-1]

    return answering(ask, answer, end)


def fibonacci(names: Names, modulus: int) -> list[Machine]:
    """Behind a number n and ;: 0, one more than it, then the sum of the last two, n + 1 numbers, each modulo `modulus`;
    then ".". Each letter as long as those before it are right.
    """
    rule = lambda before: (sum(before[-2:]) if len(before) > 1 else len(before)) % number(modulus)
    return _entries(names, rule, numbered(names, ""))


def coin_change(names: Names, coins: list[int], most: int) -> list[Machine]:
    """Behind a number n and ;: the fewest of these coins that make 0, 1, …, n, - where no `most` or fewer do; then ".".
    Each letter as long as those before it are right.
    """
    taken, letters = {number(c) for c in coins}, [*numbered(names, "")[: number(most) + 1], names["-"]]
    if len(letters) != most + 2:
        raise Unproved(f"{most} coins have no letter")
    fewest = lambda before: min([most, *(before[-c] for c in taken if c <= len(before))]) + 1 if before else 0
    return _entries(names, fewest, letters)


def _entries(names: Names, rule: Callable[[list[int]], int], letters: Sequence[int]) -> list[Machine]:
    """A number n and ;, then the entries 0 … n as letters, each by the rule from those before it, then the end."""
    numbers = {a: n for n, a in enumerate(numbered(names, ""))}
    found: list[int] = []

    def answer(text: Letters) -> Letters | None:
        if len(text) != 1 or text[0] not in numbers:
            return None
        count = number(numbers[text[0]] + 1)
        while len(found) < count:
            found.append(rule(found))
        return spelled(letters, found[:count])

    return answering(names[";"], answer, names["."])


def shortest_path(names: Names, nodes: int) -> list[Machine]:
    """Behind the edges 01 02 12 03 13 23 … of so many nodes, from the first to the second, and ;: the least distance of
    each node from node 0, then ".". An edge is e1, e2, … long, or - where there is none; with k such letters the
    distance of a node to which no path leads is k · (nodes − 1) + 1. Each letter as long as those before it are right.
    """
    lengths = {a: e for e, a in enumerate([names["-"], *numbered(names, "e", 1)])}
    numbers = numbered(names, "")
    far = (len(lengths) - 1) * (number(nodes) - 1) + 1

    def answer(text: Letters) -> Letters | None:
        if len(text) != nodes * (nodes - 1) // 2 or not lengths.keys() >= set(text):
            return None
        found, edges = [0], [lengths[a] for a in text]
        for b in range(1, nodes):
            found.append(min([far, *(d + e for d, e in zip(found, edges[b * (b - 1) // 2 :], strict=False) if e)]))
        return spelled(numbers, found)

    return answering(names[";"], answer, names["."])


def automaton(names: Names, start: str, transitions: dict, classes: dict, end: str | None) -> list[Machine]:
    """What the automaton of construction.json answers in the state that the letters so far lead to. Behind a letter by
    which a state does not lead on nothing is asked.
    """
    moves = {(state, names[x]): to for state, by in transitions.items() for x, to in by.items()}
    if not {start, *moves.values()} <= {*transitions, *classes}:
        raise Unproved("a move of the automaton leads to a state that it says nothing of")
    right = {state: names[x] for state, x in classes.items()}
    return [Machine(start, lambda state, a: moves.get((state, a)), right.get, end)]


_TEXTS = (absolute_time, automaton, copy, copy_ngram, count_in_row, induction_heads, keep_nth, mqar, recall)
_TABLES = (selective_copy, coin_change, edit_distance, fibonacci, shortest_path, token_selection, unique_induction)
MACHINES: dict[str, Callable[..., list[Machine]]] = {f.__name__.replace("_", "-"): f for f in (*_TEXTS, *_TABLES)}
