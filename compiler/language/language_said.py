"""An input language in words that are read off its automaton, whatever it is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compiler.language.input_language import length_said
from compiler.language.markdown import code

_MOST = 12  # letters that are listed
_LONGEST = 200  # characters of what it is called


def language_said(promise: Mapping[str, Any], letters: Sequence[str] | None) -> str:
    """Such as "1 state, letter `a`, up to 16 tokens". promise: as `language_to_data` writes it; letters: by id;
    None: not known.

    Counted are the states that a sequence of this length leads to, and the letters that may stand in one.
    """
    states, ids = _reached(promise["language"], promise["length"])
    names = [code(letters[i]) for i in sorted(ids)] if letters is not None else []
    told = f"{len(ids):,} letter{'s' * (len(ids) != 1)}"
    if names:
        told = (
            f"letter{'s' * (len(ids) != 1)} {' '.join(names)}"
            if len(names) <= _MOST
            else f"{told} from {names[0]} to {names[-1]}"
        )
    return f"{len(states):,} state{'s' * (len(states) != 1)}, {told}, {length_said(promise['length'])}"


def unchecked_words(description: str) -> str:
    """What a language is called, in one line and in quotation marks: free text, of its author or of `compose`."""
    words = " ".join(description.split()).replace('"', "'")
    return f'called "{words if len(words) <= _LONGEST else words[:_LONGEST] + "…"}", which nothing checks'


def own_domain(said: str, dtype: str, description: str, file: str = "construction.json") -> str:
    """The domain of a circuit of one's own. said: `language_said` of it; file: which states the language."""
    return f"the input language of {file}: {said}, {dtype}; {unchecked_words(description)}"


def _reached(automaton: Mapping[str, Any], length: int | None) -> tuple[set[str], set[int]]:
    states, ids, front, steps = {automaton["start"]}, set[int](), {automaton["start"]}, 0
    leaving: dict[str, list[Mapping[str, Any]]] = {}
    for edge in automaton["edges"]:
        leaving.setdefault(edge["from"], []).append(edge)
    while front and (length is None or steps < length):
        taken = [edge for state in front for edge in leaving.get(state, ()) if edge["tokens"]]
        ids.update(i for edge in taken for first, last in edge["tokens"] for i in range(first, last + 1))
        front = {edge["to"] for edge in taken} - states
        states |= front
        steps += 1
    return states, ids
