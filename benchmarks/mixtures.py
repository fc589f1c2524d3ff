"""How the cost of compiling random mixtures of operations grows with the graph, and the worst exponent.

    python -m benchmarks.mixtures [--sizes 250 1000] [--limit 120] [--json]

Each mixture is drawn from one seed: chains of rectifiers, delays and latches; gates side by side; N/4 memories; N/4
latches; deep compositions of flags; and all of them by turns. A row is a process of its own: CPU seconds of the whole
compilation, and log(seconds)/log(size) between neighbours. A test counts calls, which no other process disturbs.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from cProfile import Profile
from math import log
from time import process_time
from typing import Any

import torch

from compiler.driver import compile
from compiler.errors import CompileError
from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.words import concatenate, latch

SIZES = (250, 1_000)
ALPHABET = Alphabet.of(*"abcdefgh")
LENGTH = 64
_OPEN = 40  # streams that a drawn operation may read


class Drawn:
    """Streams drawn so far, of which the last are read by the next."""

    def __init__(self, seed: int) -> None:
        self.draw, self.tokens = random.Random(seed), Tokens(ALPHABET)
        self.flags = [self.tokens.is_in([name]) for name in ALPHABET.tokens]
        self.numbers = [flag.cumsum() for flag in self.flags]
        self.made = 0

    def flag(self) -> Stream:
        return self.draw.choice(self.flags[-_OPEN:])

    def number(self) -> Stream:
        return self.draw.choice(self.numbers[-_OPEN:])

    def letters(self) -> Stream:
        chosen = self.draw.sample(ALPHABET.tokens, 4)
        return self.tokens.one_hot(chosen)

    def output(self) -> Stream:
        """All that no other operation reads, so that nothing is dead code."""
        drawn = self.flags + self.numbers
        read: set[Stream] = set()
        pending = list(drawn)
        while pending:
            new = [source for source in pending.pop().inputs if source not in read]
            read.update(new)
            pending += new
        return concatenate(*(stream for stream in drawn if stream not in read))


def chain(drawn: Drawn) -> None:
    """The last number, rectified, or the last flag, held or shifted."""
    step = drawn.draw.randrange(3)
    if step == 0:
        drawn.numbers.append((drawn.numbers[-1] - 1).relu())
    elif step == 1:
        drawn.flags.append(drawn.flags[-1].shift(1))
    else:
        drawn.flags.append(latch(drawn.flags[-1], drawn.flags[drawn.draw.randrange(8)]))


def gate(drawn: Drawn) -> None:
    """A rectifier or a gate of the first streams."""
    if drawn.draw.randrange(2):
        drawn.numbers.append((drawn.numbers[drawn.draw.randrange(8)] - drawn.draw.randrange(LENGTH)).relu())
    else:
        one, other = drawn.draw.sample(drawn.flags[:8], 2)
        drawn.flags.append(one | ~other)


def remembered(drawn: Drawn) -> None:
    """One memory in four operations, read under a letter; else a gate."""
    if drawn.made % 4:
        gate(drawn)
        return
    written = drawn.flags[drawn.draw.randrange(8)]
    stored = memory.write(drawn.letters(), written, policy="last").read(drawn.letters())
    drawn.flags.append(stored > 0)


def latched(drawn: Drawn) -> None:
    """One latch in four operations; else a gate."""
    if drawn.made % 4:
        gate(drawn)
        return
    drawn.flags.append(latch(drawn.flags[drawn.draw.randrange(8)], drawn.flag()))


def composed(drawn: Drawn) -> None:
    """A flag of two earlier ones."""
    one, other = drawn.flag(), drawn.flag()
    drawn.flags.append(drawn.draw.choice((one & other, one | other, ~one, one & ~other)))


def mixed(drawn: Drawn) -> None:
    """One of the others."""
    drawn.draw.choice((chain, gate, remembered, latched, composed))(drawn)


MIXTURES: tuple[Callable[[Drawn], None], ...] = (chain, gate, remembered, latched, composed, mixed)


def mixture(add: Callable[[Drawn], None], operations: int, seed: int = 0) -> Circuit:
    """A circuit of about so many operations."""
    drawn = Drawn(seed)
    for drawn.made in range(operations):
        add(drawn)
    return Circuit(f"{add.__name__} {operations}", drawn.output(), InputLanguage.everything(ALPHABET, LENGTH))


def measure(name: str, operations: int, counting: bool) -> dict[str, Any]:
    """One compilation. counting: of function calls, which takes several times as long as seconds alone."""
    circuit = mixture(next(add for add in MIXTURES if add.__name__ == name), operations)
    calls = Profile(builtins=False)
    start = process_time()
    try:
        compiled = calls.runcall(compile, circuit, "mamba") if counting else compile(circuit, "mamba")
        became = f"{len(compiled.blocks)} blocks"
    except CompileError as refusal:
        became = f"refused: {refusal}"
    found = {
        "mixture": name,
        "operations": operations,
        "streams": len(circuit.streams),
        "cpu_s": process_time() - start,
    }
    if counting:
        found["calls"] = sum(entry.callcount for entry in calls.getstats())
    return found | {"became": became}


def rows(sizes: list[int], limit: int, names: list[str]) -> Iterator[dict[str, Any]]:
    """A row for each mixture and size; what needs more CPU seconds than the limit is stopped, and so told."""
    for name in names:
        for size in sizes:
            command = [sys.executable, "-m", "benchmarks.mixtures", "--row", name, str(size)]
            bounded = lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            run = subprocess.run(command, capture_output=True, text=True, preexec_fn=bounded)
            if run.returncode:
                yield {"mixture": name, "operations": size, "became": f"stopped after {limit} CPU s"}
                break
            yield json.loads(run.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixtures", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--limit", type=int, default=120, help="CPU seconds of a row [default: 120]")
    parser.add_argument("--only", nargs="+", default=[add.__name__ for add in MIXTURES], help="these mixtures")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--row", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        print(json.dumps(measure(options.row[0], int(options.row[1]), counting=False)))
        return
    worst: list[tuple[float, str]] = []
    before: dict[str, Any] = {}
    for row in rows(options.sizes, options.limit, options.only):
        seconds = row.get("cpu_s")
        said = ""
        if seconds and before.get("mixture") == row["mixture"] and before.get("cpu_s"):
            exponent = log(seconds / before["cpu_s"]) / log(row["operations"] / before["operations"])
            worst.append((exponent, row["mixture"]))
            said = f"exponent {exponent:.2f}"
        before = row
        told = f"{seconds:8.1f} s" if seconds else " " * 10
        print(
            json.dumps(row)
            if options.json
            else f"{row['mixture']:12}{row['operations']:8,}{told}  {row['became'][:30]:30} {said}",
            flush=True,
        )
    if worst and not options.json:
        print("worst exponent: {:.2f} ({})".format(*max(worst)))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
