"""`python -m verify.checker DIR`: exit code 0 if all parts are proved, 1 if one is not, 2 for bad usage."""

import json
import os
import sys
from pathlib import Path

from verify.checker.check import check

USAGE = "usage: python -m verify.checker DIR [--json]"


def main(arguments: list[str]) -> int:
    """The command; returns its exit code."""
    names = [a for a in arguments if a != "--json"]
    if len(names) != 1 or names[0].startswith("-"):
        print(USAGE, file=sys.stderr)
        return 2
    if not Path(names[0]).is_dir():
        print(f"{names[0]} is not a directory", file=sys.stderr)
        return 2
    verdict = check(names[0])
    try:
        print(json.dumps(verdict.to_json()) if "--json" in arguments else "\n".join(verdict.lines()), flush=True)
    except BrokenPipeError:  # whoever reads has enough; the verdict is the exit code
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0 if verdict.accepted else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
