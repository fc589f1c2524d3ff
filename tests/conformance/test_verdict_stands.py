"""The verdict: printed before a file is written, of which operation a case is, of the side on which a gate stands."""

from __future__ import annotations

import json
import os
import signal
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from conformance.cases import cases
from conformance.cases.crossings import CROSSINGS
from conformance.faults.small import norm, step
from conformance.judge import judged, near, sided, whole
from conformance.junit import junit
from conformance.kernel.settings import Left, of_the_kernel
from conformance.kernel.signature import kernel
from conformance.loader import Case
from conformance.report import try_kernel
from tests.conformance.test_ci import Said
from tests.constructions.test_construct import run
from tests.fresh import fresh

NORM = """
import shutil, torch
from pathlib import Path
HERE = Path(__file__).parent

def norm(x, weight, eps, group_size=None, norm_before_gate=True):
    shutil.rmtree(HERE / "reports", ignore_errors=True)
    groups = (group_size or x.shape[-1])
    m = x.double().unflatten(-1, (-1, groups))
    y = (m * torch.rsqrt(m.pow(2).mean(-1, keepdim=True) + eps)).flatten(-2) * weight.double()
    return y.to(x.dtype)

def wrong(x, weight, eps, group_size=None, norm_before_gate=True):
    return 2 * norm(x, weight, eps, group_size)
"""


@pytest.mark.parametrize(("name", "code", "verdict"), [("norm", 2, "right: all "), ("wrong", 1, "wrong: ")])
@pytest.mark.parametrize("as_json", [False, True])
def test_a_verdict_is_printed_before_it_is_written(name, code, verdict, as_json, tmp_path: Path, capsys) -> None:
    """A kernel removes the folder of the report: the verdict and its code stand."""
    (tmp_path / "own_norm.py").write_text(NORM)
    (tmp_path / "reports").mkdir()
    place = tmp_path / "reports" / "r.xml"
    more = ["--json"] if as_json else []
    found = Said(run("conformance", "--kernel", f"{tmp_path}/own_norm.py:{name}", "--junit", str(place), *more), "", "")
    out = capsys.readouterr().out
    assert found.code == code and not place.exists()
    assert json.loads(out)["good"] == (code == 2) if as_json else out.splitlines()[-1].startswith(verdict)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device here")
@pytest.mark.parametrize(("name", "code"), [("norm", 2), ("wrong", 1)])
def test_a_report_that_cannot_be_printed_leaves_the_code_and_the_file(name: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "own_norm.py").write_text(NORM)
    start = "import os, sys; os.dup2(os.open('/dev/full', os.O_WRONLY), 1); "
    start += "from constructions.__main__ import main; main()"
    at = ("conformance", "--kernel", "own_norm.py:" + name, "--junit", "r.xml")
    found = fresh("-c", start, *at, cwd=tmp_path)
    assert found.returncode == code and "the report cannot be printed: No space left" in found.stderr
    assert len(ET.parse(tmp_path / "r.xml").getroot()[0]) > 50


@pytest.mark.parametrize("more", [(), ("--json",), ("--junit", "r.xml")])
def test_a_report_that_nobody_reads_is_no_right_verdict(more: tuple[str, ...], tmp_path: Path) -> None:
    """`construct conformance … >&-`: Python has no sys.stdout then."""
    (tmp_path / "own_norm.py").write_text(NORM)
    start = "import sys; sys.stdout = sys.__stdout__ = None; from constructions.__main__ import main; main()"
    found = fresh("-c", start, "conformance", "--kernel", "own_norm.py:norm", *more, cwd=tmp_path)
    assert found.returncode == 2 and "the report cannot be printed: the standard output is closed" in found.stderr
    assert ("--junit" in more) == (tmp_path / "r.xml").exists()


