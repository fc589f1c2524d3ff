"""A saved checkpoint writes chains itself, on each runtime, against the solver.

The forced pass of a chain task proves what greedy decoding writes where forward and step agree; this is a sample of
what really comes out: by stepping, and by transformers' `generate()` with and without its cache, prompts of different
lengths in one batch padded to the left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from compiler.artifact.dtype import in_dtype
from compiler.artifact.generate import transformers_model
from compiler.artifact.load import load
from compiler.runtime.generation import by_stepping, by_transformers
from verify.tasks.chain import ChainTask

Case = tuple[list[int], list[int]]

_CASES = 8
_TOKENS = 2500  # of prompts and chains together, cached; at least one chain is written
_TOKENS_UNCACHED = 80  # of a chain with its prompt: the whole is run again for every token


@dataclass(frozen=True)
class GenerationRun:
    """What a runtime wrote. wrong: the first prompt whose chain is not the solver's, None where all are right."""

    runtime: str
    chains: int
    tokens: int
    wrong: str | None

    def to_json(self) -> dict:
        return asdict(self)


def check_generation(task: ChainTask, directory: Path, seed: int) -> list[GenerationRun]:
    """Corner prompts and random ones, as many as are soon written."""
    stack = load(directory)
    dtype = stack.manifest.dtype
    cases = _chosen(task, seed)
    short = [case for case in cases if len(case[0]) + len(case[1]) <= _TOKENS_UNCACHED][:3]
    hugging_face = transformers_model(directory, dtype)
    runs = [
        ("step", partial(by_stepping, in_dtype(stack, dtype)), cases),
        ("transformers", partial(by_transformers, hugging_face), cases),
        ("transformers without cache", partial(by_transformers, hugging_face, cached=False), short),
    ]
    return [_compared(name, write, task, given) for name, write, given in runs if given]


def _chosen(task: ChainTask, seed: int) -> list[Case]:
    corners = [task.ids(prompt) for _, prompt in task.solver.corners()]
    candidates = [*islice(task.cases(_CASES, seed), _CASES), *corners]
    chosen, room = candidates[:1], _TOKENS - sum(map(len, candidates[0]))
    for case in candidates[1:]:
        size = len(case[0]) + len(case[1])
        if size <= room:
            chosen.append(case)
            room -= size
    return chosen


def _compared(name: str, write: Callable, task: ChainTask, cases: Sequence[Case]) -> GenerationRun:
    prompts, chains = [prompt for prompt, _ in cases], [chain for _, chain in cases]
    stop = chains[0][-1]
    most = [task.language.max_length - len(prompt) for prompt in prompts]
    written = write(prompts, stop, most)
    wrong = next((prompt for prompt, chain, got in zip(prompts, chains, written, strict=True) if chain != got), None)
    told = None if wrong is None else task.language.alphabet.decode(wrong)
    return GenerationRun(name, len(cases), sum(map(len, chains)), told)
