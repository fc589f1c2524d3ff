"""Files that a user names: what never begins, never ends or is of another is refused, in a sentence that names it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile, readout_one_hot
from compiler.artifact.plain_files import text_of, write_whole
from constructions.command.generation import _lines
from tests.constructions.test_refusals import run
from verify.arrays import read_arrays


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that answers with its own letter."""
    place = tmp_path_factory.mktemp("saved") / "same"
    letters = Alphabet.of("a", "b")
    whole = InputLanguage.everything(letters, 4)
    compile(Circuit("same", readout_one_hot(Tokens(letters).one_hot(), letters), whole)).save(place)
    return place


@pytest.fixture
def folder(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder with the checkpoint, in which nothing may hang."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(saved, tmp_path / "same")
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(60)
    yield tmp_path
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "pipe": (os.mkfifo, "a named pipe"),
    "endless": (lambda path: path.symlink_to("/dev/zero"), "a device"),
}
READERS = [
    ("automaton", "--table", "f", "--explain"),
    ("linear-attention", "--weights", "f"),
    ("verify", "same", "--data", "f"),
    ("generate", "same", "--file", "f"),
    ("graft", "same", "same", "--tokens", "f", "--out", "out"),
    ("reproduce", "languages", "--keep", "f"),
    ("reproduce", "every-chain", "--keep", "f"),
    ("reproduce", "statements", "--keep", "f"),
    ("score-table", "models", "--keep", "f"),
    ("show", "f.py:circuit"),
]


def refused(capsys: pytest.CaptureFixture, *arguments: str, code: int = 2) -> str:
    """The sentence of a command that must end with this code."""
    capsys.readouterr()
    assert run(*arguments) == code, arguments
    out, err = capsys.readouterr()
    assert "Traceback" not in err and "Warning" not in err and len(err.strip().splitlines()) == 1, (arguments, out, err)
    return err.strip()


def test_nothing_is_written_into_what_is_no_plain_file(folder: Path, capsys: pytest.CaptureFixture) -> None:
    """A pipe without a reader takes nothing, and a file would stand in the place of a device."""
    for name in ("f.svg", "f.html"):
        os.mkfifo(folder / name)
    for arguments in (("graph", "same", "--out", "f.svg"), ("report", "same", "--out", "f.html")):
        said = refused(capsys, *arguments)
        assert said == f"--out {arguments[-1]} is a named pipe, and a plain file is needed."
    with pytest.raises(ValueError, match="f.html is a named pipe"):
        write_whole(folder / "f.html", "")
    assert (folder / "f.html").is_fifo() and not list(folder.glob(".*.partial"))


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_proof_json_is_written_past_what_lies_beside_it(kind: str, folder: Path) -> None:
    """The name of the file that is written first is nobody's to guess: a link under it would be followed."""
    (folder / "victim.txt").write_text("precious")
    beside = folder / "same" / ".proof.json.partial"
    os.mkfifo(beside) if kind == "pipe" else beside.symlink_to("../victim.txt")
    assert run("prove", "same") == 1  # it is none of the files of a checkpoint
    assert beside.name in json.loads((folder / "same" / "proof.json").read_text())["meaning"]["reason"]
    assert (folder / "victim.txt").read_text() == "precious"
    assert beside.is_fifo() if kind == "pipe" else beside.is_symlink()


