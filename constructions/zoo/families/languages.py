"""Formal languages: whether the text so far is a word, and what state an automaton is in (`construct automaton`)."""

from __future__ import annotations

from compiler import Alphabet, InputLanguage, Stream, Tokens, count, emit, latch, present
from constructions.automata.automaton import Automaton, table_json
from constructions.automata.languages import NAMED
from constructions.zoo.entry import Family, FromPaper, sizes
from constructions.zoo.machine import Machine

STAR_FREE = (
    *("tomita-1", "tomita-2", "tomita-4", "tomita-7", "d-2", "d-3", "d-4"),
    *("dyck-1-2", "dyck-1-3", "dyck-1-4", "dyck-2-2", "dyck-2-3", "flip-flop", "even-pairs"),
    *("starts-with-a", "ends-with-abb", "contains-abc", "one-c", "012-star-0-2"),
    *("subsequence-ab", "subsequence-abc", "at-most-two-a"),
)
WITH_A_GROUP = ("tomita-5", "tomita-6", "parity", "aa-star", "aaaa-star", "modulo-3", "modulo-5", "cycle-5")
_LETTERS = 32  # of a language with a group, which counts follow to a bounded length


def _language(name: str, length: int | None) -> FromPaper:
    language = NAMED[name]
    said = f"{language.says} ({language.source}): what an automaton of it answers behind each letter"
    return FromPaper(name, said, lambda: Automaton(table=table_json(language.make()), max_length=length))


def tomita_3(length: int) -> tuple[Stream, InputLanguage]:
    """By the lengths of runs: as an automaton it takes 13 blocks, of which the checker cannot say what they hold."""
    alphabet = Alphabet.of("a", "b", "yes", "no")
    x = Tokens(alphabet)
    a, b = x.is_in("a"), x.is_in("b")
    odd = (count(a, reset=b) % 2 == 1).named("odd")
    begins = b & a.shift(1)
    odd_before = latch(odd.shift(1) & begins, begins).named("odd_before")
    wrong = (odd_before & (count(b, reset=a) % 2 == 1)).named("wrong")
    was_wrong = present(a & wrong.shift(1)).named("was_wrong")
    return emit(alphabet, (was_wrong, "no"), (wrong, "no"), otherwise="yes"), InputLanguage.everything(
        alphabet, length, ("a", "b")
    )


def _runs() -> Machine:
    """Remembered: the last letter, whether the last a's are odd, whether the b's behind them are, and whether both
    were once when an a came."""

    def step(state: tuple[str, bool, bool, bool], letter: str) -> tuple[str, bool, bool, bool]:
        last, ones, twos, bad = state
        if letter == "b":
            return "b", ones, not twos, bad
        return "a", True if last == "b" else not ones, False, bad or (ones and twos)

    return Machine(("b", False, False, False), step, lambda s: "no" if s[3] or (s[1] and s[2]) else "yes")


FAMILY = Family(
    "languages",
    "formal languages of the literature, of every length where no group is in the way",
    [
        *(_language(name, None) for name in STAR_FREE),
        *sizes(
            "tomita-3",
            "no odd run of a's right before an odd run of b's (Tomita, 1982): whether that holds of a text of up to {} "
            "letters so far, found by the lengths of runs",
            tomita_3,
            lambda length: _runs(),
            24,
        ),
        *(_language(name, _LETTERS) for name in WITH_A_GROUP),
    ],
)
