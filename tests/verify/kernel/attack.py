"""Attack the kernel: changed weights, edited claims, and both together.

    python -m tests.verify.kernel.attack COUNT SEED CHECKPOINT...

Each round changes one weight of a checkpoint so that a score of the real module changes on sequences of the language.
Then the kernel must refuse it with the old claims, with the claims of a fresh search, and with claims that a forger
edited to fit. A second count edits the claims of the unchanged checkpoint: what is accepted then is true, and counted.
"""

from __future__ import annotations

import copy
import json
import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

from tests.verify.checker.faults import Scores
from tests.verify.checker.fuzz import mutated
from tests.verify.kernel.small import searched
from verify.kernel.certificate import prove
from verify.kernel.claims import Refused
from verify.kernel.files import Checkpoint, numbers, read
from verify.kernel.floats import Unproved
from verify.prover.prove import search_of
from verify.prover.search import Search

FORGED = 4  # edited certificates of each change
VALUES: list[Any] = [-1, 0, 1, 2, True, False, 1.0, 0.5, 1 << 70, 10**500, "1/2", "2/4", "-1/2", "", None, [], {}]


class Target:
    """A checkpoint, its claims, and what its real module answers."""

    def __init__(self, directory: Path, rng: random.Random):
        self.name, self.checkpoint = directory.name, read(directory)
        self.claims = searched(directory)[1]
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
        try:
            return replace(
                self.checkpoint, tensors=self.checkpoint.tensors | {name: numbers(name, array)}
            ), f"{name}: {how}"
        except Unproved:
            return None, how


def accepted(checkpoint: Checkpoint, claims: Any) -> bool:
    try:
        prove(checkpoint, claims)
    except (Unproved, Refused):
        return False
    return True


def found(checkpoint: Checkpoint, source: type[Search] = Search, reach: int = 1) -> list[Any] | None:
    """The claims of a fresh search that the kernel accepts; None where there are none."""
    try:
        return search_of(checkpoint, source, reach)[1]
    except (Unproved, Refused):
        return None


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


def attack(target: Target, count: int, rng: random.Random, reach: int = 1) -> tuple[Counter, list[str]]:
    """(what was tried, what was wrongly accepted). reach: of the fresh searches (`Search`)."""
    tally, wrong = Counter(), []
    for _ in range(count):
        checkpoint, how = target.changed(rng)
        tally["weights changed"] += 1
        if checkpoint is None:
            tally["files refused"] += 1
            continue
        tries: dict[str, Any] = {"old claims": target.claims}
        tries |= {f"forged claims {i}": edited(target.claims, rng) for i in range(FORGED)}
        for kind, claims in tries.items():
            tally[kind.split(" ")[0]] += 1
            if accepted(checkpoint, claims):
                wrong.append(f"{target.name}: {how} by {kind}")
        tally["fresh search"] += 1
        if found(checkpoint, reach=reach) is not None:
            wrong.append(f"{target.name}: {how} by a fresh search")
    for _ in range(FORGED * count):
        claims = edited(target.claims, rng)
        tally["edited"] += claims != target.claims
        tally["edited and accepted"] += claims != target.claims and accepted(target.checkpoint, claims)
    return tally, wrong


def main() -> int:
    count, seed, *names = sys.argv[1:]
    rng, wrong = random.Random(int(seed)), []
    for name in names:
        tally, missed = attack(Target(Path(name), rng), int(count), rng)
        wrong += missed
        print(Path(name).name, dict(tally), *missed, flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
