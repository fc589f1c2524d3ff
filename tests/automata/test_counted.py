"""Levels that powers of one permutation move, counted modulo its order on mixers whose state cannot turn."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from compiler.automata.counted import orders_of, powers_of
from compiler.automata.images import images
from compiler.automata.table import minimal
from compiler.automata.turning import turning_cascade
from constructions.automata import lengths
from constructions.automata.automaton import Automaton, table_json
from constructions.automata.explain import decide
from constructions.automata.languages import NAMED
from constructions.automata.random_automata import drawn
from constructions.checkpoints.built import build
from constructions.checkpoints.guarantee import verdict_of
from tests.automata.walked import assert_blocks_answer

LENGTH = 40


CASES = {name: NAMED[name].make() for name in ("tomita-3", "abab-star")} | {f"random {n}": drawn(n) for n in (0, 6, 16)}


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
@pytest.mark.parametrize("name", CASES)
def test_blocks_answer_what_the_table_answers(name: str, arch: str) -> None:
    assert_blocks_answer(CASES[name], arch, LENGTH)


@pytest.mark.parametrize(
    "name, arch, length",
    [("tomita-3", "mamba", 12), ("at-most-two-a", "gated-deltanet", None), ("subsequence-abc", "gated-deltanet", None)],
)
def test_weights_hold_what_the_levels_hold(name: str, arch: str, length: int | None) -> None:
    """Their latches are joined one position back, or begin where the circuit's do not."""
    table = table_json(NAMED[name].make())
    verdict = verdict_of(build(Automaton(table=table, arch=arch, max_length=length)))  # type: ignore[arg-type]
    assert not any(verdict.parts().values())


@pytest.mark.parametrize(
    "moves, order",
    [
        ([(1, 0)], 2),
        ([(1, 2, 0), (2, 0, 1)], 3),
        ([(1, 0, 3, 4, 2)], 6),
        ([(1, 0, 2, 3), (0, 1, 3, 2)], None),  # C_2×C_2
        ([(1, 0, 2), (1, 2, 0)], None),  # S_3
    ],
)
def test_powers_of_one_permutation_are_found(moves: list, order: int | None) -> None:
    found = powers_of(moves)
    assert (found and found.order) == order
    if found is not None:
        g = found.powers[1]
        for k, power in enumerate(found.powers):
            place = list(range(len(g)))
            for _ in range(k):
                place = [g[p] for p in place]
            assert tuple(place) == power and found.exponent(power) == k


def test_a_length_is_asked_for_and_bounded() -> None:
    table = table_json(NAMED["abab-star"].make())
    for length in (None, 3000):
        with pytest.raises(ValueError, match="counts modulo 2 follow.*at most 2,048 letters; .*--length 2048 makes"):
            Automaton(table=table, max_length=length).check_sizes()
    said = decide(NAMED["tomita-3"].make())
    assert said.bounded == 2048 and "to a bounded length: at most 2,048 letters" in said.says[-1]


def test_what_no_count_follows_is_refused() -> None:
    table = NAMED["a5"].make()
    with pytest.raises(ValueError, match="no counts follow on mamba; --arch gated-deltanet holds it for every length"):
        Automaton(table=table_json(table), max_length=LENGTH).check_sizes()


@pytest.mark.parametrize("name, arch, dtype", [("parity", "mamba2", "float32"), ("parity", "mamba", "float16")])
def test_lengths_are_named_with_the_models_that_they_make(name: str, arch: str, dtype: str) -> None:
    """The least that is named is built, and has so many parameters."""
    asked = Automaton(table=table_json(NAMED[name].make()), arch=arch, dtype=dtype)  # type: ignore[arg-type]
    with pytest.raises(ValueError) as refusal:
        asked.check_sizes()
    told = re.findall(r"--length (\d+) makes a model of ([\d,]+) parameters", str(refusal.value))
    assert (len(told) == 2 and told[1][0] == "2048") == (dtype == "float32"), told
    built = build(replace(asked, max_length=int(told[0][0])))
    assert sum(tensor.numel() for tensor in built.model.tensors.values()) == int(told[0][1].replace(",", "")) < 1 << 27
    assert str(refusal.value).endswith("; --arch gated-deltanet holds it for every length")


def test_no_length_is_named_that_was_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where all are refused, nor where nothing is tried."""
    asked = Automaton(table=table_json(NAMED["abab-star"].make()), dtype="bfloat16")
    with pytest.raises(ValueError, match="in bfloat16 a --length below 20 may work"):
        asked.check_sizes()
    monkeypatch.setattr(lengths, "tries", lambda circuit: 1)
    with pytest.raises(ValueError, match="the longer, the larger the model; begin with a --length such as 20"):
        asked.check_sizes()


def test_a_cascade_without_groups_has_no_orders() -> None:
    table = minimal(NAMED["tomita-4"].make())
    assert orders_of(turning_cascade(images(table), table.outputs)) == ()
