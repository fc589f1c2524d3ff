"""A saved checkpoint writes chains itself, on each runtime, against the solver.

The forced pass of a chain task proves what greedy decoding writes where forward and step agree; this is a sample of
what really comes out: by stepping, and by transformers' `generate()` with and without its cache, prompts of different
lengths in one batch padded to the left. A chain that is too long to be run again for every token is run once by
transformers without a cache: what scores highest at each position is what `generate(use_cache=False)` would write
there, for no position sees a later one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch

from compiler.artifact.generate import transformers_model
from compiler.artifact.load import load_over_tokens
from compiler.runtime.generation import by_stepping, by_transformers
from verify.tasks.chain import ChainTask

Case = tuple[list[int], list[int]]

_CASES = 8
_TOKENS = 2500  # of prompts and chains together, cached; at least the longest chain is written
_TOKENS_UNCACHED = 80  # of a chain with its prompt: the whole is run again for every token
_PASSES_UNCACHED = 150  # of the whole, one for each token of a chain; at least one chain is written
_OF_EVERY = 256  # chains that transformers writes of all: it pads every prompt to a whole chunk of Mamba-2
_ROWS, _ROWS_OF_TRANSFORMERS = 512, 64  # of one batch


@dataclass(frozen=True)
class GenerationRun:
    """What a runtime wrote. wrong: the first prompt whose chain is not the solver's, None where all are right."""

    runtime: str
    chains: int
    tokens: int
    wrong: str | None

    def to_json(self) -> dict:
        return asdict(self)


def check_generation(task: ChainTask, directory: Path, seed: int, every: bool = False) -> list[GenerationRun]:
    """Corner prompts and random ones, as many as are soon written.

    every: all prompts of the task instead, by stepping; transformers writes 256 of them, spread evenly.
    """
    stack = load_over_tokens(directory)
    dtype = stack.manifest.dtype
    cases = [task.ids(prompt) for prompt in task.solver.prompts()] if every else _chosen(task, seed)
    hugging_face = transformers_model(directory, dtype)
    by_cache, by_none = (partial(by_transformers, hugging_face, cached=cached) for cached in (True, False))
    runs = [
        ("step", partial(by_stepping, stack), cases, _ROWS),
        ("transformers", by_cache, _spread(cases, _OF_EVERY), _ROWS_OF_TRANSFORMERS),
        ("transformers without cache", by_none, _soon_written(cases), _ROWS_OF_TRANSFORMERS),
    ]
    found = [_compared(name, write, task, given, rows) for name, write, given, rows in runs if given]
    return [*found, _in_one_pass(hugging_face, task, max(cases, key=_size))]


def _chosen(task: ChainTask, seed: int) -> list[Case]:
    """The longest corner, random cases and the other corners, as many as there is room for."""
    corners = sorted((task.ids(prompt) for _, prompt in task.solver.corners()), key=_size)
    chosen, room = corners[-1:], _TOKENS - _size(corners[-1])
    for case in [*task.cases(_CASES, seed), *corners[:-1]]:
        if _size(case) <= room:
            chosen.append(case)
            room -= _size(case)
    return chosen


def _spread(cases: list[Case], most: int) -> list[Case]:
    """At most so many of the cases, at equal distances, the last one among them."""
    step = -(-len(cases) // most)
    return cases[::-1][:: max(1, step)][::-1]


def _soon_written(cases: list[Case]) -> list[Case]:
    """Short cases, spread evenly, that one whole pass for each token of their chains can write."""
    short = [case for case in cases if _size(case) <= _TOKENS_UNCACHED]
    longest = max((len(chain) for _, chain in short), default=1)
    return _spread(short, max(1, _PASSES_UNCACHED // longest))


def _size(case: Case) -> int:
    return len(case[0]) + len(case[1])


def _compared(name: str, write: Callable, task: ChainTask, cases: Sequence[Case], rows: int) -> GenerationRun:
    stop, wrong = cases[0][1][-1], None
    for start in range(0, len(cases), rows):
        prompts, chains = zip(*cases[start : start + rows], strict=True)
        written = write(prompts, stop, [task.language.max_length - len(prompt) for prompt in prompts])
        differing = (p for p, chain, got in zip(prompts, chains, written, strict=True) if chain != got)
        wrong = wrong or next(differing, None)
    told = None if wrong is None else task.language.alphabet.decode(wrong)
    return GenerationRun(name, len(cases), sum(len(chain) for _, chain in cases), told)


def _in_one_pass(hugging_face: Callable, task: ChainTask, case: Case) -> GenerationRun:
    """The longest chain, forced: the highest score at each of its positions."""
    prompt, chain = case
    with torch.no_grad():
        scores = hugging_face(torch.tensor([prompt + chain[:-1]]), use_cache=False).logits
    right = scores[0, len(prompt) - 1 :].argmax(dim=-1).tolist() == chain
    told = None if right else task.language.alphabet.decode(prompt)
    return GenerationRun("transformers in one pass", 1, len(chain), told)
