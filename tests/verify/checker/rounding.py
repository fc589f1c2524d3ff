"""Which functions of the checker round: python -m tests.verify.checker.rounding [circuits] [first] [checkpoint …]

The processor says so: its flag of inexact results stays set until it is cleared (feclearexcept, fetestexcept). It is
looked at wherever a function of the checker is entered or left, and so told to the one that was running. What Python
divides as whole numbers leaves no flag: `float` of a Fraction is compared with it instead; `float` of a whole number of
more than 53 bits is not seen. One thread: the flag is each thread's own (OMP_NUM_THREADS=1).

Random circuits of extreme numbers (extremes.py) and checkpoints are checked so. Exit code 1 where a function rounds
that ROUNDS does not name.
"""

from __future__ import annotations

import ctypes
import random
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any

import verify.checker
from tests.verify.checker.extremes import circuit, judged, language
from verify.checker.check import check

FOLDER = str(Path(verify.checker.__file__).parent)
_ROOMS = tuple(f"{FOLDER}/{room}/" for room in ("values", "arithmetic", "meaning", "tasks"))
_INEXACT = 0x20  # FE_INEXACT of x86-64
_REFUSES = "looks first or behind, and refuses what was rounded"
_TOLD = "of a number that a sentence shows"
_SILENT_FILES = ("fractions.py", "numbers.py", "collections/__init__.py", "_arraysetops_impl.py")
_SILENT_CALLS = {"repr", "hash", "as_integer_ratio", "get", "setdefault", "add", "floor", "ceil"}
_SILENT_CALLS |= {"nonzero", "astype", "argsort", "sort", "sorted", "lexsort", "searchsorted"}
"""What sets the flag and rounds no number that goes on: exact Fractions, digits and hashes of a float, sorting, whole
numbers that are asked for.
"""
_DECAY = "exp of A_log, whose bounds are wider by 2^-16 of it"
_GUESS = "only guesses weights of small denominators, which are then checked exactly"
_SHARE = "of numbers ≥ 0, and a share that covers every rounding is added"
ROUNDS: dict[str, str] = {
    "values/exact.py": "guarded: what is rounded is refused, or a bound that is rounded outwards",
    "values/bent.py:_table_product": _REFUSES,
    "values/windows.py:exact_add": _REFUSES,
    "values/windows.py:exact_product": _REFUSES,
    "values/language.py:_sum_above": _SHARE,
    "arithmetic/memories.py:read_bound": _SHARE,
    "arithmetic/perturbed.py:_off": _SHARE,
    "arithmetic/perturbed.py:_off.<locals>.<lambda>": _SHARE,
    "arithmetic/perturbed.py:_difference": "loses half a unit in the last of 53 places, which `_off` adds",
    "arithmetic/pads.py:check_norms": "bounds that are held to a fourth of the limit",
    "arithmetic/mamba.py:_check_decays": _DECAY,
    "arithmetic/mamba.py:mamba_block.<locals>.<listcomp>": _DECAY,
    "arithmetic/mamba2.py:_step": _DECAY,
    "arithmetic/delta.py:_forgets": _DECAY,
    "arithmetic/sums.py:_check_reach": _TOLD,
    "meaning/relations.py:_Span.__init__": _GUESS,
    "meaning/relations.py:_Span._keep": _GUESS,
    "meaning/relations.py:_Span.weights": _GUESS,
    "tasks/listing.py:_place": "reads whole numbers from texts",
    "tasks/listing.py:_is_grid.<locals>.<listcomp>": "reads whole numbers from texts",
}
"""By file, or by file and function, why what it rounds is no harm."""


@contextmanager
def watched(found: Counter[str]) -> Iterator[None]:
    """Adds the functions that round here: `values/exact.py:above`."""
    libm = ctypes.CDLL("libm.so.6")
    clear, test = libm.feclearexcept, libm.fetestexcept
    running: list[str] = ["outside"]

    quiet = 0  # calls that are going on and say nothing

    def told(frame: FrameType, event: str, what: Any) -> None:
        nonlocal quiet
        file, begins = frame.f_code.co_filename, event in ("call", "c_call")
        silent = what.__name__ in _SILENT_CALLS if event.startswith("c_") else file.endswith(_SILENT_FILES)
        ours = not event.startswith("c_") and file.startswith(_ROOMS)
        if not (silent or ours):
            return
        if test(_INEXACT):
            if not quiet:
                found[running[-1]] += 1
            clear(_INEXACT)
        if silent:
            quiet = max(0, quiet + (1 if begins else -1))
        elif begins:
            running.append(f"{file[len(FOLDER) + 1 :]}:{frame.f_code.co_qualname}")
        elif len(running) > 1:
            running.pop()

    def as_float(x: Fraction) -> float:
        near = x.numerator / x.denominator
        if Fraction(near) != x:
            found[running[-1]] += 1
        return near

    Fraction.__float__ = as_float  # type: ignore[method-assign]
    clear(_INEXACT)
    before = sys.getprofile()
    sys.setprofile(told)
    try:
        yield
    finally:
        sys.setprofile(before)
        del Fraction.__float__


def unknown(found: Counter[str]) -> list[str]:
    """The functions of the checker that round and have no reason."""
    return sorted(f for f in found if f != "outside" and f not in ROUNDS and f.split(":")[0] not in ROUNDS)


def of_circuits(count: int, first: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in range(first, first + count):
        rng = random.Random(seed)
        data, known = circuit(rng), language(rng)
        with watched(found):
            judged(data, known)
    return found


def of_checkpoints(directories: list[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for directory in directories:
        with watched(found):
            check(directory)
    return found


def main() -> int:
    count, first = (int(x) for x in [*sys.argv[1:3], "100", "0"][:2]) if len(sys.argv) > 2 else (100, 0)
    found = of_circuits(count, first) + of_checkpoints(sys.argv[3:])
    for name, times in sorted(found.items()):
        print(f"{times:8d}  {name}  {ROUNDS.get(name) or ROUNDS.get(name.split(':')[0]) or '?'}")
    return 1 if unknown(found) else 0


if __name__ == "__main__":
    sys.exit(main())
