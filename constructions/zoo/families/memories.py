"""Memories: values under keys, overwritten, deleted, added up, followed."""

from __future__ import annotations

from collections.abc import Callable

from compiler import (
    Alphabet,
    InputLanguage,
    Tokens,
    concatenate,
    constant,
    count,
    emit,
    latch,
    memory,
    present,
    readout_integer,
    readout_one_hot,
)
from constructions.zoo.entry import Family, Own, sizes
from constructions.zoo.families.counting import Made, numerals
from constructions.zoo.machine import Machine

KEYS = ("x", "y", "z")
VALUES = tuple("0123")


def store(policy: str, deletes: bool) -> Made:
    """NAME DIGIT stores, NAME ? asks, NAME ! deletes."""
    keys = KEYS[:2]
    alphabet = Alphabet.of(*keys, *VALUES, "?", "!", "-")
    x = Tokens(alphabet)
    name, digit = x.one_hot(*keys, name="name").shift(1), x.one_hot(*VALUES, name="digit")
    writes = (x.is_in(*keys).shift(1) & x.is_in(*VALUES, *("!" * deletes))).named("writes")
    held = memory.write(name, digit, when=writes, policy=policy, name="held").read(name)
    answer = readout_one_hot(held, alphabet, VALUES, otherwise="-")
    typed = (*keys, *VALUES, "?", *("!" * deletes))
    length = 64 if policy == "first" else None  # what is kept first is kept by counting
    return answer, InputLanguage.everything(alphabet, length, typed)


def tally(most: int) -> Made:
    """The sum of all that was booked under a name: NAME DIGIT books, and every position answers for the last name."""
    sums = numerals(3 * most)
    alphabet = Alphabet.of(*KEYS, *sums)
    x = Tokens(alphabet)
    name, amount = x.one_hot(*KEYS, name="name").shift(1), x.number({d: int(d) for d in VALUES}, name="amount")
    total = memory.write(name, amount, name="totals").read(name)
    edges = [("name", "amount", KEYS), ("amount", "name", VALUES)]
    language = InputLanguage.of(alphabet, "name", edges, 2 * most, "names and amounts in turn")
    return readout_integer(total, alphabet, sums), language


def exists() -> Made:
    alphabet = Alphabet.of(*KEYS, "+", "!", "yes", "no")
    x = Tokens(alphabet)
    name = latch(x.one_hot(*KEYS, name="name"), when=x.is_in(*KEYS)).named("last_name")
    there = memory.write(name, x.is_in("+"), when=x.is_in("+", "!"), policy="last", name="there").read(name)
    return emit(alphabet, (there >= 1, "yes"), otherwise="no"), InputLanguage.everything(
        alphabet, None, (*KEYS, "+", "!")
    )


def last_key() -> Made:
    alphabet = Alphabet.of(*KEYS, *VALUES, "-")
    x = Tokens(alphabet)
    name = latch(x.one_hot(*KEYS, name="name"), when=x.is_in(*KEYS)).named("last_name")
    return readout_one_hot(name, alphabet, KEYS, otherwise="-"), InputLanguage.everything(
        alphabet, None, (*KEYS, *VALUES)
    )


def kept_since(first: bool) -> Made:
    """The first (last) letter behind the last `set`."""
    alphabet = Alphabet.of("a", "b", "c", "set", "-")
    x = Tokens(alphabet)
    behind = x.is_in("set").shift(1) if first else x.is_in("a", "b", "c")
    letter = latch(x.one_hot("a", "b", "c", name="letter"), when=behind | x.is_in("set")).named("kept")
    return readout_one_hot(letter, alphabet, ["a", "b", "c"], otherwise="-"), InputLanguage.everything(
        alphabet, None, ("a", "b", "c", "set")
    )


def two_keys() -> Made:
    """A table of rows and columns: ROW COLUMN DIGIT stores, ROW COLUMN ? asks."""
    rows, columns = ("r0", "r1"), ("c0", "c1", "c2")
    alphabet = Alphabet.of(*rows, *columns, *VALUES, "?", "-")
    x = Tokens(alphabet)
    row, column = (
        x.number({r: i for i, r in enumerate(rows)}, name="row"),
        x.number({c: i for i, c in enumerate(columns)}),
    )
    cell = (3 * row.shift(2) + column.named("column").shift(1)).one_hot(6).named("cell")
    digit = x.one_hot(*VALUES, name="digit")
    held = memory.write(cell, digit, when=x.is_in(*VALUES), policy="last", name="table").read(cell)
    edges = [("row", "column", rows), ("column", "what", columns), ("what", "row", (*VALUES, "?"))]
    language = InputLanguage.of(alphabet, "row", edges, None, "a row, a column, and a digit or ?")
    answer = emit(alphabet, *((held[i] & x.is_in("?"), d) for i, d in enumerate(VALUES)), otherwise="-")
    return answer, language


