"""A bound is a theorem's: its numbers, or its order with constants of ours. Where no paper states one, none is told."""

from __future__ import annotations

import json
import re
from inspect import getmodule
from pathlib import Path

import pytest

from compiler.artifact.package import bare_sizes
from compiler.driver import compile
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.command import display
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.knapsack import Knapsack
from constructions.copy_dp.lists import LongestIncreasingSubsequence, MaximumSubarray
from constructions.copy_dp.local import Fibonacci
from constructions.copy_dp.phonebook import Phonebook
from constructions.copy_dp.selective_copy import SelectiveCopy
from constructions.copy_dp.tables import ShortestPath
from constructions.copy_dp.viterbi import Viterbi
from constructions.copy_dp.words import EditDistance
from constructions.experiments.catalogue import EXPERIMENTS
from constructions.experiments.kept_rows import KeptRows
from constructions.experiments.run import chosen, row_key
from constructions.papers import whose
from constructions.polynomials.linear_attention import LinearAttention
from constructions.polynomials.polynomial_mamba import PolynomialCircuit
from constructions.registry import families
from constructions.selectivity.absolute_time import AbsoluteTime
from constructions.selectivity.haar import Haar
from constructions.selectivity.induction_heads import InductionHeads
from constructions.selectivity.keep_nth import KeepNth
from constructions.selectivity.mqar import MQAR
from constructions.selectivity.with_position import AbsoluteTimePosition, KeepNthPosition
from tests import own_sizes
from tests.constructions.test_construct import run

DOCS = Path(__file__).parents[2] / "docs"
STATED = [
    (MQAR(), "Theorem 2"),
    (MQAR(arch="s4d"), "Theorem 4"),
    (InductionHeads(arch="mamba-delta-t"), "Lemma 3"),
]
ORDERS = [  # paper B has no constants
    (Copy(), "Theorem 2, size O(N) for"),
    (EditDistance(), "Theorem 3, size O(T) for"),
    (Viterbi(), "Theorem 3, size O(T) for"),
    (ShortestPath(), "after Theorem 3, for one size, size O(T) for"),
    (Fibonacci(), "Theorem 4, size O(m);"),
]
UNBOUNDED = [
    Copy(form="delay"),
    Copy(arch="mamba2"),
    Copy(arch="s4d"),
    Copy(n=8, max_d_state=4),
    EditDistance(max_d_state=4),
    Fibonacci(arch="mamba2"),
    SelectiveCopy(),
    Phonebook(),
    Knapsack(),
    LongestIncreasingSubsequence(),
    MaximumSubarray(),
    MQAR(write="first"),
    MQAR(write="first", max_d_state=4),
    MQAR(write="last"),
    MQAR(max_d_state=4),
    MQAR(arch="mamba2", n_groups=2),
    MQAR(arch="gated-deltanet", write="last"),
    MQAR(guarantee="random", arch="mamba2"),
    MQAR(guarantee="random"),
    InductionHeads(),
    InductionHeads(arch="mamba2"),
    InductionHeads(arch="mamba-delta-t", codes=True),
    KeepNth(),
    AbsoluteTime(),
    KeepNthPosition(),
    KeepNthPosition(arch="mamba2"),
    AbsoluteTimePosition(),
    PolynomialCircuit(),
    LinearAttention(),
    Haar(levels=2),
    Haar(levels=2, form="bumps"),
]


AFTER = re.compile(r"\(beyond the papers\)|after (?:paper \w\S*\s)?(?:Theorem|Lemma) \d", re.IGNORECASE)


def test_what_is_built_after_a_theorem_is_printed_so():
    """A module says "after" where its statement is not the theorem's own; the statement that is printed says it too."""
    told = {name: c().statement() for name, c in families().items() if AFTER.search(getmodule(c).__doc__)}
    assert {"phonebook", "selective-copy", "knapsack", "mad-copying", "linear-attention"} <= told.keys()
    named = {name: theorem for name, theorem in told.items() if re.search(r"Theorem|Lemma", theorem)}
    assert [name for name, theorem in named.items() if not re.search(r", after (Theorem|Lemma) \d", theorem)] == []


def test_a_clock_that_reads_the_position_is_not_the_propositions():
    """Paper A's Proposition 1 removes the position from the input."""
    assert AbsoluteTime.theorem.endswith(", Proposition 1")
    assert ", beside Proposition 1, " in AbsoluteTimePosition.theorem


@pytest.mark.parametrize("construction, where", STATED)
def test_a_theorems_bound_names_it(construction, where: str) -> None:
    assert construction.bound_source().startswith(where)


