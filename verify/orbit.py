"""A finite check for every length: all that a model can hold, against an automaton, letter by letter.

A circuit of finitely many states keeps its caches (convolution windows and states of all blocks) in finitely many
values, if its arithmetic is exact. From the empty caches on, every value that is reached meets every letter once. Where
that ends, and every score is the automaton's, the model is right at every length: each longer input goes through the
same pairs again. This holds of the arithmetic that was run, one position at a time, on this machine. It is no proof
from the weights, and says nothing of another order of sums; see E16 and E17 of docs/exactness.md for those.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from compiler.artifact.model import Stack, State
from compiler.runtime.streaming import advance

MOST = 1 << 16  # pairs of caches and states of the automaton


class Departs(Exception):
    """A word after which the scores are not the automaton's, or more is held than there was room for."""


@dataclass(frozen=True)
class Orbit:
    """held: pairs of caches and states of the automaton that are reached; steps: of these, with every letter."""

    held: int
    steps: int


@dataclass(frozen=True, eq=False)
class _Reached:
    word: tuple[int, ...]
    state: Hashable
    caches: State


@torch.no_grad()
def close_orbit(
    stack: Stack,
    start: Hashable,
    follow: Callable[[Hashable, int], Hashable],
    scores: Callable[[Hashable], Sequence[float]],
    letters: int,
    most: int = MOST,
) -> Orbit:
    """All that is reached by the first `letters` tokens.

    follow: the next state of the automaton; scores: what the model must give in a state, for as many tokens as they
    are.

    Departs names a shortest word where the model leaves the automaton, and where more than `most` pairs are reached.
    """
    seen: set[tuple[Hashable, bytes]] = set()
    level, steps = [_Reached((), start, stack.initial_state(1))], 0
    while level:
        following: list[_Reached] = []
        held = [_joined(caches) for caches in zip(*(reached.caches for reached in level), strict=True)]
        for letter in range(letters):
            given, after = advance(stack, torch.full((len(level), 1), letter), held)
            steps += len(level)
            for i, reached in enumerate(level):
                state, word = follow(reached.state, letter), (*reached.word, letter)
                wanted = torch.tensor(scores(state), dtype=torch.float32)
                if not torch.equal(given[i, 0, : len(wanted)].float(), wanted):
                    raise Departs(f"after the tokens {word} the scores are {given[i, 0, : len(wanted)].tolist()}")
                caches = [(w[[i]], s[[i]]) for w, s in after]
                key = state, b"".join(_bytes(part) for pair in caches for part in pair)
                if key not in seen:
                    seen.add(key)
                    following.append(_Reached(word, state, caches))
        if len(seen) > most:
            raise Departs(f"more than {most} pairs of what is held and states of the automaton are reached")
        level = following
    return Orbit(len(seen), steps)


def _joined(caches: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """The caches of a block of several sequences, as one batch."""
    windows, states = zip(*caches, strict=True)
    return torch.cat(windows), torch.cat(states)


def _bytes(part: Tensor) -> bytes:
    return (part.float() + 0.0).numpy().tobytes()  # −0 acts as 0
