"""No wrong rewriting leaves the compiler: each planted mistake is caught by the comparison of blocks and circuit."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import compiler
from benchmarks.mixtures import mixed, mixture
from compiler.artifact.numeric import numeric_stack
from compiler.exactness import sampled
from compiler.exactness.compare import Miscompiled
from compiler.exactness.samples import inputs_of
from compiler.gadgets import fading
from compiler.gadgets.running_sum import RunningSum
from compiler.interpreter import interpret
from compiler.ir.decay import fade_by
from compiler.language import memory
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.codebook import signs
from compiler.language.input_language import InputLanguage
from compiler.language.reals import choose, differs
from compiler.language.source import numbers
from compiler.language.stream import Stream, constant
from compiler.language.types import Bool, Int, OneHot, Real
from compiler.language.words import concatenate, count, dot, fading_sum, latch, maximum, minimum, select, silu_product
from compiler.lowering.fitter import Fitter
from compiler.passes import common_subexpressions
from compiler.passes.logic import Logic
from compiler.passes.represent import arithmetic, flags
from compiler.passes.represent.rectifiers import step
from compiler.passes.represent.rewriter import Rewriter
from tests.circuits import ABC, PAPER, abc, counters, is_a, is_b, mqar, over_abc, token

a, b = counters
late = (a > 1) & is_b.shift(1)
x = abc.number({"a": 3, "b": -2, "c": 5})


def _rule(monkeypatch: pytest.MonkeyPatch, operation: type, wrong: Callable) -> None:
    """Another lowering of an operation: wrong(operation, *inputs)."""
    right = Rewriter.ruled

    def planted(self, op: ops.Operation, *inputs: Stream) -> Stream:
        return wrong(op, *inputs) if type(op) is operation else right(self, op, *inputs)

    monkeypatch.setattr(Rewriter, "ruled", planted)


def _shared_key(op: ops.Operation, value: Stream, key: Stream, query: Stream, *when: Stream) -> Stream:
    """Hole 1 as it was: relu(key + f − 1) for any key."""
    gated = (key + when[0] - 1).relu() if when else key
    pair = concatenate(value, -1 * value).relu()
    back = sparse.hstack([sparse.eye_array(value.width), -sparse.eye_array(value.width)], format="csr")
    return back @ Stream(ops.MemoryRead("sum"), (pair, gated, query))


RULES = {
    "memory of any key": (ops.MemoryRead, _shared_key, memory.write(x, is_a, when=late).read(x)),
    "compare off by one": (ops.Compare, lambda op, x, y: step(x - y + 1).retyped(Bool()), a > b),
    "minimum for maximum": (ops.Max, lambda op, x, y: x - (x - y).relu(), maximum(a, b)),
    "maximum for minimum": (ops.Min, lambda op, x, y: x + (y - x).relu(), minimum(a, b)),
    "clip of one side": (ops.Clip, lambda op, x: (x - op.lo).relu() + op.lo, (a - b).clip(-1, 3)),
    "one-hot shifted": (
        ops.OneHotOf,
        lambda op, x: concatenate(*((step(x - j) - step(x - j - 1)) for j in range(op.n))).retyped(OneHot(op.n)),
        a.one_hot(3),
    ),
    "select without else": (ops.Select, lambda op, f, x, y: f * x, select(a > b, a, 2)),
    "shift too far": (ops.Shift, lambda op, x: x.shift(op.k + 1), (a > 1).shift(2)),
    "latch of the first": (ops.Latch, lambda op, v, f: Stream(ops.SumWhere(), (v, f)), latch(token, late)),
    "sum without the present": (ops.Cumsum, lambda op, x: Stream(op, (x.shift(1),)), is_a.cumsum()),
    "lookup clamps": (
        ops.Lookup,
        lambda op, x: 2 * x.relu() - 2 * (x - 2).relu(),
        (a - b).lookup([0, 2, 4]),
    ),
    "count without reset": (ops.Count, lambda op, f, r: Stream(ops.Cumsum(), (f,)), count(is_a, reset=is_b)),
}


@pytest.mark.parametrize("name", RULES)
def test_a_wrong_rule_is_caught(name: str, monkeypatch: pytest.MonkeyPatch):
    operation, wrong, stream = RULES[name]
    circuit = over_abc("planted", stream)
    compiler.compile(circuit)
    _rule(monkeypatch, operation, wrong)
    with pytest.raises(Miscompiled, match=r"the compiler made a mistake.* instead of .* at position \d+ of [abc]"):
        compiler.compile(circuit)


def _any_for_all(self: Logic, *flags: Stream) -> Stream:
    return self.disjunction(*flags)


TORN = Stream(
    ops.Embed(ABC, ops.exact_matrix(np.array([[1.0, -1.0], [1.0, 0.0], [0.0, 0.0]])), abc.code(None, signs(3)).type), ()
)
PATCHES = {
    "or for and": (Logic, "conjunction", _any_for_all, late),
    "mask without room": (
        flags,
        "masked",
        lambda domains, x, flag: x.relu() - (-1 * x).relu(),
        select(a > 1, a - b, 0),
    ),
    "any table is a code": (arithmetic, "holds_signs", lambda table: True, TORN.cumsum()),
    "everything is common": (
        common_subexpressions._Fingerprints,
        "of",
        lambda self, op: type(op),
        concatenate(2 * a, 3 * a),
    ),
    "no delay": (Fitter, "_carry", lambda self, atom, lag: atom, a.shift(7)),
}


@pytest.mark.parametrize("name", PATCHES)
def test_a_wrong_part_is_caught(name: str, monkeypatch: pytest.MonkeyPatch):
    where, attribute, wrong, stream = PATCHES[name]
    circuit = over_abc("planted", stream)
    compiler.compile(circuit)
    monkeypatch.setattr(where, attribute, wrong)
    with pytest.raises(Miscompiled):
        compiler.compile(circuit)


def test_a_pre_activation_that_silu_rounds_is_caught(monkeypatch: pytest.MonkeyPatch):
    from compiler.lowering import builder

    monkeypatch.setattr(builder, "rectifier_scale", lambda channels, domains: 1.0)
    with pytest.raises(Miscompiled, match="must be 0, at least 20.1 or at most −104"):
        compiler.compile(over_abc("planted", a > b))


def _more_of(original: Callable, part: float) -> Callable:
    """A gadget that writes this part more than it should."""

    def more_written(self, *arguments):
        ids, unit, more = original(self, *arguments)
        return ids, (1 + part) * unit, more

    return more_written


def test_the_lane_that_leaves_first_is_named(monkeypatch: pytest.MonkeyPatch):
    """A gadget that writes twice what it should."""
    monkeypatch.setattr(RunningSum, "written", _more_of(RunningSum.written, 1))
    with pytest.raises(
        Miscompiled, match=r"the first lane that leaves its stream is steps of steps \(test_compare.py:\d+\), block 1"
    ):
        compiler.compile(over_abc("planted", (is_a.cumsum().named("steps") > 2) & is_b))


@pytest.mark.parametrize("kind", [Int(-5, 9), Bool(), OneHot(3), Int(0, None), Int(None, 4, 2)])
def test_circuits_over_numbers_are_compared_too(kind, monkeypatch: pytest.MonkeyPatch):
    n = numbers(kind, "n")
    circuit = Circuit("numbers", n.cumsum() if isinstance(kind, OneHot) else maximum(n, n.shift(1)), length=5)
    if getattr(kind, "lo", 0) is not None and getattr(kind, "hi", 0) is not None:
        compiler.compile(circuit)
        monkeypatch.setattr(Rewriter, "ruled", lambda self, op, *s: Stream(op, ()) if not s else 2 * s[0])
        with pytest.raises(Miscompiled, match="of random numbers"):
            compiler.compile(circuit)
    ((tokens, inputs),) = inputs_of(circuit, 400)
    values = inputs[n]
    lo, hi = getattr(kind, "lo", 0), getattr(kind, "hi", 1)
    assert tokens is None and (values == np.round(values)).all() and values.shape[1] == 5
    assert values.min() == (lo if lo is not None else -1024) and values.max() == (hi if hi is not None else 1024)


def test_one_hots_are_drawn_one_hot_up_to_the_most_that_they_add_up_to():
    """The first sequence writes the greatest numbers under one lane throughout, and the second goes through all."""
    x, place, asked = numbers(Int(-7, 9, 2), "x"), numbers(OneHot(4), "place"), numbers(OneHot(4), "asked")
    circuit = Circuit("copy", memory.outer_sum(x, write=place, read=asked), length=8)
    ((_, drawn),) = inputs_of(circuit, 400)
    for one_hot in (drawn[place], drawn[asked]):
        assert np.isin(one_hot, (0, 1)).all() and np.array_equal(np.unique(one_hot.sum(axis=-1)), [0, 1])
        assert (one_hot[0] == [1, 0, 0, 0]).all() and (one_hot[1].max(axis=0) == 1).all()
    assert interpret(circuit, inputs=drawn)[circuit.output].max() == 9 * 8


def test_real_numbers_are_compared_within_rounding():
    r = numbers(Real(-1, 2), "r")
    compiler.compile(Circuit("reals", r * r.shift(1) + r.cumsum(), length=6))


LANGUAGES = {
    "everything": InputLanguage.everything(ABC, 9),
    "one": InputLanguage.everything(ABC, 1),
    "pairs of distinct keys": PAPER,
    "ends": InputLanguage.of(ABC, "s", [("s", "t", "a"), ("t", "end", ["b", "c"])], 7, "two tokens"),
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_samples_are_words_of_the_language_and_hold_every_short_one(name: str):
    language = LANGUAGES[name]
    circuit = Circuit("", constant(1), language) if name != "pairs of distinct keys" else mqar("sum", language)
    batches = [tokens for tokens, _ in inputs_of(circuit, 1200)] if circuit.alphabet else []
    words = [tuple(int(t) for t in word) for batch in batches for word in batch]
    assert words and all(language.accepts(word) for word in words)
    assert len(set(words)) == len(words)
    prefixes = {word[:n] for word in words for n in range(1, len(word) + 1)}
    assert {word for n in (1, 2, 3) for word in language.strings(min(n, language.max_length))} <= prefixes
    again = [tokens for tokens, _ in inputs_of(circuit, 1200)]
    assert all(np.array_equal(one, two) for one, two in zip(batches, again, strict=True))


def test_huge_real_numbers_that_cancel_are_no_mistake():
    """Float64 loses what a clip of numbers of 2^60 is: the bound on the error says so, and no mistake is told."""
    x = numbers(Real(-(2.0**60), 2.0**60), "x")
    assert compiler.compile(Circuit("clip", x.clip(-3, 3), length=2)).error_bound > 1e9


def test_each_circuit_runs_once_on_each_batch(monkeypatch: pytest.MonkeyPatch):
    """The same run holds the domains and gives what the blocks are compared with; exact numbers take one more."""
    ran: list[tuple[Circuit, type]] = []

    def counted(circuit: Circuit, *given, **named):
        values = interpret(circuit, *given, **named)
        ran.append((circuit, next(iter(values.values())).dtype.type))
        return values

    monkeypatch.setattr(sampled, "interpret", counted)
    for circuit in (over_abc("small", late), mixture(mixed, 300)):
        ran.clear()
        compiled = compiler.compile(circuit)
        batches = sum(c is compiled.core for c, _ in ran)
        floats = Counter(c for c, dtype in ran if dtype is np.float64)
        exact = Counter(c for c, dtype in ran if dtype is np.object_)
        assert floats == {compiled.source: batches, compiled.core: batches}
        assert exact[compiled.core] == 0 and 1 <= exact[compiled.source] <= batches


@pytest.mark.parametrize("target", ["mamba", "mamba2", "s4d"])
@pytest.mark.parametrize("numbered", [Int(-3, 3), Real(-1, 1)], ids=["integers", "reals"])
def test_a_circuit_of_numbers_whose_passes_left_a_constant(target: str, numbered: Int | Real):
    """No run is as long as the shift; what is compiled reads no number."""
    n = numbers(numbered)
    for late, value in ((n.shift(4), 0), (n.shift(4) + 1, 1)):
        stack = numeric_stack(compiler.compile(Circuit("late", late, length=4), target))
        assert (stack.run({n: np.ones((2, 4, 1))}) == value).all()


def _fading_behind_a_decision() -> Circuit:
    """x.clip(2, 6) is 2: what is 0 and computed of real numbers is no lane, so a bound on all behind it is known."""
    x = numbers(Real(-1, 1), "x")
    y = x.clip(2, 6)
    chosen = choose(y, dot(y, y), y, 0.7).clip(-4, -2)
    return Circuit("fading", fading_sum(chosen, Fraction(1, 4)), length=12)


def test_what_fades_by_the_nearest_factor_is_no_mistake():
    made = compiler.compile(_fading_behind_a_decision())
    assert made.error_bound is not None and made.error_bound < 1e-5
    stack = numeric_stack(made)
    out = stack.run({"x": np.linspace(-1, 1, 24).reshape(2, 12, 1)})
    wanted = [-2 * sum(Fraction(1, 4) ** k for k in range(t + 1)) for t in range(12)]
    assert np.abs(out[..., 0] - np.array(wanted, dtype=float)).max() < made.error_bound


def test_a_wrong_factor_is_caught(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fading, "fade_by", lambda factor: fade_by(factor * Fraction(99999, 100000)))
    with pytest.raises(Miscompiled, match=r"instead of -2\.5"):
        compiler.compile(_fading_behind_a_decision())


def test_four_silus_are_within_their_bound_and_overflow_nowhere():
    """At a scale of 4 they are far from the product, by the lemma's own formula."""
    x, n = numbers(Real(-1, 1), "x"), numbers(Int(-6, 6), "n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = compiler.compile(Circuit("silus", silu_product(n, n, 4) + (x.clip(2, 6) + 0.5).relu(), length=6))
        compiler.compile(Circuit("far", silu_product(n * 2000, n, 4), length=6))
    given = np.arange(-6.0, 6.0).reshape(2, 6, 1)
    silu = lambda z: z / (1 + np.exp(-z))
    wanted = 8 * (silu(given / 2) + silu(-given / 2)) + 2.5
    out = numeric_stack(made).run({"x": 0 * given, "n": given})
    assert np.abs(out - wanted).max() < 1e-4
    assert made.error_bound is not None and np.abs(out - (given**2 + 2.5)).max() < made.error_bound


def test_what_cancels_and_is_multiplied_is_no_mistake():
    """Sums of numbers of 2^40 give what they differ by within 2^-10 in float64; the product has that 2^40 times."""
    x = numbers(Real(-(2.0**40), 2.0**40, 3, gap=0.7), "x")
    made = compiler.compile(Circuit("far", 3 * (x * differs(x.cumsum(), x, 3)), length=8))
    assert made.error_bound is not None


def test_a_planted_error_is_found_beside_what_cancels(monkeypatch: pytest.MonkeyPatch):
    """A state that is off by 2^-20 of itself, where float64 loses 2^-53 of it."""
    x = numbers(Real(-(2.0**10), 2.0**10), "x")
    circuit = Circuit("near", 3 * (x * differs(x.cumsum(), x, 3)), length=8)
    compiler.compile(circuit)
    monkeypatch.setattr(RunningSum, "written", _more_of(RunningSum.written, 2.0**-20))
    with pytest.raises(Miscompiled):
        compiler.compile(circuit)


LOST = {  # float64 gives the other answer
    "a number beside 2^40": lambda y: ((y + 2**40) - 2**40 > 0, Real(0, 1, gap=2.0**-14)),
    "a number beside 2^54": lambda y: (select(y + 1 > y, 3, 4), Real(0, 2.0**54)),
}


@pytest.mark.parametrize("name", LOST)
def test_what_float64_loses_of_the_circuit_is_no_mistake(name: str):
    write = LOST[name]
    kind = write(numbers(Real(), "y"))[1]
    stream = write(numbers(kind, "y"))[0]
    compiler.compile(Circuit("lost", stream, length=4))


def test_a_planted_error_is_found_where_float64_loses(monkeypatch: pytest.MonkeyPatch):
    y = numbers(Real(0, 1, gap=2.0**-14), "y")
    monkeypatch.setattr(RunningSum, "written", _more_of(RunningSum.written, 1))
    with pytest.raises(Miscompiled):
        compiler.compile(Circuit("lost", ((y + 2**40) - 2**40 > 0).cumsum(), length=4))