@pytest.mark.parametrize("construction, where", ORDERS, ids=lambda c: getattr(c, "name", ""))
def test_an_order_with_constants_of_ours_says_so(construction, where: str) -> None:
    told = construction.bound_source()
    assert told.startswith(where) and "; the constant is ours: at most a column of the state for each " in told
    report = artifact.report(build(construction), {}, None)
    assert display._sizes_table(report).columns[1].header == "bound, our constants"


@pytest.mark.parametrize("construction", UNBOUNDED, ids=lambda c: f"{c.name}-{c.target}")
def test_where_no_paper_states_a_size_none_is_told(construction) -> None:
    """Nor where the circuit goes beyond the theorem, or keeps what it has columns for in another way."""
    assert (construction.bound(), construction.bound_source()) == ({}, "")
    report = artifact.report(build(construction), {}, None)
    assert display._sizes_table(report).columns[1].header == "in use"
    assert "bound" not in report["needed"]


def test_a_step_of_a_proof_is_named() -> None:
    """Theorem 3 has N = log κ for codes, the first step of its proof N = κ; Theorem 2 has N = κ in every arithmetic."""
    step, narrow = MQAR(arch="mamba2"), MQAR(dtype="bfloat16")
    assert step.bound_source() == "Theorem 3, step 1 of its proof: d = κ + V and N = κ"
    assert step.bound() == {"d_model": step.kappa + step.vocab, "d_state": step.kappa, "layers": 1}
    assert (narrow.bound(), narrow.bound_source()) == ({"d_state": narrow.kappa, "layers": 1}, "Theorem 2, N = κ")
    assert whose(step.bound_source()) == whose(narrow.bound_source()) == "the paper's bound"


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_running_sums_are_counted_as_they_are_built(levels: int) -> None:
    """All wavelets share T sums, each in two halves; T + 1 comparisons and a constant are the other channels."""
    haar = Haar(levels=levels)
    compiled = haar.compiled()
    (block,), (size,) = compiled.blocks, bare_sizes(compiled)
    assert [name for name in block.channels.names if name.startswith("suffix[")] == [
        f"suffix[{half}]" for half in range(2 * haar.length)
    ]
    assert size.d_inner == 2 * haar.length + (haar.length + 1) + 1


@pytest.mark.parametrize("file", ["chains.json", "experiments.json"])
def test_kept_rows_have_the_sources_that_are_printed_now(file: str):
    kept = KeptRows(DOCS / file)
    for name in EXPERIMENTS:
        told = {row.key: row.bound_source for row in kept.of(name) if row.bound_source}
        built = {row_key(entry): entry.built for entry in chosen(name) if entry.built} if told else {}
        assert told == {key: built[key].bound_source() for key in told}


@pytest.mark.parametrize("vocab", [1, 2, 5, 16])
@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_models_with_positions_keep_to_what_was_counted(arch: str, vocab: int) -> None:
    for construction, most in (
        (KeepNthPosition(3, vocab, arch=arch), own_sizes.keep_nth_position(vocab, arch)),
        (AbsoluteTimePosition(vocab, arch=arch), own_sizes.OwnSizes(3, 1, 1, 1)),
    ):
        sizes = bare_sizes(compile(construction.circuit(), arch))
        assert len(sizes) == most.layers
        for name in ("d_model", "d_inner", "d_state"):
            assert max(getattr(size, name) for size in sizes) <= getattr(most, name), name


@pytest.mark.parametrize("arch, header", [("mamba", "bound, our constants"), ("mamba2", "the paper's bound")])
def test_the_column_says_whose(arch: str, header: str, tmp_path, capsys: pytest.CaptureFixture) -> None:
    command = ("mqar", "--kappa", "2", "--vocab", "2", "--arch", arch, "--no-certify", "--samples", "5")
    assert run(*command, "--out", str(tmp_path / "m")) == 0
    shown = capsys.readouterr().out
    assert header in shown and "bound: " in shown
    assert run("verify", str(tmp_path / "m"), "--samples", "5") == 0
    assert header in capsys.readouterr().out


def test_experiments_show_every_size(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display.console, "width", 200)
    assert run("reproduce", "table-1", "--only", "keep-nth", "--samples", "2") == 0
    shown = capsys.readouterr().out
    assert re.search(r"│ 22·13·1 ", shown) and "bound: " not in shown
    assert run("reproduce", "table-1", "--only", "keep-nth", "--samples", "2", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert all(row["parameters_of_model"] > 0 and row["used"]["d_model"] for row in rows if row["arch"])
