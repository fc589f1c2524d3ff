"""Under every intervention that a model takes, its bits are those of the circuit under the same one."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile, count, readout_integer
from compiler.analysis.affine_form import ONE
from compiler.tracing.compared import differences
from compiler.tracing.forward import set_lanes
from compiler.tracing.interchange import interchange
from compiler.tracing.intervention import LaneSetting, NotCarried, Setting, lane_settings
from compiler.tracing.patch import Patch
from compiler.tracing.truth import Truth
from compiler.tracing.variables import Variable
from examples.programs import two_brackets
from tests.spread import some
from tests.tracing.models import MIXERS, brackets, case, depth, truth_of
from tests.tracing.test_trace import stacks, words

CASES = (
    "mqar_sum",
    "mqar_once",
    "mqar_last",
    "two_memories",
    "first_rule_that_holds",
    "shift_of_a_state",
    "count_since",
)


def settable(truth: Truth) -> list[Variable]:
    return [v for v in truth.variables if not v.constant and truth.carriers.reason(v) is None]


def choices(truth: Truth, variable: Variable) -> Iterator[np.ndarray]:
    """Values that the variable can have: all alternatives and absent, or all integers of its range and a few."""
    decoder, domain = truth.decoder(variable.name), truth.compiled.domains.of(variable.stream)
    if decoder.words is not None:
        yield from [np.zeros(variable.width), *decoder.words]
    elif variable.width == 1:
        low, high = max(int(domain.low[0]), -3), min(int(domain.high[0]), 9)
        yield from (np.array([float(n)]) for n in range(low, high + 1))


def every_one(truth: Truth, variable: Variable, ids: np.ndarray) -> Iterator[tuple[np.ndarray, Setting]]:
    """Each word with each position set to each value, as one batch."""
    values = list(choices(truth, variable))
    for value in values:
        for at in range(ids.shape[1]):
            where = np.zeros(ids.shape, dtype=bool)
            where[:, at] = True
            yield ids, Setting(where, np.broadcast_to(value, (*ids.shape, variable.width)))


@pytest.mark.parametrize("mixer", MIXERS)
@pytest.mark.parametrize("which", ["brackets", "depth"])
def test_every_intervention_on_every_short_word(which: str, mixer: str) -> None:
    truth = {"brackets": brackets, "depth": depth}[which](mixer)
    language = truth.compiled.source.token_language
    done = 0
    for variable in settable(truth):
        for length in (1, 2, 3):
            ids = np.array(list(language.strings(length)), dtype=np.int64)
            for batch, setting in every_one(truth, variable, ids):
                intervention = {variable: setting}
                run = truth.run(batch, lane_settings(truth.carriers, batch, intervention, True))
                assert differences(truth.variables, run, batch, intervention, True) == []
                done += len(batch)
    assert done > 500


@pytest.mark.parametrize("mixer", MIXERS)
@pytest.mark.parametrize("name", CASES)
def test_interventions_on_the_shared_circuits(name: str, mixer: str) -> None:
    truth = case(name, mixer)
    language = truth.compiled.source.token_language
    ids = language.sample(12, min(7, language.max_length), 1)
    found = settable(truth)
    assert found, "every circuit has something that can be set"
    for variable in found:
        for batch, setting in every_one(truth, variable, ids):
            intervention = {variable: setting}
            run = truth.run(batch, lane_settings(truth.carriers, batch, intervention, True))
            assert differences(truth.variables, run, batch, intervention, True) == []


@pytest.mark.parametrize("mixer", MIXERS)
def test_the_stack_is_set_and_plain_python_agrees(mixer: str) -> None:
    patch = Patch(brackets(mixer))
    for ids in some(words(patch.truth.compiled.source.token_language, 3), 0.04):
        tokens = [patch.truth.compiled.source.token_alphabet.tokens[i] for i in ids]
        for at in range(len(ids)):
            for top in ("(", "[", None):
                trace = patch.also({"stack": {at: top}}).trace(tokens)
                tops = [stack[-1] if stack else None for stack in stacks(tokens)]
                tops[at] = top
                assert trace["stack"] == tops
                assert trace["output"] == [None if t is None else ")]"["([".index(t)] for t in tops]
                assert trace.agrees and not trace.outside


def test_what_another_run_holds_is_taken_over() -> None:
    patch = Patch(brackets("mamba"))
    trace = patch.also({"stack": [1]}, source="( ( [").trace("[ [ [")
    assert trace["stack"] == ["[", "(", "["] and trace.agrees
    trace = patch.also({"stack": {0: 2}}, source="( ( [").trace("( (")
    assert trace["stack"] == ["[", "("] and trace.agrees


def test_interchanges_are_counted() -> None:
    truth = brackets("mamba")
    pairs = [("( [", "[ (", at) for at in (0, 1)] + [("( (", "( (", 1)]
    found = interchange(truth, "stack", pairs)
    assert (found.runs, found.accuracy, found.exact, found.moved) == (3, 1.0, 1.0, 2 / 3)
    weight, lane = truth.stack.head.weight, truth.compiled.lanes.names.index("stack[1]")
    kept = weight[:, lane].clone()
    with torch.no_grad():
        weight[:, lane] = 0  # the head no longer reads whether the stack holds [
    try:
        broken = interchange(truth, "stack", pairs)
    finally:
        with torch.no_grad():
            weight[:, lane] = kept
    assert broken.accuracy == broken.exact == 2 / 3  # both answers of the first pair are wrong
    with pytest.raises(ValueError, match="no pairs"):
        interchange(truth, "stack", [])


def test_ablation() -> None:
    patch = Patch(brackets("mamba"))
    trace = patch.ablated(["stack"], positions=[0, -1]).trace("( [ ]")
    assert trace["stack"] == [None, "[", None] and trace["output"] == [None, "]", None] and trace.agrees
    trace = patch.ablated(["stack"], mean_of=["( [", "[ ("]).trace("( [ ]")
    assert trace["stack"].raw.tolist() == [[0.5, 0.5]] * 3
    assert trace["stack"][0] == (0.5, 0.5) and trace.agrees
    assert trace.outside == ["'stack' is set to numbers between those that the circuit can give it"]


@pytest.mark.parametrize("mixer", MIXERS)
def test_what_is_set_at_no_position_is_not_set(mixer: str) -> None:
    patch, pair = Patch(brackets(mixer)), ["( [", "[ ("]
    for none in (patch.ablated(["stack"], mean_of=pair, positions=[]), patch.also({"stack": {}})):
        assert none.setting(3) == ({}, [])
        trace = none.trace("( [ ]")
        assert trace.outside == [] and trace["stack"] == ["(", "[", "("] and trace.agrees
    elsewhere = patch.ablated(["stack"], mean_of=pair, positions=[]).also({"stack": {1: "("}})
    assert elsewhere.trace("( [ ]")["stack"][1] == "(" and not elsewhere.trace("( [ ]").outside


def test_a_deeper_variable_is_computed_from_what_was_set() -> None:
    depth = "is_(|[ - is_)|].cumsum()"
    trace = Patch(brackets("mamba")).also({depth: {2: 1}}).trace("( [ (")
    assert trace[depth] == [1, 2, 1]  # the sum before it is not changed, what is read of it is
    assert trace["stack"][2] == "(" and trace.agrees
    assert trace.overwritten == []


def test_what_cannot_be_set_says_why_and_what_is_near() -> None:
    patch = Patch(brackets("mamba"))
    with pytest.raises(NotCarried, match="the output, which the head forms .* nearest that can be set: 'stack' before"):
        patch.also({"output": {0: [0, 0, 0, 0]}})
    with pytest.raises(NotCarried, match="its lanes hold 'is_\\(\\|\\[' as well"):
        patch.also({"is_(|[ - is_)|]": {0: 1}})
    with pytest.raises(ValueError, match="'stack' cannot hold '{'; it holds one of '\\(', '\\[', or None"):
        patch.also({"stack": {0: "{"}})
    with pytest.raises(ValueError, match="was given 3 numbers, and it has 2"):
        patch.also({"stack": {0: [1, 0, 0]}})
    with pytest.raises(ValueError, match="set to 0.1, which no lane of float32 holds exactly"):
        patch.also({"stack": {0: [0.1, 0]}})
    with pytest.raises(IndexError, match="set at position 5, and the input has 2"):
        patch.also({"stack": {5: "("}}).trace("( (")
    with pytest.raises(TypeError, match="{position: value} is needed"):
        patch.also({"stack": [1]})


def test_a_value_outside_the_promise_is_marked() -> None:
    trace = Patch(brackets("mamba")).also({"stack": {0: [1, 1]}}).trace("(")
    assert trace.outside == ["'stack' is set to several alternatives at once"]
    assert trace["stack"] == [(1, 1)] and trace.agrees


def test_two_variables_at_once() -> None:
    trace = Patch(brackets("mamba2")).also({"stack": {0: "["}, "is_(|[ - is_)|].cumsum()": {1: 1}}).trace("( [")
    assert trace["stack"] == ["[", "["] and trace.agrees
    assert two_brackets.CLOSED[1] == trace.answers[0]


def counted() -> tuple[Patch, str]:
    """On Mamba-2 the count since the last b is the difference of two lanes."""
    letters = Alphabet.of("a", "b", *map(str, range(9)))
    x = Tokens(letters)
    since = count(x.is_in("a"), reset=x.is_in("b"))
    language = InputLanguage.of(letters, "any", [("any", "any", ("a", "b"))], 8, "strings of a and b")
    answer = readout_integer(since, letters, {str(n): n for n in range(9)})
    return Patch(truth_of(compile(Circuit("count", answer, language), "mamba2"))), "since"


@pytest.mark.parametrize("value", [2**24, 2**30, 1e10, float(np.float32(0.1)), -3, 2**70])
def test_every_float32_is_held_by_the_difference_of_two_lanes(value: float) -> None:
    patch, name = counted()
    carrier = patch.truth.variables[name].reading
    assert len(carrier.lanes) == 2
    trace = patch.also({name: {2: value}}).trace("a b a a")  # the second lane holds the a's before the b
    assert trace[name].raw[:, 0].tolist() == [1, 0, value, 2]


def test_a_mean_is_held_by_the_difference_of_two_lanes() -> None:
    patch, name = counted()
    trace = patch.ablated([name], mean_of=["a a a", "a b a"]).trace("a b a a")
    assert trace[name].raw[:, 0].tolist() == [float(np.float32(4 / 3))] * 4


def test_a_range_from_0_has_no_sign() -> None:
    patch, name = counted()
    (said,) = patch.also({name: {1: 100}}).trace("a a").outside
    assert said == "'since' is set to 100, and in the circuit it lies in 0 … 8"


def test_what_no_lane_can_hold_is_told_so() -> None:
    setting = LaneSetting(
        "x",
        csr_array([[0.0, 3.0]]),
        csr_array((1, 0)),
        (np.zeros(2), np.full(2, 9.0), np.ones(2)),
        np.ones((1, 1), dtype=bool),
        np.array([[[1.0]]]),
    )
    lanes = SimpleNamespace(index={ONE: np.array([0])}, count=2)
    with pytest.raises(ValueError, match="'x' is set to 1, and no numbers of float32 .* in the 1 lane that carries it"):
        set_lanes(torch.tensor([[[1.0, 2.0]]]), lanes, [setting])
