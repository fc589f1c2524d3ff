"""Running a runtime on models in every mode: verdicts by stage, as for kernels."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from conformance.entries import boxed
from conformance.faults.delta import BUGS as RULES
from conformance.faults.delta_models import DELTA_KINDS, FaultyRule
from conformance.faults.runtime import MODEL_BUGS, FaultyRuntime
from conformance.findings import Finding
from conformance.judge import near
from conformance.loader import Case
from conformance.models.case import ModelCase, right_entries
from conformance.models.modes import MODE_STAGES, Mode, Told, modes
from conformance.models.runtime import Model, Runtime, Unsupported
from conformance.sentences import sentence

KINDS = ("mamba", "mamba2")  # that a runtime is given where it does not say which it takes
CHUNK = 64  # positions of the delta rule
Mistaken = FaultyRuntime | FaultyRule
_KERNEL_BUGS: tuple[Mapping[str, str], ...] = (
    {"ssd": "step at least 0.001"},
    {"ssd": "heads tiled, not interleaved"},
    {"ssd": "states summed over the wrong axis"},
    {"norm": "mean over all groups"},
    {"ssd": "heads tiled, not interleaved", "norm": "mean over all groups"},
)


@dataclass(frozen=True)
class _Heard:
    """A mode that was run, and the runtime of ours with a mistake that says the same where it is wrong."""

    mode: Mode
    finding: Finding
    mistake: Mistaken | None = None


def judge_model(runtime: Runtime, model_case: ModelCase, explain: bool = True) -> Iterator[Finding]:
    """A finding for each mode, in order; explain: whether mistakes that give the same logits are looked for.

    A mistake is named as the cause of a wrong mode where every logit of this mode is what it gives, and where it leaves
    every mode right that is right.
    """
    name, kind = model_case.name, _config(model_case)["model_type"]
    if kind not in getattr(runtime, "kinds", KINDS):
        yield Finding("full", f"{name}: opened", "skipped", f"it was given no models of type {kind}")
        return
    try:
        model = runtime.open(model_case.directory)
    except Unsupported as lack:
        yield Finding("full", f"{name}: opened", "skipped", str(lack))
        return
    except Exception as error:  # a runtime of others may raise anything
        yield Finding("full", f"{name}: opened", "failed to run", sentence(error))
        return
    heard: list[_Heard] = []
    named: Mapping[str, str] = {}  # bugs of functions, which later modes have as well
    for stage, mode_name, mode in modes(model_case.tokens.shape[1]):
        case = f"{name}: {mode_name}"
        try:
            told = mode(model, model_case.tokens)
        except Unsupported as lack:
            heard.append(_Heard(mode, Finding(stage, case, "skipped", str(lack))))
        except Exception as error:
            heard.append(_Heard(mode, Finding(stage, case, "failed to run", sentence(error))))
        else:
            finding = _compared(stage, case, model_case, told)
            told_before = [each.mistake for each in heard if each.mistake is not None]
            failed = explain and finding.status == "failed"
            mistake = _mistake(model_case, mode, told, named, told_before) if failed else None
            named = mistake.beside if mistake else named
            heard.append(_Heard(mode, finding, mistake))
        if not explain:  # at once: who has heard enough runs no more of them
            yield heard[-1].finding
    if explain:
        yield from _with_causes(heard, model_case)
    yield _states(model, model_case)


def _with_causes(heard: Sequence[_Heard], model_case: ModelCase) -> Iterator[Finding]:
    right = [each.mode for each in heard if each.finding.status == "passed"]
    spares: dict[str, bool] = {}
    for each in heard:
        if each.mistake is None:
            yield each.finding
            continue
        name = each.mistake.name
        if name not in spares:
            spares[name] = all(_is_right(each.mistake, model_case, mode) for mode in right)
        yield replace(each.finding, cause=name) if spares[name] else each.finding


def _is_right(mistake: Mistaken, model_case: ModelCase, mode: Mode) -> bool:
    try:
        with torch.no_grad():
            told = mode(mistake.open(model_case.directory), model_case.tokens)
    except Exception:  # a mistake may end in anything
        return False
    return _compared("full", "", model_case, told).status == "passed"


def _mistake(
    model_case: ModelCase, mode: Mode, told: Told, named: Mapping[str, str], before: Sequence[Mistaken]
) -> Mistaken | None:
    """A runtime of ours whose mistakes say the same in this mode: bit for bit, or nearly where sums round.

    named: bugs of functions that an earlier mode has shown; they are tried first, alone and with each of `MODEL_BUGS`.
    before: the mistakes of earlier modes.
    """
    if _config(model_case)["model_type"] in DELTA_KINDS:
        same = partial(_says_the_same, model_case=model_case, mode=mode, told=told)
        if before and same(before[-1]):  # most modes are wrong by what an earlier one was
            return before[-1]
        alike = [bug for bug in RULES if same(FaultyRule(bug))]
        return FaultyRule(alike[0], tuple(alike[1:])) if alike else None
    bugs = ("", *MODEL_BUGS)
    tried: list[Mistaken] = [FaultyRuntime(bug, "model", named) for bug in bugs if named]
    tried += [FaultyRuntime(bug, "model") for bug in MODEL_BUGS]
    tried += [FaultyRuntime("", "model", beside) for beside in _KERNEL_BUGS if beside != named]
    return next((runtime for runtime in tried if _says_the_same(runtime, model_case, mode, told)), None)


def _says_the_same(runtime: Mistaken, model_case: ModelCase, mode: Mode, told: Told) -> bool:
    """Whether it says nearly the same, and is wrong: a mistake that no position of this mode shows explains nothing.

    Nearly: within the tolerance of a model that has one; on lattice data as far as sums round off the lattice.
    """
    try:
        with torch.no_grad():
            mistaken = mode(runtime.open(model_case.directory), model_case.tokens)
    except Exception:  # a mistake may end in anything
        return False
    logits = mistaken.logits
    found = told.logits[..., : logits.shape[-1]].detach().cpu().float()
    if found.shape != logits.shape:
        return False
    if model_case.tolerance and not right_entries(found, logits.double(), model_case.tolerance).all():
        return False
    if not torch.allclose(logits, found, rtol=1e-4, atol=1e-3, equal_nan=True):
        return False
    return _compared("full", "", model_case, mistaken).status == "failed"


def _compared(stage: str, case: str, model_case: ModelCase, told: Told) -> Finding:
    """Every position of every row against the exact logits."""
    length = model_case.tokens.shape[1] if told.length is None else told.length
    vocab = model_case.logits.shape[-1]
    shape = tuple(told.logits.shape)
    if shape[:2] != (len(told.rows), length) or shape[2:] < (vocab,):
        text = f"logits have shape {shape}, not {(len(told.rows), length, vocab)}"
        return Finding(stage, case, "failed", text, asks=MODE_STAGES[stage])
    starts = torch.zeros(len(told.rows), dtype=torch.int64) if told.starts is None else told.starts
    right = torch.ones(told.logits.shape[:2], dtype=torch.bool)
    for i, (row, start) in enumerate(zip(told.rows.tolist(), starts.tolist(), strict=True)):
        expected = model_case.logits[row, : length - start]
        right[i, start:] = right_entries(
            told.logits[i, start:, : expected.shape[-1]], expected, model_case.tolerance
        ).all(-1)
    wrong = ~right
    if not wrong.any():
        return Finding(stage, case, "passed", of=wrong.numel())
    column = int(wrong.any(0).nonzero()[0])
    row = int(wrong[:, column].nonzero()[0])
    found, answer = told.logits[row, column], model_case.logits[int(told.rows[row]), column - int(starts[row])]
    at = int((~right_entries(found[: len(answer)], answer, model_case.tolerance)).nonzero()[0])
    says = f"row {row}, logit {at} is {float(found[at]):.9g}, not {float(answer[at]):.9g}"
    borders = Case("model", stage, case, "", {}, {}, {}, {}, told.borders)
    place = near(borders, column)
    chunk = _chunk_size(model_case)
    if chunk and column and column % chunk == 0 and place in ("", f"at a multiple of {column & -column}"):
        place = f"at the chunk border {column}"
    rows, columns = ([int(i) for i in wrong.any(axis).nonzero()] for axis in (1, 0))
    entries = boxed(("row", "position"), (rows, columns), wrong, "positions")
    return Finding(
        stage, case, "failed", says, column, place, wrong=int(wrong.sum()), of=wrong.numel(), entries=entries,
        asks=_asks(stage, place, told),
    )  # fmt: skip


def _chunk_size(model_case: ModelCase) -> int:
    """How many positions a chunk has: of a Mamba-2 by its config, of the delta rule as all have it; 0 for Mamba."""
    config = _config(model_case)
    return CHUNK if config["model_type"] in DELTA_KINDS else config.get("chunk_size", 0)


def _config(model_case: ModelCase) -> Mapping[str, Any]:
    return json.loads((model_case.directory / "config.json").read_text())


def _asks(stage: str, place: str, told: Told) -> str:
    """What a mode asks for, where the first wrong position stands."""
    if told.borders.get("cut") and "cut" in place and stage in ("pieces", "steps"):
        kind = "several new tokens" if stage == "pieces" else "a new token"
        return f"{kind} with a cache: the state and window before the cut are kept"
    return MODE_STAGES[stage]


def _states(model: Model, model_case: ModelCase) -> Finding:
    """The state of each layer after row 0."""
    case = f"{model_case.name}: states"
    if not model_case.states:
        return Finding("states", case, "skipped", "no exact numbers of its states are at hand")
    try:
        states = model.states(model.begin(model_case.tokens[:1])[1])
    except Unsupported as lack:
        return Finding("states", case, "skipped", str(lack))
    except Exception as error:
        return Finding("states", case, "failed to run", sentence(error))
    for i, (state, expected) in enumerate(zip(states, model_case.states, strict=True)):
        found = state[0].detach().cpu()
        if found.shape != expected.shape:
            return Finding(
                "states", case, "failed", f"layer {i}: shape {tuple(found.shape)}, not {tuple(expected.shape)}"
            )
        wrong = ~right_entries(found, expected, model_case.tolerance)
        if wrong.any():
            at = tuple(wrong.nonzero()[0].tolist())
            says = f"layer {i}, state{list(at)} is {float(found[at]):.9g}, not {float(expected[at]):.9g}"
            return Finding(
                "states", case, "failed", says, None, "at the end", asks=MODE_STAGES["states"], wrong=int(wrong.sum())
            )
    return Finding("states", case, "passed", of=sum(state.numel() for state in model_case.states))
