"""Finite automata (Krohn and Rhodes 1965): a cascade of resets, and of permutations where there are groups.

Statement. An automaton whose transition monoid holds no group but {1} is followed by a cascade of resets. Each reset is
a latch, which a block of Mamba keeps for ever: h ← exp(−Δ)·h + Δ·B·x̂ with Δ = 0 or so large that exp(−Δ) = 0.
So levels + 1 blocks answer behind every token what the automaton answers; on Mamba-2, where Δ sees no convolution,
2·levels + 1. There a level that powers of one permutation move is a count modulo its order, to a bounded length. On
Gated DeltaNet, whose states can be reflected, every automaton is followed for ever: a level that permutations move is a
few states, each moved by one swap a letter (docs/groups.md).

Condition of ours. The levels must not be a block late: each keeps what stood before the present
letter, so that its table is of one position alone. Where nothing in a sequence is counted, no length is too long.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

from compiler.artifact.json_files import strict_value
from compiler.artifact.tokenizer import check_tokens, with_special_tokens
from compiler.automata.cascade import Cascade
from compiler.automata.counted import longest_counted, orders_of
from compiler.automata.counting import Counting, counting_of, outputs_by_number, remainder_of
from compiler.automata.holonomy import cascade_of
from compiler.automata.images import images
from compiler.automata.solvable import counting_cascade
from compiler.automata.stream import levels_of, output_of
from compiler.automata.table import NO, YES, Table, minimal, table_of
from compiler.automata.turned import matches, turned_levels, turned_output, turned_scores
from compiler.automata.turning import turning_of
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout_integer, readout_one_hot
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from constructions.automata.explain import FOREVER_ELSEWHERE, turns_for_ever
from constructions.automata.lengths import lengths_that_work
from constructions.construction import Construction, parameter
from constructions.papers import KROHN_RHODES
from verify.tasks.recognition import Recognition

FEW_CLASSES = 8  # that one number tells
TESTED = 64  # letters of a sequence that is run


@dataclass(frozen=True)
class Automaton(Construction):
    name: ClassVar[str] = "automaton"
    theorem: ClassVar[str] = KROHN_RHODES

    table: str = parameter("start, transitions and accept or classes, as JSON", kw_only=True)
    arch: Literal["mamba", "mamba2", "gated-deltanet"] = parameter("which mixer", default="mamba", kw_only=True)
    max_length: int | None = parameter(  # type: ignore[assignment]
        "longest sequence that the promise covers; none: every length", default=None, kw_only=True
    )

    @cached_property
    def given(self) -> Table:
        """The table as its author gave it: what the answers are held to."""
        return read_table(self.table)

    @cached_property
    def least(self) -> Table:
        return minimal(self.given)

    @cached_property
    def turns(self) -> Counting | None:
        """The counts of an automaton with a group that they follow; None of others, and where the state can turn."""
        return None if self.reflects else counting_of(self.least, self.least.outputs)

    @cached_property
    def cascade(self) -> Cascade:
        found = images(self.least)
        if not found.permutations and not self.reflects:
            return cascade_of(found, self.least.outputs)
        counts = None if self.reflects else counting_cascade(self.least)
        return turning_of(self.least) if counts is None else counts

    @cached_property
    def moduli(self) -> tuple[int, ...]:
        """Modulo what is counted; nothing where the state can turn, or no letter turns it."""
        if self.turns is not None:
            return self.turns.moduli
        if self.reflects or not self.cascade.turns:
            return ()
        orders = orders_of(self.cascade)
        if orders is None:
            raise ValueError(
                f"the automaton holds a group that no counts follow on {self.arch}"
                + f"; {FOREVER_ELSEWHERE}" * turns_for_ever(self.least)
            )
        return orders

    @property
    def longest(self) -> int | None:
        """The letters that counts can follow; None where nothing is counted."""
        if self.turns is not None:
            return self.turns.longest
        return longest_counted(self.moduli) if self.moduli else None

    @property
    def reflects(self) -> bool:
        """Whether the mixer can turn its state."""
        return self.arch == "gated-deltanet"

    @property
    def target(self) -> str:
        return self.arch

    def otherwise(self) -> str:
        """What follows a group on mixers whose state cannot turn: the theorem has permutations there."""
        counted = ", ".join(map(str, self.moduli))
        return f"with counts modulo {counted}, to a bounded length" if counted else ""

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """What the states answer, in the order of the minimal table; those that no word leads to behind."""
        return tuple(dict.fromkeys((*self.least.outputs, *self.given.outputs)))

    def alphabet(self) -> Alphabet:
        return Alphabet.of(*dict.fromkeys((*self.given.letters, *self.classes)))

    def letters(self) -> int:
        return self.alphabet().size

    def circuit(self) -> Circuit:
        """The levels' latches, or counts modulo numbers, then the table of what is answered."""
        return self._circuit(others=False)

    def among_others(self) -> Circuit:
        """The same, but a token that is none of its letters leaves the state as it is, which takes larger tables."""
        return self._circuit(others=True)

    def _circuit(self, others: bool) -> Circuit:
        """others: whether tokens that are none of its letters may come."""
        alphabet, letters = self.alphabet(), self.given.letters
        entries = {name: i for i, name in enumerate(self.classes)}
        scores = self._scores(Tokens(alphabet), alphabet, entries, others)
        text = f"every sequence of the letters {' '.join(letters)}"
        language = InputLanguage.of(alphabet, "any", [("any", "any", letters)], self.max_length, text)
        return Circuit(self.name, scores, language)

    def _scores(self, tokens: Tokens, alphabet: Alphabet, entries: dict[str, int], others: bool) -> Stream:
        """The scores of the classes: of one number where they are few, else a lane for each."""
        counts = bool(self.moduli)
        if not self.reflects and not (counts and self.turns is None):
            return readout_integer(self._answer(tokens, entries, others).named("class"), alphabet, entries)
        cascade, letters = self.cascade.among_others() if others else self.cascade, self.given.letters
        letter = tokens.number({name: i + others for i, name in enumerate(letters)}, name="letter")
        levels = turned_levels(cascade, letter, len(letters) + others, counts)
        if len(entries) <= FEW_CLASSES and not matches(cascade, levels):
            return readout_integer(turned_output(cascade, levels, entries).named("class"), alphabet, entries)
        return readout_one_hot(turned_scores(cascade, levels, list(entries)).named("class"), alphabet, entries)

    def _answer(self, tokens: Tokens, entries: dict[str, int], others: bool) -> Stream:
        """The number of the class behind each token."""
        letters = self.given.letters
        if self.turns is not None:
            remainder = remainder_of(self.turns, tokens, letters)
            return remainder.lookup(outputs_by_number(self.turns, entries))
        letter = tokens.number({name: i + 1 for i, name in enumerate(letters)}, name="letter")
        cascade = self.cascade.among_others() if others else self.cascade.behind(1)  # then letter 0 never comes
        count = len(letters) + 1
        return output_of(cascade, levels_of(cascade, letter, count), letter, count, entries)

    def check_names(self) -> None:
        """ValueError or CheckpointError for a letter or a class that no tokenizer can hold, or that nobody sees."""
        names = self.alphabet().tokens
        check_tokens(with_special_tokens(names))
        unseen = next((name for name in names if not name.isprintable()), None)
        if unseen is not None:
            raise ValueError(f"the name {unseen!a} has characters that cannot be seen, so nothing is proved of it")

    def check_sizes(self) -> None:
        super().check_sizes()
        self.check_names()
        longest = self.longest
        if longest is not None and (self.max_length is None or self.max_length > longest):
            moduli, other = ", ".join(map(str, self.moduli)), f"; {FOREVER_ELSEWHERE}" * turns_for_ever(self.least)
            raise ValueError(
                f"this automaton holds a group, which on {self.arch} counts modulo {moduli} follow to a bounded length "
                f"only: at most {longest:,} letters; {lengths_that_work(self, longest)}{other}"
            )

    def tasks(self) -> list[Recognition]:
        alphabet = self.alphabet()
        answers = tuple(alphabet.index(name) for name in self.given.outputs)
        length = TESTED if self.max_length is None else min(TESTED, self.max_length)
        return [Recognition(self.given.following, self.given.start, answers, length)]

    def asks(self) -> dict[str, Any]:
        given = self.given
        classes = dict(zip(given.names, given.outputs, strict=True))
        start = given.names[given.start]
        said = {"name": self.name, "start": start, "transitions": given.transitions(), "classes": classes}
        return said | {"end": None}


