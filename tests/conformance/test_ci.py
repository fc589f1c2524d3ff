"""A kernel of one's own in a CI service: where it may be, the JUnit file, and the workflow that the page shows."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from typer.main import get_command

from conformance.findings import Finding
from conformance.junit import junit
from conformance.kernel.named import kernel_named
from conformance.report import Tested
from constructions.command.cli import app
from tests.conformance.pages import PAGE
from tests.constructions.test_construct import run
from tests.fresh import fresh

ROOT = Path(__file__).parents[2]
STEP = """
from beside import decay

def step(state, x, dt, A, B, C):
    dtype, (x, dt, B, C) = x.dtype, (m.float() for m in (x, dt, B, C))
    state.copy_(state * decay(dt, A) + (dt * x)[..., None] * B[:, None])
    return (state * C[:, None]).sum(-1).to(dtype)

def wrong(state, x, dt, A, B, C):
    return 2 * step(state, x, dt, A, B, C)

def raising(state, x, dt, A, B, C):
    raise RuntimeError("no \\x00 kernel <here>")

constant = 3
"""
OPERATION = ("--operation", "channel step")


class Said(NamedTuple):
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path) -> Path:
    """Where one's own kernel stands, with a module that it imports."""
    (tmp_path / "my_step.py").write_text(STEP)
    (tmp_path / "beside.py").write_text("def decay(dt, A):\n    return (dt[..., None] * A).exp()\n")
    return tmp_path


class Here:
    """The command in this process, in a folder, with what it leaves behind taken away."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: str, at: Path) -> Said:
        with self.monkeypatch.context() as patched:
            patched.chdir(at)
            patched.setattr(sys, "path", [*sys.path])  # the folder is put behind it
            self.capsys.readouterr()
            code = run("conformance", *arguments)
        for name in ("my_step", "beside"):
            sys.modules.pop(name, None)
        return Said(code, *self.capsys.readouterr())


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> Here:
    return Here(monkeypatch, capsys)


def construct(*arguments: str, at: Path) -> subprocess.CompletedProcess[str]:
    """As installed: the current folder is not on the path of modules by itself."""
    start = "import sys; sys.path[0] = '/nowhere'; from constructions.__main__ import main; main()"
    return fresh("-c", start, "conformance", *arguments, cwd=at)


def test_a_kernel_in_the_current_folder(folder: Path) -> None:
    found = construct("--kernel", "my_step:step", *OPERATION, at=folder)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines()[-1].startswith("right: all ")


@pytest.mark.parametrize("path", ["my_step.py:step", "{folder}/my_step.py:step"])
def test_a_kernel_in_a_file(path: str, folder: Path, here: Here) -> None:
    found = here("--kernel", path.format(folder=folder), *OPERATION, at=folder.parent if "{" in path else folder)
    assert found.code == 0, found.err
    assert found.out.splitlines()[-1].startswith("right: all ")


def test_the_folder_of_a_kernel_is_looked_in_last(folder: Path, monkeypatch) -> None:
    """What is imported later, too, is found where it is installed."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = [*sys.path]
    kernel_named(f"{folder / 'my_step.py'}:step", "channel step")
    assert sys.path == [*before, str(folder.resolve())]


@pytest.mark.parametrize("path", ["my_step.py:step", "my_step:step"])
def test_a_file_beside_a_kernel_stands_in_for_no_package_of_ours(path: str, folder: Path) -> None:
    for name in ("verify", "compiler", "conformance"):
        (folder / f"{name}.py").write_text("raise RuntimeError('a file beside the kernel was imported')\n")
    found = construct("--kernel", path, *OPERATION, at=folder)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines()[-1].startswith("right: all ")


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [("verify:step", 2, "its name is taken by .* FILE.py:function"), ("verify.py:step", 0, "")],
)
def test_a_module_of_the_current_folder_whose_name_is_taken_is_refused(path, code, said, folder: Path) -> None:
    (folder / "verify.py").write_text(STEP)
    found = construct("--kernel", path, *OPERATION, at=folder)
    assert found.returncode == code and re.search(said, found.stderr, re.DOTALL), found.stderr


def test_junit_has_a_case_for_each_case(folder: Path, here: Here) -> None:
    found = here("--kernel", "my_step.py:wrong", *OPERATION, "--junit", "report.xml", "--json", at=folder)
    assert found.code == 1, found.err
    told = json.loads(found.out)["tested"]
    suites = list(ET.parse(folder / "report.xml").getroot())
    assert [suite.get("name") for suite in suites] == [f"{each['name']} ({each['kind']})" for each in told]
    assert [int(suite.get("tests")) for suite in suites] == [sum(s["cases"] for s in each["stages"]) for each in told]
    cases = list(suites[0])
    assert (
        len({(case.get("classname"), case.get("name")) for case in cases}) == len(cases) == int(suites[0].get("tests"))
    )
    failures = [case.find("failure") for case in cases if case.find("failure") is not None]
    assert len(failures) == int(suites[0].get("failures")) > 20 and suites[0].get("errors") == "0"
    assert re.search(r"^y\[0, 0, 0\] is -?\d+, not -?\d+$", failures[0].get("message"))
    assert "they are 2 times what is right" in failures[0].text and "position 0" in failures[0].text


