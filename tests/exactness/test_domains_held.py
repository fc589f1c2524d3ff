"""Domains against sampled values: a rule that claims too little of a stream is found before anything is compiled."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from compiler.analysis.domains.known import Domains
from compiler.driver import compile
from compiler.exactness.compare import Miscompiled
from compiler.exactness.domains_held import first_outside, outside
from compiler.language import operations as ops
from compiler.language.operations import flags
from compiler.language.stream import Stream
from compiler.lattice.domain import Domain
from tests.circuits import abc, is_a, over_abc

TRUE = Domain(np.array([1.0, 0.5]), np.array([0.0, -1.0]), np.array([2.0, 1.5]), Fraction(3), np.array([4.0, 3.0]))
VALUES = np.array([[[2, -1], [0, 0.5], [2, 1.5]], [[0, 0], [1, -0.5], [0, 1.5]]])  # two sequences of three positions
WRONG = {
    "lower bound": ({"low": np.array([0.0, -0.5])}, "lane 1 is taken to hold values of at least -0.5, and -1 is found"),
    "upper bound": ({"high": np.array([1.0, 1.5])}, "lane 0 is taken to hold values of at most 1, and 2 is found"),
    "quantum": ({"units": np.array([2.0, 0.5])}, "lane 0 is taken to hold multiples of 2, but for a rest of 0"),
    "always 0": ({"units": np.array([np.inf, 0.5])}, "lane 0 is taken to hold multiples of inf"),
    "total": ({"totals": np.array([3.0, 3.0])}, "lane 0 is taken to hold at most 3 over a sequence, and 4 is found"),
    "sum of lanes": ({"l1": Fraction(2)}, "add up to at most 2 at a position, and add up to 3.5"),
}


def test_a_domain_that_holds_is_left_alone() -> None:
    assert outside(replace(TRUE, l1=Fraction(7, 2)), VALUES, 0.0) is None
    reals = replace(TRUE, l1=Fraction(7, 2), units=np.zeros(2))
    assert outside(reals, VALUES + 1e-9, 1e-8) is None


@pytest.mark.parametrize("name", WRONG)
def test_each_part_of_a_domain_is_held(name: str) -> None:
    change, reason = WRONG[name]
    found = outside(replace(replace(TRUE, l1=Fraction(7, 2)), **change), VALUES, 0.0)
    assert found is not None and reason in found
    holds = replace(TRUE, l1=Fraction(7, 2))
    domains = [replace(holds, units=np.zeros(2)), holds, replace(holds, **change), holds]
    assert first_outside(domains, [VALUES] * 4, [0.0] * 4) == (2, found)
    assert first_outside([holds] * 3, [VALUES] * 3, [0.0] * 3) is None


def _unequal(flag: Stream, other: Stream) -> bool:
    """The rule of a flag at its k-th time, with != taken for ==."""
    relation = isinstance(other.operation, ops.Compare) and other.operation.relation
    return relation == "!=" and any(isinstance(s.operation, ops.Cumsum) and s.inputs[0] is flag for s in other.inputs)


def test_the_mutant_that_takes_unequal_for_equal_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the first of many hold up to as often as positions, and the mutant says: once."""
    circuit = over_abc("later ones", (is_a & (is_a.cumsum() != 1)).named("later").cumsum())
    compile(circuit)
    monkeypatch.setattr(flags, "_at_one_count", _unequal)
    with pytest.raises(Miscompiled, match=r"later .*is taken to hold at most 1 over a sequence, and \d+ is found"):
        compile(circuit)


def test_a_rewriting_that_claims_too_much_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that a pass notes of a stream of its own: here each running sum is said to stay at 1."""
    real = Domains._found

    def found(self: Domains, stream: Stream) -> Domain:
        known = real(self, stream)
        return replace(known, high=np.ones(stream.width)) if isinstance(stream.operation, ops.Cumsum) else known

    monkeypatch.setattr(Domains, "_found", found)
    with pytest.raises(Miscompiled, match="is taken to hold values of at most 1, and"):
        compile(over_abc("count", abc.number({"a": 1, "b": 2}).cumsum()))
