"""`construct conformance`: what it prints, its exit codes, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import sys
import types

import pytest
import torch
from typer.testing import CliRunner

from compiler.runtime.selective_scan import selective_scan
from conformance.faults.small import conv
from conformance.runtimes import huggingface
from constructions.command.cli import app
from tests.fresh import fresh


def run(*arguments: str):
    return CliRunner().invoke(app, ["conformance", *arguments])


def forgetful(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False):
    return selective_scan(u, delta, A, B, C, D, None, delta_bias, delta_softplus)


def plain_step(state, x, dt, A, B, C):
    """A step of separate channels, without softplus, bias, skip and gate."""
    dtype, (x, dt, B, C) = x.dtype, (m.float() for m in (x, dt, B, C))
    state.copy_(state * torch.exp(dt[..., None] * A) + (dt * x)[..., None] * B[:, None])
    return (state * C[:, None]).sum(-1).to(dtype)


def step_without_input(state, dt):
    return dt


@pytest.fixture
def kernels(monkeypatch) -> None:
    module = types.ModuleType("mykernels")
    module.right, module.wrong = selective_scan, forgetful
    module.plain_step, module.step_without_input = plain_step, step_without_input
    monkeypatch.setitem(sys.modules, "mykernels", module)


def test_a_right_kernel(kernels) -> None:
    result = run("--kernel", "mykernels:right", "--json")
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["good"] and [each["kind"] for each in report["tested"]] == ["kernel", "random"]
    verdicts = {stage["stage"]: stage["verdict"] for stage in report["tested"][0]["stages"]}
    assert verdicts.pop("packed") == "skipped" and set(verdicts.values()) == {"passed"}


def test_a_wrong_kernel(kernels) -> None:
    result = run("--kernel", "mykernels:wrong")
    assert result.exit_code == 1
    assert "the gate is left out" in " ".join(result.stdout.split())
    assert re.fullmatch(r"wrong: \d+ of the \d+ cases that were run; \d+ skipped", result.stdout.splitlines()[-1])
    found = json.loads(run("--kernel", "mykernels:wrong", "--json").stdout)["tested"][0]
    failed = [stage for stage in found["stages"] if stage["verdict"] == "failed"]
    first = failed[0]["findings"][0]
    assert failed[0]["stage"] == "skip and gate" and first["case"] == "gate" and first["position"] == 0


def test_a_kernel_is_run_on_the_cases_that_need_no_more_than_it_takes(kernels) -> None:
    arguments = ("--kernel", "mykernels:plain_step", "--operation", "channel step")
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert re.search(r"skipped, for it takes no z: \d+ of ", result.stdout)
    assert re.fullmatch(r"right: all \d+ cases that were run; \d+ skipped", result.stdout.splitlines()[-1])
    exact, random = json.loads(run(*arguments, "--json").stdout)["tested"]
    verdicts = {stage["stage"]: stage["verdict"] for stage in exact["stages"]}
    assert verdicts["recurrence"] == verdicts["decay"] == verdicts["continuation"] == "passed"
    assert {stage["verdict"] for stage in random["stages"]} == {"skipped"}  # random cases have every operand


def test_a_kernel_that_takes_too_little_for_any_case_is_bad_usage(kernels) -> None:
    result = run("--kernel", "mykernels:step_without_input")
    assert isinstance(result.exception, ValueError)  # exit code 2 by constructions.__main__
    assert "was run on none of" in str(result.exception) and "it takes no A, no B, no C, no x" in str(result.exception)


def test_a_kernel_whose_refusals_name_each_shape_leaves_the_verdict_in_sight(kernels, monkeypatch) -> None:
    """It had 250 lines before it. What is refused in other words stands before other numbers."""

    def few(x, weight, bias=None, activation=None):
        if x.shape[1] > 5:
            raise NotImplementedError(f"not for shape {tuple(x.shape)}")
        if activation == "swish":
            raise NotImplementedError("no swish")
        return conv(x, weight, bias, activation=activation)[0]

    monkeypatch.setattr(sys.modules["mykernels"], "few", few, raising=False)
    lines = run("--kernel", "mykernels:few").stdout.splitlines()
    reasons = [line for line in lines if "skipped, for " in line]
    assert len(reasons) <= 2 * 20 and len(lines) < 60  # of exact cases and of random ones
    assert any("no swish" in line for line in reasons)
    assert any(re.search(r"… and \d+ other reasons, of \d+ cases; --json has all", line) for line in lines)
    told = json.loads(run("--kernel", "mykernels:few", "--json").stdout)["tested"][0]["stages"]
    said = {found["says"] for stage in told for found in stage["findings"] if found["status"] == "skipped"}
    assert len(said) > 40


@pytest.mark.quick
def test_what_a_kernel_prints_stands_beside_the_one_object(kernels, monkeypatch) -> None:
    def speaks(x, weight, z=None, eps=1e-5, group_size=None, norm_before_gate=True):
        print("autotuning")
        raise RuntimeError("no such width")

    monkeypatch.setattr(sys.modules["mykernels"], "speaks", speaks, raising=False)
    result = run("--kernel", "mykernels:speaks", "--json")
    assert result.exit_code == 1 and not json.loads(result.stdout)["good"] and "autotuning" in result.stderr
    told = run("--kernel", "mykernels:speaks").stdout.splitlines()
    assert re.fullmatch(r"\d+ failed to run; no other was run", told[-1])


def test_what_c_code_prints_stands_beside_the_one_object_too(kernels, monkeypatch, capfd) -> None:
    def speaks(x, weight, z=None, eps=1e-5, group_size=None, norm_before_gate=True):
        os.write(1, b"hello from C")
        raise RuntimeError("no such width")

    monkeypatch.setattr(sys.modules["mykernels"], "speaks", speaks, raising=False)
    run("--kernel", "mykernels:speaks", "--json")
    shown = capfd.readouterr()
    assert "hello from C" in shown.err and "hello from C" not in shown.out


def test_one_checkpoint_of_ours(tmp_path, monkeypatch) -> None:
    kernels = huggingface._kernels()
    norm = tuple(each for each in kernels if each.op == "norm")
    assert norm and len(kernels) > 3  # all of them are run in test_kernels.py
    monkeypatch.setattr(huggingface, "_kernels", lambda: norm)
    built = CliRunner().invoke(
        app, ["keep-nth", "--n", "2", "--out", str(tmp_path / "keep"), "--verify", "none", "--no-certify"]
    )
    assert built.exit_code == 0, built.output
    result = run("--runtime", "transformers", "--checkpoint-dir", str(tmp_path / "keep"), "--json")
    assert result.exit_code == 1  # transformers begins the state anew where several new tokens come
    *functions, models = json.loads(result.stdout)["tested"]
    wrong = {s["stage"] for each in functions for s in each["stages"] if s["verdict"] == "failed"}
    assert functions and wrong == {"one rounding", "rounding, crossed"}
    assert {s["stage"]: s["verdict"] for s in models["stages"]}["pieces"] == "failed"
    assert {s["verdict"] for s in models["stages"] if s["stage"] != "pieces"} == {"passed"}
    one = run("--checkpoint-dir", str(tmp_path / "keep"), "--model", "another")
    assert "--model another is one of several models" in str(one.exception)


@pytest.mark.quick
@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ((), "nothing to do"),
        (("--operation", "ssd"), "pass --kernel as well"),
        (("--runtime", "ours", "--device", "cuda"), "where the operands of a kernel are put: pass --kernel as well"),
        (("--kernel", "nowhere:at_all"), "cannot be imported"),
        (("--runtime", "nothing"), "expected one of ours"),
        (("--checkpoint-dir", "/nowhere"), "no checkpoint there has vectors"),
        (("--kernel", "a:b", "--faults"), "--kernel a:b and --faults are two runs"),
        (("--kernel", "a:b", "--checkpoint-dir", "c"), "--kernel a:b and --checkpoint-dir c are two runs"),
        (("--kernel", "a:b", "--device", "abacus"), "--device 'abacus' cannot be used"),
        (("--kernel", "a:b", "--device", "meta"), "--device 'meta' cannot be used"),
    ],
)
def test_what_is_refused(arguments: tuple[str, ...], sentence: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, (ValueError, SystemExit))
    assert sentence in str(result.exception) + result.output


RIGHT = "from conformance.faults.small import norm as right\n"
SIGNATURE = "def norm(x, weight, z=None, eps=1e-5, group_size=None, norm_before_gate=True):\n    "
CALL = "return right(x, weight, z, eps, group_size, norm_before_gate)\n"


def in_a_process(place, body: str, *arguments: str):
    """A norm of one more statement, from its folder."""
    (place / "mine.py").write_text(f"import os, sys\n{RIGHT}{SIGNATURE}{body}\n    {CALL}", "utf-8")
    return fresh("-m", "constructions", "conformance", "--kernel", "mine.py:norm", *arguments, cwd=place)


@pytest.mark.parametrize("more", [(), ("--workers", "2")], ids=["", "workers"])
def test_a_model_of_an_unknown_name_is_refused_before_anything_begins(more: tuple[str, ...], monkeypatch) -> None:
    def begins(*_: object) -> None:
        raise AssertionError("work began")

    for place in ("conformance.runtimes.known", "constructions.shards.engine.results"):
        monkeypatch.setattr(place, begins)
    told = run("--runtime", "ours", "--model", "random-mamba", "--model", "nosuch", *more)
    assert str(told.exception).startswith("--model 'nosuch' is not known: expected one of ")


def test_a_message_that_no_file_holds_is_escaped(tmp_path) -> None:
    done = in_a_process(tmp_path, "raise ValueError('\\x1b[31m\\ud800 <&>')", "--junit", "found.xml")
    assert done.returncode == 1, done.stderr
    assert r"ValueError: \x1b[31m\ud800 <&>" in done.stdout and "failed to run; no other was run" in done.stdout
    assert r"\x1b[31m\ud800 &lt;&amp;&gt;" in (tmp_path / "found.xml").read_text("utf-8")


def test_a_kernel_that_goes_to_another_folder_takes_no_file_along(tmp_path) -> None:
    (tmp_path / "other").mkdir()
    done = in_a_process(tmp_path, "os.chdir(os.path.join(os.path.dirname(__file__), 'other'))", "--junit", "found.xml")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "found.xml").is_file() and not (tmp_path / "other" / "found.xml").exists()


@pytest.mark.parametrize("closed", ["sys.stdout.close()", "sys.__stdout__.close()", "os.dup2(2, 1); os.close(1)"])
@pytest.mark.parametrize("as_json", [False, True], ids=["words", "json"])
def test_a_kernel_that_closes_stdout_closes_no_report(closed: str, as_json: bool, tmp_path) -> None:
    done = in_a_process(tmp_path, closed, *["--json"] * as_json)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert json.loads(done.stdout)["good"] if as_json else "right: all" in done.stdout
