"""`construct verify DIR --length N --stream`: one sequence of any length, in constant memory.

A random walk of the input language goes through the model chunk by chunk, with its caches carried on. Beside that,
its beginning runs as one whole sequence and is compared with the circuit, and at evenly spaced chunks the modules' own
`step()` goes through the first positions. Scores, and caches behind the steps, must be equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from compiler.artifact.model import Stack, State
from compiler.language.arguments import counted
from compiler.runtime.streaming import advance
from constructions.checkpoints.built import Built

CHUNK = 4096  # positions that are held at a time
_WHOLE = 1 << 14  # positions of the beginning, at most
_NUMBERS = 1 << 22  # scores that are held at a time
_WINDOWS, _WINDOW = 64, 64  # how many times steps are taken, and how many each time


@dataclass(frozen=True)
class Streamed:
    """What was run: positions in chunks, in one whole sequence, by steps; failure: the first difference, or None."""

    length: int
    whole: int
    stepped: int
    failure: str | None

    def sentence(self) -> str:
        """What was compared, for people."""
        if self.failure is not None:
            return self.failure
        return (
            f"{counted(self.length, 'token')} in chunks: every score is finite. {counted(self.stepped, 'position')} by "
            f"step, and the first {self.whole:,} as one sequence and by the circuit, have the same bits."
        )


def verify_streamed(
    built: Built, stack: Stack, length: int, seed: int = 0, progress: Callable[[int], None] = lambda n: None
) -> Streamed:
    """Run one random walk of this length; ValueError where the promise does not cover it."""
    language = built.compiled.source.language
    if language is None:
        raise ValueError(
            "--stream: a circuit over numbers has no input language to draw a sequence from; leave it out."
        )
    if length < 1 or length > language.max_length:
        raise ValueError(f"--length {length:,}: the promise covers 1 to {language.max_length:,} tokens.")
    if built.compiled.error_bound != 0:
        raise ValueError("--stream compares bits, and this checkpoint promises numbers within a bound; leave it out.")
    return _Stream(built, stack, length).run(language.walk(seed), progress)


class _Stream:
    def __init__(self, built: Built, stack: Stack, length: int):
        self.built, self.stack, self.length = built, stack, length
        vocabulary = stack.head.weight.shape[0]
        self.chunk = max(1, min(CHUNK, _NUMBERS // vocabulary))
        self.whole = min(length, _WHOLE, max(1, _NUMBERS // vocabulary))
        self.every = max(1, -(-length // self.chunk) // _WINDOWS)

    def run(self, walk: Iterator[int], progress: Callable[[int], None]) -> Streamed:
        """The whole walk, up to the first difference."""
        beginning = list(islice(walk, self.whole))
        begins = torch.tensor([beginning])
        stepped, caches, expected = 0, self.stack.initial_state(1), self._beginning(begins)
        if isinstance(expected, str):
            return Streamed(len(beginning), len(beginning), 0, expected)
        for number, (start, tokens) in enumerate(self._chunks(beginning, walk)):
            steps = min(_WINDOW, tokens.shape[1]) if number % self.every == 0 else 0
            failure = self._steps(tokens[:, :steps], caches) if steps else None
            scores, caches = advance(self.stack, tokens, caches)
            stepped += steps
            seen = expected[:, start : start + tokens.shape[1]]
            if failure is None and not torch.equal(scores[:, : seen.shape[1]], seen):
                failure = "in chunks other scores come out than in one whole sequence"
            if failure is None and not bool(scores.isfinite().all()):
                failure = "some score is no finite number"
            if failure is not None:
                stop = start + tokens.shape[1]
                return Streamed(stop, self.whole, stepped, f"between tokens {start:,} and {stop:,} {failure}.")
            progress(tokens.shape[1])
        return Streamed(self.length, self.whole, stepped, None)

    def _chunks(self, beginning: list[int], walk: Iterator[int]) -> Iterator[tuple[int, Tensor]]:
        """(start, tokens (1, positions)); ValueError where the language has no token to go on with."""
        left = iter(beginning)
        for start in range(0, self.length, self.chunk):
            wanted = min(self.chunk, self.length - start)
            tokens = list(islice(left, wanted))
            tokens += islice(walk, wanted - len(tokens))
            if len(tokens) < wanted:
                raise ValueError(f"--length {self.length:,}: this walk ends after {start + len(tokens):,} tokens.")
            yield start, torch.tensor([tokens])

    @torch.no_grad()
    def _beginning(self, tokens: Tensor) -> Tensor | str:
        """The scores of the beginning as one sequence, or where they are not the circuit's."""
        scores = self.stack(tokens)
        meant = self.built.compiled.interpret(tokens.numpy())
        meant = meant if self.built.model is None else self.built.model.over_vocabulary(meant)
        differs = ~(scores.float().numpy() == meant).all(axis=-1)[0]
        if differs.any():
            return f"at token {int(np.argmax(differs)):,} the model's scores are not the circuit's."
        return scores

    @torch.no_grad()
    def _steps(self, tokens: Tensor, caches: State) -> str | None:
        """How `step()` differs from a chunk on these tokens, from these caches; None where it does not."""
        in_chunk, after = advance(self.stack, tokens, _copied(caches))
        state, found = _copied(caches), []
        for token in tokens[0]:
            scores, state = self.stack.step(token[None], state)
            found.append(scores)
        if not torch.equal(torch.stack(found, dim=1), in_chunk):
            return "by step other scores come out than in chunks"
        same = all(
            torch.equal(a, b) for mine, its in zip(state, after, strict=True) for a, b in zip(mine, its, strict=True)
        )
        return None if same else "steps leave other caches than chunks"


def _copied(caches: State) -> State:
    return [(window.clone(), state.clone()) for window, state in caches]