def test_a_fresh_file_is_made_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even a name that was guessed leads through a link, and what was there stays where the body fails."""
    (folder / "f").write_text("before")
    monkeypatch.setattr("secrets.token_hex", lambda *_: "0")
    (folder / ".f.0.partial").symlink_to("f")
    with pytest.raises(FileExistsError):
        write_whole(folder / "f", "after")
    (folder / ".f.0.partial").unlink()
    with pytest.raises(UnicodeEncodeError):
        write_whole(folder / "f", "\ud800")
    assert [path.name for path in folder.iterdir() if path.name != "same"] == ["f"]
    assert (folder / "f").read_text() == "before"


@pytest.mark.parametrize("accepted", [True, False])
def test_a_directory_in_the_place_of_proof_json_is_refused_before_the_search(
    accepted: bool, folder: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "same" / "proof.json").mkdir()
    monkeypatch.setattr("constructions.command.prove._proved", lambda *_: pytest.fail("it searches"))
    if not accepted:
        (folder / "same" / "model.safetensors").write_bytes(b"")
    for options in ((), ("--json",)):
        said = refused(capsys, "prove", "same", *options)
        assert said == f"{Path('same/proof.json')} is a directory, and a plain file is needed."


@pytest.mark.parametrize("kind", KINDS)
def test_no_command_reads_what_is_no_plain_file(kind: str, folder: Path, capsys: pytest.CaptureFixture) -> None:
    make, told = KINDS[kind]
    for name in ("f", "f.py"):
        make(folder / name)
    for arguments in READERS:
        said = refused(capsys, *arguments)
        file = next(word.partition(":")[0] for word in arguments if word in ("f", "f.py:circuit"))
        assert f"is {told}, and a plain file is needed" in said and file in said, (arguments, said)
    assert sorted(path.name for path in folder.iterdir() if path.name != "models") == ["f", "f.py", "same"]


def test_a_link_to_a_plain_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("ä")
    (tmp_path / "link").symlink_to("text")
    assert text_of(tmp_path / "link") == "ä"
    assert text_of(Path("/proc/self/status")).startswith("Name:")  # of size 0, and more than that is in it


def test_texts_and_arrays_have_a_limit_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text").write_text("a" * 10)
    assert text_of(tmp_path / "text", 10) == "a" * 10
    with pytest.raises(OSError, match="more than 9 bytes"):
        text_of(tmp_path / "text", 9)
    with pytest.raises(OSError, match="more than 100 bytes"):  # though its size is 0
        text_of(Path("/proc/self/status"), 100)
    np.savez(tmp_path / "w.npz", a=np.arange(4))
    assert read_arrays(tmp_path / "w.npz", ["a"], "w")[0].tolist() == [0, 1, 2, 3]
    monkeypatch.setattr("verify.arrays.MOST_FILE", 100)
    with pytest.raises(ValueError, match="w cannot be read: it has more than 100 bytes"):
        read_arrays(tmp_path / "w.npz", ["a"], "w")


def test_no_list_of_parts_and_no_header_is_read_whole(tmp_path: Path) -> None:
    """Some megabytes of names, or a header that says that it has 2^31 bytes, took gigabytes."""
    with zipfile.ZipFile(tmp_path / "parts.npz", "w") as archive:
        for i in range(40):
            archive.writestr(f"{i:030000}", b"")
    with pytest.raises(ValueError, match="more than 1,048,576 bytes"):
        read_arrays(tmp_path / "parts.npz", ["a"], "w")
    with zipfile.ZipFile(tmp_path / "header.npz", "w") as archive:
        archive.writestr("a.npy", b"\x93NUMPY\x02\x00" + (1 << 31).to_bytes(4, "little"))
    with pytest.raises(ValueError, match="more than 1,048,576 bytes"):
        read_arrays(tmp_path / "header.npz", ["a"], "w")


def test_a_table_is_named_in_what_is_wrong_with_it(folder: Path, capsys: pytest.CaptureFixture) -> None:
    (folder / "t").write_text("no JSON")
    (folder / "u").write_text("{}")
    assert refused(capsys, "automaton", "--table", "t", "--explain").startswith("--table t: the table is no JSON")
    assert refused(capsys, "automaton", "--table", "u", "--explain").startswith("--table u: the table must be ")


def test_lines_end_with_a_line_feed_only(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes("a\x0cb\r\n\nc\x1cd\n  \na\u2028b".encode())
    assert _lines(tmp_path / "p") == ["a\x0cb", "c\x1cd", "a\u2028b"]


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "construction.json"])
def test_verify_says_what_stands_in_the_place_of_a_file(name: str, folder: Path, capsys) -> None:
    (folder / "same" / name).unlink()
    os.mkfifo(folder / "same" / name)
    assert run("verify", "same") == 1
    said = capsys.readouterr().err
    assert said.startswith(f"same/{name} is a named pipe, and a plain file is needed.\n") and "missing" not in said


def test_a_plain_checkpoint_has_no_disguise_to_take_back(folder: Path, capsys) -> None:
    os.mkfifo(folder / "key")
    said = refused(capsys, "undisguise", "same", "--key", "key", "--out", "out")
    assert said.startswith("same is no disguised checkpoint;") and not (folder / "out").exists()


# What is recorded of other weights ----------------------------------------------------------------------------------


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-4])


def _other(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")


def _endless(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("damage", [_empty, _cut, _other, _endless, Path.unlink])
def test_inspect_claims_nothing_of_other_weights(damage, folder: Path, capsys: pytest.CaptureFixture) -> None:
    damage(folder / "same" / "model.safetensors")
    assert run("inspect", "same") == 1
    out, err = capsys.readouterr()
    assert "promise: " not in out and "proof: " not in out and "is_a" not in err and "lanes (" in out
    assert err.startswith("same/model.safetensors is ") and "of other files" in err
    assert run("inspect", "same", "--json") == 1
    assert json.loads(capsys.readouterr().out)["damage"].startswith("same/model.safetensors is ")


def test_the_file_that_is_no_json_is_the_one_that_is_named(folder: Path, capsys: pytest.CaptureFixture) -> None:
    graph = folder / "same" / "causal_graph.json"
    graph.unlink()
    graph.symlink_to(__file__)
    assert run("verify", "same") == 1
    said = capsys.readouterr().err
    assert said.startswith("same/causal_graph.json is not JSON") and "circuit.json" not in said


def test_a_sequence_that_is_none_of_the_promised_is_said_to_be(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    letters = Alphabet.of("a", "b", "c")
    language = InputLanguage.of(letters, "any", [("any", "any", ("a", "b"))], 4, "strings of a and b")
    compile(Circuit("same", readout_one_hot(Tokens(letters).one_hot(), letters), language)).save(tmp_path / "same")
    asked = ("verify", str(tmp_path / "same"), "--data", str(tmp_path / "d.npz"))
    inputs, nobody = np.array([[0, 2, 1], [0, 1, 1], [2, 2, 2]]), [-100] * 3
    for labels, outside, code in (
        ([[0, 2, 1], [0, 1, 1], nobody], 2, 0),
        ([[0, -100, -100], [0, 1, 1], nobody], 1, 0),
        ([[0, 1, -100], [0, 1, 1], nobody], 2, 1),
        ([nobody, [1, 1, 1], nobody], 2, 1),
    ):
        np.savez(tmp_path / "d.npz", inputs=inputs, labels=np.array(labels))
        capsys.readouterr()
        assert run(*asked) == code
        out, err = capsys.readouterr()
        assert f"3 sequences of 3 tokens, {outside} of them outside of the promise" in out
        own = "the label of the data is another than the circuit's answer" in err
        promised = "the promise says nothing of that sequence: after 'a' 'a' or 'b' must come, not 'c'" in err
        assert (own, promised) == ((False, False) if code == 0 else (labels[0] == nobody, labels[0] != nobody))


def test_inspect_says_that_it_shows_a_record(folder: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("inspect", "same") == 0
    out = capsys.readouterr().out
    assert out.index("recorded when it was saved") < out.index("promise: ")
    assert run("inspect", "same", "--json") == 0
    assert json.loads(capsys.readouterr().out)["damage"] is None


# Sizes and weights beyond the limits --------------------------------------------------------------------------------


def test_weights_beyond_the_largest_are_named(folder: Path, capsys: pytest.CaptureFixture) -> None:
    ones, large = np.ones((2, 2)), np.array([[1, 1], [1e300, 1]])
    np.savez("w.npz", W_Q=large, W_K=ones, W_V=ones)
    np.savez("n.npz", W_Q=ones, W_K=ones, W_V=ones * np.nan)
    np.savez("wide.npz", W_Q=ones, W_K=ones, W_V=np.ones((513, 2), np.int8))
    assert "--weights w.npz: W_Q[1, 0] is 1e+300, and" in refused(capsys, "linear-attention", "--weights", "w.npz")
    assert "--weights n.npz: W_V[0, 0] is nan" in refused(capsys, "linear-attention", "--weights", "n.npz")
    assert "513 rows or columns, and 512" in refused(capsys, "linear-attention", "--weights", "wide.npz")


def test_sizes_beyond_the_limit_are_refused_before_work(folder: Path, capsys: pytest.CaptureFixture) -> None:
    said = refused(capsys, "linear-attention", "--d", "1" + "0" * 30)
    assert said == "d = an integer beyond 2^64 is too large; the largest that is tried is 512"
    large = ("--d-model", "4096", "--length", "4096", "--d-state", "1024")
    said = refused(capsys, "sensitivity", "--random", "mamba", *large)
    assert "724 positions are possible" in said
    table = {"start": "s", "accept": ["s"], "transitions": {"s": {f"l{i}": "s" for i in range(4097)}}}
    (folder / "t").write_text(json.dumps(table))
    assert "4,097 letters, and 4,096 are the most" in refused(capsys, "automaton", "--table", "t")
