"""Whatever is typed: exit code 2 and one sentence, no traceback, nothing written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from constructions import __main__ as front
from constructions.command.cli import app
from constructions.command.requests import MOST_EXHAUSTIVE, check_exhaustive
from constructions.registry import CONSTRUCTIONS
from constructions.selectivity.mqar import MQAR

ROOT = Path(__file__).parents[2]
HUGE = "99999999999999999999"


def run(*arguments: str) -> int:
    """The exit code of the command, in this process."""
    before, sys.argv = sys.argv, ["construct", *arguments]
    try:
        front.main()
    except SystemExit as stop:
        return int(stop.code or 0)
    finally:
        sys.argv = before
    raise AssertionError("main() always exits")


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    """A function that runs a command in an empty folder and asserts that it is refused; returns the sentence."""
    monkeypatch.chdir(tmp_path)

    def refuse(*arguments: str) -> str:
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
        capsys.readouterr()
        code = run(*arguments)
        out, err = capsys.readouterr()
        assert code == 2, (arguments, code, out, err)
        assert "Traceback" not in err and len(err.strip().splitlines()) == 1, (arguments, out, err)
        told = {"error": err.strip(), "exit_code": 2}
        assert json.loads(out) == told if "--json" in arguments else out == "", (arguments, out, err)
        assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before, arguments
        return err.strip()

    return refuse


COMMANDS = sorted({command.name for command in app.registered_commands if command.name} | {"verify", "inspect"})


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "install-mamba"])
@pytest.mark.parametrize("more", [("--nonsense",), ("one", "two", "three", "four"), ("--json=maybe",)])
def test_arguments_that_no_command_has(command: str, more: tuple[str, ...], refused) -> None:
    refused(command, *more)


@pytest.mark.parametrize("name", CONSTRUCTIONS)
@pytest.mark.parametrize("value", ["-1", HUGE, "1.5", "x", ""])
def test_sizes_that_no_construction_has(name: str, value: str, refused) -> None:
    option = {"mqar": "--kappa", "keep-nth": "--n", "count-in-row": "--largest", "absolute-time": "--horizon"}
    option |= {"knapsack": "--items", "phonebook": "--names", "shortest-path": "--nodes", "matrix-chain": "--matrices"}
    group = CONSTRUCTIONS[name].group.split()
    refused(*group, name, option.get(name, "--length" if group else "--vocab"), value, "--json")


BAD = [
    ("mqar", "--kappa", str(10**9)),
    ("mqar", "--vocab", "0"),
    ("mqar", "--key-code", "8"),
    ("mqar", "--verify", "exhaustive"),
    ("mqar", "--samples", "0"),
    ("mqar", "--samples", HUGE),
    ("mqar", "--seed", "-1"),
    ("mqar", "--length", "3"),
    ("mqar", "--max-length", "1"),
    ("mqar", "--dtype", "int8"),
    ("mqar", "--out", "/proc/nowhere/made"),
    ("keep-nth", "--n", "5", "--length", "3"),
    ("induction-heads", "--arch", "mamba-delta-t", "--vocab", "3", "--out", "made"),
    ("verify", "nowhere"),
    ("verify", "."),
    ("inspect", "nowhere"),
    ("inspect", "."),
    ("plot", "nowhere", "--input", "k0"),
    ("plot", "nowhere", "--input", "k0", "--out", "/nope/x.png"),
    ("plot", "nowhere", "--input", "k0", "--out", "x.gif"),
    ("graph", "nowhere"),
    ("graph", "nowhere", "--out", "/nope/x.svg"),
    ("sensitivity", "nowhere", "--input", "k0"),
    ("reproduce", "figure-9"),
    ("reproduce", "table-1", "--seed", "-1"),
    ("reproduce", "table-1", "--plot", "/nope/x.png"),
    ("reproduce", "table-1", "--csv", "/nope/x.csv"),
    ("reproduce", "lemmas", "--latex", "/nope/x.tex"),
    ("haar", "--levels", "99"),
    ("haar", "--levels", HUGE),
    ("haar", "--seed", "-1"),
    ("generalization", "--contraction=-0.5"),
    ("generalization", "--rho", "nan"),
    ("haar", "--seed", str(2**64)),
    ("gadgets", "--seed", str(2**64)),
    ("haar", "--plot", "/nope/x.png"),
    ("approximation-rate", "--breaks", "a"),
    ("approximation-rate", "--breaks", "1/0"),
    ("approximation-rate", "--breaks", "1e-99999999", "--values", "0,1"),
    ("approximation-rate", "--values", "0,1e99_999_999"),
    ("approximation-rate", "--values", "0,1e٩٩٩٩٩٩٩٩"),
    ("monomial", "--coefficient", "1e-99999999"),
    ("approximation-rate", "--values", "0"),
    ("approximation-rate", "--plot", "x.txt"),
    ("polynomial", "x1**"),
    ("polynomial", "import os"),
    ("polynomial", "x1/x2"),
    ("monomial", "--coefficient", "x1"),
    ("monomial", "--power", HUGE),
    ("degree-gap", "--length", "0"),
    ("linear-attention", "--weights", "nowhere.npz"),
    ("linear-attention", "--d", "0"),
    ("generalization", "--delta", "2"),
    ("generalization", "--contraction", "1"),
]


WRITERS = [
    ("mqar", "--out"),
    ("dp", "lcs", "--out"),
    ("haar", "--out"),
    ("haar", "--plot"),
    ("polynomial", "x1*x2", "--arch", "mamba", "--out"),
    ("linear-attention", "--out"),
    ("graft", "host", "mqar", "--out"),
    ("compose", "mqar", "keep-nth", "--out"),
    ("export", "nowhere", "--format", "gguf", "--out"),
    ("plot", "nowhere", "--input", "k0", "--out"),
    ("graph", "nowhere", "--out"),
    ("sensitivity", "nowhere", "--input", "k0", "--plot"),
    ("approximation-rate", "--plot"),
    ("copy-decay", "--plot"),
    ("gadgets", "--plot"),
    ("costs", "--plot"),
    ("reproduce", "table-1", "--plot"),
    ("reproduce", "chains", "--keep"),
    ("reproduce", "chains", "--keep", "here.json", "--page"),
]


@pytest.mark.parametrize("arguments", WRITERS, ids=" ".join)
def test_a_place_that_takes_nothing_is_refused_before_the_work(arguments, refused, monkeypatch) -> None:
    def work(*_args, **_options):
        raise AssertionError("work began")

    monkeypatch.setattr("constructions.command.display.progress", work)
    assert "/proc" in refused(*arguments, "/proc/made.png" if "plot" in arguments[-1] else "/proc/made.json")


@pytest.mark.parametrize("command", ["haar", "linear-attention"])
def test_a_checkpoint_in_the_way_is_refused_before_the_work(command: str, refused, tmp_path: Path, monkeypatch) -> None:
    def work(*_args, **_options):
        raise AssertionError("work began")

    monkeypatch.setattr("constructions.selectivity.haar.haar_report", work)
    monkeypatch.setattr("constructions.polynomials.linear_attention.report", work)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    assert "left alone" in refused(command, "--out", "mine")
    assert "no --out" in refused(command, "--force")


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_what_cannot_be_done_is_refused(arguments: tuple[str, ...], refused) -> None:
    refused(*arguments)


def test_the_default_place_is_not_taken_from_other_parameters(tmp_path: Path, monkeypatch, refused, capsys) -> None:
    quick = ("--vocab", "3", "--samples", "2", "--verify", "none", "--no-certify", "--json")
    assert run("mqar", "--kappa", "2", *quick) == 0
    assert run("mqar", "--kappa", "2", *quick) == 0  # the same parameters: the same bytes
    assert "kappa = 2" in refused("mqar", "--kappa", "3", *quick)
    assert run("mqar", "--kappa", "3", *quick, "--force") == 0
    assert "no block 9" in refused("plot", "out/mqar", "--input", "k0 v1", "--block", "9")
    assert "no channel of this name" in refused("sensitivity", "out/mqar", "--input", "k0", "--channel", "nix")
    assert run("sensitivity", "out/mqar", "--input", "k0 v1 k0", "--channel", "recalled[1]", "--json") == 0
    assert run("graph", "out/mqar", "--out", "circuit.svg") == 0
    assert "recalled" in Path("circuit.svg").read_text()


def test_exhaustive_says_how_many_sequences_there_are() -> None:
    with pytest.raises(ValueError, match=r"about 10\^\d+ sequences, and at most 10,000,000"):
        check_exhaustive(MQAR(), "exhaustive")
    small = MQAR(kappa=1, vocab=1, length=4)
    assert sum(task.exhaustive_count() for task in small.tasks()) <= MOST_EXHAUSTIVE
    check_exhaustive(small, "exhaustive")
    check_exhaustive(MQAR(), "random")


WORDS = st.sampled_from(["-1", "0", HUGE, "x", "", "--json", "--out", "--", "-h!", "nan", "1e9", "../..", "\x00", "κ"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    command=st.sampled_from(["list", "inspect", "verify", "plot", "graph", "nothing"]),
    words=st.lists(WORDS, max_size=4),
)
def test_random_words_never_end_in_a_traceback(
    command: str, words: list[str], tmp_path: Path, capsys, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = run(command, *words)  # an exception of any kind fails the test
    assert code in (0, 2)
    assert "Traceback" not in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def started(*arguments: str, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "constructions", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


@pytest.mark.parametrize("after", [0.3, 1.5])
def test_an_interrupt_is_no_traceback(after: float, tmp_path: Path) -> None:
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # also where this suite runs in the background
    process = started("mqar", "--kappa", "32", "--json", cwd=tmp_path, preexec_fn=heard)
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    unheard = -signal.SIGINT  # the system ended it before Python looked; a shell says 130 then too
    assert process.returncode in (130, unheard) and b"Traceback" not in err, err


def test_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    process = started("list", cwd=tmp_path)
    process.stdout.close()
    assert process.wait(timeout=120) in (0, 141)  # never 1, which says that a verification failed
    assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("keep-nth", "--vocab", "0"), "the smallest vocab that works is 1"),
        (("induction-heads", "--vocab", "0"), "the smallest vocab that works is 1"),
        (("absolute-time", "--horizon", "0"), "the smallest horizon that works is 1"),
        (("keep-nth", "--dtype", "float8"), "'--dtype': 'float8' is not one of"),
        (("keep-nth", "--out", ""), "--out is empty"),
        (("haar", "--out", ""), "--out is empty"),
        (("keep-nth", "--out", "afile/x"), "afile is a file"),
        (("haar", "--levels", "1", "--samples", "4", "--out", "afile/x/y"), "afile is a file"),
    ],
)
def test_the_sentence_names_what_is_wrong(arguments, sentence: str, refused, tmp_path: Path) -> None:
    (tmp_path / "afile").write_text("mine")
    assert sentence in refused(*arguments)


DEEP = "[" * 100_000


def test_files_that_never_end_or_are_no_text(refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What a user names is read up to a limit: /dev/zero filled the memory until the system ended the process."""
    from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile, readout_one_hot

    letters = Alphabet.of("a", "b")
    compile(Circuit("same", readout_one_hot(Tokens(letters).one_hot(), letters), InputLanguage.everything(letters, 4))
    ).save(tmp_path / "same")  # fmt: skip
    (tmp_path / "latin").write_bytes(b"\xe4")
    (tmp_path / "deep").write_text(DEEP)
    assert "latin is no text in UTF-8" in refused("generate", "same", "--file", "latin")
    assert "is no JSON" in refused("graft", "same", "same", "--out", "out", "--tokens", "deep")
    assert "is no JSON" in refused("graft", "same", "same", "--out", "out", "--tokens", "latin")
    assert "holds no rows" in refused("reproduce", "every-chain", "--keep", "deep")
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "config.json").write_text(DEEP)
    assert "it is no host" in refused("graft", "host", "same", "--out", "out")
    monkeypatch.setattr("compiler.artifact.plain_files.LARGEST_FILE", 1 << 16)
    (tmp_path / "long").write_text("a" * ((1 << 16) + 1))
    assert "long: it has more than 65,536 bytes" in refused("generate", "same", "--file", "long")


