"""Processes killed while they replace a checkpoint: the target is always one complete checkpoint, old or new.

    python -m tests.artifact.kills 500 [seed] [--json]

Fifty of these run in the test suite. A child forked from this process replaces the checkpoint at one place by two
others in turn, until it is killed without warning; then the place is looked at.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import torch

from compiler.artifact import place
from compiler.artifact.manifest import check_files, read_manifest
from compiler.artifact.save import write
from tests.artifact.tiny import CARD_TEXT, CLAIM, TOKENS, random_tensors, tiny_config

NAMES = ("one", "two")


def replace(target: Path, name: str) -> None:
    config = tiny_config("mamba")
    write(target, config, random_tensors(config), TOKENS, CLAIM | {"circuit": name}, {"name": name}, CARD_TEXT, True)


def killed(target: Path, rng: random.Random, duration: float, exchange: bool) -> None:
    """Fork a child that replaces the target again and again, and kill it at some moment."""
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)
        if not exchange:
            place._exchange = lambda one, other: False
        try:
            while True:
                for name in NAMES:
                    replace(target, name)
        finally:
            os._exit(1)
    time.sleep(rng.uniform(0, 3 * duration))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def run(kills: int, seed: int, folder: Path) -> list[str]:
    """A sentence for each kill after which the place did not hold one whole checkpoint."""
    rng, target, lost = random.Random(seed), folder / "out", []
    start = time.monotonic()
    replace(target, "one")
    duration = time.monotonic() - start
    for number in range(kills):
        exchange = number % 2 == 0
        killed(target, rng, duration, exchange)
        if exchange and not target.is_dir():
            lost.append(f"kill {number} of seed {seed}: the target is gone, although the system exchanges directories")
        try:
            manifest = read_manifest(target)
            check_files(target, manifest)
        except ValueError as reason:
            lost.append(f"kill {number} of seed {seed}: {reason}")
            continue
        if manifest.circuit not in NAMES:
            lost.append(f"kill {number} of seed {seed}: it holds {manifest.circuit}")
    return lost


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.artifact.kills", description=__doc__)
    parser.add_argument("kills", type=int, nargs="?", default=500)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--json", action="store_true", help="print one object and nothing else")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        lost = run(options.kills, options.seed, Path(root))
    if options.json:
        print(json.dumps({"kills": options.kills, "failures": lost}))
    else:
        print("\n".join(lost) or "every target was one whole checkpoint")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
