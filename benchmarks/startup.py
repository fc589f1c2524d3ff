"""How long `construct` takes to start, beside `import torch` in the same run: `python benchmarks/startup.py`.

The best of several runs each, in turn, so that a busy machine slows all of them alike. Prints a table of ratios.
"""

from __future__ import annotations

import subprocess
import sys
import time

ROUNDS = 7
COMMANDS = {
    "import torch": ["-c", "import torch"],
    "construct list": ["-m", "constructions", "list"],
    "construct --help": ["-m", "constructions", "--help"],
    "construct mqar --help": ["-m", "constructions", "mqar", "--help"],
}


def seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main() -> None:
    best = dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(ROUNDS):
        for name, arguments in COMMANDS.items():
            best[name] = min(best[name], seconds(arguments))
    for name, time_taken in best.items():
        print(f"{name:24} {time_taken:6.2f} s   {time_taken / best['import torch']:5.2f} × import torch")


if __name__ == "__main__":
    main()
