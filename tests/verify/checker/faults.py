"""Change one weight of a checkpoint and ask the checker: none that changes a logit may be accepted.

python -m tests.verify.checker.faults COUNT SEED CHECKPOINT...

The module runs first, on sequences of six lengths: a fault that changes no score of a letter there is counted as that,
and the checker is not asked; faults are drawn until COUNT of them change one, TRIES times as many at most. Of faults in
one block, what stands before it is proved once (`forks`); one verdict of each checkpoint may be compared with what the
command says of the files.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from tests.verify.checker.forks import Arrays, judged
from tests.verify.checker.fuzz import LONGEST, Real, mutated, walks
from verify.checker.check import Verdict, prove

BATCHES = 6  # of sequences, each of one length
TRIES = 4
UNCHANGED = "no score changes"


class Scores:
    """A module's scores of the letters on sequences of its input language."""

    def __init__(self, config: dict, promise: dict, tensors: Arrays, sequences: int, rng: random.Random):
        language = promise["language"] | {"length": promise["length"]}
        self.letters, self.real = language["tokens"], Real(config, LONGEST)
        self.batches = [walks(language, sequences, LONGEST, rng) for _ in range(BATCHES)]
        self.unchanged = list(self.of(tensors))

    def of(self, tensors: Arrays) -> Iterator[np.ndarray]:
        return (self.real.logits(tensors, words)[..., : self.letters] for words in self.batches)

    def changed(self, tensors: Arrays) -> bool:
        return not all(map(np.array_equal, self.of(tensors), self.unchanged))


def inject(
    directory: Path, count: int, rng: random.Random, sequences: int = 8, command: bool = False
) -> tuple[Counter, list[str]]:
    """(how many change no score, are rejected, or missed: a score changes, and it is accepted; what went wrong).

    command: whether one verdict is compared with what `python -m verify.checker` says.
    """
    config, circuit, manifest = (json.loads((directory / f"{n}.json").read_text()) for n in _READ)
    tensors, promise = load_file(directory / "model.safetensors"), manifest["promise"]
    scores, asked, unchanged = Scores(config, promise, tensors, sequences, rng), [], 0
    for change, how in _drawn(tensors, TRIES * count, rng):
        if scores.changed(tensors | change):
            asked.append((change, how))
        else:
            unchanged += 1
        if len(asked) == count:
            break
    judge = lambda checkpoint: prove(checkpoint, circuit, manifest.get("task"))
    verdicts = judged(config, tensors, promise, [change for change, _ in asked], judge)
    tally, wrong = Counter({UNCHANGED: unchanged}), []
    for (_, how), verdict in zip(asked, verdicts, strict=True):
        accepted = isinstance(verdict, Verdict) and verdict.accepted
        tally["missed" if accepted else "rejected"] += 1
        if accepted:
            wrong.append(f"{directory.name}: {how}")
    proved = [i for i, verdict in enumerate(verdicts) if isinstance(verdict, Verdict)]
    if proved and command:
        number = rng.choice(proved)
        if commanded(directory, tensors | asked[number][0]) != verdicts[number].to_json():
            wrong.append(f"{directory.name}: {asked[number][1]}: the command says something else")
    return +tally, wrong


_READ = ("config", "circuit", "construction")


def _drawn(tensors: Arrays, count: int, rng: random.Random) -> Iterator[tuple[Arrays, str]]:
    """(the changed tensor by its name, what was changed), where that is a change."""
    for _ in range(count):
        name = rng.choice(list(tensors))
        array, how = mutated(tensors[name], rng)
        if not np.array_equal(array, tensors[name]):
            yield {name: array}, f"{name}: {how}"


def commanded(directory: Path, tensors: Arrays) -> dict:
    """What `python -m verify.checker` says of the checkpoint with other tensors."""
    with tempfile.TemporaryDirectory() as scratch:
        for name in _READ:
            (Path(scratch) / f"{name}.json").write_bytes((directory / f"{name}.json").read_bytes())
        save_file(tensors, Path(scratch) / "model.safetensors")
        command = [sys.executable, "-m", "verify.checker", scratch, "--json"]
        return json.loads(subprocess.run(command, capture_output=True, text=True).stdout)


def main() -> None:
    count, seed, *names = sys.argv[1:]
    rng, total = random.Random(int(seed)), Counter()
    for name in names:
        tally, missed = inject(Path(name), int(count), rng, command=True)
        total += tally
        print(Path(name).name, dict(tally), *missed[:5], flush=True)
    print(dict(total))


if __name__ == "__main__":
    main()