def test_junit_tells_what_failed_to_run_as_errors(folder: Path, here: Here) -> None:
    """And the report once, with the message, though XML cannot hold all of its characters."""
    found = here("--kernel", "my_step.py:raising", *OPERATION, "--junit", "report.xml", at=folder)
    assert found.code == 1 and found.out.count(r"RuntimeError: no \x00 kernel <here>") == 1, found.err
    assert "failed to run in " in found.out and "wrong" not in found.out
    (suite, _) = ET.parse(folder / "report.xml").getroot()
    errors = [case.find("error").get("message") for case in suite if case.find("error") is not None]
    assert {*errors} == {r"RuntimeError: no \x00 kernel <here>"} and len(errors) == int(suite.get("errors"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("--kernel", "my_step.py:step", "--operation", "nosense"),
        ("--kernel", "my_step.py:step", "--runtime", "nosuch"),
        ("--runtime", "nosuch"),
        ("--runtime", "ours", "--operation", "channel step"),
        ("--kernel", "my_step.py:step", "--workers", "2"),
        ("--runtime", "ours", "--checkpoint-dir", "nowhere"),
        ("--runtime", "ours", "--model", "nosuch"),
        ("--kernel", "my_step.py:nosuch"),
        ("--kernel", "nosuch.py:step"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("earlier", [True, False])
def test_bad_usage_leaves_a_report_of_one_error_that_says_why(earlier, arguments, folder: Path, here: Here) -> None:
    """Nothing that a CI service takes for the verdict of an earlier run."""
    if earlier:
        (folder / "report.xml").write_text(junit([]))
    found = here(*arguments, "--junit", "report.xml", at=folder)
    assert found.code == 2
    (suite,) = ET.parse(folder / "report.xml").getroot()
    (error,) = [error for case in suite for error in case]
    assert (suite.get("tests"), suite.get("errors"), error.tag) == ("1", "1", "error")
    assert " ".join(error.get("message", "").split()) == " ".join(found.err.split())


def test_junit_is_the_same_again_and_escapes() -> None:
    findings = [
        Finding("step", 'a "case" & more', "failed", "y < 3", cause="D u is left out"),
        Finding("step", "b", "passed"),
    ]
    text = junit([Tested("k", "kernel", findings)])
    assert text == junit([Tested("k", "kernel", findings)])
    (suite,) = ET.fromstring(text)
    assert suite[0].get("name") == 'a "case" & more' and suite[0][0].text == "likely: D u is left out"
    assert not len(suite[1]) and suite.get("failures") == "1"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--kernel", "nofile.py:step"), "there is no file nofile.py"),
        (("--kernel", "my_step.py:nothing"), "has no attribute 'nothing'"),
        (("--kernel", "my_step.py:constant"), "is of type int, and a function"),
        (("--kernel", "my_step.py"), "must be module:function or FILE.py:function"),
        (("--kernel", "my_step.py:"), "must be module:function or FILE.py:function"),
        (("--kernel", ":step"), "must be module:function or FILE.py:function"),
        (("--kernel", "..:step"), "cannot be imported"),
        (("--kernel", "my_step.py:step", "--junit", "nowhere/report.xml"), "there is no folder nowhere"),
        (("--kernel", "my_step.py:step", "--junit", "."), "is a folder: name a file in it"),
        (("--junit", "report.xml"), "pass --kernel"),
        (("--faults", "--junit", "report.xml"), "pass --kernel"),
    ],
)
def test_bad_input_is_one_sentence(arguments: tuple[str, ...], says: str, folder: Path, here: Here) -> None:
    before = sorted(path.name for path in folder.iterdir() if path.suffix)
    found = here(*arguments, at=folder)
    assert found.code == 2 and says in found.err, found.err + found.out
    assert "Traceback" not in found.err and len(found.err.strip().splitlines()) == 1
    assert sorted(path.name for path in folder.iterdir() if path.suffix) == before  # no file, and no half of one


def test_a_file_that_cannot_be_written_leaves_no_half(folder: Path, monkeypatch) -> None:
    """The whole document is made first, and then put in place."""
    from compiler.artifact.plain_files import write_whole

    (folder / "report.xml").write_text("before")
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write_whole(folder / "report.xml", "after")
    assert (folder / "report.xml").read_text() == "before"


def workflow() -> dict:
    return yaml.safe_load(re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[1])


@pytest.mark.quick
def test_the_workflow_of_the_page_is_one() -> None:
    found = workflow()
    assert found[True] and found["jobs"]  # YAML 1.1 reads the key `on` as true
    for job in found["jobs"].values():
        assert job["runs-on"] and all(step.keys() & {"uses", "run"} for step in job["steps"])


def test_its_command_is_one_that_the_command_line_takes(monkeypatch) -> None:
    steps = [step["run"] for job in workflow()["jobs"].values() for step in job["steps"] if "run" in step]
    commands = [shlex.split(line) for run in steps for line in run.splitlines() if line.startswith("construct ")]
    assert commands
    for _, name, *arguments in commands:
        command = get_command(app).commands[name]
        context = command.make_context(name, arguments)
        assert (
            context.params["kernel"] == "mykernels/scan.py:selective_scan" and context.params["junit"].suffix == ".xml"
        )
        with pytest.raises(Exception, match="No such option"):
            command.make_context(name, [*arguments, "--no-such-option"])
