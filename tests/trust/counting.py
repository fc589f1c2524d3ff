"""A part of two lines for the tests of the runner: python -m tests.trust.counting START COUNT"""

from __future__ import annotations

import json
import sys

if __name__ == "__main__":
    start, count = map(int, sys.argv[1:])
    print(json.dumps({"sum": sum(range(start, start + count))}))
