"""Ten small circuits with a named variable each, of which the twins and the table of docs/scores.md are made."""

from __future__ import annotations

from collections.abc import Callable

from compiler import (
    Alphabet,
    Circuit,
    InputLanguage,
    Stream,
    Tokens,
    count,
    emit,
    latch,
    present,
    readout_integer,
    readout_one_hot,
)

LENGTH = 12  # tokens of a sequence
Made = tuple[Stream, Alphabet, tuple[str, ...]]


def _digits(most: int) -> dict[str, int]:
    return {str(n): n for n in range(most + 1)}


def _letters(*letters: str, digits: int = -1, more: tuple[str, ...] = ()) -> tuple[Tokens, Alphabet]:
    alphabet = Alphabet.of(*letters, *_digits(digits), *more)
    return Tokens(alphabet), alphabet


def seen() -> Made:
    x, alphabet = _letters("a", "b", "c", digits=LENGTH)
    return readout_integer(x.is_in("a").cumsum().named("seen"), alphabet, _digits(LENGTH)), alphabet, ("a", "b", "c")


def since() -> Made:
    x, alphabet = _letters("a", "b", "c", digits=LENGTH)
    held = count(x.is_in("a"), reset=x.is_in("b")).named("since")
    return readout_integer(held, alphabet, _digits(LENGTH)), alphabet, ("a", "b", "c")


def remainder() -> Made:
    x, alphabet = _letters("a", "b", "c", digits=2)
    left = (x.is_in("a").cumsum().named("seen") % 3).named("remainder")
    return readout_integer(left, alphabet, _digits(2)), alphabet, ("a", "b", "c")


def parity() -> Made:
    x, alphabet = _letters("a", "b", digits=1)
    odd = (x.is_in("a").cumsum().named("seen") % 2).named("odd")
    return readout_integer(odd, alphabet, _digits(1)), alphabet, ("a", "b")


def at_least() -> Made:
    x, alphabet = _letters("a", "b", "c", more=("yes", "no"))
    held = x.is_in("a").cumsum().named("seen")
    return emit(alphabet, (held >= 3, "yes"), otherwise="no"), alphabet, ("a", "b", "c")


def lead() -> Made:
    x, alphabet = _letters("a", "b", more=("=",))
    a, b = x.is_in("a").cumsum().named("a seen"), x.is_in("b").cumsum().named("b seen")
    return emit(alphabet, (a > b, "a"), (b > a, "b"), otherwise="="), alphabet, ("a", "b")


def flip_flop() -> Made:
    x, alphabet = _letters("0", "1", "r")
    kept = latch(x.one_hot("0", "1", name="bit"), x.is_in("0", "1")).named("kept")
    return readout_one_hot(kept, alphabet, ("0", "1")), alphabet, ("0", "1", "r")


def heard() -> Made:
    x, alphabet = _letters("a", "b", "c", more=("yes", "no"))
    return emit(alphabet, (present(x.is_in("a")), "yes"), otherwise="no"), alphabet, ("a", "b", "c")


def fourths() -> Made:
    x, alphabet = _letters("a", "b", "c", digits=3)
    left = (x.is_in("a").cumsum().named("seen") % 4).named("remainder")
    return readout_integer(left, alphabet, _digits(3)), alphabet, ("a", "b", "c")


def last_marked() -> Made:
    x, alphabet = _letters("a", "b", "c", "!")
    marked = latch(x.one_hot("a", "b", "c").shift(1), x.is_in("!")).named("marked")
    return readout_one_hot(marked, alphabet, ("a", "b", "c")), alphabet, ("a", "b", "c", "!")


CIRCUITS: dict[str, Callable[[], Made]] = {
    "seen": seen, "since": since, "remainder": remainder, "parity": parity, "at-least": at_least,
    "lead": lead, "flip-flop": flip_flop, "heard": heard, "fourths": fourths, "last-marked": last_marked,
}  # fmt: skip


def circuit(name: str) -> Circuit:
    """The circuit of this name, over strings of at most `LENGTH` letters."""
    output, alphabet, letters = CIRCUITS[name]()
    language = InputLanguage.of(alphabet, "any", [("any", "any", letters)], LENGTH, f"strings of {', '.join(letters)}")
    return Circuit(name, output, language)