def chase() -> Made:
    """NAME NAME makes the first point to the second; behind a single ? NAME the name two steps on is right."""
    alphabet = Alphabet.of(*KEYS, "=", "?", "-")
    x = Tokens(alphabet)
    name = x.one_hot(*KEYS, name="name")
    sets = (x.is_in("=").shift(1) & x.is_in(*KEYS)).named("sets")
    points = memory.write(name.shift(2), name, when=sets, policy="last", name="points")
    edges = [("start", "left", KEYS), ("left", "set", ["="]), ("set", "start", KEYS)]
    edges += [("start", "ask", ["?"]), ("ask", "start", KEYS)]
    language = InputLanguage.of(alphabet, "start", edges, None, "NAME = NAME, or ? NAME")
    one = points.read(name)
    two = points.read(one.named("one_step")).named("two_steps")
    asks = x.is_in("?").shift(1).named("asks")
    answer = emit(alphabet, *((two[i] + asks >= 2, k) for i, k in enumerate(KEYS)), otherwise="-")
    return answer, language


def versions(most: int) -> Made:
    digits = numerals(most)
    alphabet = Alphabet.of(*KEYS, *digits)
    name = Tokens(alphabet).one_hot(*KEYS, name="name")
    earlier = memory.write(name, constant(1), name="versions").read(name)
    return readout_integer(earlier, alphabet, digits), InputLanguage.everything(alphabet, most, KEYS)


def lock() -> Made:
    """Who holds the lock: NAME takes it where it is free, `free` frees it."""
    alphabet = Alphabet.of(*KEYS, "free", "-")
    x = Tokens(alphabet)
    asked = count(x.is_in(*KEYS), reset=x.is_in("free")).named("asked")
    takes = ((asked == 1) & x.is_in(*KEYS)).named("takes")
    holder = latch(x.one_hot(*KEYS, name="name"), when=takes | x.is_in("free")).named("holder")
    return readout_one_hot(holder, alphabet, KEYS, otherwise="-"), InputLanguage.everything(
        alphabet, 64, (*KEYS, "free")
    )


def nth_value(n: int) -> Made:
    """The n-th letter of the text, for ever after."""
    letters = ("a", "b", "c")
    alphabet = Alphabet.of(*letters, "-")
    x = Tokens(alphabet)
    place = x.is_in(*letters).cumsum().named("place")
    kept = latch(x.one_hot(*letters, name="letter"), when=(place == n).named("now")).named("kept")
    return readout_one_hot(kept, alphabet, letters, otherwise="-"), InputLanguage.everything(alphabet, 64, letters)


def first_seen(length: int) -> Made:
    """Whether the letter stands here for the first time."""
    letters = ("a", "b", "c", "d")
    alphabet = Alphabet.of(*letters, "new", "old")
    x = Tokens(alphabet)
    seen = concatenate(*(present(x.is_in(a)).shift(1) for a in letters)).named("seen_before")
    old = sum((seen[i] & x.is_in(a) for i, a in enumerate(letters)), start=constant(0)).named("old")
    return emit(alphabet, (old >= 1, "old"), otherwise="new"), InputLanguage.everything(alphabet, length, letters)


# What each must answer ------------------------------------------------------------------------------------------


def _store(keep_first: bool) -> Machine:
    """(what is stored, the last token, what it answers)."""

    def step(state: tuple, token: str) -> tuple:
        held, before, _ = dict(state[0]), state[1], state[2]
        if before not in KEYS:
            return state[0], token, "-"
        if token in VALUES and not (keep_first and before in held):
            held[before] = token
        if token == "!":
            held.pop(before, None)
        return tuple(sorted(held.items())), token, held.get(before, "-")

    return Machine(((), "", "-"), step, lambda state: state[2])


