"""Writing: behind a bar the model writes the text again: sorted, turned around, without copies, shifted."""

from __future__ import annotations

from collections.abc import Callable

from compiler import (
    Alphabet,
    InputLanguage,
    Stream,
    Tokens,
    emit,
    memory,
    present,
    readout_one_hot,
    select,
)
from constructions.zoo.entry import Family, Oracle, Own
from constructions.zoo.families.counting import ABC, Made

BAR, END = "|", "."
ALPHABET = Alphabet.of(*ABC, BAR, END)


def written_behind_a_bar(most: int) -> InputLanguage:
    """A text of up to `most` letters, a bar, and as many letters as may be written behind it."""
    edges = [(str(n), str(n + 1), ABC) for n in range(most)] + [(str(n), "0|", [BAR]) for n in range(most + 1)]
    edges += [(f"{n}|", f"{n + 1}|", ABC) for n in range(2 * most)] + [
        (f"{n}|", "end", [END]) for n in range(2 * most + 1)
    ]
    return InputLanguage.of(ALPHABET, "0", edges, 3 * most + 2, f"up to {most} letters, a bar, and what is written")


def places() -> tuple[Tokens, Stream, Stream, Stream]:
    """The tokens; whether this is a letter of the text; how many there are; how many are written behind the bar."""
    x = Tokens(ALPHABET)
    behind, letter = present(x.is_in(BAR)).named("behind"), x.is_in(*ABC)
    given = (letter & ~behind).named("given")
    return x, given, given.cumsum().named("length"), (letter & behind).cumsum().named("written")


def sort(most: int, letters: tuple[str, ...] = ABC) -> Made:
    """By counting: letter a while fewer are written than there are a's, then b, and so on."""
    x, given, length, written = places()
    counts = [(given & x.is_in(a)).cumsum().named(f"count_{a}") for a in letters]
    upto, rules = counts[0], [(written < counts[0], letters[0])]
    for tally, letter in zip(counts[1:], letters[1:]):
        upto = upto + tally
        rules.append((written < upto, letter))
    return emit(ALPHABET, *rules, otherwise=END), written_behind_a_bar(most)


def by_place(most: int, place: Callable[[Stream, Stream], Stream], total: Callable[[Stream], Stream]) -> Made:
    """What stands at a place of the text that length and written say (from 1 on); the end behind so many letters."""
    x, given, length, written = places()
    held = memory.write(length.one_hot(most + 1), x.one_hot(*ABC), when=given, policy="once", name="held")
    read = held.read(place(length, written).named("place").one_hot(most + 1))
    over = (written >= total(length)).named("over")
    return emit(
        ALPHABET, (over, END), *((read[i] >= 1, a) for i, a in enumerate(ABC)), otherwise=END
    ), written_behind_a_bar(most)


def without_copies(most: int) -> Made:
    """The letters in the order in which they first stood."""
    x, given, length, written = places()
    first = [(present(given & x.is_in(a)) & ~present(given & x.is_in(a)).shift(1)).named(f"first_{a}") for a in ABC]
    rank = sum(first[1:], start=first[0]).cumsum().named("kinds")
    new = (sum(first[1:], start=first[0]) >= 1).named("new")
    held = memory.write(rank.one_hot(4), x.one_hot(*ABC), when=new, policy="once", name="order")
    read = held.read((written + 1).one_hot(4))
    return readout_one_hot(read, ALPHABET, ABC, otherwise=END), written_behind_a_bar(most)


def kinds_sorted(most: int) -> Made:
    """Each letter that stands in the text once, in the order of the alphabet."""
    x, given, length, written = places()
    seen = [present(given & x.is_in(a)).named(f"seen_{a}") for a in ABC]
    upto, rules = seen[0], [(written < seen[0], ABC[0])]
    for flag, letter in zip(seen[1:], ABC[1:]):
        upto = upto + flag
        rules.append((written < upto, letter))
    return emit(ALPHABET, *rules, otherwise=END), written_behind_a_bar(most)


def only(keep: str, most: int) -> Made:
    """As many of one letter as there were."""
    x, given, length, written = places()
    kept = (given & x.is_in(keep)).cumsum().named("kept")
    return emit(ALPHABET, (written < kept, keep), otherwise=END), written_behind_a_bar(most)


