"""`python -m verify.checker DIR`: exit code 0 if the checkpoint is accepted, 1 if it is rejected, 2 for bad usage."""

import json
import sys
from pathlib import Path

from verify.checker.check import check

USAGE = "usage: python -m verify.checker DIR [--json]"


def main(arguments: list[str]) -> int:
    """The command; returns its exit code."""
    as_json = "--json" in arguments
    names = [a for a in arguments if a != "--json"]
    if len(names) != 1 or names[0].startswith("-"):
        print(USAGE, file=sys.stderr)
        return 2
    if not Path(names[0]).is_dir():
        print(f"{names[0]} is not a directory", file=sys.stderr)
        return 2
    verdict = check(names[0])
    if as_json:
        print(json.dumps(verdict.to_json()))
    else:
        print("accepted" if verdict.accepted else f"rejected: {verdict.reason}")
        for title, sentences in (("proved", verdict.proved), ("not proved", verdict.open)):
            for sentence in sentences:
                print(f"  {title}: {sentence}")
    return 0 if verdict.accepted else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
