"""A regular expression as a table: automata-lib reads it, and the subsets that it can be in become states."""

from __future__ import annotations

import re
from math import prod
from typing import Any

from compiler.automata.table import MOST_STATES, NO, YES, Table

MOST_CHARACTERS, MOST_REPEATS = 2000, 4096
RESERVED = "*+?|&^(){}[].\\, "
_REPEATS = re.compile(r"\{[0-9]+(,[0-9]*)?\}|\{,[0-9]+\}")
WORDS = "letters, | ( ) * + ? {m,n} [a-c] . (any letter), & (both) and ^ (shuffle)"


def regex_table(expression: str, letters: str = "") -> Table:
    """The automaton that accepts what the whole expression matches, not yet minimal.

    letters: the alphabet; by default those that the expression names. ValueError, in one sentence, where it has none,
    where a letter is not of the alphabet, and where the automaton grows too large.
    """
    named = _letters(expression)
    alphabet = tuple(dict.fromkeys(letters)) or tuple(sorted(named))
    odd = sorted(named - set(alphabet))
    if odd:
        raise ValueError(
            f"the expression {expression!r} has the letter {odd[0]!r}, and the letters are {' '.join(alphabet)}; "
            "add it to the letters"
        )
    if not alphabet:
        raise ValueError(f"the expression {expression!r} has no letter; name the letters beside it")
    reserved = sorted(set(alphabet) & set(RESERVED))
    if reserved:
        raise ValueError(f"{reserved[0]!r} cannot be a letter: in an expression it is a sign ({WORDS})")
    return _subsets(_read(expression, alphabet), alphabet)


def _letters(expression: str) -> set[str]:
    """The letters that an expression names."""
    if len(expression) > MOST_CHARACTERS:
        raise ValueError(f"the expression has {len(expression)} characters, and {MOST_CHARACTERS} are the most")
    if "\\" in expression:
        raise ValueError(f"the expression {expression!r} holds a backslash; it may hold {WORDS}")
    odd = next((held for held in re.findall(r"\{[^}]*\}", expression) if not _REPEATS.fullmatch(held)), None)
    if odd is not None:
        raise ValueError(f"the expression {expression!r} repeats by {odd}; write {{3}}, {{1,3}}, {{,3}} or {{1,}}")
    repeats = prod(max([1, *map(int, re.findall(r"\d+", held))]) for held in re.findall(r"\{([^}]*)\}", expression))
    if repeats > MOST_REPEATS:
        raise ValueError(f"the repetitions of the expression multiply to {repeats}, and {MOST_REPEATS} are the most")
    found: set[str] = set()
    plain = re.sub(r"\{[^}]*\}", "", expression)
    for held in re.findall(r"\[\^?([^\]]*)\]", plain):
        for first, last in re.findall(r"(.)-(.)", held):
            found |= {chr(c) for c in range(ord(first), ord(last) + 1)}
        found |= set(re.sub(r".-.", "", held))
    return found | (set(re.sub(r"\[[^\]]*\]", "", plain)) - set(RESERVED))


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
    moves = choices.transitions
    silent: dict[Any, frozenset] = {}

    def closed(states: Any) -> frozenset:
        found, waiting = set(states), list(states)
        while waiting:
            for to in moves.get(waiting.pop(), {}).get("", ()):
                if to not in found:
                    found.add(to)
                    waiting.append(to)
        return frozenset(found)

    for state in choices.states:
        silent[state] = closed([state])
    start = silent[choices.initial_state]
    place, sets = {start: 0}, [start]
    following: list[tuple[int, ...]] = []
    for here in sets:
        row = []
        for letter in alphabet:
            to = frozenset().union(*(silent[t] for s in here for t in moves.get(s, {}).get(letter, ())))
            if to not in place:
                place[to] = len(sets)
                sets.append(to)
            row.append(place[to])
        following.append(tuple(row))
        if len(sets) > MOST_STATES:
            raise ValueError(
                f"the automaton of the expression has more than {MOST_STATES} states; choose a simpler one"
            )
    outputs = tuple(YES if here & choices.final_states else NO for here in sets)
    return Table(alphabet, tuple(following), 0, outputs, tuple(f"q{i}" for i in range(len(sets))))
