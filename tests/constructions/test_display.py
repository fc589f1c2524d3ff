"""What reports say of circuits of one's own, and how long lists of names are shown."""

from compiler import Alphabet, Circuit, InputLanguage, Tokens, readout_one_hot
from constructions import display
from constructions.artifact import build, report, verify
from constructions.saved_circuit import SavedCircuit

LETTERS = Alphabet.of("a", "b")
OUTPUT = readout_one_hot(Tokens(LETTERS).one_hot().shift(1), LETTERS)
CIRCUIT = Circuit("the letter before", OUTPUT, InputLanguage.everything(LETTERS, 4))


def test_a_circuit_of_ones_own_is_called_by_its_name_and_claims_no_answers(capsys):
    built = build(SavedCircuit(CIRCUIT, "mamba"))
    display.show_report(report(built, verify(built, built.stack(), "auto", 5, 0), None))
    shown = capsys.readouterr().out
    assert shown.startswith("the letter before")
    assert "promise: bit-exact\n" in shown
    for word in ("answers right", "proof", "theorem", "bound"):
        assert word not in shown


def test_names_that_count_up_are_shown_as_one():
    lanes = ["one", *(f"max(n)[{i}]" for i in range(10)), *(f"max(n)[{i}]#2" for i in range(3)), "a[1]", "b[2]", "b[4]"]
    assert display._shortened(lanes) == "one, max(n)[0 … 9], max(n)[0 … 2]#2, a[1], b[2], b[4]"
    assert display._shortened(lanes, most=2) == "one, max(n)[0 … 9], … (6 more; all in --json)"


def test_names_of_weights_may_be_anything():
    assert display._shortened(["[0]", "x[0][1]", "x[0][2]", "\n[3]"]) == "[0], x[0][1 … 2], \n[3]"
