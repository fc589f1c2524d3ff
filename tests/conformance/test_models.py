"""The models: what is written, read back, and what is never written."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file

from compiler.driver import compile
from conformance.exact import Inexact
from conformance.faults.runtime import FaultyRuntime
from conformance.models.build import build, case_of
from conformance.models.case import read, read_all, right_entries
from conformance.models.circuits import CORES
from conformance.models.companion import KINDS, companion
from conformance.models.judge import judge_model
from conformance.models.variants import grouped, occupied


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("models")
    list(build(directory, only=("count-since-mamba", "codes-mamba2")))
    return directory


def files(directory):
    return json.loads((directory / "config.json").read_text()), load_file(directory / "model.safetensors")


def test_models_come_back_as_they_were(place) -> None:
    first, second = read_all(place)
    assert (first.name, second.name) == ("codes-mamba2", "count-since-mamba")
    assert first.asks == CORES["codes"].asks and first.tokens.shape == (3, 60)
    assert [state.shape for state in first.states] == [(8, 4, 8)]
    assert 0.4 < first.informative.double().mean() < 1


def test_no_channel_is_idle_in_what_is_occupied(place) -> None:
    config, tensors = files(place / "count-since-mamba")
    _, filled = occupied(config, tensors)
    read = lambda m: (
        (m["backbone.layers.0.mixer.out_proj.weight"] != 0).any(0)
        | (m["backbone.layers.0.mixer.x_proj.weight"] != 0).any(0)
    )
    assert read(filled).all() and not read(tensors).all()


def test_groups_have_levels_of_their_own(place) -> None:
    config, tensors = files(place / "codes-mamba2")
    wider, grown = grouped(config, tensors, 4)
    assert wider["n_groups"] == 4 and wider["num_heads"] == 4 * config["num_heads"]
    D = grown["backbone.layers.0.mixer.D"].unflatten(0, (4, -1))
    assert D[0].any() and all(torch.equal(D[i], 4**i * D[0]) for i in range(4))


def test_what_does_not_say_what_its_circuit_says_is_no_test(place) -> None:
    compiled = compile(CORES["count-since"].build(60), "mamba")
    config, tensors = files(place / "count-since-mamba")
    tokens = next(iter(c for c in read_all(place) if c.name == "count-since-mamba")).tokens.numpy()
    case_of(place / "count-since-mamba", compiled, tokens, "", (config, tensors))
    tensors["lm_head.weight"] = tensors.get("lm_head.weight", tensors["backbone.embeddings.weight"]) * 3
    with pytest.raises(Inexact, match="does not say what its circuit says"):
        case_of(place / "count-since-mamba", compiled, tokens, "", (config, tensors))
    tensors["backbone.layers.0.mixer.dt_proj.bias"] = torch.zeros(32)
    with pytest.raises(Inexact):
        case_of(place / "count-since-mamba", compiled, tokens, "", (config, tensors))


def verdicts(case, bug: str = "", only: str = "") -> dict[str, str]:
    found = judge_model(FaultyRuntime(bug, only), case, explain=False)
    return {finding.case.split(": ")[1]: finding.status for finding in found}


def test_a_half_life_sees_an_exp_that_is_off_by_a_hundred_thousandth(tmp_path) -> None:
    other, case = build(tmp_path, only=("wide-integers-mamba", "half-life-mamba"))
    assert case.name == "half-life-mamba" and not case.states and case.informative[:, 1:].any()
    assert set(verdicts(case).values()) == {"passed", "skipped"}
    for bug in ("exp to 1e-5", "exp in half"):
        assert verdicts(case, bug, "selective_scan")["the whole sequence"] == "failed"
        assert verdicts(other, bug, "selective_scan")["the whole sequence"] == "passed"
    assert verdicts(case, "exp to 1e-5", "step")["a prompt of two, then steps"] == "failed"


def test_random_models_are_right_within_their_tolerance_and_not_beyond(tmp_path) -> None:
    for case in (companion(tmp_path, kind) for kind in KINDS):
        again = read(case.directory)
        assert again.tolerance == case.tolerance > 0 and torch.equal(again.logits, case.logits)
        assert set(verdicts(again).values()) == {"passed"}
        wrong = verdicts(again, "D left out", "selective_scan" if case.name == "random-mamba" else "ssd")
        assert wrong["the whole sequence"] == "failed" and wrong["states"] == "failed"
    assert not right_entries(torch.tensor([float("nan"), 1.0]), torch.tensor([1.0, 1.0]), 0.1)[0]


class Repeats:
    """A runtime of ours whose steps give their logits once for each row, as transformers 4.44 to 4.47 do."""

    name = "repeats"

    def open(self, directory):
        model = FaultyRuntime().open(directory)
        right = model.extend

        def extend(cache, tokens):
            logits, cache = right(cache, tokens)
            return logits.repeat(1, len(tokens), 1), cache

        model.extend = extend
        return model


def test_logits_of_another_shape_are_a_finding(place) -> None:
    found = list(judge_model(Repeats(), read(place / "count-since-mamba")))
    bad = [finding for finding in found if finding.status != "passed"]
    assert {finding.stage for finding in bad} == {"steps", "pieces", "padding", "batch", "speculation"}
    assert {finding.cause for finding in bad} == {""}
    assert "logits have shape (3, 176, 67), not (3, 60, 67)" in bad[0].says
