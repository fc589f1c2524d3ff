"""Dynamic programs: every chain of the real modules against the textbook, token by token."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from compiler.artifact.generate import generate
from compiler.artifact.package import bare_sizes
from compiler.driver import compile
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.copy_dp.chains import ChainConstruction
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.knapsack import Knapsack
from constructions.copy_dp.lists import LongestIncreasingSubsequence, MaximumSubarray
from constructions.copy_dp.local import CoinChange, Fibonacci
from constructions.copy_dp.phonebook import Phonebook
from constructions.copy_dp.selective_copy import SelectiveCopy
from constructions.copy_dp.tables import MatrixChain, ShortestPath
from constructions.copy_dp.viterbi import Viterbi
from constructions.copy_dp.words import EditDistance, LongestCommonSubsequence
from verify.tasks.solvers.words import EditDistanceSolver

SMALL = [
    EditDistance(length=3, distinct_letters=3),
    LongestCommonSubsequence(length=3, distinct_letters=3),
    LongestIncreasingSubsequence(length=5, values=4),
    MaximumSubarray(length=5, values=4),
    Fibonacci(modulus=3, length=9),
    CoinChange(amount=9, coins="3,4"),
    Copy(n=8, vocab=2),
    Knapsack(items=2, capacity=2, values=1),
    Viterbi(length=3),
    Viterbi(length=3, start="0,1,1", transitions="0,2,1;1,0,3;2,2,0", emissions="0,1;2,0;1,1"),
    ShortestPath(nodes=3, lengths=1),
    MatrixChain(matrices=2, largest=2),
    Phonebook(names=2, entries=1, digits=1),
    SelectiveCopy(n=2, vocab=2, length=4),
]
TWO = {"distinct_letters": 2}


def assert_right(construction, mode, samples=1):
    built = build(construction)
    results = artifact.verify(built, built.stack(), mode, samples, seed=0)
    assert artifact.passed(built, results), artifact.divergence(built, built.stack(), *results.values())
    return next(iter(results.values()))


@pytest.mark.parametrize(("arch", "dtype"), [("mamba", "float32"), ("mamba2", "float32"), ("mamba", "bfloat16")])
@pytest.mark.parametrize("construction", SMALL, ids=lambda c: c.name)
def test_every_prompt_of_small_sizes(construction, arch, dtype):
    """Words over three letters on Mamba in float32, over two elsewhere: prompts grow with their sixth power."""
    letters = {} if (arch, dtype) == ("mamba", "float32") or not hasattr(construction, "distinct_letters") else TWO
    construction = replace(construction, arch=arch, dtype=dtype, **letters)
    result = assert_right(construction, "exhaustive")
    assert result.exact_sequences >= construction.tasks()[0].exhaustive_count()


def test_every_knapsack_of_at_most_three_items_and_capacity_four():
    built = build(Knapsack(items=3, capacity=4, values=1))
    results = artifact.verify(built, built.bare_stack(), "exhaustive", 1, seed=0, bare=True)
    assert artifact.passed(built, results) and sum(r.exact_sequences for r in results.values()) >= 5 * 1111


@pytest.mark.quick
def test_the_textbook_by_hand():
    chain = EditDistanceSolver(3, "abc").chain(["a", "b", "c", "|", "b", "c", ";"])
    assert " ".join(chain) == "0 1 2 ; 1 1 2 ; 2 1 2 ; 3 2 1 ."


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
@pytest.mark.parametrize("form", ["delay", "pointer", "place"])
def test_copies_at_every_position(form, arch):
    assert_right(Copy(form=form, n=3, vocab=2, arch=arch), "auto", samples=50)


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_the_state_of_a_local_program_does_not_grow(arch):
    """Theorem 4: one column, and as many channels and lanes, for a chain of 20 entries and of 200."""
    short, long = (build(Fibonacci(modulus=7, length=length, arch=arch)).compiled for length in (20, 200))
    assert bare_sizes(short) == bare_sizes(long) and max(size.d_state for size in bare_sizes(long)) == 1


@pytest.mark.parametrize("construction", [c for c in SMALL if isinstance(c, ChainConstruction)], ids=lambda c: c.name)
def test_the_promise_is_as_long_as_the_longest_chain(construction):
    """A default of 65,536 tokens once came in from another base class: short formats were refused."""
    assert construction.language().max_length == construction.longest()


def test_a_phonebook_promises_what_its_language_admits():
    """As many entries as fit into the tokens that are kept; of a longer book the digits behind them are left out."""
    book = Phonebook(names=5, entries=2, digits=2)
    language, solver, kept = book.language(), book.solver(), book.table()
    built = compile(book.circuit(), "mamba")
    ids = {name: i for i, name in enumerate(language.alphabet.tokens)}
    short = [token for i in range(4) for token in (f"n{i}", str(i + 1), ";")]
    assert f"the first {kept} are kept" in language.description and len(short) > kept == 8
    for size in range(1, 5):
        prompt = [*short[: 3 * size], "?", f"n{size - 1}"]
        chain = solver.chain([*short[:kept], *prompt[3 * size :]])
        assert chain == (solver.chain(prompt) if 3 * size - 1 <= kept else ["."])
        word = [ids[name] for name in (*prompt, *chain)]
        if language.accepts(word):
            scores = built.interpret(np.array([word]))[0]
            assert [int(i) for i in scores[len(prompt) - 1 : -1].argmax(axis=-1)] == word[len(prompt) :]
        assert language.accepts(word) == (len(word) <= language.max_length)


@pytest.mark.parametrize("nodes, lengths", [(2, 1), (4, 3), (5, 2)])
def test_a_node_that_no_path_reaches_is_written_as_the_promise_and_the_card_say(nodes, lengths, tmp_path):
    """As one more than any path takes: by the solver's own count of paths, by the model, and in words."""
    path = ShortestPath(nodes=nodes, lengths=lengths)
    alone = " ".join(["-"] * (nodes * (nodes - 1) // 2)) + " ;"
    artifact.save(build(path), {}, tmp_path / "path")
    written = generate(tmp_path / "path", alone)
    _, *far, end = written.split()
    in_a_row = [f"e{lengths}" if b == a + 1 else "-" for b in range(nodes) for a in range(b)]
    longest = max(map(int, path.solver().chain([*in_a_row, ";"])[:-1]))
    assert set(far) == {str(longest + 1)} and end == "."
    said = f"{longest + 1} is written for a node that no path reaches"
    assert said in (tmp_path / "path" / "README.md").read_text() and said in path.language().description


def test_an_amount_that_no_coins_make_is_written_as_the_promise_says():
    change = CoinChange(amount=5, coins="3")
    assert "- is written for an amount that no coins make" in change.language().description
    assert change.solver().chain(["5", ";"]) == ["0", "-", "-", "1", "-", "-", "."]
