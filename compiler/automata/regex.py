"""A regular expression as a table: automata-lib reads it, and the subsets that it can be in become states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compiler.automata.signs import RESERVED, WORDS, read_signs
from compiler.automata.table import MOST_STATES, NO, YES, Table

_MOST_WORK = 1 << 22  # states of the library's automaton that are looked at, for every set of them and every letter


def regex_table(expression: str, letters: str = "") -> Table:
    """The automaton that accepts what the whole expression matches, not yet minimal.

    letters: the alphabet; by default those that the expression names. ValueError, in one sentence, where it has none,
    where a letter is not of the alphabet, and where the automaton grows too large.
    """
    named = read_signs(expression)[0]
    alphabet = tuple(dict.fromkeys(letters)) or tuple(sorted(named))
    odd = sorted(named - set(alphabet))
    if odd:
        raise ValueError(
            f"the expression {expression!r} has the letter {odd[0]!r}, and the letters are {' '.join(alphabet)}; "
            "add it to the letters"
        )
    if not alphabet:
        raise ValueError(f"the expression {expression!r} has no letter; write one, or name all letters by --letters")
    reserved = sorted(set(alphabet) & set(RESERVED))
    if reserved:
        raise ValueError(f"{reserved[0]!r} cannot be a letter: in an expression it is a sign ({WORDS})")
    return _subsets(_read(expression, alphabet), alphabet)


def _read(expression: str, alphabet: tuple[str, ...]) -> Any:
    """The library's automaton with choices; ValueError where the expression is none."""
    from automata.base.exceptions import AutomatonException, RegexException
    from automata.fa.nfa import NFA

    try:
        return NFA.from_regex(expression, input_symbols=set(alphabet))
    except (AutomatonException, RegexException, ValueError, IndexError) as error:
        why = str(error).splitlines()[0].replace("parethesis", "parenthesis") if str(error) else "it ends too early"
        raise ValueError(f"{expression!r} is no regular expression ({why}); it may hold {WORDS}") from error


def _subsets(choices: Any, alphabet: tuple[str, ...]) -> Table:
    """The states that it can be in at once, as states."""
    moves, work = choices.transitions, 0

    def closed(states: Iterable[Any]) -> frozenset:
        nonlocal work
        found = set(states)
        waiting = list(found)
        while waiting:
            for to in moves.get(waiting.pop(), {}).get("", ()):
                if to not in found:
                    found.add(to)
                    waiting.append(to)
        work += len(found)
        return frozenset(found)

    start = closed([choices.initial_state])
    place, sets = {start: 0}, [start]
    following: list[tuple[int, ...]] = []
    for here in sets:
        row = []
        for letter in alphabet:
            to = closed(t for s in here for t in moves.get(s, {}).get(letter, ()))
            if to not in place:
                place[to] = len(sets)
                sets.append(to)
            row.append(place[to])
        following.append(tuple(row))
        if len(sets) > MOST_STATES or work > _MOST_WORK:
            told = f"more than {MOST_STATES} states" if len(sets) > MOST_STATES else "too many states to be found"
            raise ValueError(f"the automaton of the expression has {told}; choose a simpler one")
    outputs = tuple(YES if here & choices.final_states else NO for here in sets)
    return Table(alphabet, tuple(following), 0, outputs, tuple(f"q{i}" for i in range(len(sets))))
