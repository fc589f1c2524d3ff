"""Formal languages: whether the text so far is a word, and what state an automaton is in (`construct automaton`)."""

from __future__ import annotations

from constructions.automata.automaton import Automaton, table_json
from constructions.automata.languages import NAMED
from constructions.zoo.entry import Family, FromPaper

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


FAMILY = Family(
    "languages",
    "formal languages of the literature, of every length where no group is in the way",
    [
        *(_language(name, None) for name in STAR_FREE),
        *(_language(name, _LETTERS) for name in WITH_A_GROUP),
    ],
)