def test_names_in_the_junit_of_a_step_are_its_own() -> None:
    """It is run on the cases of both scans, of which some have one name."""
    tested = list(try_kernel(kernel(step)))
    names = Counter((each.get("classname"), each.get("name")) for each in ET.fromstring(junit(tested)).iter("testcase"))
    assert [name for name, count in names.items() if count > 1] == []
    assert {finding.op for finding in tested[0].findings} == {"selective_scan", "ssd"} and tested[0].several


def test_a_step_knows_no_cuts() -> None:
    cut = next(case for case in cases("selective_scan") if "cuts" in case.options)
    alone = whole(cut)
    assert "cuts" not in alone.options and "cut" not in alone.borders and "piece" not in alone.asks
    assert "cut border" in near(cut, cut.options["cuts"][0]) and "cut border" not in near(alone, cut.options["cuts"][0])

    def late(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False):
        return 2 * step(state, x, dt, A, B, C, D, z, dt_bias, dt_softplus)

    assert "cut" not in judged(kernel(late, op="step"), cut).near


def gated(behind: bool):
    def rms_norm_gated(x: Tensor, weight: Tensor, z: Tensor | None = None, eps: float = 1e-6) -> Tensor:
        return norm(x, weight, z, eps, None, behind)

    return rms_norm_gated


@pytest.mark.parametrize("behind", [False, True])
def test_a_norm_without_the_argument_is_judged_by_the_side_that_it_computes(behind: bool) -> None:
    exact, random = try_kernel(kernel(gated(behind)))
    assert {f.status for f in (*exact.findings, *random.findings)} == {"passed", "skipped"}
    side = "behind" if behind else "before"
    assert any(f"its gate is judged as one {side} the norm" in why for why, _ in exact.skipped())
    wide = {f.case for f in exact.findings if f.status == "passed"}
    assert f"gate {'after' if behind else 'before'}" in wide and f"gate {'before' if behind else 'after'}" not in wide


@pytest.mark.parametrize("behind", [False, True])
def test_a_norm_that_is_wrong_on_its_side_is_wrong(behind: bool) -> None:
    right = gated(behind)

    def half(x, weight, z=None, eps=1e-6):
        return right(x, weight, None if z is not None and x.dtype == torch.half else z, eps)

    found = next(iter(try_kernel(kernel(half)))).findings
    wrong = [f for f in found if f.status == "failed"]
    assert wrong and all("float16" in f.case for f in wrong)
    assert sided(kernel(half)).gate_after == behind


def test_documents_of_a_convolution_are_asked_for_no_last_state() -> None:
    both = [case for crossing in CROSSINGS for case in crossing("conv") if {"last_state"} <= case.expected.keys()]
    assert both and not any("seq_idx" in case.inputs for case in both)


def test_settings_that_a_kernel_leaves_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    before, mask = [*sys.path], os.umask(0o022)
    handler = signal.getsignal(signal.SIGUSR2)
    try:
        with of_the_kernel(Left()):
            sys.path.clear()
            sys.path.append("/kernels/own")
            os.umask(0o777)
            signal.signal(signal.SIGUSR2, lambda *_: 1 / 0)
            signal.signal(signal.SIGTERM, lambda *_: 1 / 0)
        assert sys.path == [*before, "/kernels/own"] and os.umask(0o022) == 0o022
        assert signal.getsignal(signal.SIGUSR2) == signal.SIG_IGN, "one that comes later ends nothing"
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, "who ends the command is heard"
    finally:
        signal.signal(signal.SIGUSR2, handler)
        os.umask(mask)


def test_a_module_is_a_kernel_by_its_forward() -> None:
    class Silu(nn.Module):
        def forward(self, x, weight, bias=None, activation=None):
            y = F.conv1d(F.pad(x.double(), (weight.shape[1] - 1, 0)), weight.double()[:, None], groups=len(weight))
            y = y if bias is None else y + bias.double()[:, None]
            return (F.silu(y) if activation else y).to(x.dtype)

    found = kernel(Silu())
    case: Case = next(case for case in cases("conv") if case.stage == "window")
    assert found.op == "conv" and judged(found, case).status == "passed"
