"""`construct verify DIR` by many processes: the sequences of every task in shards, and their sum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from compiler.artifact.files import CIRCUIT, MANIFEST, WEIGHTS
from compiler.artifact.load import load
from compiler.artifact.manifest import file_hash
from constructions.checkpoints.artifact import cost_of
from constructions.checkpoints.built import Built
from constructions.checkpoints.saved import rebuild
from constructions.checkpoints.scores import module_scores, reference_scores
from constructions.checkpoints.sharded_row import Row, differs, parsed
from constructions.command.requests import check_exhaustive
from constructions.shards.shard import Place, Shard
from verify.check import CheckedForm, Verification, check_forms
from verify.samples import EXHAUSTIVE_LIMIT, rows_of_a_batch, split
from verify.scores import Scores
from verify.tasks.task import Batch, Task, by_length

MOST_EXHAUSTIVE = 10**9
_POSITIONS = 1 << 18  # of a shard: some seconds of one core
_JOB = "constructions.checkpoints.sharded:verified"
_ADVERSARIAL, _EVERY, _RANDOM = "adversarial", "every sequence", "random"


@dataclass(frozen=True, eq=False)
class Sharded:
    """The shards of a verification. of: the task of each, by its number; run: what a table of them is of."""

    built: Built
    shards: tuple[Shard, ...]
    of: tuple[int, ...]
    run: dict[str, Any]

    def check(self, place: Place, result: Any) -> None:
        """ValueError where a shard of this place cannot come out so, whatever the checkpoint is."""
        part, _, count = place
        task = self._tasks[part]
        assert self.built.compiled.source.alphabet is not None, "it is over tokens"
        parsed(result).check(count, task.length, self.built.compiled.source.alphabet.size)

    def differs(self, result: Any, again: Any) -> str | None:
        """In what two runs of one shard differ; None where they are the same."""
        return differs(parsed(result), parsed(again), self.built.compiled.error_bound or 0.0)

    @cached_property
    def _tasks(self) -> dict[str, Task]:
        tasks = self.built.construction.tasks()
        return {shard.part: tasks[number] for shard, number in zip(self.shards, self.of, strict=True)}


def sharded(directory: Path, built: Built, mode: str, samples: int) -> Sharded:
    """All adversarial sequences of each task, and every one, or so many random ones: the same that `verify` draws.

    mode: "exhaustive", "random", or "auto": every sequence up to 20,000, else random ones. ValueError for a model over
    numbers, and for more than 10^9 sequences.
    """
    if built.over_numbers:
        raise ValueError(f"{directory} is a model over numbers, whose inputs are few: leave out --workers.")
    if mode == "none":
        raise ValueError("--verify none runs nothing: leave out --workers.")
    check_exhaustive(built.construction, mode, MOST_EXHAUSTIVE)
    place = {"directory": str(directory.resolve()), "files": _sums(directory)}
    shards, of = [], []
    for number, task in enumerate(built.construction.tasks()):
        for kind, total in _kinds(task, mode, samples, built.construction.promise() != "random"):
            size = total if kind == _ADVERSARIAL else max(1, _POSITIONS // task.length)
            for first in range(0, total, size):
                which = {"number": number, "kind": kind, "first": first, "count": min(size, total - first)}
                shards.append(Shard(f"task {number + 1}, {kind}", first, which["count"], _JOB, place | which))
                of.append(number)
    asked = {"mode": mode, "samples": None if mode == "exhaustive" else samples}
    return Sharded(
        built, tuple(shards), tuple(of), {"files": place["files"], "seed": built.construction.seed + 1} | asked
    )


def _kinds(task: Task, mode: str, samples: int, hard: bool) -> Iterator[tuple[str, int]]:
    """Which sequences are run, and how many."""
    adversarial = sum(case.count for case in task.hard_cases()) if hard else 0
    if adversarial:
        yield _ADVERSARIAL, adversarial
    if mode == "exhaustive" or (mode == "auto" and task.exhaustive_count() <= EXHAUSTIVE_LIMIT):
        yield _EVERY, task.exhaustive_count()
    else:
        yield _RANDOM, min(samples, task.most_random) if mode == "auto" else samples


def _sums(directory: Path) -> dict[str, str]:
    """What tells a checkpoint from all others."""
    return {name: file_hash(directory / name) for name in (CIRCUIT, MANIFEST, WEIGHTS)}


def verified(directory: str, files: dict[str, str], number: int, kind: str, first: int, count: int) -> dict[str, Any]:
    """A shard, on a worker: its `Row`. ValueError where the checkpoint is not there."""
    place = Path(directory)
    if not (place / WEIGHTS).is_file() or _sums(place) != files:
        raise ValueError(
            f"{directory} is missing beside a worker, or is another checkpoint there: put it where all of them see it"
        )
    worker = _worker(directory, tuple(files.values()))
    task = worker.built.construction.tasks()[number]
    batches = worker.batches(task, kind, first, count)
    bound, asked = worker.built.compiled.error_bound or 0.0, worker.built.construction.asked_at
    (found,) = check_forms([worker.form], worker.reference, batches, bound, asked)
    return asdict(Row.of(found))


@dataclass(frozen=True, eq=False)
class _Worker:
    """What a worker holds of a checkpoint."""

    built: Built
    form: CheckedForm
    reference: Scores

    def batches(self, task: Task, kind: str, first: int, count: int) -> Iterator[Batch]:
        size = rows_of_a_batch(task, cost_of(self.built.compiled, [self.form.scores]))
        if kind == _RANDOM:
            return task.random(count, self.built.construction.seed + 1, size, first)
        if kind == _EVERY:
            return by_length(islice(task.rows_from(first), count), size)
        return split((case.batch(range(case.count)) for case in task.hard_cases()), size)


@lru_cache(1)
def _worker(directory: str, _: tuple[str, ...]) -> _Worker:
    built = rebuild(directory)
    assert built.model is not None, "a checkpoint over tokens has a language model"
    form = CheckedForm(module_scores(load(directory)), built.model.over_vocabulary)
    return _Worker(built, form, reference_scores(built.compiled))


def summed(plan: Sharded, found: Sequence[Any]) -> dict[str, Verification]:
    """By task, as `artifact.verify` tells it. found: what came out of each shard, in their order."""
    tasks = plan.built.construction.tasks()
    totals = [Verification() for _ in tasks]
    for number, result in zip(plan.of, found, strict=True):
        totals[number] += parsed(result).verification()
    return {task.describe(): total for task, total in zip(tasks, totals, strict=True)}
