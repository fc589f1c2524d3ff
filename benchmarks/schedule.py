"""How long the passes take on large graphs: all up to the schedule, and the schedule alone, at 2,500 and 10,000
operations.

    python -m benchmarks.schedule

Prints one line per circuit and size, and the ratio of the times of all passes (4 is linear).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from time import process_time

from compiler.context import Context
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.words import concatenate, latch
from compiler.passes.check import check
from compiler.passes.fit_ports import fit_ports
from compiler.passes.represent import represent
from compiler.passes.schedule import Schedule, schedule
from compiler.targets import target_of

SIZES = (2_500, 10_000)
ALPHABET = Alphabet.of("a", "b", "c")


def fitted(circuit: Circuit) -> tuple[Circuit, Context]:
    """Check, domains, represent and fit."""
    check(circuit)
    context = Context.of(circuit, target_of("mamba"))
    return fit_ports(*represent(circuit, context))


def planned(circuit: Circuit) -> Schedule:
    """Everything up to the schedule."""
    return schedule(*fitted(circuit))


def rectifier_chain(operations: int) -> Stream:
    """One rectifier after another: as many blocks."""
    x = Tokens(ALPHABET).is_in(["a"]).cumsum()
    for _ in range(operations // 2):
        x = (x - 1).relu()
    return x


def linear_chain(operations: int) -> Stream:
    """One linear map after another: nothing to compute."""
    x = Tokens(ALPHABET).is_in(["a"])
    for i in range(operations):
        x = x - 1 if i % 2 else x + 1
    return x.relu()


def shift_chain(operations: int) -> Stream:
    """A delay line with a latch at every tenth step."""
    x, when = (Tokens(ALPHABET).is_in([name]) for name in "ab")
    for i in range(operations):
        x = latch(x, when) if i % 10 == 9 else x.shift(1)
    return x


def wide(operations: int) -> Stream:
    """Rectifiers side by side."""
    x = Tokens(ALPHABET).is_in(["a"]).cumsum()
    return concatenate(*((x - i).relu() for i in range(operations // 2)))


def random_logic(operations: int) -> Stream:
    """Flags of random earlier flags, a third of them stored."""
    draw, tokens = random.Random(0), Tokens(ALPHABET)
    flags = [tokens.is_in([name]).shift(i) for i, name in enumerate("abc")]
    steps = (lambda a, b: a & b, lambda a, b: a | b, lambda a, b: ~a, lambda a, b: latch(a, b), lambda a, b: a.shift(1))
    for _ in range(operations):
        flags.append(draw.choice(steps)(draw.choice(flags[-50:]), draw.choice(flags[-50:])))
    return concatenate(*flags[-50:])


CIRCUITS: tuple[Callable[[int], Stream], ...] = (rectifier_chain, linear_chain, shift_chain, wide, random_logic)


def circuit(build: Callable[[int], Stream], operations: int) -> Circuit:
    return Circuit(build.__name__, build(operations), InputLanguage.everything(ALPHABET, 64))


def main() -> None:
    print(f"{'circuit':18}{'operations':>12}{'blocks':>9}{'all passes':>12}{'schedule':>10}{'ratio':>8}")
    for build in CIRCUITS:
        before = None
        for size in SIZES:
            built = circuit(build, size)
            start = process_time()
            core, context = fitted(built)
            middle = process_time()
            blocks = len(schedule(core, context).blocks)
            end = process_time()
            ratio = f"{(end - start) / before:8.1f}" if before else ""
            print(
                f"{build.__name__:18}{size:12,}{blocks:9,}{end - start:10.2f} s{end - middle:8.2f} s{ratio}", flush=True
            )
            before = end - start


if __name__ == "__main__":
    main()
