"""Running everything that a name or function stands for, and the report that the command prints."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.asked import IMPLIED, never_asked
from conformance.cases import OPERATIONS, cases
from conformance.cases.companion import companion_cases
from conformance.cases.crossings import CROSSINGS
from conformance.findings import RAN, Finding, Ran, Status, Why
from conformance.judge import forms, never_in_each_way, run, settled, trial_of_settled, verdict, why, with_cause
from conformance.kernel.kernel import Kernel
from conformance.loader import Case, save
from conformance.models.case import ModelCase, read_all
from conformance.models.judge import judge_model
from conformance.models.modes import MODE_STAGES
from conformance.models.runtime import Runtime
from conformance.sizes import asked_sizes
from conformance.stages import STAGES
from conformance.together import never_met
from conformance.values import asked_values

Heard = Callable[[str], None]
UNHEARD: Heard = lambda what: None


@dataclass(frozen=True)
class Tested:
    """All findings of one kernel, or of one runtime on models; kind: "kernel", "random" or "models"; why: what is known
    of why cases of a kernel are wrong; never: what a kernel may do, and no case that it ran has; values: between which
    numbers the operands and results of the cases that it ran lie, of each operation; sizes: how large these are.
    """

    name: str
    kind: str
    findings: list[Finding]
    why: Why = Why()
    never: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()

    def stages(self) -> Iterator[tuple[str, Status, list[Finding]]]:
        """(stage, verdict, findings) in order."""
        for stage in MODE_STAGES if self.kind == "models" else STAGES:
            if rows := [finding for finding in self.findings if finding.stage == stage]:
                yield stage, verdict(rows), rows

    def skipped(self) -> list[tuple[str, int]]:
        """(why, how many cases were not run for it), in the order of `failed_to_run`."""
        return [(says, len(where)) for says, where in self._said("skipped")]

    def failed_to_run(self) -> list[tuple[str, list[Finding]]]:
        """(what was raised, where), most cases first; what says the same as an earlier message with other numbers comes
        last. Addresses do not make a message another.
        """
        return self._said("failed to run")

    def _said(self, status: Status) -> list[tuple[str, list[Finding]]]:
        found: dict[str, list[Finding]] = {}
        for finding in self.findings:
            if finding.status == status:
                found.setdefault(re.sub(r"\b0x[0-9a-fA-F]+\b", "0x0", finding.says), []).append(finding)
        often = sorted(found.items(), key=lambda each: len(each[1]), reverse=True)
        first = {re.sub(r"\d+", "0", says): says for says, _ in reversed(often)}
        often.sort(key=lambda each: each[0] not in first.values())
        return [(where[0].says, where) for _, where in often]

    @property
    def several(self) -> bool:
        """Whether its cases are those of more than one operation: a step is run on those of both scans."""
        return len({finding.op for finding in self.findings}) > 1

    @property
    def good(self) -> bool:
        """Nothing is wrong, all that it takes was run, and something was.

        Random cases have every operand, so a kernel that takes fewer may skip them all: its exact cases were run.
        """
        statuses = {finding.status for finding in self.findings}
        if statuses & {"failed", "failed to run"}:
            return False
        return "passed" in statuses or (self.kind, statuses) == ("random", {"skipped"})

    def to_json(self) -> dict[str, Any]:
        stages = [
            {"stage": stage, "verdict": status, "cases": len(rows), "findings": [r.to_json() for r in rows if r.says]}
            for stage, status, rows in self.stages()
        ]
        failed = [{"says": says, "cases": [f.case for f in each]} for says, each in self.failed_to_run()]
        known: dict[str, Any] = {
            "failed_to_run": failed,
            "likely": self.why.likely,
            "likely_somewhere": self.why.somewhere,
            "apart": list(self.why.apart),
            "first": list(self.why.first),
            "never_asked": list(self.never),
            "values": list(self.values),
            "sizes": list(self.sizes),
        }
        return {"name": self.name, "kind": self.kind, "good": self.good, **known, "stages": stages}


def try_kernel(kernel: Kernel, full: bool = False) -> Iterator[Tested]:
    """A kernel on the exact cases, then on random ones; what is said of why it is wrong is said of all of them."""
    kernel = settled(kernel)
    exact = list(trial_of_settled(kernel, full))
    random = [run(kernel, case) for op in kernel.operations() for case in companion_cases(op)]
    known = why([*exact, *random])
    ran = [each for each in (*exact, *random) if each.finding.status in RAN]
    never = (*never_run(kernel, [*exact, *random]), *never_in_each_way(kernel, exact))
    values, sizes = tuple(asked_values(ran, kernel.is_step)), tuple(asked_sizes(ran, forms(kernel)))
    yield Tested(kernel.name, "kernel", with_cause(exact, known), known, never, values, sizes)
    yield Tested(kernel.name, "random", with_cause(random, known), known)


def never_run(kernel: Kernel, found: Sequence[Ran]) -> tuple[str, ...]:
    """What a kernel may do and was in no case that it ran, alone or together, in words."""
    ran = [each for each in found if each.finding.status in RAN]
    strided = any(each.strided for each in ran)
    asked = never_asked(kernel, [each.case for each in found], [each.case for each in ran], strided)
    return (*asked, *(words for words in never_met(kernel, found) if IMPLIED.get(words) not in asked))


def try_runtime(runtime: Runtime, models: Iterable[ModelCase], heard: Heard = UNHEARD) -> Tested:
    """A runtime on models in every mode."""
    findings: list[Finding] = []
    for model in models:
        heard(model.name)
        findings += judge_model(runtime, model)
    return Tested(runtime.name, "models", findings)


def findings_on(runtime: str, model: str, full: bool) -> list[dict[str, Any]]:
    """What `try_runtime` finds on one model, which is made for it: the fields of each finding."""
    from conformance.runtimes import known

    found = known(runtime).models
    assert found is not None, "who shares out models has looked"
    return [finding.to_json() for finding in try_runtime(found, models_in(None, full, only=[model])).findings]


def models_in(directory: Path | None, full: bool, heard: Heard = UNHEARD, only: Sequence[str] = ()) -> list[ModelCase]:
    """The models under a directory that `write` has filled, or new ones for as long as this process lives.

    only: names of models, where not all are wanted; ValueError for one that is not there.
    """
    if directory is not None:
        found = list(read_all(directory))
        if not found:
            raise ValueError(
                f"--checkpoint-dir {directory}: no checkpoint there has vectors beside it; `construct conformance "
                f"--out {directory}` writes some."
            )
        for name in only:
            if name not in {case.name for case in found}:
                raise ValueError(f"--model {name!r} is not under {directory}.")
        return [case for case in found if not only or case.name in only]
    place = tempfile.TemporaryDirectory(prefix="conformance-")
    _KEPT.append(place)
    return _built(Path(place.name), full, heard, only)


_KEPT: list[tempfile.TemporaryDirectory] = []  # removed when the process ends


def write(directory: Path, full: bool = False, heard: Heard = UNHEARD) -> tuple[int, int]:
    """All vectors as files under vectors/, all models under models/: how many cases and models there are.

    ValueError where something that no earlier run has written stands in the place of a model.
    """
    from conformance.models.build import names  # the compiler: only where models are made
    from conformance.models.earlier import check_models, replaced

    check_models(directory / "models", names(full))
    vectors = directory / "vectors"
    vectors.mkdir(parents=True, exist_ok=True)
    count = 0
    for op in OPERATIONS:
        found: list[Case] = [
            *cases(op, full),
            *(case for crossing in CROSSINGS for case in crossing(op)),
            *companion_cases(op),
        ]
        save(found, vectors / f"{op}.safetensors")
        count += len(found)
    with replaced(directory / "models", names(full)) as place:
        return count, len(_built(place, full, heard))


def _built(directory: Path, full: bool, heard: Heard, only: Sequence[str] = ()) -> list[ModelCase]:
    from conformance.models.build import build  # the compiler: only where models are made

    found = []
    for case in build(directory, full, only):
        heard(case.name)
        found.append(case)
    return found
