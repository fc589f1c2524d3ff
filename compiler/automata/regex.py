"""A regular expression as a table: automata-lib reads it, and the subsets that it can be in become states."""

from __future__ import annotations

from typing import Any

from compiler.automata.signs import RESERVED, WORDS, letters_of
from compiler.automata.table import MOST_STATES, NO, YES, Table


def regex_table(expression: str, letters: str = "") -> Table:
    """The automaton that accepts what the whole expression matches, not yet minimal.

    letters: the alphabet; by default those that the expression names. ValueError, in one sentence, where it has none,
    where a letter is not of the alphabet, and where the automaton grows too large.
    """
    named = letters_of(expression)
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
