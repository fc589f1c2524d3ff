"""Sizes of the built modules against paper B's orders, with constants of ours, and where they fail on real Mamba."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from compiler.artifact.package import bare_sizes
from compiler.driver import compile
from compiler.passes import schedule
from constructions.checkpoints.artifact import report
from constructions.checkpoints.built import build
from constructions.command.display import show_report
from constructions.construction import Construction
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.lists import LongestIncreasingSubsequence
from constructions.copy_dp.local import CoinChange, Fibonacci
from constructions.copy_dp.phonebook import Phonebook
from constructions.copy_dp.viterbi import Viterbi
from constructions.copy_dp.words import EditDistance, LongestCommonSubsequence
from constructions.experiments.catalogue import EXPERIMENTS
from constructions.experiments.chains import chains, every_chain
from constructions.experiments.run import Row
from constructions.experiments.tables import show
from constructions.gadgets import costs
from constructions.gadgets.costs import growth, rows


@cache
def sizes(construction: Construction) -> tuple:
    return tuple(bare_sizes(compile(construction.circuit(), construction.target)))


def largest(construction: Construction, name: str) -> int:
    return max(getattr(size, name) for size in sizes(construction))


def held(construction: Construction) -> int:
    """Numbers in the largest state of a block."""
    return max(size.d_inner * size.d_state for size in sizes(construction))


ALL = [c for c in every_chain() if c.dtype == "float32"] + [
    c
    for c in chains()
    if c.dtype == "float32" and c.target == "mamba2" and c.name in ("edit-distance", "knapsack", "lis")
]
ORDERS = [c for c in ALL if c.stated_bound()[0]]


EXEMPT = ("matrix-chain", "mamba")


def test_what_no_theorem_is_about_has_no_order():
    """Some tokens among others; and programs beyond Assumption 2, of which lis has a column for each value."""
    beyond = {"phonebook", "selective-copy", "lis", "max-subarray", "knapsack"}
    assert {c.name for c in ALL} - {c.name for c in ORDERS} == beyond
    assert largest(LongestIncreasingSubsequence(length=4, values=16), "d_state") == 16


@pytest.mark.parametrize("construction", ORDERS, ids=lambda c: f"{c.name}-{c.target}-{c.letters()}")
def test_no_state_has_more_columns_than_the_theorem_has_places(construction: Construction):
    """But where a direct sum holds several reads of one table side by side; `max_d_state` keeps them within."""
    places = construction.stated_bound()[0]["d_state"]
    if (construction.name, construction.target) == EXEMPT:
        within = compile(construction.circuit(), "mamba", max_d_state=places)
        assert max(block.d_state for block in within.blocks) <= places < largest(construction, "d_state")
    else:
        assert largest(construction, "d_state") <= places


def test_the_page_names_the_program_that_has_more():
    page = " ".join((Path(__file__).parents[2] / "docs" / "dp.md").read_text("utf-8").split())
    (told,) = re.findall(r"holds them there: (.*?) no program that meets the assumptions has more columns than", page)
    assert told.startswith(f"but for `{EXEMPT[0]}` on {EXEMPT[1].capitalize()} ")


@pytest.mark.parametrize("form", ["string", "pointer", "place"])
@pytest.mark.parametrize("n", [8, 24])
def test_theorem_2_on_mamba2_and_its_failure_on_mamba(form: str, n: int):
    """N columns; the state is d·N on Mamba-2, while on Mamba the channels that make B and C have all columns too."""
    mamba, mamba2 = (Copy(form=form, n=n, vocab=4, arch=arch) for arch in ("mamba", "mamba2"))
    d, bound = mamba.vocab, mamba.bound()["state"]
    assert largest(mamba, "d_state") == largest(mamba2, "d_state") == n
    assert held(mamba2) <= bound == d * n
    assert 2 * bound < held(mamba) <= (2 * d + 2 * n + 4) * n, "the state of Mamba is not O(N)"


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_theorem_3_by_rows_needs_the_root_of_what_it_states(arch: str):
    for length in (4, 8, 16):
        problem = EditDistance(length=length, arch=arch)
        stated = problem.stated_bound()[0]["d_state"]
        assert largest(problem, "d_state") == 2 * (length + 1) <= stated == (length + 1) ** 2
        assert largest(problem, "d_inner") <= 4 * length + 36


@pytest.mark.parametrize(
    "construction",
    [Copy(n=3, vocab=2), EditDistance(length=2), LongestCommonSubsequence(length=2), Viterbi(length=3)],
    ids=lambda c: c.name,
)
def test_conflicts_over_state_columns_cost_no_block_on_mamba(construction: Construction, monkeypatch):
    """So no direct sum of column groups could save any."""
    compiled = compile(construction.circuit(), "mamba")
    placed = [stream for block in compiled.schedule.blocks for stream in block]
    assert len({schedule.column_group(s, compiled.context.target) for s in placed} - {None}) > 1
    monkeypatch.setattr(schedule, "column_group", lambda stream, target: None)
    assert len(schedule.schedule(compiled.core, compiled.context).blocks) == len(compiled.blocks)


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_theorem_4_keeps_one_size_however_long_the_chain(arch: str):
    for short, long in (
        (Fibonacci(modulus=7, length=20, arch=arch), Fibonacci(modulus=7, length=2000, arch=arch)),
        (CoinChange(amount=20, coins="1,3", arch=arch), CoinChange(amount=80, coins="1,3", arch=arch)),
    ):
        assert sizes(short) == sizes(long)
        assert largest(long, "d_state") == 1 <= long.stated_bound()[0]["d_state"]


def test_table_1_grows_as_it_says():
    table = list(
        rows(
            local=(100, 100_000),
            edit=(4, 30),
            by_place=(8, 16, 24, 32),
            attention=(100, 1000),
            timed=False,
            digits=(),
        )
    )
    grown = growth(table)
    computed = [row for row in table if row["how"] == "computed"]
    assert [row["length"] for row in computed] == [1_000, 10_000, 100_000]
    assert all(row["seconds"] is None for row in computed)
    assert grown["Fibonacci mod 5 (Theorem 4)"] == 0
    assert 0.8 < grown["every place (Theorem 2)"] < 1.1 and 0.5 < grown["edit distance (by rows)"] < 1.1
    assert all(g == pytest.approx(1) for name, g in grown.items() if "×" in name), "a key-value cache is linear"


def test_one_length_has_no_growth():
    """`costs --longest 100` has one chain and no cache, `--longest 1000` one cache of each Transformer."""
    table = list(rows(local=(50,), edit=(), by_place=(8, 16), attention=(1000,), timed=False, digits=()))
    assert [row["length"] for row in table] == [50, 8, 16, 1000, 1000]
    assert list(growth(table)) == ["every place (Theorem 2)"]


def test_a_program_of_theorem_3_and_one_of_theorem_4_are_measured_beyond_ten_thousand_tokens():
    longest = EditDistance(length=costs.EDIT_LENGTHS[-1])
    assert longest.longest() > 10_000 and costs.LOCAL_LENGTHS[-1] >= 10_000
    compiled = compile(longest.circuit(), "mamba")
    assert max(size.d_state for size in bare_sizes(compiled)) == 2 * 99


def test_the_time_of_a_token_is_taken_at_the_end_of_its_sequence():
    (short, long), (_, cached) = (
        [
            row
            for row in rows(local=(50, 400), edit=(), by_place=(), attention=(50, 4000), digits=())
            if name in row["model"]
        ]
        for name in ("Fibonacci", "GPT-2")
    )
    assert 0 < long["seconds"] < 50 * short["seconds"] and cached["seconds"] > 0


def test_what_is_computed_is_what_is_built():
    """The parabola through three sizes gives a larger one that is built after all; one that is none is refused."""
    small = [costs._built("places", n, *costs.places(n), False) for n in (8, 16, 24, 32)]
    (told,) = costs._computed(small, (8, 16, 24, 32), [(200, 200)])
    large = costs._built("places", 200, *costs.places(200), False, 200)
    assert all(told[what] == large[what] for what in costs.COMPUTED)
    with pytest.raises(ArithmeticError, match="no parabola"):
        list(costs._computed([*small[:3], small[3] | {"state": 1}], (8, 16, 24, 32), [(200, 200)]))


def test_what_fails_is_said_beside_the_number(capsys):
    show_report(report(build(Copy(n=8, vocab=4)), {}, None))
    assert "(above)" in capsys.readouterr().out
    for arch, told in (("mamba", True), ("mamba2", False)):
        copied = Copy(n=8, vocab=4, arch=arch)
        used = {"d_model": 1, "d_inner": 1, "d_state": 8, "state": held(copied)}
        show("chains", EXPERIMENTS["chains"], [Row(arch, "copy", "float32", copied.bound(), used=used)], {})
        assert ("(above)" in capsys.readouterr().out) == told


def test_a_book_has_no_column_for_what_is_written_behind_it():
    book = Phonebook(names=4, entries=3, digits=2)
    assert largest(book, "d_state") <= book.table() == 3 * 4
    assert largest(replace(book, digits=5), "d_state") <= 3 * 7
