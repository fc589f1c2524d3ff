"""The command of an attack whose cases have numbers: python -m MODULE [count] [first] [--json]"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any


def main(says: str | None, counted: Callable[[int, int], dict[str, Any]], count: int) -> int:
    """Print what became of cases, given the first and how many; 1 where its "failures" hold any. count: by default."""
    parser = argparse.ArgumentParser(description=says, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=count)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--json", action="store_true", help="print one object and nothing else")
    options = parser.parse_args()
    found = counted(options.first, options.count)
    print(json.dumps(found, ensure_ascii=False))
    return 1 if found["failures"] else 0