def double_count(keep: str, letter: str, most: int) -> Made:
    """Two of a letter for each one of another."""
    x, given, length, written = places()
    kept = (given & x.is_in(keep)).cumsum().named("kept")
    return emit(ALPHABET, (written < 2 * kept, letter), otherwise=END), written_behind_a_bar(most)


def relabel(most: int) -> Made:
    """Each letter replaced by the next one: a → b → c → a."""
    x, given, length, written = places()
    held = memory.write(length.one_hot(most + 1), x.one_hot(*ABC), when=given, policy="once", name="held")
    read = held.read((written + 1).one_hot(most + 1))
    over = (written >= length).named("over")
    rules = [(read[i] >= 1, ABC[(i + 1) % 3]) for i in range(3)]
    return emit(ALPHABET, (over, END), *rules, otherwise=END), written_behind_a_bar(most)


def _second_time(length: Stream, written: Stream) -> Stream:
    """written + 1, and from the length on again from 1."""
    return written + 1 - select(written >= length, length)


# What each must answer ------------------------------------------------------------------------------------------


def writes(result: Callable[[str], str]) -> Oracle:
    """Behind the bar the next letter of the result, then the end; nothing is asked where another letter was written."""

    def answer(tokens: list[str]) -> str | None:
        text, bar, written = "".join(tokens).partition("|")
        whole = result(text) + "."
        return whole[len(written)] if bar and whole.startswith(written) and len(written) < len(whole) else None

    return answer


def drawn(most: int, result: Callable[[str], str]) -> Callable:
    """A text, the bar, and the right continuation with its end."""

    def words(rng) -> list[str]:
        text = "".join(rng.choice("abc") for _ in range(rng.randint(0, most)))
        return [*text, "|", *result(text), "."]

    return words


def _own(name: str, says: str, most: int, make: Callable[[int], Made], result: Callable[[str], str]) -> Own:
    said = f"behind a bar, {says}, written letter by letter, for texts of up to {most} letters"
    return Own(f"{name}-{most}", said, lambda: make(most), writes(result), drawn(most, result), END)


def _unique(text: str) -> str:
    return "".join(dict.fromkeys(text))


FAMILY = Family(
    "writing",
    "a text written again behind a bar: sorted, backwards, without copies",
    [
        *(_own("sort", "the text sorted", n, sort, lambda text: "".join(sorted(text))) for n in (3, 6)),
        *(
            _own(
                "sort-down",
                "the text sorted from c to a",
                n,
                lambda most: sort(most, ABC[::-1]),
                lambda text: "".join(sorted(text, reverse=True)),
            )
            for n in (5,)
        ),
        *(
            _own(
                "reverse",
                "the text backwards",
                n,
                lambda most: by_place(most, lambda length, written: length - written, lambda length: length),
                lambda text: text[::-1],
            )
            for n in (3, 6)
        ),
        *(
            _own(
                "again",
                "the same text",
                n,
                lambda most: by_place(most, lambda length, written: written + 1, lambda length: length),
                lambda text: text,
            )
            for n in (6,)
        ),
        _own(
            "without-first",
            "the text without its first letter",
            5,
            lambda most: by_place(most, lambda length, written: written + 2, lambda length: length - 1),
            lambda text: text[1:],
        ),
        _own(
            "without-last",
            "the text without its last letter",
            5,
            lambda most: by_place(most, lambda length, written: written + 1, lambda length: length - 1),
            lambda text: text[:-1],
        ),
        _own(
            "every-second",
            "its first, third, fifth letter and so on",
            6,
            lambda most: by_place(most, lambda length, written: 2 * written + 1, lambda length: (length + 1) // 2),
            lambda text: text[::2],
        ),
        _own("twice", "the text twice", 4, lambda most: by_place(most, _second_time, lambda n: 2 * n), lambda t: t + t),
        _own("kinds", "each letter that stands in it once, sorted", 6, kinds_sorted, lambda t: "".join(sorted(set(t)))),
        _own(
            "first-places",
            "each of its letters once, in the order in which they first stood",
            5,
            without_copies,
            _unique,
        ),
        _own("only-b", "its b's", 6, lambda most: only("b", most), lambda text: "b" * text.count("b")),
        _own(
            "two-for-one",
            "two c's for each of its a's",
            5,
            lambda most: double_count("a", "c", most),
            lambda text: "cc" * text.count("a"),
        ),
        _own(
            "next-letters", "the text with a → b → c → a", 5, relabel, lambda t: t.translate({97: 98, 98: 99, 99: 97})
        ),
    ],
)
