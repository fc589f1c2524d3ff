"""Every injected bug against everything that might see it.

Columns: the stage at which exact vectors, or compiled models in their modes, first fail; whether random operands in the
same modes, held to a tolerance, fail; and what `allclose` says of a language model of random weights, in one full
forward and in five modes. `construct conformance --faults` runs it and docs/conformance_found.md shows it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from conformance.cases.companion import companion_cases
from conformance.faults.catalogue import Fault, faults, kernel
from conformance.faults.runtime import MODEL_BUGS, FaultyModel, FaultyRuntime
from conformance.judge import judged, trial
from conformance.models.case import ModelCase
from conformance.models.judge import judge_model
from conformance.models.modes import full, padded, permuted, pieces, steps
from conformance.report import models_in

SMALL = (
    "count-since-mamba",
    "induction-mamba",
    "induction-mamba2",
    "wide-integers-mamba",
    "delay-mamba",
    "absolute-time-mamba",
)
TOLERANCES = (1e-2, 1e-3)
LENGTH = 60
FIVE_MODES = {"full": full, "pieces": pieces(5, 37), "padding": padded, "steps": steps(50), "rows": permuted}


@dataclass(frozen=True)
class Row:
    """One bug. expected, caught: stages; random: whether the companion fails; forward, modes: for 1e-2 and 1e-3."""

    op: str
    bug: str
    expected: str
    caught: str
    random: bool
    forward: tuple[bool, bool]
    modes: tuple[bool, bool]

    @property
    def right(self) -> bool:
        return self.caught == self.expected

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"right": self.right}


def bugs() -> list[tuple[str, str]]:
    """(operation, bug) of every row, in order: those of kernels, then those of runtimes, which are of "model"."""
    return [*((fault.op, fault.bug) for fault in faults()), *(("model", bug) for bug in MODEL_BUGS)]


def rows() -> Iterator[Row]:
    """All bugs of kernels, then those of runtimes."""
    return (row(*bug) for bug in bugs())


def row(op: str, bug: str) -> Row:
    """What sees one bug."""
    if op == "model":
        return Row(op, bug, MODEL_BUGS[bug], caught_by_models(bug, small_models()), False, *seen_by_allclose(op, bug))
    (fault,) = (fault for fault in faults() if (fault.op, fault.bug) == (op, bug))
    return Row(op, bug, fault.stage, caught(fault), seen_by_random_operands(fault), *seen_by_allclose(op, bug))


def row_content(op: str, bug: str) -> dict[str, Any]:
    """The fields of the row of one bug."""
    return asdict(row(op, bug))


@cache
def small_models() -> list[ModelCase]:
    """The models that see every bug of a runtime, for as long as this process lives."""
    return models_in(None, full=False, only=SMALL)


def caught(fault: Fault) -> str:
    """The stage of the first exact case that a kernel with this bug gets wrong; "" where it gets none wrong."""
    found = trial(kernel(fault.op, fault.bug))
    return next((each.finding.stage for each in found if each.finding.status == "failed"), "")


def seen_by_random_operands(fault: Fault) -> bool:
    """Whether a kernel with this bug gets a companion case wrong."""
    tested = kernel(fault.op, fault.bug)
    random = [case for op in tested.operations() for case in companion_cases(op)]
    return any(judged(tested, case).status == "failed" for case in random)


def caught_by_models(bug: str, models: Sequence[ModelCase]) -> str:
    """The first mode that fails on any model, in the order of modes; "" where none does."""
    from conformance.models.modes import MODE_STAGES

    found = set()
    for case in models:
        for finding in judge_model(FaultyRuntime(bug), case, explain=False):
            if finding.status == "failed":
                found.add(finding.stage)
                break
    return next((stage for stage in MODE_STAGES if stage in found), "")


# What is usually done ------------------------------------------------------------------------------------


def seen_by_allclose(op: str, bug: str) -> tuple[tuple[bool, bool], tuple[bool, bool]]:
    """Whether logits of random models are not close, in one full forward and in five modes: for each tolerance."""
    forward = _seen(op, bug, "full")
    modes = forward
    for mode in FIVE_MODES:
        if not modes[0]:
            found = _seen(op, bug, mode)
            modes = (modes[0] or found[0], modes[1] or found[1])
    return forward, modes


def _seen(op: str, bug: str, mode: str) -> tuple[bool, bool]:
    """Whether logits of random models are not close in a mode: for each tolerance.

    An error counts as seen, and so do logits of another shape.
    """
    kinds = {"selective_scan": ("mamba",), "ssd": ("mamba2",), "norm": ("mamba2",)}.get(op, ("mamba", "mamba2"))
    close = [True, True]
    for kind in kinds:
        config, tensors = _random_model(kind)
        try:
            found = FIVE_MODES[mode](FaultyModel(config, tensors, bug, only=op), _tokens())
        except Exception:  # a bug may end in anything
            return True, True
        right = _right(kind, mode)
        if found.logits.shape != right.shape:
            return True, True
        mask = torch.ones(right.shape[:2], dtype=torch.bool)
        for i, start in enumerate([] if found.starts is None else found.starts.tolist()):
            mask[i, :start] = False
        for i, tolerance in enumerate(TOLERANCES):
            close[i] &= torch.allclose(found.logits[mask], right[mask], rtol=tolerance, atol=tolerance)
    return not close[0], not close[1]


@cache
def _right(kind: str, mode: str) -> Tensor:
    return FIVE_MODES[mode](FaultyModel(*_random_model(kind)), _tokens()).logits


@cache
def _tokens() -> Tensor:
    return torch.randint(0, 50, (3, LENGTH), generator=torch.Generator().manual_seed(0))


@cache
def _random_model(kind: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Two layers as transformers initialises them, with initializer_range 0.1."""
    from compiler.runtime.huggingface import torch_only_transformers

    torch_only_transformers()
    from transformers import Mamba2Config, Mamba2ForCausalLM, MambaConfig, MambaForCausalLM

    sizes: dict[str, Any] = {
        "vocab_size": 50,
        "hidden_size": 32,
        "state_size": 8,
        "num_hidden_layers": 2,
        "initializer_range": 0.1,
    }
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model: Any
        if kind == "mamba":
            model = MambaForCausalLM(MambaConfig(**sizes))
        else:
            model = Mamba2ForCausalLM(Mamba2Config(**sizes, head_dim=8, num_heads=8, n_groups=2, chunk_size=16))
    config = model.config.to_dict() | {"dtype": "float32", "model_type": kind}
    config["time_step_limit"] = [0.0, float("inf")]
    return config, {name: m.detach().clone() for name, m in model.state_dict().items()}


