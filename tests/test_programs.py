"""The programs of examples/programs: interpreted exactly, compiled where the target can, against plain Python."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile, interpret
from examples.programs import (
    backwards,
    best_match,
    copy_with_pointer,
    edit_distance_step,
    haar,
    induction_heads,
    keep_nth,
    polynomial,
    two_brackets,
)
from tests.circuits import logits
from tests.spread import some

TARGETS = ("mamba", "mamba2")
DIGITS = Alphabet.of(*(f"{v:+d}" for v in range(-3, 4)))


def _words(circuit: Circuit, exhaustive: int) -> list[np.ndarray]:
    language = circuit.language
    batches = [np.array(list(language.strings(n)), dtype=np.int64) for n in range(1, exhaustive + 1)]
    return [*batches, language.sample(100, language.max_length, seed=0)]


def _check_answers(circuit: Circuit, answers, words: list[np.ndarray], target: str) -> None:
    """The strictly largest score is the oracle's, by the interpreter and by the blocks, wherever it has an answer."""
    compiled = compile(circuit, target)
    for tokens in words:
        scores = interpret(circuit, tokens)[circuit.output].astype(float)
        assert np.array_equal(logits(compiled, tokens), scores)
        for word, rows in zip(tokens, scores, strict=True):
            names = [circuit.alphabet.tokens[i] for i in word]
            for answer, row in zip(answers(names), rows, strict=True):
                if answer is not None:
                    best = circuit.alphabet.index(answer)
                    assert row[best] > np.delete(row, best).max()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "program", [keep_nth, induction_heads, best_match, two_brackets, backwards], ids=lambda m: m.__name__.split(".")[-1]
)
def test_programs_over_letters(program, target: str):
    circuit = program.circuit()
    _check_answers(circuit, program.answers, _words(circuit, 4), target)


@pytest.mark.parametrize("target", ["mamba", "mamba2", "s4d"])
def test_copy_with_pointer(target: str):
    circuit = copy_with_pointer.circuit()
    _check_answers(circuit, copy_with_pointer.answers, _words(circuit, 3), target)


def _table_words() -> list[tuple[list[str], list[list[int]]]]:
    """Every pair of words up to the longest, as the tokens of the whole table, with the table."""
    n = edit_distance_step.LONGEST
    words = ["".join(w) for k in range(1, n + 1) for w in product("ab", repeat=k)]
    found = []
    for first, second in product(words, words):
        rows = edit_distance_step.table(first, second)
        entries = [token for row in rows for token in [*map(str, row[1:]), ";"]]
        found.append(([*first, "|", *second, ";", *entries], rows))
    return found


@pytest.mark.parametrize("target", ["interpreter", *TARGETS])
def test_edit_distance_step(target: str):
    """The next entry at every position of every table whose row goes on."""
    circuit = edit_distance_step.circuit()
    compiled = None if target == "interpreter" else compile(circuit, target)
    for names, rows in some(_table_words(), 0.02):
        tokens = np.array([[circuit.alphabet.index(t) for t in names]])
        steps = interpret(circuit, tokens)[circuit.output] if compiled is None else logits(compiled, tokens)
        start, width = names.index(";"), len(rows[0])
        for at, next_ in enumerate(entry for row in rows for entry in [*row[1:], None]):
            if next_ is not None:
                assert steps[0, start + at, 0] == next_
        assert width * len(rows) == len(names) - start - 1


def _over_digits(stream_of, max_length: int) -> Circuit:
    """The program on tokens that stand for −3 … 3."""
    x = Tokens(DIGITS).number({name: int(name) for name in DIGITS.tokens})
    return Circuit("over-digits", stream_of(x), InputLanguage.everything(DIGITS, max_length))


def _signals(length: int, count: int = 200) -> np.ndarray:
    return np.random.default_rng(0).integers(-3, 4, (count, length))


INTERVALS = [(0, 8), (0, 4), (4, 4), (2, 2), (6, 2)]


@pytest.mark.parametrize(("start", "length"), INTERVALS)
def test_haar_coefficient(start: int, length: int):
    signals = _signals(8)
    circuit = Circuit("haar", haar.coefficient(haar.SIGNAL, start, length))
    values = interpret(circuit, inputs={haar.SIGNAL: signals[:, :, None]})[circuit.output]
    tokens = _over_digits(lambda x: haar.coefficient(x, start, length), 8)
    expected = [haar.answer(list(map(int, signal)), start, length) for signal in signals]
    assert list(values[:, -1, 0]) == expected
    for target in TARGETS:
        assert list(logits(compile(tokens, target), signals + 3)[:, -1, 0]) == expected


def test_polynomial():
    values = np.array(list(product(range(-3, 4), repeat=3)))
    circuit = Circuit("polynomial", polynomial.polynomial(polynomial.VALUES))
    outputs = interpret(circuit, inputs={polynomial.VALUES: values[:, :, None]})[circuit.output]
    expected = [polynomial.answer(list(map(int, row))) for row in values]
    assert list(outputs[:, -1, 0]) == expected
    for target in TARGETS:
        compiled = compile(_over_digits(polynomial.polynomial, 4), target)
        assert list(logits(compiled, values + 3)[:, -1, 0]) == expected
