"""Plant one change in a checkpoint and ask the checker: none that changes a logit may be accepted.

python -m tests.verify.checker.plants COUNT SEED CHECKPOINT...
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from tests.verify.checker.fuzz import Real, mutated, walks
from verify.checker.check import check

BATCHES = 6  # of sequences; each plant runs on two of them


def plant(directory: Path, count: int, rng: random.Random, sequences: int = 24) -> tuple[Counter, list[str]]:
    """(accepted, rejected and missed plants, the missed ones). Missed: accepted, and a letter's logit changed."""
    config = json.loads((directory / "config.json").read_text())
    promise = json.loads((directory / "construction.json").read_text())["promise"]
    language = promise["language"] | {"length": promise["length"]}
    tensors, real, tally, missed = load_file(directory / "model.safetensors"), Real(config), Counter(), []
    letters = language["tokens"]
    batches = [walks(language, sequences, 24, rng) for _ in range(BATCHES)] if count else []
    scores = [real.logits(tensors, words)[..., :letters] for words in batches]
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("config.json", "construction.json", "circuit.json"):
            (Path(scratch) / name).write_bytes((directory / name).read_bytes())
        for _ in range(count):
            changed, name = dict(tensors), rng.choice(list(tensors))
            changed[name], how = mutated(changed[name], rng)
            if np.array_equal(changed[name], tensors[name]):
                continue
            save_file(changed, Path(scratch) / "model.safetensors")
            if not check(Path(scratch)).accepted:
                tally["rejected"] += 1
                continue
            tally["accepted"] += 1
            for at in rng.sample(range(BATCHES), 2):
                if not np.array_equal(scores[at], real.logits(changed, batches[at])[..., :letters]):
                    tally["missed"] += 1
                    missed.append(f"{directory.name}: {name}: {how}")
                    break
    return tally, missed


def main() -> None:
    count, seed, *names = sys.argv[1:]
    rng, total = random.Random(int(seed)), Counter()
    for name in names:
        tally, missed = plant(Path(name), int(count), rng)
        total += tally
        print(Path(name).name, dict(tally), *missed[:5], flush=True)
    print(dict(total))


if __name__ == "__main__":
    main()
