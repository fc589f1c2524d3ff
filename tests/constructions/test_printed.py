"""Nothing that a file holds reaches a terminal as an instruction, or as a line of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile, count, readout_integer
from compiler.language.markdown import one_line, printable
from constructions.command.display import console
from constructions.command.outputs import picture_path
from constructions.pictures.page import save
from tests.artifact.test_compare import reseal
from tests.constructions.test_construct import run

ESC, FORGED = "\x1b[31m", "proof: of everything"
TEXT = f"strings{ESC}\x9b\u202e\n{FORGED}\n"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A circuit whose name, description, letters and streams hold what terminals obey."""
    letters = Alphabet.of("a", ESC, *map(str, range(13)))
    x = Tokens(letters)
    seen = count(x.is_in(ESC), reset=x.is_in("a")).named(f"seen{ESC}")
    answer = readout_integer(seen, letters, {str(n): n for n in range(13)})
    language = InputLanguage.of(letters, "any", [("any", "any", ("a", ESC))], 12, TEXT)
    place = tmp_path_factory.mktemp("printed") / "c"
    compile(Circuit(f"name{TEXT}", answer, language)).save(place)
    return place


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that breaks no line by itself, also where the console met another width when it was made."""
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setattr(console, "_width", 1000)


COMMANDS = {
    "verify": ("verify", "{}"),
    "prove": ("prove", "{}"),
    "inspect": ("inspect", "{}"),
    "show": ("show", "{}"),
    "source": ("show", "{}", "--stage", "source"),
    "trace": ("trace", "{}", "--input", f"a {ESC}"),
    "outside": ("trace", "{}", "--input", f"a {ESC} 1 1 1 1"),
    "trace as JSON": ("trace", "{}", "--input", f"a {ESC}", "--json"),
    "generate": ("generate", "{}", "--prompt", f"a {ESC}"),
    "refused": ("generate", "{}", "--prompt", "1"),
    "refused as JSON": ("generate", "{}", "--prompt", f"1{TEXT}", "--json"),
    "sensitivity": ("sensitivity", "{}", "--input", f"a {ESC}"),
    "score": ("score", "{}", "--method", "oracle"),
    "twin": ("twin", "{}", "--out", "{}/../twin", "--steps", "1", "--force"),
    "graph": ("graph", "{}", "--json"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_what_a_terminal_obeys(
    command: str, hostile: Path, wide: None, capsys: pytest.CaptureFixture
) -> None:
    run(*(part.format(hostile) for part in COMMANDS[command]))
    told = capsys.readouterr()
    for line in (told.out + told.err).replace("\r", "\n").splitlines():
        assert all(c.isprintable() for c in line), line
        assert not line.lstrip().startswith(FORGED)
    assert not command.endswith("JSON") or json.loads(told.out)


def test_an_automaton_of_a_file_is_printed_as_text(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """A letter that nobody sees is refused, in a sentence that shows it; states may have any name."""
    table = {"start": f"s{ESC}", "accept": [f"s{ESC}"], "transitions": {f"s{ESC}": {ESC: f"s{ESC}"}}}
    (tmp_path / "t.json").write_text(json.dumps(table))
    asked = ("automaton", "--table", str(tmp_path / "t.json"), "--out", str(tmp_path / "c"), "--samples", "20")
    assert run(*asked) == 2
    refused = capsys.readouterr().err
    assert "the name '\\x1b[31m' has characters that cannot be seen" in refused and "\x1b" not in refused
    table["transitions"] = {f"s{ESC}": {"a": f"s{ESC}"}}
    (tmp_path / "t.json").write_text(json.dumps(table))
    assert run(*asked) == 0
    run("inspect", str(tmp_path / "c"))
    told = capsys.readouterr()
    assert "\\x1b[31m" in told.out and "\x1b" not in told.out + told.err


def test_a_manifest_that_was_sealed_again_adds_no_line(hostile: Path, tmp_path: Path, wide: None, capsys) -> None:
    names = json.loads((hostile / "construction.json").read_text())["meanings"]
    place = tmp_path / "c"
    compile_again(hostile, place)
    names["lanes"][0] = TEXT
    reseal(place, meanings=names, theorem=TEXT, obstructions=[TEXT], needed=TEXT, cuda_limits=[TEXT])
    assert run("inspect", str(place)) == 0
    told = capsys.readouterr().out
    assert "strings\\x1b[31m" in told and all(c.isprintable() or c == "\n" for c in told)
    assert not any(line.strip() == FORGED for line in told.splitlines())


def compile_again(source: Path, place: Path) -> None:
    place.mkdir()
    for file in source.iterdir():
        (place / file.name).write_bytes(file.read_bytes())


@pytest.mark.parametrize("name", ["two\nlines", "two\u2028lines", "end\n"])
def test_a_stream_has_a_name_of_one_line(name: str) -> None:
    with pytest.raises(ValueError, match="a text of one line is needed"):
        Tokens(Alphabet.of("a")).is_in("a").named(name)
    with pytest.raises(ValueError, match="a text of one line is needed"):
        Tokens(Alphabet.of("a")).is_in("a", name=name)


def test_what_cannot_be_printed_is_escaped_and_all_else_stands() -> None:
    assert printable("a  b\nc ñ Δ") == "a  b\nc ñ Δ"
    assert printable(f"{ESC}\x9b\u202e\t") == "\\x1b[31m\\x9b\\u202e\\t"
    assert one_line(f" a\n\n b{ESC}") == "a b\\x1b[31m"


@pytest.mark.parametrize("name", ["..svg", "...PNG", "..pdf", "pictures/..svg"])
def test_a_name_that_is_all_ending_is_no_pictures(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pictures").mkdir()
    with pytest.raises(ValueError, match="a picture ends in"):
        picture_path(Path(name), "--out")
    save(Figure(), tmp_path / name, 50)  # and where a program asks for one, it stands there and nowhere else
    assert [path.name for path in tmp_path.rglob("*.*")] == [Path(name).name]
