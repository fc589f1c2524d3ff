"""A short input on which a task asks something, with the right answer beside it: what a model card shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice

import numpy as np

from verify.tasks.chain import ChainTask
from verify.tasks.numbers import NumberTask
from verify.tasks.task import IGNORED, Batch, Task

_DRAWN, _CASES, _POSITIONS = 16, 24, 512  # sequences that are drawn, hand-made cases, positions looked at in each
_SHORTEST, _LONGEST, _LONGEST_ANSWER = 4, 24, 64  # tokens that are read at a glance
_ENOUGH, _ENOUGH_WITH_ANSWER = 4, 8  # different letters
_READABLE = 4.0  # the size of real inputs that is shown, if the task has one so large


@dataclass(frozen=True)
class Example:
    """Token ids: the input, and what is right behind it (one token, or a chain up to its end)."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class NumberExample:
    """inputs: (1, positions, width) of each input by name; expected: (outputs,) at the last position."""

    inputs: dict[str, np.ndarray]
    expected: np.ndarray


def example_of(task: Task, good: Callable[[Example], bool]) -> Example | None:
    """Of what the task draws, and its hand-made cases: short, answered by a token of its own, and with most letters.

    good: what else it must be; None where nothing that was looked at is.
    """
    found: dict[int, list[Callable[[], Example]]] = {}
    for lengths, made in _candidates(task):
        found.setdefault(_off(*lengths), []).append(made)
    for off in sorted(found):  # long ones, of which there are many, are made only if no short one will do
        best = sorted({made() for made in found[off]}, key=_rank)
        if (chosen := next(filter(good, best), None)) is not None:
            return chosen
    return None


def _off(prompt: int, answer: int) -> int:
    """How many tokens an input and an answer of these lengths are too long or too short."""
    return max(0, prompt - _LONGEST, answer - _LONGEST_ANSWER, _SHORTEST - prompt - answer)


def _rank(example: Example) -> tuple:
    length = len(example.prompt) + len(example.answer)
    copied = len(example.answer) > 1 or example.answer[0] in example.prompt
    asked, letters = len(set(example.prompt)), len({*example.prompt, *example.answer})
    return not copied, -min(_ENOUGH, asked), -min(_ENOUGH_WITH_ANSWER, letters), length, example.prompt


def _candidates(task: Task) -> Iterator[tuple[tuple[int, int], Callable[[], Example]]]:
    """The lengths of an input and its answer, and what makes them."""
    if isinstance(task, ChainTask):
        cases = (task.ids(prompt) for _, prompt in islice(task.solver.corners(), _CASES))
        for a, b in chain(task.cases(_DRAWN, seed=0), cases):
            yield (len(a), len(b)), partial(Example, tuple(a), tuple(b))
        return
    hard = (case.batch(range(min(_DRAWN, case.count))) for case in islice(task.hard_cases(), _CASES))
    for batch in chain(task.random(_DRAWN, seed=0), hard):
        yield from _queries(batch)


def _queries(batch: Batch) -> Iterator[tuple[tuple[int, int], Callable[[], Example]]]:
    made = lambda tokens, label: Example(tuple(tokens.tolist()), (int(label),))
    for tokens, labels in zip(batch.tokens[:_DRAWN], batch.labels, strict=False):
        for i in np.flatnonzero(labels != IGNORED)[:_POSITIONS].tolist():
            yield (i + 1, 1), partial(made, tokens[: i + 1], labels[i])


def number_example_of(task: NumberTask) -> NumberExample | None:
    """Its second sequence (the first has the largest numbers) up to the first position where it knows the outputs."""
    size = min(task.sizes(), key=lambda size: abs(np.log2(size / _READABLE)))
    batch = task.batch(np.random.default_rng(0), size)
    if batch.expected is None:
        return None
    known = np.flatnonzero(~np.isnan(batch.expected[1]).all(axis=-1))
    if not len(known):
        return None
    end = int(known[0])
    return NumberExample(
        {name: values[1:2, : end + 1] for name, values in batch.inputs.items()}, batch.expected[1, end]
    )
