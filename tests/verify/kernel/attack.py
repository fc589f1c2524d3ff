"""Attack the kernel: python -m tests.verify.kernel.attack [count] [first] [--json]

A case changes one weight of a small checkpoint so that a score of the real module changes on sequences of its language.
The kernel must then refuse it with the old claims, with claims that a forger edited to fit, with those of a fresh
search, and with those of searches that are broken. Beside that, claims of the unchanged checkpoint are edited, and two
letters change their names: what is accepted then is counted, and is still true, by the checker's definition of the task
on sequences of the language. Exit code 1 where something false was accepted.
"""

from __future__ import annotations

import copy
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from tests import numbered
from tests.verify.checker.faults import Scores
from tests.verify.checker.fuzz import mutated
from tests.verify.kernel.broken import broken
from tests.verify.kernel.small import CASES, QUICK, TARGETS, make, searched
from verify.checker.formats import Rejected
from verify.kernel.certificate import prove
from verify.kernel.claims import Refused
from verify.kernel.files import Checkpoint, numbers, read
from verify.kernel.floats import Unproved
from verify.prover.prove import search_of
from verify.prover.search import Search
from verify.tasks.stated import stated_rule

A_CHECKPOINT = 25  # cases in a row attack the same one
FORGED, BROKEN, EDITED = 4, 7, 42  # of each case
CHAINS = (
    "coin-change",
    "edit-distance",
    "fibonacci",
    "shortest-path",
)  # the checker asks for each entry, whatever stands before it
TRUE, FALSE, STRANGE = "still true", "FALSE", "of a letter that the checker's task has no place for"
REACH = 1  # of searches (`Search`)
VALUES: list[Any] = [-1, 0, 1, 2, True, False, 1.0, 0.5, 1 << 70, 10**500, "1/2", "2/4", "-1/2", "", None, [], {}]


class Short(Search):
    """A search that finds the claims of the unchanged checkpoints, and gives up on others sooner."""

    most_situations = 1 << 11


class Target:
    """A checkpoint, its claims, and what its real module answers."""

    def __init__(self, directory: Path, rng: random.Random, claims: list[Any] | None = None):
        self.name, self.checkpoint = directory.name, read(directory)
        self.claims = searched(directory)[1] if claims is None else claims
        self.letters: list[str] = self.checkpoint.circuit["alphabet"]
        promise = json.loads((directory / "construction.json").read_text())["promise"]
        self.tensors = load_file(directory / "model.safetensors")
        self.scores = Scores(self.checkpoint.config, promise, self.tensors, 8, rng)

    def changed(self, rng: random.Random) -> tuple[Checkpoint | None, str]:
        """The checkpoint with one weight changed so that scores change; None where its files are refused for it."""
        while True:
            name = rng.choice(list(self.tensors))
            array, how = mutated(self.tensors[name], rng)
            if self.scores.changed(self.tensors | {name: array}):
                break
        told = f"{name}: {how}"
        try:
            return replace(
                self.checkpoint, tensors=self.checkpoint.tensors | {name: numbers(name, array, self.checkpoint.form)}
            ), told
        except Unproved:
            return None, told

    def changes(self, rng: random.Random, count: int) -> Iterator[tuple[Checkpoint, str]]:
        """So many of `changed` whose files are not refused."""
        while count:
            checkpoint, how = self.changed(rng)
            if checkpoint is not None:
                count -= 1
                yield checkpoint, how

    def renamed(self, rng: random.Random) -> tuple[Checkpoint, str]:
        """The checkpoint with the names of two letters exchanged, and what of its answers (`right`)."""
        names = list(self.letters)
        a, b = rng.sample(range(len(names)), 2)
        names[a], names[b] = names[b], names[a]
        return self.named(names), self.right(names)

    def named(self, names: list[str]) -> Checkpoint:
        """The checkpoint with other names for its letters; a text ends at the same name."""
        return replace(self.checkpoint, circuit=self.checkpoint.circuit | {"alphabet": names})

    def right(self, names: list[str]) -> str:
        """Whether the real module answers as the task asks of letters with these names, on sequences of the language:
        by the checker's definition of the task, which shares no code with the kernel's. STRANGE: it does not, but the
        checker has no place in the task for one of the letters, so nobody says what is right beside it.
        """
        rule = stated_rule(self.checkpoint.task, names) if isinstance(self.checkpoint.task, dict) else None
        if rule is None or rule.end != self.checkpoint.circuit["end"]:
            return FALSE
        rows = [pair for both in zip(self.scores.batches, self.scores.unchanged, strict=True) for pair in zip(*both)]
        rows = [(row, scores) for row, scores in rows if names[row[0]] != "-"]  # which is no amount that is asked for
        answers = _written if self.checkpoint.task["name"] in CHAINS else (lambda found, row: found)
        if all(_leads(answers(rule.task.answers(row.tolist()), row), scores) for row, scores in rows):
            return TRUE
        try:
            rule.check_letters(names, np.flatnonzero(self.checkpoint.language.used))
        except Rejected:
            return STRANGE
        return FALSE


def _written(answers: list[int | None], row: np.ndarray) -> list[int | None]:
    """The answers up to where another letter than the answer is written: the kernel asks for nothing behind it."""
    wrong = (t for t, a in enumerate(answers[: len(row) - 1]) if a is not None and a != row[t + 1])
    return answers[: next(wrong, len(answers)) + 1]


