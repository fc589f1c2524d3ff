"""Windows of tokens: all that a block without decay, or a latch, sees of a sequence at one position."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from compiler.language.input_language import InputLanguage
from verify.certificates.ask import BEFORE, Windows
from verify.certificates.certificate import Refused

MOST_WINDOWS = 2**22


def check_count(vocab: int, reach: int) -> None:
    """Refuse when there are too many windows to go through."""
    count = vocab * _history_count(vocab, reach - 1)
    if count > MOST_WINDOWS:
        raise Refused(
            f"the module reads the last {reach} of {vocab} tokens, which makes {count:,} windows; the "
            f"certificate goes through {MOST_WINDOWS:,} at most"
        )


def _history_count(vocab: int, length: int) -> int:
    return sum(vocab**n for n in range(length + 1))


def histories(tokens: Sequence[int], length: int) -> Windows:
    """All that may stand before the present token, the first positions of a sequence included: (n, length), column l
    for lag l + 1.
    """
    rows = []
    for n in range(length + 1):
        past = np.array(list(product(tokens, repeat=n)), dtype=np.int64).reshape(len(tokens) ** n, n)
        rows.append(np.hstack([past, np.full((len(past), length - n), BEFORE)]))
    return np.vstack(rows)


def after(past: Windows, token: int) -> Windows:
    """The windows in which `token` follows each history."""
    return np.hstack([np.full((len(past), 1), token), past])


def spelled(windows: Windows, language: InputLanguage) -> np.ndarray:
    """Which windows occur in some walk of the language, its distinct edges and its length aside: (n,) bool."""
    states = sorted({language.start} | {s for e in language.edges for s in (e.source, e.target)})
    index = {s: i for i, s in enumerate(states)}
    at = np.tile(_reachable(language, index), (len(windows), 1))
    at[windows[:, -1] == BEFORE] = False
    at[windows[:, -1] == BEFORE, index[language.start]] = True
    for tokens in windows.T[::-1]:
        moved = np.zeros_like(at)
        for edge in language.edges:
            moved[:, index[edge.target]] |= at[:, index[edge.source]] & np.isin(tokens, list(edge.tokens))
        at = np.where((tokens == BEFORE)[:, None], at, moved)
    return np.asarray(at.any(axis=1))


def _reachable(language: InputLanguage, index: dict[str, int]) -> np.ndarray:
    """Which states a walk can come to: (states,) bool."""
    found, pending = {language.start}, [language.start]
    while pending:
        state = pending.pop()
        for edge in language.edges:
            if edge.source == state and edge.tokens and edge.target not in found:
                found.add(edge.target)
                pending.append(edge.target)
    flags = np.zeros(len(index), dtype=bool)
    flags[[index[s] for s in found]] = True
    return flags


def spell(window: Sequence[int], names: Sequence[str]) -> str:
    """A window as text, oldest token first; `^` stands before the start."""
    return " ".join("^" if token == BEFORE else names[token] for token in reversed(window))
