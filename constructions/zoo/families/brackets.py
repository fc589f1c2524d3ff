"""Structure: depth, stacks, quotes and comments, matching places."""

from __future__ import annotations

from compiler import (
    Alphabet,
    InputLanguage,
    Tokens,
    constant,
    count,
    emit,
    latch,
    memory,
    present,
    readout_integer,
    readout_one_hot,
    running_max,
)
from constructions.zoo.entry import Family, Own, sizes
from constructions.zoo.families.counting import Made, numerals
from constructions.zoo.machine import Machine

OPEN, CLOSED = ("(", "[", "{"), (")", "]", "}")


def nested(
    alphabet: Alphabet, opens: tuple[str, ...], closes: tuple[str, ...], deep: int, length: int | None, *other: str
) -> InputLanguage:
    """Texts in which at most `deep` brackets are open and none is closed that was not opened."""
    edges = [(str(d), str(d + 1), opens) for d in range(deep)] + [(str(d + 1), str(d), closes) for d in range(deep)]
    edges += [(str(d), str(d), other) for d in range(deep + 1) if other]
    return InputLanguage.of(alphabet, "0", edges, length, f"brackets, at most {deep} of them open")


def depth(deep: int, length: int) -> Made:
    digits = numerals(deep)
    alphabet = Alphabet.of("(", ")", *digits)
    x = Tokens(alphabet)
    level = (x.is_in("(").cumsum() - x.is_in(")").cumsum()).named("depth")
    return readout_integer(level, alphabet, digits), nested(alphabet, ("(",), (")",), deep, length)


def stack(kinds: int, deep: int) -> Made:
    """The bracket that closes the innermost open one."""
    opens, closes = OPEN[:kinds], CLOSED[:kinds]
    alphabet = Alphabet.of(*opens, *closes, "-")
    x = Tokens(alphabet)
    level = (
        x.number(dict.fromkeys(opens, 1) | dict.fromkeys(closes, -1), name="step")
        .cumsum()
        .named("depth")
        .one_hot(deep + 1)
    )
    held = memory.write(level, x.one_hot(*opens), when=x.is_in(*opens), policy="last", name="stack")
    return readout_one_hot(held.read(level), alphabet, closes, otherwise="-"), nested(alphabet, opens, closes, deep, 64)


def right_kind(kinds: int, deep: int) -> Made:
    """Whether every bracket so far closed one of its own kind."""
    opens, closes = OPEN[:kinds], CLOSED[:kinds]
    alphabet = Alphabet.of(*opens, *closes, "yes", "no")
    x = Tokens(alphabet)
    level = x.number(dict.fromkeys(opens, 1) | dict.fromkeys(closes, -1), name="step").cumsum().named("depth")
    held = memory.write(level.one_hot(deep + 1), x.one_hot(*opens), when=x.is_in(*opens), policy="last", name="stack")
    top = held.read((level + x.is_in(*closes)).one_hot(deep + 1)).named("top")
    wrong = (
        sum((top[i] & x.is_in(*closes[:i], *closes[i + 1 :]) for i in range(kinds)), start=constant(0)) >= 1
    ).named("wrong")
    return emit(alphabet, (present(wrong), "no"), otherwise="yes"), nested(alphabet, opens, closes, deep, 64)


def deepest(deep: int) -> Made:
    digits = numerals(deep)
    alphabet = Alphabet.of("(", ")", *digits)
    x = Tokens(alphabet)
    level = (x.is_in("(").cumsum() - x.is_in(")").cumsum()).named("depth")
    most = running_max(level, when=x.is_in("(")).named("deepest")
    return readout_integer(most, alphabet, digits), nested(alphabet, ("(",), (")",), deep, 64)


def balanced(length: int) -> Made:
    """Whether the text is a whole one: nothing open, and never one closed too many."""
    alphabet = Alphabet.of("(", ")", "yes", "no")
    x = Tokens(alphabet)
    level = (x.is_in("(").cumsum() - x.is_in(")").cumsum()).named("depth")
    broken = present(level < 0).named("broken")
    return emit(alphabet, (broken, "no"), (level == 0, "yes"), otherwise="no"), InputLanguage.everything(
        alphabet, length, ("(", ")")
    )


