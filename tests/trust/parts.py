"""What is run for docs/trust.md: commands that print one JSON object each, for a range of cases.

The same case number is the same case, so a run can be stopped and gone on with, and its chunks added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.verify.checker.evidence import FAULTS
from tests.verify.checker.programs import FIRST as PROGRAMS_START

FUZZ_START = 1_000_000
NUMBERS = ["--over", "numbers"]
OVERSIZED = ["--over", "oversized"]
FORMS_START = 4_000_000  # from here on programs also draw real numbers and decisions
JOINED_START = 5_000_000  # from here on they also join lines and read some numbers of what is made of them
SIZES_START = 9_000_000  # from here on numbers have two sizes, of any that a float32 holds


@dataclass(frozen=True)
class Part:
    """cases: how many are to be run; chunk: how many one process runs; first: number of the first case.

    command: (first case, how many) to the module and its arguments. unit: so many are only run together.
    """

    name: str
    cases: int
    chunk: int
    command: Callable[[int, int], list[str]]
    first: int = 0
    unit: int = 1

    def chunks(self, share: float) -> Iterator[tuple[int, int]]:
        """(first case, how many) of every process, for this share of the cases.

        In an order that soon has some of everything, for a run that is stopped: 0, 1/2, 1/4, 3/4, 1/8, … of the way.
        """
        wanted = max(1, round(self.cases * share / self.unit)) * self.unit
        starts = list(range(0, wanted, self.chunk))
        bits = len(starts).bit_length()
        for i in sorted(range(len(starts)), key=lambda i: f"{i:0{bits}b}"[::-1]):
            yield self.first + starts[i], min(self.chunk, wanted - starts[i])


def _fuzz(start: int, count: int) -> list[str]:
    return ["tests.fuzz", "--programs", str(count), "--start", str(start), "--json"]


def _forms(start: int, count: int) -> list[str]:
    targets = ["--targets", "mamba", "mamba2", "s4d", "mamba-delta-t"]
    dtypes = ["--dtypes", "float32", "bfloat16", "float16"]
    forms = ["--forms", "bare", "language model", "steps", "transformers"]
    return _fuzz(start, count) + targets + dtypes + forms


def _sizes(start: int, count: int) -> list[str]:
    return [*_fuzz(start, count), "--forms", "bare", "language model"]


def _counted(module: str) -> Callable[[int, int], list[str]]:
    return lambda start, count: [module, str(count), str(start), "--json"]


PARTS = {
    part.name: part
    for part in (
        Part("fuzz", 100_000, 2000, _fuzz, FUZZ_START),
        Part("forms", 3000, 100, _forms, FORMS_START),
        Part("joined", 10_000, 500, _fuzz, JOINED_START),
        Part("sizes", 2000, 200, _sizes, SIZES_START),
        Part("hostile", 10_000, 500, _counted("tests.artifact.hostile")),
        Part("numbers", 2000, 100, lambda start, count: _counted("tests.artifact.hostile")(start, count) + NUMBERS),
        Part(
            "oversized", 10_000, 250, lambda start, count: _counted("tests.artifact.hostile")(start, count) + OVERSIZED
        ),
        Part("proofs", 600, 60, _counted("tests.verify.checker.proof_edits")),
        Part("answers", 400, 50, _counted("tests.verify.checker.edited_tasks")),
        Part("blind", 26, 13, _counted("tests.conformance.blind_run")),
        Part("certificates", 3000, 500, _counted("tests.verify.faults")),
        Part("kills", 500, 250, _counted("tests.artifact.kills")),
        Part("plants", 15_625, 125, _counted("tests.verify.checker.evidence"), unit=FAULTS),
        Part("programs", 1000, 100, _counted("tests.verify.checker.programs"), PROGRAMS_START),
        Part("automata", 1000, 100, _counted("tests.automata.tampered")),
        Part("kernel", 440, 5, _counted("tests.verify.kernel.attack")),
        Part("mutation", 300, 10, _counted("benchmarks.mutation_guard")),
        Part("defaults", 54, 18, _counted("tests.trust.defaults")),
        Part("times", 6, 1, _counted("tests.trust.times")),
    )
}