def test_too_little_memory_is_one_sentence(capsys) -> None:
    reason = "Unable to allocate 24.0 GiB for an array with shape (1024, 3072) and data type float64"
    assert front._refused(MemoryError(reason)) == 2
    said = "there is not enough memory for this (24.0 GiB for one array); choose smaller sizes.\n"
    assert capsys.readouterr().err == said


def test_a_mistake_of_the_compiler_is_a_sentence_that_asks_to_report_it(tmp_path, monkeypatch, capsys) -> None:
    """Exit code 1: what was compiled was compared, and is not right."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(
        "from compiler import Circuit, Int, numbers\ncircuit = Circuit('own', numbers(Int(0, 3)) * 2, length=3)\n"
    )
    monkeypatch.setattr("compiler.exactness.compare._difference", lambda *_: (0, 1, 0))
    assert run("show", "own.py:circuit") == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("the compiler made a mistake, and nothing was compiled (please report the circuit): ")
    assert "at position 1 of random numbers" in said


@pytest.mark.parametrize(
    "arguments", [("mqar", "--kappa", "0"), ("mqar", "--kappa", "x"), ("verify", "nowhere"), ("list", "--none")]
)
def test_a_refusal_is_an_object_where_json_was_asked_for(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments, "--json") == 2
    out, err = capsys.readouterr()
    assert json.loads(out) == {"error": err.strip(), "exit_code": 2}


@pytest.mark.parametrize("closed", [1, 2])
def test_a_closed_stream_changes_no_exit_code(closed):
    """`construct … >&-`: Python has no sys.stdout then."""
    for arguments, code in ((("list",), 0), (("mqar", "--kappa", "0"), 2)):
        command = [sys.executable, "-m", "constructions", *arguments]
        found = subprocess.run(
            ["sh", "-c", f'exec "$@" {closed}>&-', "sh", *command], cwd=ROOT, capture_output=True, text=True
        )
        assert found.returncode == code and "Traceback" not in found.stderr + found.stdout, found


def test_a_disguise_is_not_written_into_its_checkpoint(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "construction.json").write_text("{}")
    assert run("disguise", "plain", "--out", "plain/sub") == 2
    assert f"lies in {tmp_path / 'plain'}" in capsys.readouterr().err and len([*(tmp_path / "plain").iterdir()]) == 1


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--power", "0.5"), "power = 0.5 has no effect with layout 'paper'; use --layout benchmark or forgetting"),
        (("--updates", "3"), "updates = 3 has no effect with layout 'paper'; use --layout forgetting"),
        (("--layout", "benchmark", "--updates", "3"), "updates = 3 has no effect with layout 'benchmark'"),
    ],
)
def test_no_parameter_without_effect_is_taken(given, told: str, tmp_path, capsys) -> None:
    assert run("mqar", "--kappa", "4", "--vocab", "8", *given, "--out", str(tmp_path / "out")) == 2
    assert told in " ".join(capsys.readouterr().err.split()) and not (tmp_path / "out").exists()
