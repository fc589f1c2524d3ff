"""The work of a whole compilation grows with the graph and no faster, whatever operations it is a mixture of."""

from __future__ import annotations

import pytest

from benchmarks.mixtures import MIXTURES, measure, mixture


@pytest.mark.parametrize("add", MIXTURES, ids=lambda add: add.__name__)
def test_calls_are_linear_in_the_graph(add) -> None:
    small, large = (measure(add.__name__, size, counting=True) for size in (40, 160))
    assert "blocks" in small["became"] and "blocks" in large["became"]
    assert large["calls"] < 5 * small["calls"]


@pytest.mark.parametrize("add", MIXTURES, ids=lambda add: add.__name__)
def test_a_mixture_is_the_same_for_a_seed_and_nothing_in_it_is_dead(add) -> None:
    one, same, other = mixture(add, 200), mixture(add, 200), mixture(add, 200, seed=1)
    symbols = lambda circuit: [stream.operation.symbol for stream in circuit.streams]
    assert symbols(one) == symbols(same) != symbols(other)
    assert len(one.streams) >= 200
