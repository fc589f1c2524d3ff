"""Rules over scores: the first that holds wins over every score, with weights from proven bounds, or the circuit is
refused.
"""

from __future__ import annotations

import numpy as np
import pytest

import compiler
from compiler.analysis.domains import Domains
from compiler.artifact.package import language_model
from compiler.compiled import run_blocks
from compiler.errors import CompileError
from compiler.exactness.compare import Miscompiled
from compiler.interpreter import interpret
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.data import from_data, to_data
from compiler.language.input_language import InputLanguage
from compiler.language.output import decide, readout_integer, readout_one_hot
from compiler.language.source import Tokens
from compiler.language.stream import constant
from compiler.language.words import concatenate
from compiler.passes import rule_weights
from compiler.passes.rule_weights import rule_weight
from compiler.targets import target_names

DIGITS = Alphabet.of("+", "-", "!", ".", d=9)
tokens = Tokens(DIGITS)
total = tokens.number({"+": 1, "-": -1}).cumsum()
number = readout_integer(total, DIGITS, {f"d{i}": i for i in range(9)})
shout, end = tokens.is_in(["!"]), tokens.is_in(["."])
RULES = [(shout, "d3"), (shout.shift(1) | end, "."), (end.shift(2), "d8")]


def _circuit(length: int = 30, rules=RULES) -> Circuit:
    return Circuit("ruled", decide(rules, otherwise=number), InputLanguage.everything(DIGITS, length))


def _expected(word: list[str], t: int) -> str:
    def back(k: int) -> str:
        return word[t - k] if t >= k else ""

    if back(0) == "!":
        return "d3"
    if back(1) == "!" or back(0) == ".":
        return "."
    if back(2) == ".":
        return "d8"
    return f"d{min(max(word[: t + 1].count('+') - word[: t + 1].count('-'), 0), 8)}"


def _wrong(scores: np.ndarray, words: np.ndarray) -> list[tuple]:
    found = []
    for word, rows in zip(words, scores, strict=True):
        names = [DIGITS.tokens[i] for i in word]
        for t, row in enumerate(rows):
            best = DIGITS.index(_expected(names, t))
            if not all(row[best] > score for i, score in enumerate(row) if i != best):
                found.append((names[: t + 1], list(row)))
    return found


def _words(length: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    ends = np.repeat([[0], [1]], length, axis=1)  # as far up and down as a sequence goes
    ends[:, length // 2] = 2
    ends[:, -1] = 3
    return np.concatenate([rng.integers(0, DIGITS.size, (30, length)), ends])


@pytest.mark.parametrize(
    "target", [t for t in target_names() if not t.startswith("gated-deltanet")]
)  # the circuit counts
def test_the_first_rule_that_holds_wins_strictly_else_the_number(target: str):
    compiled = compiler.compile(_circuit(), target)
    words = _words(30)
    assert _wrong(compiled.interpret(words), words) == []
    lanes = run_blocks(compiled, words)[-1]
    scores = np.asarray((compiled.head @ lanes.reshape(-1, lanes.shape[-1]).T).T).reshape(*words.shape, -1)
    assert np.array_equal(scores, compiled.interpret(words))


def test_the_circuit_as_written_means_the_same():
    circuit, words = _circuit(), _words(30)
    scores = interpret(circuit, words)[circuit.output]
    assert _wrong(scores, words) == []
    known = Domains(circuit.language, 30).of(circuit.output)
    flat = scores.reshape(-1, DIGITS.size)
    assert (flat.min(axis=0) >= known.low).all() and (flat.max(axis=0) <= known.high).all()


def test_a_weight_that_is_half_as_large_lets_a_score_win():
    """At 12 pluses d8 leads `.` by 16·12 − 64 + 1.

    The weight must be above that, and the proof does not waste more than it must.
    """
    circuit = _circuit(12, [(end, ".")])
    weight = rule_weight((DIGITS.index("."),), Domains(circuit.language, 12).of(number))
    lead = max(2 * v * 12 - v * v for v in range(9)) + 1
    assert weight > lead
    assert weight <= 4 * lead


def test_a_weight_that_is_too_small_is_caught(monkeypatch):
    compiler.compile(_circuit())
    monkeypatch.setattr(rule_weights, "rule_weight", lambda tokens, scores: 1)
    with pytest.raises(Miscompiled, match="what was left out of logits .* or the weights of its rules, changed"):
        compiler.compile(_circuit())


def test_a_later_rule_alone_beats_the_scores():
    circuit = _circuit(30, [(shout, "d3"), (end, "+")])
    words = np.repeat([[0]], 30, axis=1)
    words[:, -1] = 3
    assert compiler.compile(circuit).interpret(words)[0, -1].argmax() == 0


def test_scores_that_the_dtype_does_not_hold_are_refused():
    with pytest.raises(CompileError, match="bfloat16"):
        compiler.compile(_circuit(400), dtype="bfloat16")


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_what_is_kept_with_its_weights_compiles_to_the_same_where_the_circuit_as_written_is_refused(target: str):
    """A number that no format holds stands beside flags that bounds decide; nothing is made of it."""
    beside = concatenate(constant(2**40) // 3, tokens.one_hot("+", "-") < -1)
    rules = decide([(beside[2], ".")], readout_integer(beside[1], DIGITS, {"d0": 0, "d1": -1, "d2": -2}))
    compiled = compiler.compile(Circuit("beside", rules, InputLanguage.everything(DIGITS, 4)), target)
    kept = compiler.compile(from_data(to_data(compiled.source)), target)
    own, again = (language_model(c).tensors for c in (compiled, kept))
    assert own.keys() == again.keys() and all(np.array_equal(own[name], again[name]) for name in own)


def test_rules_over_symbols_fit_bfloat16():
    scores = readout_one_hot(tokens.one_hot().shift(1), DIGITS)
    circuit = Circuit("last", decide([(end, "!"), (shout, ".")], scores), InputLanguage.everything(DIGITS, 100))
    compiled = compiler.compile(circuit, dtype="bfloat16")
    assert compiled.interpret(np.array([[5, 3, 2]]))[0].argmax(axis=-1).tolist()[1:] == [2, 3]


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: decide([(end, "!")], otherwise=total), "the scores of a readout are needed"),
        (lambda: decide([], otherwise=number), "at least one"),
        (lambda: decide([end], otherwise=number), r"\(flag, token\) is needed"),
        (lambda: decide([(tokens.one_hot(), "!")], otherwise=number), "one flag for each rule"),
        (lambda: decide([(end, "?")], otherwise=number), r"'\?'"),
    ],
)
def test_misuse_is_refused_where_it_is_written(make, words: str):
    with pytest.raises((TypeError, ValueError, KeyError), match=words):
        make()


def test_a_number_is_no_flag():
    with pytest.raises(CompileError, match="a Bool is needed"):
        compiler.compile(_circuit(9, [(total, ".")]))