def shuffled(length: int) -> Made:
    """Two kinds of brackets, each whole by itself, however they cross."""
    alphabet = Alphabet.of("(", ")", "[", "]", "yes", "no")
    x = Tokens(alphabet)
    round_, square = (
        x.number({"(": 1, ")": -1}, name="round").cumsum(),
        x.number({"[": 1, "]": -1}, name="square").cumsum(),
    )
    broken = present((round_ < 0) | (square < 0)).named("broken")
    whole = ((round_ == 0) & (square == 0)).named("whole")
    return emit(alphabet, (broken, "no"), (whole, "yes"), otherwise="no"), InputLanguage.everything(
        alphabet, length, ("(", ")", "[", "]")
    )


def opened_at(deep: int, length: int) -> Made:
    """The place of the innermost bracket that is open."""
    digits = numerals(length)
    alphabet = Alphabet.of("(", ")", *digits)
    x = Tokens(alphabet)
    level = (x.is_in("(").cumsum() - x.is_in(")").cumsum()).named("depth").one_hot(deep + 1)
    place = x.is_in("(", ")").cumsum().named("place")
    where = memory.write(level, place, when=x.is_in("("), policy="last", name="opened").read(level)
    return readout_integer(where, alphabet, digits), nested(alphabet, ("(",), (")",), deep, length)


def letter_inside(deep: int) -> Made:
    """The last letter at the present depth, since this depth was entered."""
    letters = ("a", "b")
    alphabet = Alphabet.of("(", ")", *letters, "-")
    x = Tokens(alphabet)
    level = (x.is_in("(").cumsum() - x.is_in(")").cumsum()).named("depth").one_hot(deep + 1)
    held = memory.write(level, x.one_hot(*letters), when=x.is_in("(", *letters), policy="last", name="letters")
    return readout_one_hot(held.read(level), alphabet, letters, otherwise="-"), nested(
        alphabet, ("(",), (")",), deep, 64, *letters
    )


def comment() -> Made:
    """Whether the token stands in a comment: from # to the end of the line."""
    alphabet = Alphabet.of("x", "#", "eol", "code", "comment")
    x = Tokens(alphabet)
    inside = latch(constant(1) - x.is_in("eol"), when=x.is_in("#", "eol")).named("inside")
    return emit(alphabet, (inside >= 1, "comment"), otherwise="code"), InputLanguage.everything(
        alphabet, None, ("x", "#", "eol")
    )


def quoted(length: int) -> Made:
    """Whether a quote is open: an odd number of them."""
    alphabet = Alphabet.of("x", '"', "in", "out")
    quotes = Tokens(alphabet).is_in('"').cumsum().named("quotes")
    return emit(alphabet, ((quotes % 2 == 1).named("open"), "in"), otherwise="out"), InputLanguage.everything(
        alphabet, length, ("x", '"')
    )


def column(most: int) -> Made:
    """Which column of a table of commas and line ends this is, from 0."""
    digits = numerals(most)
    alphabet = Alphabet.of("x", ",", "eol", *digits)
    x = Tokens(alphabet)
    here = count(x.is_in(","), reset=x.is_in("eol")).named("column")
    return readout_integer(here, alphabet, digits), InputLanguage.everything(alphabet, most, ("x", ",", "eol"))


def callers(deep: int) -> Made:
    """Which function runs: call NAME enters it, return leaves it."""
    names = ("f", "g", "h")
    alphabet = Alphabet.of(*names, "return", "work", "main")
    x = Tokens(alphabet)
    level = x.number(dict.fromkeys(names, 1) | {"return": -1}, name="step").cumsum().named("depth").one_hot(deep + 1)
    frames = memory.write(level, x.one_hot(*names), when=x.is_in(*names), policy="last", name="frames")
    return readout_one_hot(frames.read(level), alphabet, names, otherwise="main"), nested(
        alphabet, names, ("return",), deep, 48, "work"
    )


# What each must answer ------------------------------------------------------------------------------------------


def _pushes(state: tuple, token: str) -> tuple:
    return state[:-1] if token in (*CLOSED, "return") else (*state, token)


def _closing(state: tuple) -> str:
    return CLOSED[OPEN.index(state[-1])] if state else "-"