NOT_FOUND = "not found"
MARK = "<!-- table -->\n"


def write(page: Path) -> list[Row]:
    """Put the table behind the mark on a page, in place of what stands there."""
    if MARK not in page.read_text("utf-8"):
        raise ValueError(f"{page} has no line {MARK.strip()}, behind which the table would stand.")
    found = list(rows())
    before, mark, _ = page.read_text("utf-8").partition(MARK)  # read now: what was written meanwhile stays
    page.write_text(f"{before}{mark}\n{text(found)}\n", "utf-8")
    return found


# The page ------------------------------------------------------------------------------------------------


def text(found: Sequence[Row]) -> str:
    """The table as Markdown, totals first."""
    return "\n".join([*_totals(found), "", *_lines(found)])


def _totals(found: Sequence[Row]) -> Iterator[str]:
    share = lambda seen: f"{sum(map(seen, found))} of {len(found)}"
    yield "| test | bugs seen |"
    yield "| --- | --- |"
    for which, name in ((lambda row: row.forward, "one full forward"), (lambda row: row.modes, "five modes")):
        low, high = (share(lambda row, i=i, which=which: which(row)[i]) for i in (0, 1))
        yield f"| random weights, {name}, allclose 1e-2 / 1e-3 | {low} / {high} |"
    yield f"| random operands in the same modes, 1e-4 (kernels only) | {share(lambda row: row.random)} |"
    yield f"| exact vectors and models | {share(lambda row: bool(row.caught))} |"
    yield f"| … at the stage that names the fault | {share(lambda row: row.right and bool(row.caught))} |"


def _lines(found: Sequence[Row]) -> Iterator[str]:
    marks = {True: "yes", False: "–"}
    counts = Counter(row.op for row in found)
    yield "| function | bug | exact: caught at | random operands | 1e-2 / 1e-3, forward | 1e-2 / 1e-3, five modes |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for row in found:
        caught = row.caught or NOT_FOUND
        stage = caught if row.right else f"**{caught}**, not {row.expected or NOT_FOUND}"
        pairs = [" / ".join(marks[seen] for seen in pair) for pair in (row.forward, row.modes)]
        yield f"| {row.op} | {row.bug} | {stage} | {marks[row.random]} | {pairs[0]} | {pairs[1]} |"
    yield ""
    yield (
        f"{len({row.bug for row in found})} different bugs; by function: "
        + ", ".join(f"{op} {count}" for op, count in counts.items())
        + "."
    )


if __name__ == "__main__":
    write(Path(sys.argv[1]))
