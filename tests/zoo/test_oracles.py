"""Every circuit of the zoo answers what plain Python says, on short sequences and random ones; no model is built."""

from __future__ import annotations

import ast
import dis
import inspect
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from types import CodeType

import numpy as np
import pytest

from compiler import interpret
from constructions.zoo.collection import FAMILIES, entries, family_of
from constructions.zoo.entry import Answered, Entry, Own
from constructions.zoo.labels import variables
from constructions.zoo.machine import Machine
from constructions.zoo.parquet import OF_THE_TEXT

OWN = [entry for entry in entries().values() if isinstance(entry, Own)]
SHORT, FEW = 4, 150
MOST_LINES = 30


def wrong(entry: Entry, sequences: list[Answered]) -> tuple[int, list[str]]:
    """(how many answers were asked for, the first sequence that the interpreter answers otherwise)."""
    circuit, asked = entry.circuit(), 0
    names = circuit.token_alphabet.tokens
    ids = {name: i for i, name in enumerate(names)}
    for _, same in groupby(sorted(sequences, key=lambda pair: len(pair[0])), key=lambda pair: len(pair[0])):
        rows = list(same)
        tokens = np.array([[ids[token] for token in word] for word, _ in rows])
        for row in tokens[:20].tolist():
            assert circuit.language.accepts(row), [names[i] for i in row]
        scores = interpret(circuit, tokens)[circuit.output].astype(float)
        for (word, answers), given in zip(rows, scores, strict=True):
            for t, answer in enumerate(answers):
                if answer is None:
                    continue
                asked += 1
                right = ids[answer]
                if not given[t, right] > np.delete(given[t], right).max():
                    return asked, word[: t + 1]
    return asked, []


def short_sequences(entry: Own) -> Iterator[Answered]:
    language = entry.circuit().token_language
    for strings in language.short_strings(SHORT, FEW):
        for string in strings:
            word = [language.alphabet.tokens[i] for i in string]
            yield word, entry.answers(word)


@pytest.mark.parametrize("entry", OWN, ids=lambda entry: entry.name)
def test_a_circuit_answers_what_plain_python_says(entry: Own) -> None:
    asked, counterexample = wrong(entry, [*short_sequences(entry), *entry.sequences(8, 1)])
    assert asked and not counterexample, counterexample


def test_a_wrong_answer_is_found() -> None:
    entry = entries()["count-a-to-8"]
    flipped = [(word, ["0" if a == "1" else a for a in answers]) for word, answers in entry.sequences(8, 0)]
    assert wrong(entry, flipped)[1]


@pytest.mark.parametrize("entry", OWN, ids=lambda entry: entry.name)
def test_a_circuit_is_short_and_its_answers_share_no_code_with_it(entry: Own) -> None:
    made = entry.make.func if isinstance(entry.make, partial) else entry.make
    assert len(inspect.getsource(made).splitlines()) <= MOST_LINES
    for function in _functions(entry.oracle):
        assert not _forbidden(function), (entry.name, _forbidden(function))


def _functions(oracle: object) -> Iterator:
    found = [oracle.step, oracle.answer] if isinstance(oracle, Machine) else [oracle]
    return (function for function in found if inspect.isfunction(function))


def _forbidden(function) -> list[str]:
    """Names of the compiler that a function, or one that it calls, uses."""
    seen, left, found = set(), [function], []
    while left:
        now = left.pop()
        if now in seen:
            continue
        seen.add(now)
        held = {name: cell.cell_contents for name, cell in zip(now.__code__.co_freevars, now.__closure__ or ())}
        used = {name: now.__globals__[name] for name in _names(now.__code__) if name in now.__globals__}
        for name, value in (held | used).items():
            module = getattr(value, "__module__", None) or ""
            if inspect.isfunction(value) and module.startswith("constructions.zoo"):
                left.append(value)
            elif isinstance(module, str) and module.startswith("compiler"):
                found.append(name)
    return found


def _names(code: CodeType) -> set[str]:
    """The globals that a function reads; attributes, such as the count of a text, are none."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    own = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*map(_names, inner))


def test_a_shared_word_is_found() -> None:
    namespace: dict = {}
    exec(compile(ast.parse("from compiler import count\ndef f(tokens):\n return str(count)"), "x", "exec"), namespace)
    assert _forbidden(namespace["f"]) == ["count"]


def test_names_are_plain_and_no_variable_is_named_like_a_column() -> None:
    assert len(entries()) == sum(len(family.entries) for family in FAMILIES)  # no name stands twice
    assert len({entry.says for entry in entries().values()}) == len(entries())
    for name in entries():
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-"), name
        assert name not in {family.name for family in FAMILIES}
        assert family_of()[name].title


@pytest.mark.parametrize("entry", OWN, ids=lambda entry: entry.name)
def test_every_circuit_names_variables(entry: Own) -> None:
    named = [variable.name for variable in variables(entry.circuit())]
    assert named and len(set(named)) == len(named) and not set(named) & set(OF_THE_TEXT)
