"""The work of a whole compilation grows with the graph and no faster, whatever operations it is a mixture of."""

from __future__ import annotations

import gc

import pytest

from benchmarks.mixtures import MIXTURES, measure, mixture
from compiler.analysis.domains import Domains
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.language.stream import Stream


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


def test_passes_that_change_no_domain_find_none_again(monkeypatch) -> None:
    """Each operation of the source, of the core and of what ports add is bounded about once, not in every pass."""
    found: list[Stream] = []
    sharpened = Domains._sharpened
    monkeypatch.setattr(Domains, "_sharpened", lambda self, stream: (found.append(stream), sharpened(self, stream))[1])
    circuit = mixture(next(add for add in MIXTURES if add.__name__ == "mixed"), 200)
    compile(circuit, "mamba")
    assert len(found) < 4 * len(circuit.streams)


@pytest.mark.parametrize("young", [0, 700, 50_000])
def test_the_collector_is_as_it_was_behind_a_compilation_and_behind_a_refusal(young, monkeypatch) -> None:
    inside: list[int] = []
    found = Domains._found
    monkeypatch.setattr(
        Domains, "_found", lambda self, stream: (inside.append(gc.get_threshold()[0]), found(self, stream))[1]
    )
    before = gc.get_threshold()
    try:
        gc.set_threshold(young, 7, 9)
        compile(mixture(MIXTURES[0], 3), "mamba")
        assert gc.get_threshold() == (young, 7, 9)
        with pytest.raises(CompileError):
            compile(mixture(MIXTURES[2], 3), "s4d")
        assert gc.get_threshold() == (young, 7, 9)
    finally:
        gc.set_threshold(*before)
    assert set(inside) == {young and max(young, 20_000)}


def test_a_domain_that_meets_an_equal_one_is_the_same_object() -> None:
    circuit = mixture(MIXTURES[0], 3)
    known = Domains(circuit.language, circuit.max_length).draft()
    stream, equal = circuit.output, Domains(circuit.language, circuit.max_length).of(circuit.output)
    assert known.of(stream) is not equal
    known.meet(stream, equal)
    assert known.of(stream) is equal
    known.bounded(stream, equal.bounds / 2)
    assert known.of(stream) is not equal and (known.of(stream).high <= equal.high).all()
