"""The inputs and the variables that methods are asked on."""

from __future__ import annotations

from dataclasses import replace

from compiler import InputLanguage, compile
from constructions.scoring.table import TWINS
from constructions.scoring.truth import Truth
from constructions.selectivity.mqar import MQAR
from tests.artifact.test_compare import LETTERS, count_since
from tests.scoring.problems import circuit


def test_inputs_are_drawn_where_keys_run_out():
    """Whoever goes on with pairs behind the third has no key left."""
    truth = Truth(compile(MQAR(kappa=3, vocab=4).circuit(), "mamba"))
    assert truth.draw(50, 0).shape == (50, 12)


def test_inputs_are_as_long_as_the_language_has_them():
    circuit = count_since()
    two = InputLanguage.of(LETTERS, "s", [("s", "t", "a"), ("t", "end", ("a", "b"))], 8, "two letters")
    assert Truth(compile(replace(circuit, language=two), "mamba")).draw(5, 0).shape == (5, 2)


def test_every_circuit_has_a_variable_and_its_interchange_changes_answers():
    for name in TWINS:
        truth = Truth(compile(circuit(name), "mamba"))
        ids = truth.draw(40, 1)
        for variable in truth.variables:
            swapped = truth.pairs(variable, ids[:20], ids[20:]).answers
            assert (swapped != truth.answers(ids[:20])).any(), (name, variable)
            own = truth.pairs(variable, ids[:20], ids[:20]).answers
            assert (own == truth.answers(ids[:20])).all(), (name, variable)
