"""Whether tokens of others that stand between a circuit's letters change its answers.

To a circuit such a token is a position that holds none of its letters. What counts positions, or looks at neighbours,
sees that there is one; what follows its letters alone does not. Neither is wrong: so it is measured, and told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from compiler.compiled import Compiled
from compiler.driver import compile
from compiler.graft.grafted import GUEST
from compiler.graft.measure import PROBE_LENGTH
from compiler.graft.union import union
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage

SEQUENCES = 50  # of a union that are enough to see it
Scores = Callable[[np.ndarray], np.ndarray]
"""From ids (1, time) to the scores of a circuit's letters, (1, time, letters)."""


@dataclass(frozen=True)
class Others:
    """answers: positions of letters in texts with tokens of others between, at which a letter leads there, or where
    these tokens are left out. changed: those of them at which it is not the same letter.
    """

    answers: int
    changed: int

    def __add__(self, more: Others) -> Others:
        return Others(self.answers + more.answers, self.changed + more.changed)


def compared(rows: Iterable[np.ndarray], own: np.ndarray, among: Scores, alone: Scores) -> Others:
    """A circuit's answers on texts, and on what is left of them without tokens of others.

    rows: ids (1, time); own: the ids that the circuit reads; among, alone: its scores on texts with those of others and
    without, in one order of the letters.
    """
    found = Others(0, 0)
    for row in rows:
        here = np.isin(row[0], own)
        if here.any() and not here.all():
            with_others, without = _leading(among(row)[0, here]), _leading(alone(row[:, here])[0])
            found += Others(int(((with_others >= 0) | (without >= 0)).sum()), int((with_others != without).sum()))
    return found


def _leading(scores: np.ndarray) -> np.ndarray:
    """The letter that scores highest at each position, (time,); −1 where several do."""
    best = scores.max(axis=-1, keepdims=True)
    return np.where((scores == best).sum(axis=-1) == 1, scores.argmax(axis=-1), -1)


def among_others(whole: Compiled, parts: Sequence[Compiled], samples: int) -> list[Others]:
    """Of each part of a union, on sequences of the union."""
    own = [frozenset(part.source.token_alphabet.tokens) for part in parts]
    rest = [frozenset().union(*own[:i], *own[i + 1 :]) for i in range(len(own))]
    return [in_union(whole, *each, samples) for each in zip(parts, map(frozenset.__sub__, own, rest), strict=True)]


def in_union(whole: Compiled, part: Compiled, heard: Collection[str], samples: int) -> Others:
    """The answers of a part of a union, on sequences of the union. heard: the letters that this part alone reads.

    After these the part's letters stand in the union as they do in the part, up to a factor and a summand.
    """
    letters, alphabet = part.source.token_alphabet.tokens, whole.source.token_alphabet
    places = np.array([alphabet.index(letter) for letter in letters])
    single = np.array([letter in heard for letter in letters])
    back = np.full(alphabet.size, -1)
    back[places] = np.arange(len(places))

    def shown(scores: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Behind letters that several read nothing leads."""
        return np.where(single[ids][..., None], scores, 0)

    among = lambda row: shown(whole.interpret(row)[..., places], np.maximum(back[row], 0))
    alone = lambda row: shown(part.interpret(back[row]), back[row])
    return compared(_rows(whole.source.token_language, samples), places, among, alone)


def beside_host(circuit: Circuit, target: str) -> Others:
    """The answers of a circuit that reads tokens of a host, with and without those that are none of its letters."""
    whole = compile(union(circuit, name=circuit.name, guest=GUEST), target)
    letters = np.arange(whole.source.token_alphabet.size - 1)
    scores = lambda row: whole.interpret(row)[..., :-1]
    return compared(_rows(whole.source.token_language, SEQUENCES), letters, scores, scores)


def _rows(language: InputLanguage, samples: int) -> Iterator[np.ndarray]:
    """Random sequences of a language, (1, time) each: as long as a probe, or the longest that it has below that."""
    length, rng = language.longest(PROBE_LENGTH), np.random.default_rng(0)
    return (language.sample(1, length, int(rng.integers(2**62))) for _ in range(samples if length else 0))
