"""Streams that share their lanes are one variable, and what no exchange of lanes exchanges is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile, readout_integer
from compiler.ir.block import UnsafePreactivation
from constructions.command.cli import command_line
from constructions.copy_dp.words import EditDistance, LongestCommonSubsequence
from constructions.scoring import truth as truths
from constructions.scoring import variables as scored
from constructions.scoring.truth import Truth
from constructions.scoring.variables import left_out, standing

LETTERS = Alphabet.of("a", "b", *(str(n) for n in range(17)))
SHARED = ("is_letter.cumsum()", "is_letter.cumsum()#2")


def counted_twice():
    """A circuit that counts its a's twice, of which the compiler makes one lane."""
    tokens = Tokens(LETTERS)
    one = tokens.is_in("a").cumsum()
    two = tokens.is_in("a").cumsum()
    answer = readout_integer(one + two, LETTERS, {str(n): n for n in range(17)})
    language = InputLanguage.of(LETTERS, "any", [("any", "any", ("a", "b"))], 8, "strings of a and b")
    return compile(Circuit("twice", answer, language), "mamba")


def scores(directory: Path, capsys) -> dict:
    command_line()(["score", str(directory), "--method", "oracle", "--json"], standalone_mode=False)
    return json.loads(capsys.readouterr().out)


def test_two_equal_counts_are_one_variable(tmp_path, capsys):
    counted_twice().save(tmp_path / "twice")
    told = scores(tmp_path / "twice", capsys)
    assert told["variables"] == {"one": ["one", "two"]} and told["left_out"] == {}
    (row,) = told["scores"]
    assert row["interchange"] == 1 and 100 < row["answers"] <= 800  # one variable's, of 100 pairs of 8 tokens


@pytest.mark.parametrize(
    "made", [EditDistance(length=3), LongestCommonSubsequence(length=4)], ids=lambda made: made.name
)
def test_the_truth_of_a_table_of_two_words_is_the_model_s(made, tmp_path, capsys):
    made.compiled().save(tmp_path / "made")
    told = scores(tmp_path / "made", capsys)
    assert told["scores"][0]["interchange"] == 1 and SHARED in map(tuple, told["variables"].values())


def test_the_command_names_what_is_one_variable(tmp_path, capsys):
    counted_twice().save(tmp_path / "twice")
    command_line()(["score", str(tmp_path / "twice"), "--method", "oracle"], standalone_mode=False)
    assert "one variable, for they are equal and share their lanes: 'one', 'two'" in " ".join(
        capsys.readouterr().out.split()
    )


def test_what_no_exchange_of_lanes_exchanges_is_left_out(monkeypatch):
    """One of two equal streams alone: the model changes both."""
    compiled = counted_twice()
    (equal,) = standing(compiled).values()
    apart = {v.name: (v,) for v in equal}
    ids = compiled.source.token_language.sample(40, 8, 0)
    assert left_out(compiled, standing(compiled), ids[:20], ids[20:]) == {}
    found = left_out(compiled, apart, ids[:20], ids[20:])
    assert found.keys() == {"one", "two"} and all("the model's scores are not those" in why for why in found.values())
    monkeypatch.setattr(truths, "standing", lambda compiled: apart)
    with pytest.raises(ValueError, match="no variable of the circuit 'twice' can be exchanged: of 'one', where"):
        Truth(compiled)


def test_an_exchange_that_is_not_exact_is_left_out(monkeypatch):
    """A block says where it is not exact; the reason is told, and no sum that would be wrong."""
    compiled = counted_twice()
    variables, ids = standing(compiled), compiled.source.token_language.sample(4, 8, 0)

    def unsafe(*_):
        raise UnsafePreactivation("a state would fade")

    monkeypatch.setattr(scored, "_with_lanes", unsafe)
    assert "leaves the numbers on which it is exact" in left_out(compiled, variables, ids[:2], ids[2:])["one"]
