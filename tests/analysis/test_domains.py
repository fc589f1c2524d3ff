"""Domains are sound: what streams of random circuits hold lies within what the pass says they can hold."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from compiler.analysis.domains import Domains
from compiler.analysis.domains.claims import check_claims
from compiler.compiled import run_blocks
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.language import memory
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.stream import Stream, constant
from compiler.language.types import Bool
from compiler.language.words import concatenate, select
from compiler.lattice.domain import down, power_of_two, up
from compiler.lattice.units import array_divisor, array_unit, array_units, float_unit, unit_of
from compiler.passes.check import check
from tests import random_circuits
from tests.circuits import CASES, Case, words
from tests.spread import some


def _breaches(domains: Domains, values: dict[Stream, np.ndarray]) -> list[str]:
    """Every stream of which a value, a sum over lanes or a sum over positions lies outside its domain."""
    found = []
    for stream, array in values.items():
        domain = domains.of(stream)
        size, lanes = abs(array), array.reshape(-1, stream.width)
        if (lanes.min(axis=0) < domain.low).any() or (lanes.max(axis=0) > domain.high).any():
            found.append(f"{stream}: {lanes.min(axis=0)}…{lanes.max(axis=0)} is not within {domain.low}…{domain.high}")
        if size.sum(axis=2).max() > domain.l1:
            found.append(f"{stream}: Σ over lanes {size.sum(axis=2).max()} > {domain.l1}")
        if (size.sum(axis=1) > domain.totals).any():
            found.append(f"{stream}: Σ over positions {size.sum(axis=1).max(axis=0)} > {domain.totals}")
        for lane, unit in zip(lanes.T, domain.units.tolist(), strict=True):
            values = {Fraction(v) for v in lane}
            if unit and any(v if unit == np.inf else v % Fraction(unit) for v in values):
                found.append(f"{stream}: a value of {values} is no multiple of {unit}")
    return found


def _of_source(circuit: Circuit, tokens: np.ndarray) -> list[str]:
    domains = Domains(circuit.language, circuit.language.max_length)
    return _breaches(domains, interpret(circuit, tokens, keep=circuit.streams))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_shared_circuits(case: Case):
    circuit = case.build()
    for tokens in words(case, circuit, count_=30):
        assert _of_source(circuit, tokens) == []


@pytest.mark.parametrize(("case", "target"), [pytest.param(c, t, id=f"{c.name}-{t}") for c in CASES for t in c.targets])
def test_what_the_passes_make_of_shared_circuits(case: Case, target: str):
    compiled = case.compiled(target)
    tokens = words(case, case.build())[-1]
    assert _breaches(compiled.domains, interpret(compiled.core, tokens, keep=compiled.core.streams)) == []


@settings(max_examples=len(some(range(250), 0.01)), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_circuits(data):
    circuit = random_circuits.build(lambda n: data.draw(st.integers(0, n - 1)))
    try:
        check(circuit)
    except CompileError:
        return
    assert _of_source(circuit, random_circuits.random_tokens(np.random.default_rng(0), 12)) == []


@settings(max_examples=len(some(range(100), 0.03)), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_the_passes_make_of_random_circuits(data):
    circuit = random_circuits.build(lambda n: data.draw(st.integers(0, n - 1)))
    try:
        compiled = compile(circuit, data.draw(st.sampled_from(["mamba", "mamba2"])))
    except CompileError:
        return
    tokens = random_circuits.random_tokens(np.random.default_rng(0), 12)
    assert _breaches(compiled.domains, interpret(compiled.core, tokens, keep=compiled.core.streams)) == []


def test_a_key_that_comes_once_bounds_its_count():
    """The input language, not the length, bounds how often a token is counted."""
    from tests.circuits import PAPER, kv

    domains = Domains(PAPER, PAPER.max_length)
    assert domains.of(kv.one_hot("k").cumsum()).hi == 2
    assert domains.of(kv.is_in("v").cumsum()).hi == PAPER.max_length


def test_what_was_written_bounds_a_read_of_all_slots():
    """40 positions write at most 40 values of 3, whatever slots a query of many reads."""
    tokens = Tokens(random_circuits.ALPHABET)
    slots, value = tokens.one_hot(), tokens.number({random_circuits.ALPHABET.tokens[0]: 3}, "three")
    read = memory.write(slots, value).read(constant(1, slots.width))
    assert Domains(None, 40).of(read).hi == 40 * 3


def test_several_conditions_select_lanes_from_both_sides():
    tokens = Tokens(random_circuits.ALPHABET)
    mixed = select(~tokens.one_hot().shift(1)[[0, 1, 2]], tokens.one_hot(), tokens.one_hot().shift(1))
    assert Domains(None, 4).of(mixed).l1 == 2


def test_every_lane_has_a_domain_of_its_own():
    """A large count beside a flag, and quarters beside multiples of 8, leave each other sharp."""
    tokens = Tokens(random_circuits.ALPHABET)
    flag, count = tokens.is_in(random_circuits.ALPHABET.tokens[0]), 1000 * constant(1).cumsum()
    domain = Domains(None, 50).of(concatenate(flag, count, 0 * flag, flag / 4)[[0, 1, 2, 3]])
    assert domain.high.tolist() == [1, 50_000, 0, 0.25] and domain.low.tolist() == [0] * 4
    assert domain.units.tolist() == [1, 8, np.inf, 0.25] and domain.totals.tolist() == [50, 50 * 50_000, 0, 12.5]
    assert (domain.lo, domain.hi, domain.step, domain.steps) == (0, 50_000, Fraction(1, 4), 6_250)


def test_a_lane_is_not_refused_for_its_neighbours():
    """2^20 quarters beside 2^20: together 2^24 quarters are more than float32 adds with a sum of two, apart they are
    not.
    """
    tokens = Tokens(random_circuits.ALPHABET)
    flag = tokens.is_in(random_circuits.ALPHABET.tokens[0])
    both = concatenate(flag / 4, 2**23 * flag.shift(1)).relu()
    circuit = Circuit("lanes", both.shift(1), InputLanguage.everything(random_circuits.ALPHABET, 9))
    sample = random_circuits.random_tokens(np.random.default_rng(0), 9)
    assert np.array_equal(run_blocks(compile(circuit), sample)[-1], compile(circuit).lane_values(sample))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_intervals_of_weights_that_float64_rounds_hold_every_value(data):
    """Outward rounding: rows of 53-bit weights against the exact extremes of their lanes."""
    weight = st.tuples(st.integers(-(2**53), 2**53), st.integers(-20, 10)).map(
        lambda p: float(np.ldexp(float(p[0]), p[1]))
    )
    rows = np.array(data.draw(st.lists(st.lists(weight, min_size=3, max_size=3), min_size=2, max_size=2)))
    table = np.array(data.draw(st.lists(st.lists(weight, min_size=3, max_size=3), min_size=2, max_size=2)))
    alphabet = random_circuits.ALPHABET
    embedded = Tokens(alphabet).rows(alphabet.tokens[:2], table, "table")
    domain = Domains(None, 3).of(rows @ (rows.T @ (rows @ embedded)))
    exact = np.vectorize(Fraction, otypes=[object])
    m, x = exact(rows), exact(table)
    values = np.vstack([(m @ m.T @ m @ x.T).T, np.zeros((1, 2), dtype=object)])
    assert all(low <= v <= high for row in values for v, low, high in zip(row, domain.low, domain.high, strict=True))
    assert all(abs(v) * 3 <= total for row in values for v, total in zip(row, domain.totals, strict=True))
    assert all(sum(map(abs, row)) <= domain.l1 for row in values)
    assert all(
        v % Fraction(unit) == 0
        for row in values
        for v, unit in zip(row, domain.units.tolist(), strict=True)
        if np.isfinite(unit)
    )


def test_zero_has_a_lattice():
    assert Domains(None, 4).of(constant(0) * 3 + Fraction(1, 2)).step == Fraction(1, 2)


def test_a_number_that_is_always_zero_has_a_lattice():
    number = Tokens(random_circuits.ALPHABET).number({random_circuits.ALPHABET.tokens[0]: 0})
    assert Domains(None, 4).of(number).step == 1


def test_units_are_powers_of_two():
    """Sums are exact up to 2^p units: of 3000 and 1/8·5 the unit is 8 and 1/8, whatever their common divisors are."""
    assert unit_of(Fraction(3, 2), Fraction(0), Fraction(5)) == Fraction(1, 2)
    assert unit_of(Fraction(3000), Fraction(5000)) == 8
    assert unit_of() == unit_of(Fraction(0)) == 0
    with pytest.raises(ValueError, match="1/3 is no dyadic rational"):
        unit_of(Fraction(1, 3))
    values = np.array([3000.0, 0.0, 0.625, -7.0, 2.0**53 - 1, 0.1])
    assert array_units(values).tolist() == [8, np.inf, 0.125, 1, 1, 2.0**-55]
    assert [float_unit(v) for v in values.tolist() if v] == [v for v in array_units(values).tolist() if v < np.inf]
    tiny = np.array([5e-324, 3 * 2.0**-1074, -1.5 * 2.0**-1000, 1.7e308])
    assert [float_unit(v) for v in tiny.tolist()] == array_units(tiny).tolist()
    assert array_unit(values[:4]) == Fraction(1, 8) and array_unit(np.zeros(2)) == 0
    assert array_divisor(np.array([3000.0, 0.0, -5000.0])) == 1000 and array_divisor(np.array([0.75, 1.5])) == 0.75


def test_the_least_power_of_two_above_a_bound():
    assert [power_of_two(Fraction(n, 4)) for n in (0, 1, 3, 4, 5, 33)] == [1, Fraction(1, 4), 1, 1, 2, 16]


def test_what_is_rebuilt_over_the_same_inputs_has_the_same_domain():
    x = Tokens(random_circuits.ALPHABET)
    domains = Domains(InputLanguage.everything(random_circuits.ALPHABET, 10), 10).draft()
    count = x.is_in(random_circuits.ALPHABET.tokens[0]).cumsum()
    again = Stream(count.operation, count.inputs)
    assert domains.of(again) is domains.of(count)
    sharper = x.is_in(random_circuits.ALPHABET.tokens[0])
    domains.bounded(sharper, np.zeros(1))
    assert domains.of(Stream(count.operation, (sharper,))).hi == 0


def test_a_type_that_is_declared_twice_is_shown_twice():
    """The second stream has the domain of the first, cut to its type; what was cut is remembered with it."""
    x = Tokens(random_circuits.ALPHABET)
    count = x.is_in(random_circuits.ALPHABET.tokens[0]).cumsum()
    wrong = Stream(ops.Linear((sparse.csr_array(np.array([[1.0]])),), Bool(1)), (count,))
    again = Stream(wrong.operation, (count,))
    with pytest.raises(CompileError) as refused:
        check_claims(
            [*count.inputs, count, wrong, again], Domains(InputLanguage.everything(random_circuits.ALPHABET, 10), 10)
        )
    assert len(refused.value.reasons) == 2


@given(st.fractions(), st.integers(-60, 60))
def test_a_bound_is_rounded_away_from_the_number_and_no_further(value: Fraction, power: int):
    value *= Fraction(2) ** power
    for near, side in ((up(value), -np.inf), (down(value), np.inf)):
        between = Fraction(float(np.nextafter(near, side)))
        assert min(Fraction(near), between) <= value <= max(Fraction(near), between) and between != value
