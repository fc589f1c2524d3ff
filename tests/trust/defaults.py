"""Whether every construction of its default size is proved: python -m tests.trust.defaults count first [--json]

Each is compiled for Mamba and for Mamba-2, and packaged as a language model in float32. What is told is the processor
time of the checker.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from compiler.errors import CompileError
from constructions.registry import CONSTRUCTIONS
from tests.fuzz.run import Hang, at_most
from tests.verify.checker.checkpoints import write
from verify.checker.check import check

CASES = [(name, target) for name in CONSTRUCTIONS for target in ("mamba", "mamba2")]
MOST = 120
"""Seconds, after which a checkpoint counts as not proved."""


def asked(name: str, target: str) -> tuple[float, str | None]:
    """(seconds, None or why it is not proved)."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            directory = write(Path(folder) / "made", CONSTRUCTIONS[name](arch=target).circuit(), target)
        except CompileError as refusal:
            return 0.0, str(refusal)
        began = time.process_time()
        try:
            with at_most(MOST):
                reason = check(directory).reason
        except Hang:
            reason = f"more than {MOST} s"
        return round(time.process_time() - began, 1), reason


def main(count: int, first: int) -> int:
    found: dict = {"defaults": {}, "failures": []}
    for name, target in CASES[first : first + count]:
        seconds, reason = asked(name, target)
        found["defaults"][f"{name}, {target}"] = {"seconds": seconds, "proved": reason is None}
        found["failures"] += [] if reason is None else [f"{name}, {target}: {reason}"]
    print(json.dumps(found, ensure_ascii=False))
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main(*(int(argument) for argument in sys.argv[1:3])))