def _tally(most: int) -> Callable[[list[str]], str]:
    def answer(tokens: list[str]) -> str:
        if len(tokens) < 2:
            return "0"
        before, total = tokens[-2], 0
        if before not in KEYS:
            return "0"
        for name, amount in zip(tokens[::2], tokens[1::2]):
            total += int(amount) if name == before else 0
        return str(total)

    return answer


def _exists() -> Machine:
    def step(state: tuple, token: str) -> tuple:
        there, name = set(state[0]), token if token in KEYS else state[1]
        if token == "+" and name:
            there.add(name)
        if token == "!":
            there.discard(name)
        return tuple(sorted(there)), name

    return Machine(((), ""), step, lambda state: "yes" if state[1] in state[0] else "no")


def _table() -> Machine:
    def step(state: tuple, token: str) -> tuple:
        held, recent = dict(state[0]), (state[1] + (token,))[-3:]
        if token in VALUES:
            held[recent[:2]] = token
        return tuple(sorted(held.items())), recent

    answer = lambda state: dict(state[0]).get(state[1][:2], "-") if state[1][-1:] == ("?",) else "-"
    return Machine(((), ()), step, answer)


def _chase() -> Machine:
    def step(state: tuple, token: str) -> tuple:
        points, recent = dict(state[0]), (state[1] + (token,))[-3:]
        if len(recent) == 3 and recent[1] == "=":
            points[recent[0]] = token
        return tuple(sorted(points.items())), recent

    def answer(state: tuple) -> str:
        points, recent = dict(state[0]), state[1]
        return points.get(points.get(recent[-1]), "-") if recent[-2:-1] == ("?",) else "-"

    return Machine(((), ()), step, answer)


def _behind_set(first: bool) -> Machine:
    def step(state: tuple, token: str) -> tuple:
        if token == "set":
            return token, "-"
        return token, token if not first or state[0] == "set" else state[1]

    return Machine(("", "-"), step, lambda state: state[1])


def _nth(n: int) -> Machine:
    step = lambda state, token: (min(state[0] + 1, n), token if state[0] == n - 1 else state[1])
    return Machine((0, "-"), step, lambda state: state[1])


FAMILY = Family(
    "memories",
    "values under keys: stored, overwritten, deleted, added up, followed",
    [
        Own(
            "store-last",
            "the digit stored last under the name before",
            lambda: store("last", False),
            _store(False),
        ),
        Own(
            "store-first",
            "the digit stored first under the name before",
            lambda: store("first", False),
            _store(True),
        ),
        Own(
            "store-delete",
            "the digit stored last under the name before, where it was not deleted since",
            lambda: store("last", True),
            _store(False),
        ),
        *sizes(
            "booked-{}",
            "behind a name and an amount, the sum of all booked under the name so far, of up to {} amounts; else 0",
            tally,
            _tally,
            4,
            8,
        ),
        Own("exists", "whether the last name was made (+) and not removed (!) since", exists, _exists()),
        Own(
            "last-name",
            "the last of the names x, y, z",
            last_key,
            Machine("-", lambda s, t: t if t in KEYS else s, lambda s: s),
        ),
        Own(
            "first-behind-set",
            "the letter right behind the last set, - for none",
            lambda: kept_since(True),
            _behind_set(True),
        ),
        Own(
            "last-behind-set",
            "the last letter since the last set (or the start), - for none",
            lambda: kept_since(False),
            _behind_set(False),
        ),
        Own("table-cell", "at ?, the digit stored last in this row and column", two_keys, _table()),
        Own(
            "pointer-chase",
            "behind ?, where the pointer of the pointer of a name leads (x = y points x to y), - for nowhere",
            chase,
            _chase(),
        ),
        *sizes(
            "times-named-{}",
            "how often the present name stood so far, in up to {} names",
            versions,
            lambda most: lambda tokens: str(tokens.count(tokens[-1])),
            8,
        ),
        Own(
            "lock",
            "who holds the lock: the first name since it was free",
            lock,
            Machine("-", lambda s, t: "-" if t == "free" else t if s == "-" else s, lambda s: s),
        ),
        *sizes("letter-{}-kept", "the letter at place {} of the text, once it was there", nth_value, _nth, *(1, 4)),
        Own(
            "new-or-old",
            "whether the letter stands in the text for the first time",
            lambda: first_seen(64),
            Machine(((), ""), lambda s, t: (tuple(sorted({*s[0], t})), "old" if t in s[0] else "new"), lambda s: s[1]),
        ),
    ],
)
