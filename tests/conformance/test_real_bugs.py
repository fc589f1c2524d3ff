"""The bugs of released programs that a page lists: each command again, and what its runtimes rest on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import types
from itertools import islice
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from typer.testing import CliRunner

from conformance.faults.runtime import FaultyRuntime
from conformance.models import judge
from conformance.models.build import build, names
from conformance.models.companion import companion
from conformance.models.judge import judge_model
from conformance.models.modes import MODE_STAGES, modes
from conformance.report import models_in
from conformance.runtimes import known
from conformance.runtimes.borrowed import AtThatTime
from constructions.command.cli import app
from tests.conformance.pages import FOUND

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| .*? \| `((?:PYTHONPATH=\S+ )?)construct (.*?)` \| (.*?): (.*?) \| (\d+|–) \| (.*?) \|$", re.M)
BUGS = ROW.findall(FOUND)


def test_the_page_lists_them() -> None:
    section = FOUND.partition("## Real bugs")[2].partition("\n## ")[0]
    assert len(BUGS) == section.count("| `") >= 15


@pytest.mark.parametrize("row", BUGS, ids=lambda row: " ".join(row[:2]))
def test_a_bug_is_found_where_the_page_says(row) -> None:
    """Exit code 1, and of the mode that is named the first wrong position and the likely cause."""
    path, command, stage, mode, position, cause = row
    arguments = [*command.split(), "--json"]
    if path:
        place = ROOT / path.partition("=")[2].strip()
        if not place.is_dir():
            pytest.skip(f"{place.relative_to(ROOT)} is not there: docs/conformance_found.md says how it is installed")
        environment = os.environ | {"PYTHONPATH": f"{place}:{ROOT}"}
        ran = subprocess.run(
            [sys.executable, "-m", "constructions", *arguments], env=environment, capture_output=True, text=True
        )
        code, out = ran.returncode, ran.stdout
    else:
        if "mlx-lm" in command:
            pytest.importorskip("mlx_lm", reason="mlx-lm is not installed")
        result = CliRunner().invoke(app, arguments)
        code, out = result.exit_code, result.stdout
    assert code == 1
    (tested,) = json.loads(out)["tested"]
    found = {each["stage"]: each for each in tested["stages"]}[stage]["findings"]
    first = next(each for each in found if each["case"].endswith(f": {mode}"))
    assert first["status"] == "failed"
    assert (first["position"], first["cause"]) == (None if position == "–" else int(position), cause)


# What the commands rest on -----------------------------------------------------------------------------

TILED = {"ssd": "heads tiled, not interleaved", "norm": "mean over all groups"}


def cause(runtime: FaultyRuntime, case, stage: str) -> str:
    """The likely cause of the first wrong mode of a stage; later modes are not run."""
    names = list(MODE_STAGES)
    until = lambda length: (mode for mode in modes(length) if names.index(mode[0]) <= names.index(stage))
    with patch.object(judge, "modes", until):
        return next(f.cause for f in judge_model(runtime, case) if f.status == "failed" and f.stage == stage)


def test_several_mistakes_are_named_together(tmp_path) -> None:
    """What the prefill shows is taken along to the modes that come later, which have a mistake of their own."""
    (case,) = build(tmp_path, only=("induction-mamba2-groups-2",))
    runtime, both = FaultyRuntime("only the first new token is used", "model", TILED), "; ".join(TILED.values())
    assert cause(runtime, case, "full") == both
    assert cause(runtime, case, "pieces") == f"only the first new token is used; {both}"


def test_a_result_of_another_shape_has_a_cause_where_a_mistake_gives_it(tmp_path) -> None:
    (case,) = build(tmp_path, only=("count-since-mamba2",))
    bug = "gates of all rows for each row"
    assert cause(FaultyRuntime(bug), case, "steps") == bug


def test_a_mistake_that_changes_nothing_explains_nothing(tmp_path, monkeypatch) -> None:
    """An epsilon a little off is on no list: what is named must be wrong in the same mode itself."""
    case = companion(tmp_path, "mamba2")
    monkeypatch.setattr(judge, "modes", lambda length: islice(modes(length), 1))  # each is explained for a second

    class OtherEpsilon(FaultyRuntime):
        def open(self, directory):
            model = super().open(directory)
            model.config = model.config | {"layer_norm_epsilon": 6e-6}
            return model

    first = next(iter(judge_model(OtherEpsilon(), case)))
    assert (first.status, first.cause, first.asks) == ("failed", "", MODE_STAGES["full"])


def test_a_position_is_told_against_the_chunks_of_the_model(tmp_path) -> None:
    case = companion(tmp_path, "mamba2")
    first = next(f for f in judge_model(FaultyRuntime("states summed over the wrong axis", "ssd"), case))
    assert (first.position, first.near) == (16, "at the chunk border 16")
    assert first.cause == "states summed over the wrong axis"


def test_zamba_is_right_but_for_several_new_tokens(tmp_path) -> None:
    (case,) = build(tmp_path, only=("count-since-mamba",))
    found = list(judge_model(known("transformers-zamba").models, case, explain=False))
    assert {finding.stage for finding in found if finding.status != "passed"} == {"pieces"}
    (other,) = build(tmp_path, only=("count-since-mamba2",))
    (skipped,) = judge_model(known("transformers-zamba").models, other)
    assert skipped.says == "its mixers are of Mamba"


def test_mlx_is_right_on_one_group_of_mamba_2_and_in_bfloat16(tmp_path) -> None:
    pytest.importorskip("mlx_lm", reason="mlx-lm is not installed")
    for case in build(tmp_path, only=("count-since-mamba2", "codes-mamba2-bfloat16")):
        assert {finding.status for finding in judge_model(known("mlx-lm").models, case)} == {"passed"}


def test_a_mixer_of_that_time_is_told_by_its_cache_whether_it_takes_a_step() -> None:
    heard = []

    class Mixer(torch.nn.Module):
        def forward(self, hidden_states, cache_params, attention_mask):
            heard.append(cache_params.has_previous_state)

    for positions in (torch.arange(4), torch.tensor([7])):
        AtThatTime(Mixer())(torch.zeros(1, 1, 1), types.SimpleNamespace(), positions)
    assert heard == [False, True]


def test_a_model_is_run_by_its_name(tmp_path) -> None:
    result = CliRunner().invoke(
        app, ["conformance", "--runtime", "ours", "--model", "random-mamba", "--model", "delay-mamba2", "--json"]
    )
    assert result.exit_code == 0
    (tested,) = json.loads(result.stdout)["tested"]  # its kernels are left out
    found = [each["case"] for stage in tested["stages"] for each in stage["findings"]]
    assert {case.partition(":")[0] for case in found} == {"random-mamba", "delay-mamba2"}
    for arguments, says in (
        (["--model", "random-mamba"], "pass --runtime or --checkpoint-dir as well"),
        (["--runtime", "ours", "--model", "random"], "--model 'random' is not known: expected one of induction-mamba,"),
    ):
        assert says in str(CliRunner().invoke(app, ["conformance", *arguments]).exception)


def test_a_runtime_that_is_not_installed_is_refused_by_its_name(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "fla.layers.mamba2", None)
    monkeypatch.setattr("conformance.runtimes.fla._interpret", lambda: None)
    with pytest.raises(ImportError, match="--runtime fla cannot be loaded here: "):
        known("fla")


def test_every_model_has_the_name_that_it_is_asked_by(tmp_path) -> None:
    asked = ["codes-mamba2", "codes-mamba2-groups-4", "random-mamba", "codes-mamba-bfloat16"]
    assert [case.name for case in build(tmp_path, only=asked[::-1])] == asked
    assert [name for name in names() if name in asked] == asked and len(set(names())) == len(names())
    (one,) = models_in(tmp_path, False, only=("codes-mamba2-groups-4",))
    assert one.name == "codes-mamba2-groups-4"
    with pytest.raises(ValueError, match="--model 'nothing' is not under"):
        models_in(tmp_path, False, only=("nothing",))
