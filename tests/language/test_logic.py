"""^, abs, any_of, all_of, argmax and hardmax against plain Python, on every short sequence."""

from __future__ import annotations

import numpy as np
import pytest

import compiler
from compiler.driver import compile
from compiler.interpreter import interpret
from compiler.language.logic import all_of, any_of, argmax, hardmax
from compiler.language.words import concatenate, maximum, minimum
from tests.circuits import is_a, is_b, is_c, logits, over_abc

A, B, C = (flag.cumsum() for flag in (is_a, is_b, is_c))
ODD = (A == 1, B == 1, C == 1)


def _counts(word: str) -> list[int]:
    return [word.count(letter) for letter in "abc"]


def _first_largest(numbers: list[float]) -> int:
    return max(range(len(numbers)), key=lambda i: (numbers[i], -i))


WORDS = {
    "xor": (ODD[0] ^ ODD[1], lambda a, b, c: [int((a == 1) != (b == 1))]),
    "abs": (abs(A - B), lambda a, b, c: [a - b if a > b else b - a]),
    "any": (any_of(*ODD), lambda a, b, c: [int(1 in (a, b, c))]),
    "all": (all_of(*ODD), lambda a, b, c: [int((a, b, c) == (1, 1, 1))]),
    "argmax": (argmax(concatenate(A, B, C)), lambda a, b, c: [_first_largest([a, b, c])]),
    "argmax of fractions": (
        argmax(concatenate(A / 4, B / 2 - 0.25, C / 8)),
        lambda a, b, c: [_first_largest([a / 4, b / 2 - 0.25, c / 8])],
    ),
    "one lane meets all": (concatenate(A, B) > C, lambda a, b, c: [int(a > c), int(b > c)]),
    "all lanes meet one": (maximum(C, concatenate(A, B)), lambda a, b, c: [max(a, c), max(b, c)]),
    "smaller than one": (minimum(concatenate(A, B), C), lambda a, b, c: [min(a, c), min(b, c)]),
    "one flag or each": (
        ODD[2] | concatenate(*ODD[:2]),
        lambda a, b, c: [int(c == 1 or a == 1), int(c == 1 or b == 1)],
    ),
    "hardmax": (
        hardmax(concatenate(A - 1, B, 2 - C)),
        lambda a, b, c: [int(i == _first_largest([a - 1, b, 2 - c])) for i in range(3)],
    ),
}


@pytest.mark.parametrize("target", ["mamba", "mamba2", "s4d", "mamba-delta-t"])
@pytest.mark.parametrize(("stream", "oracle"), WORDS.values(), ids=WORDS)
def test_words_made_of_others(stream, oracle, target: str) -> None:
    circuit = over_abc("word", stream, max_length=6)
    compiled = compile(circuit, target)
    tokens = np.array(list(circuit.language.strings(4)))
    expected = [[oracle(*_counts("".join("abc"[i] for i in word[: t + 1]))) for t in range(4)] for word in tokens]
    assert np.array_equal(interpret(circuit, tokens)[circuit.output], expected)
    assert np.array_equal(logits(compiled, tokens), expected)


def test_chains_of_flags_cost_one_comparison() -> None:
    """As many blocks for three flags as for two."""
    depth = [len(compile(over_abc("any", any_of(*ODD[:n]))).blocks) for n in (2, 3)]
    assert depth[0] == depth[1]


def test_what_is_no_flag_is_refused() -> None:
    with pytest.raises(TypeError, match="an input of any_of is is_a.cumsum"):
        any_of(is_a, A)
    with pytest.raises(ValueError, match="all_of was given no flags"):
        all_of()


def test_every_exported_name_exists() -> None:
    assert all(hasattr(compiler, name) for name in compiler.__all__)
    assert {"bits", "signs", "dot", "scaled_sum", "sum_where", "decode", "readout_nearest"} <= set(compiler.__all__)