def _leads(answers: Sequence[int | None], scores: np.ndarray) -> bool:
    """Whether each answer scores highest."""
    asked = [(t, answer) for t, answer in enumerate(answers) if answer is not None]
    return all((np.delete(scores[t], answer) < scores[t, answer]).all() for t, answer in asked)


def accepted(checkpoint: Checkpoint, claims: Any) -> bool:
    try:
        prove(checkpoint, claims)
    except (Unproved, Refused):
        return False
    return True


def found(checkpoint: Checkpoint, reach: int = REACH) -> list[Any] | None:
    """The claims of a fresh search that the kernel accepts; None where there are none."""
    try:
        return search_of(checkpoint, Short, reach)[1]
    except (Unproved, Refused):
        return None


def found_broken(checkpoint: Checkpoint, rng: random.Random, reach: int = REACH) -> tuple[list[Any] | None, str]:
    """The same of a search with a function broken, and which. A broken search may stop with any error of its own."""
    with broken(rng) as what:
        try:
            return search_of(checkpoint, Short, reach)[1], what
        except Exception:
            return None, what


def edited(claims: list[Any], rng: random.Random) -> list[Any]:
    """The claims with one of them lost, doubled, moved or one of its entries changed."""
    claims = copy.deepcopy(claims)
    kind = rng.choice(["value", "value", "value", "near", "near", "name", "lose", "double", "move", "entry"])
    places = list(_places(claims))
    holder, key = rng.choice(places)
    if kind == "value":
        holder[key] = copy.deepcopy(rng.choice(VALUES))
    elif kind == "near" and type(holder[key]) is int:
        holder[key] += rng.choice([-2, -1, 1, 2, 31, -32])
    elif kind == "name":
        other, at = rng.choice(places)
        holder[key] = copy.deepcopy(other[at])
    elif kind == "lose":
        del holder[key]
    elif kind == "double":
        holder.insert(key, copy.deepcopy(holder[key]))
    elif kind == "move":
        holder.insert(rng.randrange(len(holder)), holder.pop(key))
    elif kind == "entry":
        claims.insert(rng.randrange(len(claims) + 1), copy.deepcopy(rng.choice(claims)))
    return claims


def _places(entry: list[Any]):
    for i, part in enumerate(entry):
        yield entry, i
        if isinstance(part, list):
            yield from _places(part)


def attack(target: Target, rng: random.Random, reach: int = REACH) -> tuple[Counter, list[str]]:
    """One case: (what was tried, what was wrongly accepted)."""
    checkpoint, how = target.changed(rng)
    tally, wrong = Counter({"changed weights": 1}), []
    if checkpoint is None:
        tally["changed weights: the files are refused"] += 1
    else:
        for kind, by in _tries(target, checkpoint, rng, reach):
            tally[f"changed weights: {kind}, refused" if by is None else f"changed weights: {kind}, ACCEPTED"] += 1
            wrong += [] if by is None else [f"{target.name}: {how} by {kind} ({by})"]
    for _ in range(EDITED):
        claims = edited(target.claims, rng)
        if claims != target.claims:
            verdict = "accepted, and still true" if accepted(target.checkpoint, claims) else "refused"
            tally[f"edited claims of unchanged weights: {verdict}"] += 1
    renamed, right = target.renamed(rng)
    if accepted(renamed, target.claims):
        tally[f"two names exchanged: accepted, and {right}"] += 1
        wrong += [] if right != FALSE else [f"{target.name}: names exchanged: {renamed.circuit['alphabet']}"]
    else:
        tally["two names exchanged: refused"] += 1
    return tally, wrong


def _tries(target: Target, checkpoint: Checkpoint, rng: random.Random, reach: int):
    """Each way to prove a changed checkpoint, and what did it (None: nothing)."""
    yield "old claims", "the same" if accepted(checkpoint, target.claims) else None
    for _ in range(FORGED):
        claims = edited(target.claims, rng)
        yield "forged claims", "edited" if accepted(checkpoint, claims) else None
    yield "a fresh search", "its claims" if found(checkpoint, reach) is not None else None
    for _ in range(BROKEN):
        claims, what = found_broken(checkpoint, rng, reach)
        yield "a broken search", what if claims is not None else None


@lru_cache(maxsize=1)
def _target(number: int) -> Target:
    """The checkpoint of these cases, in turn."""
    pairs = [(name, target) for name in (*QUICK, "edit-distance") for target in TARGETS] + CASES
    name, mixer = pairs[number % len(pairs)]
    with tempfile.TemporaryDirectory() as scratch:
        made = make(Path(scratch) / f"{name}-{mixer}", name, mixer, **{"length": 1} if name == "edit-distance" else {})
        return Target(made, random.Random(f"sequences {number}"))


def counted(first: int, count: int) -> dict[str, Any]:
    """What was tried in these cases, and what was wrongly accepted."""
    tally, failures = Counter(), []
    for number in range(first, first + count):
        more, wrong = attack(_target(number // A_CHECKPOINT), random.Random(f"kernel attack {number}"))
        tally += more
        failures += [f"case {number}, {one}" for one in wrong]
    return {"tries": dict(tally), "failures": failures}


if __name__ == "__main__":
    sys.exit(numbered.main(__doc__, counted, A_CHECKPOINT))
