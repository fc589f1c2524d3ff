"""The word `automaton` of the language: the state of a finite automaton as a stream."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from compiler.automata.groups import groups
from compiler.automata.holonomy import cascade_of
from compiler.automata.images import images
from compiler.automata.regex import regex_table
from compiler.automata.stream import levels_of, one_hot_output_of, output_of
from compiler.automata.table import NO, YES, Table, minimal, table_of, with_others
from compiler.language.arguments import instance
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.types import Bool


def automaton(
    transitions: Mapping[str, Mapping[str, str]] | str | Any,
    tokens: Tokens,
    start: str | None = None,
    accept: Collection[str] | None = None,
) -> Stream:
    """The state behind the present token, a OneHot over the states in the table's order; with `accept`, a flag.

    transitions: a total table {state: {token: state}}; a regular expression over single letters, or a deterministic
        automaton of automata-lib: of these two, whether the text so far is accepted (Bool).
    start: the state before the first token; by default the first of the table.
    accept: states; the flag is 1 in each of them.

    A token that the table does not name leaves the state as it is. ValueError, in one sentence, for a table that is not
    total, a letter that is no token, and an automaton with a group, which no latches follow.
    """
    instance(tokens, Tokens, "tokens of automaton", "Tokens(alphabet)")
    given = _given(transitions, start, accept)
    odd = [letter for letter in given.letters if letter not in tokens.alphabet.tokens]
    if odd:
        raise ValueError(f"the automaton has the letter {odd[0]!r}, which is no token of the alphabet")
    table = minimal(with_others(given))
    found = images(table)
    if found.permutations:
        held = ", ".join(group.name for group in groups(found))
        raise ValueError(
            f"the automaton holds the group {held}, and only star-free ones, which hold none, are followed by latches"
        )
    cascade, count = cascade_of(found, table.outputs), len(table.letters)
    letter = tokens.number({name: i for i, name in enumerate(table.letters) if i}, name="letter")
    held_levels = levels_of(cascade, letter, count)
    if set(given.outputs) <= {YES, NO} and _accepts(transitions, accept):
        return output_of(cascade, held_levels, letter, count, {YES: 1, NO: 0}).retyped(Bool()).named("accepted")
    return one_hot_output_of(cascade, held_levels, letter, count, given.names).named("state")


def _accepts(transitions: object, accept: object) -> bool:
    return accept is not None or not isinstance(transitions, Mapping)


def _given(transitions: Any, start: str | None, accept: Collection[str] | None) -> Table:
    if isinstance(transitions, str):
        if start is not None or accept is not None:
            raise ValueError("a regular expression has its own start and accepts by itself; leave start and accept out")
        return regex_table(transitions)
    if isinstance(transitions, Mapping):
        first = next(iter(transitions), "") if start is None else start
        if accept is None:
            return table_of(transitions, first, {state: state for state in transitions})
        odd = sorted(set(accept) - set(transitions))
        if odd:
            raise ValueError(f"accept names {odd[0]!r}, which is no state of the table")
        return table_of(transitions, first, {state: YES if state in accept else NO for state in transitions})
    return _of_library(transitions)


def _of_library(given: Any) -> Table:
    """An automaton with the attributes of automata-lib's DFA."""
    try:
        moves, start, final = given.transitions, given.initial_state, given.final_states
        named = {str(s): {str(letter): str(to) for letter, to in row.items()} for s, row in moves.items()}
    except AttributeError:
        raise TypeError(
            f"the transitions of automaton are {given!r:.60}, and a table {{state: {{token: state}}}}, a regular "
            "expression or a DFA of automata-lib is needed"
        ) from None
    return table_of(named, str(start), {str(s): YES if s in final else NO for s in moves})
