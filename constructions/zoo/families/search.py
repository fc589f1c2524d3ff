"""String search: patterns in a text, where they stand, how often, and in which order."""

from __future__ import annotations

from re import fullmatch

from compiler import (
    Alphabet,
    InputLanguage,
    Stream,
    Tokens,
    all_of,
    automaton,
    constant,
    count,
    emit,
    latch,
    memory,
    present,
    readout_integer,
    readout_one_hot,
)
from constructions.zoo.entry import Family, Oracle, Own, sizes
from constructions.zoo.families.counting import ABC, Made, numerals
from constructions.zoo.machine import Machine


def ends(x: Tokens, word: str) -> Stream:
    return all_of(*(x.is_in(a).shift(len(word) - 1 - i) for i, a in enumerate(word))).named("ends")


def contains(word: str) -> Made:
    alphabet = Alphabet.of(*ABC, "yes", "no")
    found = present(ends(Tokens(alphabet), word)).named("found")
    return emit(alphabet, (found, "yes"), otherwise="no"), InputLanguage.everything(alphabet, None, ABC)


def how_often(word: str, most: int) -> Made:
    digits = numerals(most)
    alphabet = Alphabet.of(*ABC, *digits)
    times = ends(Tokens(alphabet), word).cumsum().named("times")
    return readout_integer(times, alphabet, digits), InputLanguage.everything(alphabet, most, ABC)


def first_place(word: str, length: int) -> Made:
    """Where the word first ended, 0 before it did."""
    digits = numerals(length)
    alphabet = Alphabet.of(*ABC, *digits)
    x = Tokens(alphabet)
    place = x.is_in(*ABC).cumsum().named("place")
    first = latch(place, when=ends(x, word), first=True).named("first_place")
    return readout_integer(first, alphabet, digits), InputLanguage.everything(alphabet, length, ABC)


def last_place(word: str, length: int) -> Made:
    digits = numerals(length)
    alphabet = Alphabet.of(*ABC, *digits)
    x = Tokens(alphabet)
    last = latch(x.is_in(*ABC).cumsum().named("place"), when=ends(x, word)).named("last_place")
    return readout_integer(last, alphabet, digits), InputLanguage.everything(alphabet, length, ABC)


def which_last(words: tuple[str, str]) -> Made:
    """Which of two words stood last."""
    alphabet = Alphabet.of(*ABC, "first", "second", "-")
    x = Tokens(alphabet)
    one, other = ends(x, words[0]), ends(x, words[1]).named("other_ends")
    way = latch(one - other, when=one | other).named("which")
    scores = emit(alphabet, (way > 0, "first"), (way < 0, "second"), otherwise="-")
    return scores, InputLanguage.everything(alphabet, None, ABC)


def subsequence(word: str) -> Made:
    """Whether the letters of the word stood in this order, with anything between."""
    alphabet = Alphabet.of(*ABC, "yes", "no")
    x = Tokens(alphabet)
    so_far = present(x.is_in(word[0])).named(f"has_{word[0]}")
    for i, letter in enumerate(word[1:], start=2):
        so_far = present(so_far.shift(1) & x.is_in(letter)).named(f"has_{word[:i]}")
    return emit(alphabet, (so_far, "yes"), otherwise="no"), InputLanguage.everything(alphabet, None, ABC)


def expression(regex: str, letters: str) -> Made:
    alphabet = Alphabet.of(*letters, "yes", "no")
    accepted = automaton(regex, Tokens(alphabet))
    return emit(alphabet, (accepted, "yes"), otherwise="no"), InputLanguage.everything(alphabet, None, tuple(letters))


def prefix(word: str) -> Made:
    """Whether the text so far begins the word, or begins with it."""
    alphabet = Alphabet.of(*ABC, "yes", "no")
    moves = {str(i): {a: str(i + 1) if a == word[i] else "no" for a in ABC} for i in range(len(word))}
    moves |= {state: dict.fromkeys(ABC, state) for state in (str(len(word)), "no")}
    state = automaton(moves, Tokens(alphabet), start="0")
    return emit(alphabet, (state[len(word) + 1], "no"), otherwise="yes"), InputLanguage.everything(alphabet, None, ABC)