ENTRIES = ("start", "transitions", "accept", "classes")


def read_table(text: str) -> Table:
    """The table of {"start": S, "transitions": {S: {LETTER: S}}, "accept": [S, …] or "classes": {S: NAME}}.

    ValueError, in one sentence, where it is none.
    """
    try:
        data = strict_value(text)  # no key twice, of which only the last would count
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the table is no JSON ({error})") from error
    if not isinstance(data, dict) or not _is_table(data.get("transitions")) or not isinstance(data.get("start"), str):
        raise ValueError(
            'the table must be {"start": STATE, "accept": [STATE, …], "transitions": {STATE: {LETTER: STATE}}} of texts'
        )
    for entry in data:
        if entry not in ENTRIES:
            raise ValueError(f"the table has an entry {entry!r:.60}, and {', '.join(ENTRIES)} are read")
    transitions = data["transitions"]
    return table_of(transitions, data["start"], _outputs(data, transitions))


def _is_table(given: object) -> bool:
    rows = list(given.values()) if isinstance(given, dict) else [None]
    return all(isinstance(row, dict) and all(isinstance(to, str) for to in row.values()) for row in rows)


def _outputs(data: dict, transitions: dict) -> dict[str, str]:
    """yes and no of an acceptor, the classes of another table."""
    if ("accept" in data) == ("classes" in data):
        raise ValueError('the table must have "accept", a list of states, or "classes", a name for each state')
    if "classes" in data:
        classes = data["classes"]
        if not isinstance(classes, dict) or not all(isinstance(name, str) and name for name in classes.values()):
            raise ValueError('"classes" must name a class for each state, {STATE: NAME}')
        return classes
    accept = data["accept"]
    if not isinstance(accept, list) or not all(isinstance(state, str) for state in accept):
        raise ValueError('"accept" must be a list of states')
    odd = [state for state in accept if state not in transitions]
    if odd:
        raise ValueError(f'"accept" names {odd[0]!r}, which is no state of the table')
    return {state: YES if state in accept else NO for state in transitions}


def table_json(table: Table) -> str:
    """The table as text that `read_table` reads."""
    classes = dict(zip(table.names, table.outputs, strict=True))
    data = {"start": table.names[table.start], "classes": classes, "transitions": table.transitions()}
    return json.dumps(data, ensure_ascii=False)
