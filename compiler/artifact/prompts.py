"""What is wrong with a prompt that an input language does not hold, or holds only the beginning of, in one sentence."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice

from compiler.language.arguments import shown
from compiler.language.input_language import InputLanguage, Paths

_MOST_LISTED = 4  # letters that are named
_LONGEST_SHOWN = 80  # characters of a prompt
_MOST_TRIED = 2000  # paths that the search for an ending follows


def complaint(language: InputLanguage, ids: Sequence[int]) -> str | None:
    """Why nothing may be written after these token ids: the first that does not fit, or what is missing behind them.

    None for a whole prompt, and for one with some of its answer; where the language does not say where prompts end,
    for every beginning of a sequence.
    """
    paths, fitting = language.paths([]), 0
    for token in ids:
        further = language.paths([token], paths)
        if not further:
            break
        paths, fitting = further, fitting + 1
    if fitting == len(ids) and (not language.asked or any(state in language.written for state, _ in paths)):
        return None
    before = f"after {_end_of(_text(language, ids[:fitting]))}" if fitting else "at its beginning"
    said = f"{before} {_what_may_come(language, paths)}"
    if fitting < len(ids):
        said += f", not {shown(language.alphabet.tokens[ids[fitting]])}"
    ending = _ending(language, paths) if language.asked else None
    return said if ending is None else f"{said}; {_end_of(_text(language, [*ids[:fitting], *ending]))} would do"


def outside(language: InputLanguage, ids: Sequence[int]) -> str | None:
    """Why no sequence of the language begins with these token ids; None where one does."""
    return None if language.paths(ids) else complaint(language, ids)


def first_prompt(language: InputLanguage, ids: Sequence[int]) -> list[int]:
    """The beginning of a sequence that is a whole prompt, [] where none is; all of it where no prompts are told."""
    if not language.asked:
        return list(ids)
    paths = language.paths([])
    for i, token in enumerate(ids):
        paths = language.paths([token], paths)
        if any(state == language.asked for state, _ in paths):
            return list(ids[: i + 1])
    return []


def _text(language: InputLanguage, ids: Iterable[int]) -> str:
    return " ".join(language.alphabet.tokens[token] for token in ids)


def _end_of(text: str) -> str:
    """The text in quotes, without its beginning where that is long."""
    return repr(text if len(text) <= _LONGEST_SHOWN else f"…{text[-_LONGEST_SHOWN:]}")


def _what_may_come(language: InputLanguage, paths: Paths) -> str:
    """Such as "one of '|' '0' '1' … '6' must come"."""
    letters = sorted(
        {
            token
            for state, used in paths
            for i, edge in enumerate(language.edges)
            if edge.source == state
            for token in edge.tokens
            if not (edge.distinct and (i, token) in used)
        }
    )
    if not letters:
        return "nothing may come"
    named = [repr(language.alphabet.tokens[token]) for token in letters]
    if len(named) > _MOST_LISTED:
        named = [*named[: _MOST_LISTED - 1], "…", named[-1]]
    return f"{' or '.join(named) if len(named) <= 2 else 'one of ' + ' '.join(named)} must come"


def _ending(language: InputLanguage, paths: Paths) -> list[int] | None:
    """The shortest continuation that makes a whole prompt, the least letters first; None where a search finds none."""
    pending: deque[tuple[Paths, list[int]]] = deque([(paths, [])])
    tried, seen = 0, {paths}
    while pending and tried < _MOST_TRIED:
        here, word = pending.popleft()
        tried += 1
        if any(state == language.asked for state, _ in here):
            return word
        for token in _one_of_each_kind(language, here):
            further = language.paths([token], here)
            if further not in seen:
                seen.add(further)
                pending.append((further, [*word, token]))
    return None


def _one_of_each_kind(language: InputLanguage, paths: Paths) -> list[int]:
    """For each edge that can come next its least letter: any other one leads to the same states."""
    found: list[int] = []
    for state, used in paths:
        for i, edge in enumerate(language.edges):
            if edge.source == state:
                free = (token for token in sorted(edge.tokens) if not (edge.distinct and (i, token) in used))
                found += islice(free, 1)
    return sorted(set(found))
