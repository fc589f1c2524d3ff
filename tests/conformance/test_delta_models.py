"""Models of the gated delta rule: transformers is right, and faults planted in its functions are found and named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers.models.olmo_hybrid import modeling_olmo_hybrid as library

from conformance.faults.delta_models import FaultyRule
from conformance.faults.runtime import FaultyRuntime
from conformance.models.build import build, names
from conformance.models.case import ModelCase
from conformance.models.judge import judge_model
from conformance.models.modes import modes
from conformance.runtimes.huggingface import HuggingFaceRuntime
from constructions.command.conformance import _models
from tests.constructions.test_construct import run

CHUNK, STEP = library.torch_chunk_gated_delta_rule, library.torch_recurrent_gated_delta_rule
NAMES = ("swaps-gated-deltanet", "kept-numbers-gated-deltanet-qwen", "overwritten-gated-deltanet")


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, ModelCase]:
    return {case.name: case for case in build(tmp_path_factory.mktemp("models"), only=NAMES)}


@pytest.mark.parametrize("name", NAMES[:2])
def test_transformers_is_right_in_every_mode(models, name) -> None:
    found = list(judge_model(HuggingFaceRuntime(), models[name]))
    assert [each.status for each in found] == ["passed"] * 10 + ["skipped"]
    assert models[name].informative.double().mean() > 0.6


@pytest.mark.parametrize("arch", ["gated-deltanet", "gated-deltanet-qwen"])
def test_a_checkpoint_of_ones_own_is_asked_without_its_states(arch: str, tmp_path: Path) -> None:
    sizes = ("--vocab", "6", "--length", "8", "--samples", "4")
    assert run("mad-memorization", *sizes, "--arch", arch, "--out", str(tmp_path / "own")) == 0
    (case,) = _models(tmp_path / "own", False, ())
    found = list(judge_model(HuggingFaceRuntime(), case))
    assert {each.status for each in found} == {"passed", "skipped"} and not case.states
    assert len([each for each in found if each.status == "passed"]) >= 8


def test_runtimes_of_other_mixers_are_given_none(models) -> None:
    (found,) = judge_model(FaultyRuntime(), models[NAMES[0]])
    assert found.status == "skipped" and found.says == "it was given no models of type olmo_hybrid"


def _clamped(q, k, v, *, beta, **other):
    return CHUNK(q, k, v, beta=beta.clamp(max=1.99), **other)


def _decaying(q, k, v, *, g, **other):
    return CHUNK(q, k, v, g=g + torch.log1p(torch.tensor(-1e-5)), **other)


def _in_parts(lost: float):
    """64 positions at a time, of whose state a part is lost."""

    def run(q, k, v, *, g, beta, initial_state=None, **other):
        found, state = [], initial_state
        for t in range(0, q.shape[1], 64):
            part = [m[:, t : t + 64] for m in (q, k, v)]
            state = state * lost if t else state
            y, state = CHUNK(*part, g=g[:, t : t + 64], beta=beta[:, t : t + 64], initial_state=state,
                             **other | {"output_final_state": True})  # fmt: skip
            found.append(y)
        return torch.cat(found, 1), state

    return run


@pytest.mark.parametrize(("fault", "position"), [(_clamped, 1), (_decaying, 1), (_in_parts(0.999), 69)])
def test_a_fault_of_the_chunks_is_found(models, monkeypatch, fault, position) -> None:
    """Planted in transformers' own function."""
    monkeypatch.setattr(library, "torch_chunk_gated_delta_rule", fault)
    found = judge_model(HuggingFaceRuntime(), models[NAMES[0]], explain=False)
    first = next(each for each in found if each.status == "failed")
    assert (first.stage, first.position) == ("full", position)


