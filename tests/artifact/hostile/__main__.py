"""The command line of the hostile run: python -m tests.artifact.hostile --help."""

from __future__ import annotations

import argparse
import json
import sys

from tests.artifact import hostile
from tests.artifact.hostile.cases import run
from tests.artifact.hostile.originals import MAKERS


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.artifact.hostile",
        description=hostile.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cases", type=int, nargs="?", default=1000)
    parser.add_argument("first", type=int, nargs="?", default=0, help="number of the first case")
    parser.add_argument("--over", choices=sorted(MAKERS), default="tokens", help="what the checkpoints read")
    parser.add_argument("--numbers", nargs="+", type=int, help="the cases of these numbers instead")
    parser.add_argument("--json", action="store_true", help="print one object and nothing else")
    options = parser.parse_args()
    cases = options.numbers or range(options.first, options.first + options.cases)
    found = run(cases, lambda line: None if options.json else print(line, flush=True), options.over).to_json()
    if options.json:
        print(json.dumps(found))
        return 1 if found["failures"] else 0
    for kind, counts in found["kinds"].items():
        print(f"{kind}: {', '.join(f'{name} {n}' for name, n in counts.items())}")
    print(", ".join(f"{name} {n}" for name, n in found["verdicts"].items()), f"; {len(found['failures'])} broke a rule")
    print(
        f"the slowest took {found['most']['seconds']} s of processor time, the largest {found['most']['mebibytes']} MiB"
    )
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