def needle() -> Made:
    """A letter, a colon, a text: whether the letter stands in the text so far."""
    alphabet = Alphabet.of(*ABC, ":", "yes", "no")
    x = Tokens(alphabet)
    letter = x.one_hot(*ABC, name="letter")
    behind = present(x.is_in(":")).named("behind")
    wanted = latch(letter, when=~behind & x.is_in(*ABC)).named("wanted")
    same = (letter == wanted).named("same")
    found = ((same & behind).cumsum() >= 1).named("found")
    edges = [("start", "named", ABC), ("named", "text", [":"]), ("text", "text", ABC)]
    language = InputLanguage.of(alphabet, "start", edges, 64, "a letter, a colon, a text")
    return emit(alphabet, (found, "yes"), otherwise="no"), language


def needle_count(most: int) -> Made:
    """A letter, a colon, a text: how often the letter stands in it."""
    digits = numerals(most)
    alphabet = Alphabet.of(*ABC, ":", *digits)
    x = Tokens(alphabet)
    letter, behind = x.one_hot(*ABC, name="letter"), present(x.is_in(":")).named("behind")
    tally = memory.write(letter, constant(1), when=behind & x.is_in(*ABC), name="histogram")
    wanted = latch(letter, when=~behind & x.is_in(*ABC)).named("wanted")
    edges = [("start", "named", ABC), ("named", "text", [":"]), ("text", "text", ABC)]
    language = InputLanguage.of(alphabet, "start", edges, most + 2, "a letter, a colon, a text")
    return readout_integer(tally.read(wanted), alphabet, digits), language


def word_number(most: int) -> Made:
    """Which word of a line this is: words are parted by one or more spaces (_)."""
    digits = numerals(most)
    alphabet = Alphabet.of("a", "b", "_", *digits)
    x = Tokens(alphabet)
    letter = x.is_in("a", "b", name="letter")
    begins = (letter & ~letter.shift(1)).named("begins")
    return readout_integer(begins.cumsum().named("words"), alphabet, digits), InputLanguage.everything(
        alphabet, 2 * most, ("a", "b", "_")
    )


def word_length(most: int) -> Made:
    digits = numerals(most)
    alphabet = Alphabet.of("a", "b", "_", *digits)
    x = Tokens(alphabet)
    length = count(x.is_in("a", "b"), reset=x.is_in("_")).named("length")
    return readout_integer(length, alphabet, digits), InputLanguage.everything(alphabet, most, ("a", "b", "_"))


def initial() -> Made:
    """The first letter of the present word, - in a space."""
    alphabet = Alphabet.of(*ABC, "_", "-")
    x = Tokens(alphabet)
    letter = x.is_in(*ABC, name="is_letter")
    begins = letter & ~letter.shift(1)
    first = latch(x.one_hot(*ABC, name="letter"), when=begins.named("begins") | x.is_in("_")).named("initial")
    return readout_one_hot(first, alphabet, ABC, otherwise="-"), InputLanguage.everything(alphabet, None, (*ABC, "_"))


# What each must answer ------------------------------------------------------------------------------------------


def _contains(word: str) -> Machine:
    step = lambda state, token: (state[0] or (state[1] + token).endswith(word), (state[1] + token)[-len(word) :])
    return Machine((False, ""), step, lambda state: "yes" if state[0] else "no")


def _often(word: str, most: int) -> Machine:
    step = lambda state, token: (state[0] + (state[1] + token).endswith(word), (state[1] + token)[-len(word) :])
    return Machine((0, ""), step, lambda state: str(state[0]))


def _place(word: str, first: bool) -> Machine:
    def step(state: tuple, token: str) -> tuple:
        here, found, text = state[0] + 1, state[1], (state[2] + token)[-len(word) :]
        now = text == word and not (first and found)
        return here, here if now else found, text

    return Machine((0, 0, ""), step, lambda state: str(state[1]))