def test_a_fault_of_both_functions_is_named(models, monkeypatch) -> None:
    """Planted by other code than what names it. A norm behind the read hides whether β is 1.99 or 1."""
    monkeypatch.setattr("conformance.models.judge.RULES", ("norm left out", "β at most 1", "β clamped at 1.99"))
    monkeypatch.setattr(library, "torch_chunk_gated_delta_rule", _clamped)
    monkeypatch.setattr(library, "torch_recurrent_gated_delta_rule", lambda *qkv, beta, **other: STEP(
        *qkv, beta=beta.clamp(max=1.99), **other
    ))  # fmt: skip
    found = judge_model(HuggingFaceRuntime(), models[NAMES[0]])
    assert next(each for each in found if each.status == "failed").cause == "β at most 1 or β clamped at 1.99"


def _reads_nothing(q, k, v, *, g, beta, initial_state=None, **other):
    """The first step behind a border reads what it writes and nothing else."""
    found, state = [], initial_state
    for t in range(q.shape[1]):
        now = [m[:, t : t + 1] for m in (q, k, v)]
        y, after = STEP(*now, g=g[:, t : t + 1], beta=beta[:, t : t + 1], initial_state=state, **other)
        if t and t % 64 == 0:
            read = library.l2norm(q[:, t].float()).repeat_interleave(v.shape[2] // q.shape[2], 1)
            y = y - torch.einsum("bhkv,bhk->bhv", state, read)[:, None].to(y.dtype) / q.shape[-1] ** 0.5
        found, state = [*found, y], after
    return torch.cat(found, 1), state


def _narrow(q, k, v, *, g, beta, initial_state=None, **other):
    """Step by step, and what is handed on is in half."""
    found, state = [], initial_state
    for t in range(q.shape[1]):
        now = [m[:, t : t + 1] for m in (q, k, v)]
        y, state = STEP(*now, g=g[:, t : t + 1], beta=beta[:, t : t + 1], initial_state=state, **other)
        state = state.half().float()
        found.append(y)
    return torch.cat(found, 1), state


def _decayed_step(q, k, v, *, g, **other):
    return STEP(q, k, v, g=g + torch.log1p(torch.tensor(-1e-5)), **other)


NAMED = {
    "decay of 1e-5 at every step": (_decaying, _decayed_step, 7, ""),
    "state lost every 64": (_in_parts(0.0), STEP, 64, "at the chunk border 64"),
    "first step of a chunk reads nothing of before": (_reads_nothing, STEP, 64, "at the chunk border 64"),
    "state kept in half": (_narrow, _narrow, 0, "at the first position"),
}


@pytest.mark.parametrize("bug", NAMED)
def test_a_fault_is_named_where_it_is(models, monkeypatch, bug) -> None:
    """Planted by other code than what names it, among the others: the place that is told, and the name."""
    chunk, step, position, near = NAMED[bug]
    monkeypatch.setattr("conformance.models.judge.RULES", (*NAMED, "a thousandth lost every 64"))
    monkeypatch.setattr("conformance.models.judge.modes", lambda length: list(modes(length))[:2])  # enough, and soon
    monkeypatch.setattr(library, "torch_chunk_gated_delta_rule", chunk)
    monkeypatch.setattr(library, "torch_recurrent_gated_delta_rule", step)
    found = judge_model(HuggingFaceRuntime(), models["overwritten-gated-deltanet"])
    first = next(each for each in found if each.status == "failed")
    assert (first.stage, first.position, first.near, first.cause) == ("full", position, near, bug)


@pytest.mark.parametrize("bug", ["state kept in half", "state kept in bfloat16"])
def test_a_narrow_state_is_found(models, bug) -> None:
    found = judge_model(FaultyRule(bug), models[NAMES[1]], explain=False)
    assert next(each for each in found if each.status == "failed").stage == "full"


def test_each_model_is_listed() -> None:
    assert [name for name in names() if "gated" in name] == [
        "swaps-gated-deltanet",
        *(f"{core}-gated-deltanet{end}" for core in ("overwritten", "kept-numbers") for end in ("", "-qwen")),
    ]
