"""What reports say of circuits of one's own, and how long lists of names are shown."""

from compiler import Alphabet, Circuit, InputLanguage, Tokens, readout_one_hot
from compiler.artifact.artifact import Artifact
from constructions.checkpoints.artifact import report, verify
from constructions.checkpoints.built import build
from constructions.checkpoints.saved_circuit import SavedCircuit
from constructions.command import display

LETTERS = Alphabet.of("a", "b")
OUTPUT = readout_one_hot(Tokens(LETTERS).one_hot().shift(1), LETTERS)
CIRCUIT = Circuit("the letter before", OUTPUT, InputLanguage.everything(LETTERS, 4))


def test_a_circuit_of_ones_own_is_called_by_its_name_and_claims_no_answers(capsys):
    built = build(SavedCircuit(CIRCUIT, "mamba"))
    display.show_report(report(built, verify(built, built.stack(), "auto", 5, 0), None))
    shown = capsys.readouterr().out
    assert shown.startswith("the letter before")
    assert "promise: bit-exact\n" in shown
    for word in ("answers right", "theorem", "bound"):
        assert word not in shown


def test_a_report_counts_what_was_written_and_says_when_nothing_was_asked(capsys):
    built = build(SavedCircuit(CIRCUIT, "mamba"))
    told = report(built, verify(built, built.stack(), "auto", 5, 0), None) | {"runtime": "modules of ours"}
    told["generation"] = [{"runtime": "step", "chains": 1, "tokens": 2, "wrong": None}]
    display.show_report(told)
    shown = capsys.readouterr().out
    assert "written by step: 1 chain, 2 tokens, all right" in shown
    assert "not asked" in shown and "not run" not in shown
    assert "ran on: modules of ours" in shown


def test_summaries_of_the_list_stand_in_one_paragraph(capsys):
    display.show_list([{"construction": "x", "summary": "one\n    two.\n    ", "theorem": "here"}])
    rows = capsys.readouterr().out.splitlines()
    assert any("one two." in row for row in rows) and len(rows) == 6


def test_names_that_count_up_are_shown_as_one():
    lanes = ["one", *(f"max(n)[{i}]" for i in range(10)), *(f"max(n)[{i}]#2" for i in range(3)), "a[1]", "b[2]", "b[4]"]
    shown = [("one", 1), ("max(n)[0 … 9]", 10), ("max(n)[0 … 2]#2", 3), ("a[1]", 1), ("b[2]", 1), ("b[4]", 1)]
    assert display._runs(lanes) == shown


def test_names_of_weights_may_be_anything():
    shown = [text for text, _ in display._runs(["[0]", "x[0][1]", "x[0][2]", "\n[3]"])]
    assert shown == ["[0]", "x[0][1 … 2]", "\n[3]"]


def test_what_a_run_of_names_holds_is_told_once():
    tokens = [f"20 where the token is k{i}, else 0" for i in range(3)]
    assert display._together(tokens) == "20 where the token is k0 … k2, else 0"
    assert display._together(["the same", "the same"]) == "the same"
    assert display._together(["one", "two words"]) == "one … two words"


def test_names_in_the_weights_come_with_their_meaning(capsys):
    built = build(SavedCircuit(CIRCUIT, "mamba"))
    display.show_manifest(Artifact(built.compiled, built.model).manifest)
    shown = capsys.readouterr().out
    assert shown.startswith("the letter before  a circuit of one's own")
    shown = " ".join(shown.replace("│", " ").split())
    assert "1 where the token is a" in shown and "block 1 channels" in shown


def test_what_is_printed_is_no_wider_than_the_terminal(monkeypatch):
    monkeypatch.setattr(display.console, "_width", 40)
    text = "block 1\n  " + "word " * 30 + "\n\n    deep " + "x" * 30
    lines = display.wrapped(text).splitlines()
    assert max(map(len, lines)) <= 40 and "".join("".join(lines).split()) == "".join(text.split())
    assert lines[0] == "block 1" and lines[2].startswith("      word")


def test_a_bound_of_one_is_no_rate():
    assert display.rate_line(0.125) == "rate of wrong sequences, at most: 0.125"
    assert display.rate_line(1.0) == "rate of wrong sequences: not bounded (our bound is 1 for these sizes)"