def _which(words: tuple[str, str]) -> Machine:
    def step(state: tuple, token: str) -> tuple:
        text = (state[1] + token)[-max(map(len, words)) :]
        which = "first" if text.endswith(words[0]) else "second" if text.endswith(words[1]) else state[0]
        return which, text

    return Machine(("-", ""), step, lambda state: state[0])


def _in_order(word: str) -> Machine:
    step = lambda n, token: n + (n < len(word) and word[n] == token)
    return Machine(0, step, lambda n: "yes" if n == len(word) else "no")


def _begins(word: str) -> Machine:
    """How much of the word stood so far; None where something else did."""

    def step(n: int | None, token: str) -> int | None:
        if n is None or n == len(word):
            return n
        return n + 1 if word[n] == token else None

    return Machine(0, step, lambda n: "no" if n is None else "yes")


def _regex(expression: str) -> Oracle:
    """By Python's own regular expressions."""
    return lambda tokens: "yes" if fullmatch(expression, "".join(tokens)) else "no"


def _needle() -> Machine:
    def step(state: tuple, token: str) -> tuple:
        wanted, behind, found = state
        if token == ":":
            return wanted, True, found
        return (wanted, True, found or token == wanted) if behind else (token, False, False)

    return Machine(("", False, False), step, lambda state: "yes" if state[2] else "no")


def _needles(most: int) -> Machine:
    def step(state: tuple, token: str) -> tuple:
        wanted, behind, times = state
        if token == ":":
            return wanted, True, 0
        return (wanted, True, times + (token == wanted)) if behind else (token, False, 0)

    return Machine(("", False, 0), step, lambda state: str(state[2]))


def _words(most: int) -> Machine:
    step = lambda s, t: (t, s[1] + (t != "_" and s[0] == "_"))
    return Machine(("_", 0), step, lambda s: str(s[1]))


FAMILY = Family(
    "search",
    "patterns in a text: whether, where, how often, in which order",
    [
        *sizes("contains-{}", "whether {} stood anywhere so far", contains, _contains, "aa", "cab", "abab"),
        *sizes(
            "times-{}-in-{}",
            "how often {} stood so far, overlapping ones too, in up to {}",
            how_often,
            _often,
            ("aa", 8),
            ("aba", 8),
        ),
        *sizes(
            "first-{}-in-{}",
            "where {} first ended (0: not yet), in up to {}",
            first_place,
            lambda w, n: _place(w, True),
            ("ab", 12),
            ("cc", 12),
        ),
        *sizes(
            "last-{}-in-{}",
            "where {} last ended (0: not yet), in up to {}",
            last_place,
            lambda w, n: _place(w, False),
            ("bc", 12),
        ),
        Own(
            "ab-or-ba-last",
            "which of ab (first) and ba (second) stood last",
            lambda: which_last(("ab", "ba")),
            _which(("ab", "ba")),
        ),
        *sizes(
            "in-order-{}",
            "whether the letters of {} stood in this order, others between",
            subsequence,
            _in_order,
            "abc",
            "aab",
        ),
        Own(
            "regex-ab-star",
            "whether the text is ab, any number of times",
            lambda: expression("(ab)*", "ab"),
            _regex("(ab)*"),
        ),
        Own(
            "regex-a-star-c",
            "whether the text is a's and then b's or c's",
            lambda: expression("a*(b|c)*", "abc"),
            _regex("a*(b|c)*"),
        ),
        *sizes("begins-{}", "whether nothing so far is against the text beginning with {}", prefix, _begins, "abc"),
        Own("needle", "whether the letter before the colon stood behind it", needle, _needle()),
        *sizes(
            "needle-times-{}",
            "how often the letter before the colon stood behind it, in up to {}",
            needle_count,
            _needles,
            8,
        ),
        *sizes("words-{}", "how many words began so far, up to {}", word_number, _words, 8),
        *sizes(
            "word-length-{}",
            "how many letters of the present word stood so far, up to {}",
            word_length,
            lambda most: Machine(0, lambda s, t: 0 if t == "_" else s + 1, str),
            10,
        ),
        Own(
            "initial",
            "the first letter of the present word, - in a space",
            initial,
            Machine("-", lambda s, t: "-" if t == "_" else t if s == "-" else s, str),
        ),
    ],
)
