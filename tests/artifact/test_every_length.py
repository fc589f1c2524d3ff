"""A promise without a length: what is written, read, said and refused."""

import json

import pytest
from typer.testing import CliRunner

from compiler import Alphabet, Circuit, CompileError, InputLanguage, Tokens, compile, count, emit, latch, position
from compiler.language.data import language_from_data, language_to_data
from compiler.language.data.scalars import DataError
from compiler.language.input_language import LARGEST_LENGTH
from constructions.command.cli import app

LETTERS = Alphabet.of("a", "b", "c")
X = Tokens(LETTERS)
BEGAN = latch(X.number({"a": 2, "b": 1}), X.is_in(["a", "b"]))  # the last of a and b so far


def _circuit(flag, max_length: int | None = None) -> Circuit:
    return Circuit("own", emit(LETTERS, (flag, "a"), otherwise="c"), InputLanguage.everything(LETTERS, max_length))


def _said(*arguments: str) -> str:
    return " ".join(CliRunner().invoke(app, arguments, catch_exceptions=False).output.split())


def test_a_language_of_every_length_is_null_in_files_and_no_other_number() -> None:
    language = InputLanguage.everything(LETTERS, None)
    data = language_to_data(language)
    assert data["length"] is None and language_from_data(data, LETTERS) == language
    assert language.with_length(7).with_length(None) == language and not language.with_length(7).every_length
    for length in (LARGEST_LENGTH + 1, language.max_length, "every", 0):
        with pytest.raises(DataError):
            language_from_data(data | {"length": length}, LETTERS)


def test_a_circuit_of_ones_own_that_only_keeps_is_promised_and_proved_for_every_length(tmp_path) -> None:
    directory = tmp_path / "own"
    compile(_circuit(BEGAN == 2), "mamba").save(directory)
    for file in ("circuit.json", "construction.json"):
        assert json.loads((directory / file).read_text())["promise"]["length"] is None
    card = (directory / "README.md").read_text()
    assert "of every length" in card and "Beyond that" not in card
    assert "accepted for every sequence of the input language of every length" in _said("prove", str(directory))
    for command in ("inspect", "verify"):
        assert "of every length, float32" in _said(command, str(directory))
    assert _said("generate", str(directory), "--prompt", "a b a c", "--max-tokens", "1").split()[-1] == "a"
    written = "".join(file.read_text() for file in directory.iterdir() if file.suffix in (".json", ".md"))
    assert not any(str(1 << n) in written for n in (53, 54))


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
@pytest.mark.parametrize(
    ("flag", "longest"),
    [
        (count(X.is_in("a"), reset=X.is_in("b")) > 3, 1 << 20),
        (X.is_in("a").cumsum() > 2, LARGEST_LENGTH),
        (position() > 5, LARGEST_LENGTH),
    ],
    ids=["count since", "sum", "position"],
)
def test_what_counts_is_refused_with_the_reason(flag, longest, target) -> None:
    """Also counts that are only compared with small numbers, which a bounded promise lets outgrow the format."""
    with pytest.raises(
        CompileError, match=r"(?s)grows with the length, and the promise is for every length.*would fit"
    ):
        compile(_circuit(flag), target)
    assert compile(_circuit(flag, longest), target)