def _kinds(*_: int) -> Machine:
    def step(state: tuple, token: str) -> tuple:
        if token in OPEN:
            return (*state[0], token), state[1]
        return state[0][:-1], state[1] and OPEN.index(state[0][-1]) == CLOSED.index(token)

    return Machine(((), True), step, lambda state: "yes" if state[1] else "no")


def _balance(*kinds: str) -> Machine:
    """Open brackets of each kind; None once one was closed too many."""

    def step(state: tuple | None, token: str) -> tuple | None:
        if state is None:
            return None
        after = tuple(n + (token == kind[0]) - (token == kind[1]) for n, kind in zip(state, kinds))
        return None if min(after) < 0 else after

    return Machine((0,) * len(kinds), step, lambda state: "yes" if state is not None and not any(state) else "no")


def _opened(*_: int) -> Machine:
    def step(state: tuple, token: str) -> tuple:
        place, opened = state[0] + 1, state[1]
        return place, (*opened, place) if token == "(" else opened[:-1]

    return Machine((0, ()), step, lambda state: str(state[1][-1]) if state[1] else "0")


def _inside(*_: int) -> Machine:
    def step(state: tuple, token: str) -> tuple:
        if token == "(":
            return (*state, "-")
        return state[:-1] if token == ")" else (*state[:-1], token)

    return Machine(("-",), step, lambda state: state[-1])


FAMILY = Family(
    "brackets",
    "nested structure: depths, stacks, quotes and comments",
    [
        *sizes(
            "depth-{}",
            "how many brackets are open, at most {}, in texts of up to {}",
            depth,
            lambda deep, length: Machine(0, lambda n, t: n + (1 if t == "(" else -1), str),
            *((3, 64), (8, 64)),
        ),
        *sizes(
            "stack-{}-kinds-{}-deep",
            "the bracket that closes the innermost open one: {} kinds, at most {} open",
            stack,
            lambda kinds, deep: Machine((), _pushes, _closing),
            *((1, 4), (2, 3), (2, 5), (3, 3)),
        ),
        *sizes(
            "right-kinds-{}-{}",
            "whether each bracket closed one of its kind so far: {} kinds, at most {} open",
            right_kind,
            _kinds,
            *((2, 2), (2, 4), (3, 3)),
        ),
        *sizes(
            "deepest-{}",
            "the largest number of brackets that were open at a time, at most {}",
            deepest,
            lambda deep: Machine(
                (0, 0),
                lambda s, t: (s[0] + (1 if t == "(" else -1), max(s[1], s[0] + (t == "("))),
                lambda s: str(s[1]),
            ),
            *(3, 6),
        ),
        *sizes(
            "whole-{}", "whether all brackets are closed, in texts of up to {}", balanced, lambda n: _balance("()"), 24
        ),
        *sizes(
            "crossing-{}",
            "whether round and square brackets are all closed, however they cross, in texts of up to {}",
            shuffled,
            lambda n: _balance("()", "[]"),
            16,
        ),
        *sizes(
            "opened-at-{}-{}",
            "where the innermost open bracket stands: at most {} open, {} in all",
            opened_at,
            _opened,
            (3, 10),
        ),
        *sizes(
            "letter-inside-{}",
            "the last letter directly in the innermost open bracket, or outside of all; - for none; at most {} open",
            letter_inside,
            _inside,
            *(2, 3),
        ),
        Own(
            "comment",
            "whether the token is in a comment: from # to the end of the line",
            comment,
            Machine("code", lambda s, t: "comment" if t == "#" else "code" if t == "eol" else s, str),
        ),
        *sizes(
            "quoted-{}",
            "whether a quote is open, in texts of up to {}",
            quoted,
            lambda n: Machine("out", lambda s, t: s if t == "x" else {"in": "out", "out": "in"}[s], str),
            32,
        ),
        *sizes(
            "table-column-{}",
            "the number of commas since the end of the last line, in texts of up to {}",
            column,
            lambda n: Machine(0, lambda s, t: 0 if t == "eol" else s + (t == ","), str),
            12,
        ),
        *sizes(
            "running-function-{}",
            "which function runs, where each may call others, at most {} deep",
            callers,
            lambda deep: Machine(
                (), lambda s, t: s if t == "work" else _pushes(s, t), lambda s: s[-1] if s else "main"
            ),
            *(2, 4),
        ),
    ],
)
