"""`verify(circuit, function)`: every short sequence, and the first that differs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import sparse

from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile, count, readout_integer
from verify import Automaton, verify

LETTERS = Alphabet.of("a", "b", "c", *(str(n) for n in range(9)))
X = Tokens(LETTERS)
SINCE = count(X.is_in("a"), reset=X.is_in("b")).named("since")
LANGUAGE = InputLanguage.of(LETTERS, "any", [("any", "any", ("a", "b", "c"))], 8, "strings of a, b, c")
CIRCUIT = Circuit("count-since", readout_integer(SINCE, LETTERS, {str(n): n for n in range(9)}), LANGUAGE)


def since_b(tokens: list[str]) -> str:
    return str("".join(tokens).rpartition("b")[2].count("a"))


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_a_right_circuit(target: str, capsys: pytest.CaptureFixture) -> None:
    outcome = verify(CIRCUIT, since_b, upto=6, target=target)
    assert outcome and outcome.sequences == sum(3**n for n in range(1, 7))
    assert capsys.readouterr().out == "right on all 1,092 sequences of up to 6 tokens\n"


def test_the_first_counterexample_is_printed(capsys: pytest.CaptureFixture) -> None:
    outcome = verify(CIRCUIT, lambda tokens: str(tokens.count("a")))
    assert not outcome and outcome.sequences == 4  # a, b, c and a a were right
    assert capsys.readouterr().out == "on a b: the circuit says '0', the function '1'\n"


def test_numbers_and_positions_where_nobody_asks() -> None:
    circuit = Circuit("number", SINCE, LANGUAGE)
    number = lambda tokens: int(since_b(tokens))
    assert verify(circuit, lambda tokens: None if tokens[-1] == "c" else number(tokens), upto=4, show=len)
    assert verify(circuit, lambda tokens: (number(tokens),), upto=3, show=len)
    wrong = verify(circuit, lambda tokens: len(tokens), upto=3, show=len)
    assert str(wrong) == "on b: the circuit says 0.0, the function 1"


def test_a_wrong_module_is_found() -> None:
    """The interpreter and the function agree; the weights do not."""
    compiled = compile(CIRCUIT)
    head = sparse.csr_array(compiled.head * 2)
    outcome = verify(dataclasses.replace(compiled, head=head), since_b, upto=3, show=len)
    assert "of the real module is" in str(outcome)


def test_ties_are_no_answers() -> None:
    tied = Circuit("tie", np.ones((2, 1)) @ SINCE, LANGUAGE)
    assert (
        str(verify(tied, lambda tokens: "a", show=len))
        == "on a: the circuit says 'a tie of 2 tokens', the function 'a'"
    )


def test_refusals() -> None:
    everything = InputLanguage.everything(LETTERS, 100)
    with pytest.raises(ValueError, match="upto = 9 means more than 1,048,576 sequences; the largest that works is 5"):
        verify(Circuit("wide", CIRCUIT.output, InputLanguage.everything(LETTERS, 8)), since_b, upto=9)
    with pytest.raises(ValueError, match="upto is 0, and it must be an integer of at least 1"):
        verify(CIRCUIT, since_b, upto=0)
    with pytest.raises(ValueError, match="'x' is not in the alphabet"):
        verify(CIRCUIT, lambda tokens: "x", show=len)
    with pytest.raises(ValueError, match="is a list, and a token, None or 12 numbers are needed"):
        verify(CIRCUIT, lambda tokens: [1, 2], show=len)
    assert verify(
        Circuit("long", SINCE, everything),
        lambda tokens: tokens.count("a") if tokens == ["a"] else None,
        upto=2,
        show=len,
    )


def test_a_function_that_never_asks_compares_nothing() -> None:
    with pytest.raises(ValueError, match="answers None on all 12 sequences of up to 2 tokens, so nothing was compared"):
        verify(CIRCUIT, lambda tokens: None, upto=2)
    with pytest.raises(ValueError, match="nothing was compared; it reads 'q', which is no token of the circuit's"):
        verify(CIRCUIT, Automaton("e", {"e": {"q": "e"}}, {"e": "0"}), upto=2)


def test_an_error_of_the_function_tells_its_sequence() -> None:
    with pytest.raises(ZeroDivisionError) as error:
        verify(CIRCUIT, lambda tokens: str(1 // tokens.count("a")), upto=2)
    assert error.value.__notes__ == ["raised by the function on the sequence: b"]
