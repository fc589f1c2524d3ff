"""Paper D's statements on fnn+ssm: every small input, long random ones, cases that attack, sizes and commands."""

import json
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from compiler import CompileError
from compiler.driver import compile
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.command.cli import app
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.selective_copy import SelectiveCopy
from constructions.token_selection import network
from constructions.token_selection.copy_ngram import CopyNgram
from constructions.token_selection.recall import AssociativeRecall
from constructions.token_selection.selection import TokenSelection
from constructions.token_selection.unique_induction import UniqueInduction
from verify.bounds import repeated_ngram_bound
from verify.check import check
from verify.samples import Cost, chosen_batches
from verify.tasks.solvers.copying import has_conflict, has_repeat

SMALL = {
    "recall": lambda arch: AssociativeRecall(3, 2, 3, arch=arch),
    "recall, distinct keys": lambda arch: AssociativeRecall(3, 2, 3, True, arch=arch),
    "unique induction": lambda arch: UniqueInduction(3, 5, arch=arch),
    "selection, d' = 1": lambda arch: TokenSelection("angle", 4, 2, 3, arch=arch),
    "selection, d' = 2": lambda arch: TokenSelection("plane", 2, 2, 3, arch=arch),
    "selection, d' = 3": lambda arch: TokenSelection("signs", 3, 2, 2, arch=arch),
    "copy by places": lambda arch: Copy(n=3, vocab=2, arch=arch),
    "selective copy": lambda arch: SelectiveCopy(n=2, vocab=2, length=4, arch=arch),
}
QUIET = lambda name, count: lambda done: None


@pytest.mark.parametrize("name", SMALL)
def test_every_small_input_on_the_network(name):
    built = network.build(SMALL[name]("fnn+ssm"))
    results = network.verify(built, "exhaustive", 16, QUIET)
    exact, module = results.values()
    assert exact.bit_exact and exact.passed and module.passed
    assert exact.queries and exact.correct == exact.queries


LONG = {  # beside unique induction, whose one match a test of its own places
    "recall": AssociativeRecall(8, 5, 499, arch="fnn+ssm"),
    "selection": TokenSelection("angle", 6, 3, 1000, arch="fnn+ssm"),
    "copy by places": Copy(n=60, vocab=5, arch="fnn+ssm"),
    "selective copy": SelectiveCopy(n=12, vocab=5, length=980, arch="fnn+ssm"),
}


@pytest.mark.parametrize("name", LONG)
def test_long_random_inputs_on_the_network(name):
    construction = LONG[name]
    compiled = network.build(construction).compiled
    assert compiled.fits_float64
    (task,) = construction.tasks()
    tokens = compiled.source.token_alphabet.size
    batches = chosen_batches(task, "random", 6, 0, Cost(tokens)).batches
    result = check(lambda ids: compiled.run(ids, np.float64), lambda ids: compiled.run(ids, np.float64), batches)
    assert result.queries and result.correct == result.queries


def test_long_unique_induction_on_the_network():
    """A thousand tokens of which two are alike."""
    compiled = compile(UniqueInduction(64, 1000).circuit(), "fnn+ssm")
    rng = np.random.default_rng(0)
    for _ in range(4):
        tokens = rng.integers(0, 63, 1000)
        j = rng.integers(0, 998)
        tokens[[j, 999]] = 63
        assert compiled.run(tokens[None], np.float64)[0, -1].argmax() == tokens[j + 1]


# Theorem 3.1 by n-grams ------------------------------------------------------------------------------------


def answered(compiled, task, word) -> bool:
    """Whether every token of the copy is the strictly highest score."""
    ids, chain = task.ids(("^", *word, "|"))
    scores = compiled.run(np.array([ids + chain[:-1]]), np.float64)[0, len(ids) - 1 :]
    return all(row[k] > np.delete(row, k).max() for row, k in zip(scores, chain, strict=True))


@pytest.mark.parametrize(("n", "vocab", "length"), [(1, 3, 3), (2, 2, 5), (3, 2, 6)])
def test_copies_by_ngrams_fail_exactly_where_a_context_has_two_continuations(n, vocab, length):
    construction = CopyNgram(n, vocab, length, arch="fnn+ssm")
    compiled = compile(construction.circuit(), "fnn+ssm")
    (task,) = construction.tasks()
    outcomes = []
    for word in product([f"x{v}" for v in range(vocab)], repeat=length):
        right = answered(compiled, task, word)
        assert right != has_conflict(word, n)
        assert right or has_repeat(word, n) or has_repeat(("^", *word), n)
        outcomes.append(right)
    assert True in outcomes and False in outcomes


def test_the_rate_of_failing_copies_is_within_the_bound():
    """64 uniform strings at N = 12, |V| = 6, n = 4: the bound is N²|V|^(−n)/2 = 0.056."""
    construction = CopyNgram(4, 6, 12, arch="fnn+ssm")
    assert construction.expected_failure() == repeated_ngram_bound(12, 6, 4) == 144 / 6**4 / 2
    solver = construction.tasks()[0].solver
    rng = np.random.default_rng(0)
    words = [solver.draw(rng)[1:-1] for _ in range(4000)]
    conflicts = np.mean([has_conflict(word, 4) for word in words])
    repeats = np.mean([has_repeat(word, 4) for word in words])
    assert 0 < conflicts <= repeats <= 144 / 6**4 / 2


def test_runs_of_noise_are_as_rare_as_the_conditions_of_selective_copying_say():
    """II.11: P(r noise tokens in a row) ≤ N p^r, and the last n words in their order repeat at most as n-grams do."""
    rng = np.random.default_rng(1)
    length, p, r, n, vocab = 24, 0.4, 9, 4, 6
    noise = rng.random((4000, length)) < p
    runs = np.mean([("1" * r) in "".join(map(str, row.astype(int))) for row in noise])
    words = [rng.integers(vocab, size=int((~row).sum())) for row in noise]
    repeats = np.mean([has_repeat([str(t) for t in word], n) for word in words])
    assert runs <= length * p**r and repeats <= repeated_ngram_bound(length, vocab, n)


@pytest.mark.parametrize("arch", ["mamba", "mamba2", "s4d"])
def test_copies_by_ngrams_on_real_layers(arch):
    built = build(CopyNgram(2, 2, 4, arch=arch))
    results = artifact.verify(built, built.bare_stack(), "exhaustive", 1, 0, bare=True)
    (result,) = results.values()
    assert result.bit_exact and result.sequences == 16
    words = list(product(("x0", "x1"), repeat=4))
    assert result.exact_sequences == sum(not has_conflict(word, 2) for word in words)


# Sizes, files and commands ---------------------------------------------------------------------------------


def test_sizes_beat_those_by_hand():
    for name in ("recall", "unique induction", "copy by places", "selective copy"):
        construction = SMALL[name]("fnn+ssm")
        sizes, by_hand = network.build(construction).compiled.sizes, construction.by_hand()
        assert sizes.M == by_hand["M"] == 2
        assert by_hand["D"] >= sizes.D and by_hand.get("S", sizes.S) >= sizes.S, name
    eight = AssociativeRecall(8, 16, 8, True, arch="fnn+ssm")
    sizes = network.build(eight).compiled.sizes
    assert (sizes.D, sizes.S) == (40, 276) and eight.by_hand() == {"M": 2, "D": 40, "S": 316}
    assert sizes.S == 8 * 8 * 4 + 2 * 8 + 4


@pytest.mark.parametrize(
    "words",
    [
        ["token-selection", "--size", "3", "--values", "2", "--length", "3"],
        ["recall", "--keys", "2", "--values", "2", "--pairs", "2"],
        ["copy", "--n", "2", "--vocab", "2"],
    ],
)
def test_commands_on_the_network(words):
    done = CliRunner().invoke(app, [*words, "--arch", "fnn+ssm", "--samples", "8", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.output)
    assert told["sizes"]["M"] == (1 if words[0] == "token-selection" else 2)
    assert all(row["accuracy"] == 1 for row in told["verification"].values())


def test_the_command_shows_sizes_beside_those_by_hand():
    done = CliRunner().invoke(
        app, ["copy-ngram", "--arch", "fnn+ssm", "--vocab", "2", "--length", "3", "--samples", "8"]
    )
    assert done.exit_code == 0, done.output
    rows = [line for line in done.output.splitlines() if line.startswith("│") and "task" in line]
    assert len(rows) == 2 and "yes" in rows[0] and "in torch" in rows[1]  # each on one line
    assert "by hand" in done.output and "rate of wrong sequences, at most: 0.5625" in done.output


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["recall", "--arch", "fnn+ssm", "--out", "somewhere"], r"--out somewhere: no library ships fnn\+ssm"),
        (["recall", "--arch", "fnn+ssm", "--force"], r"--force: no library ships fnn\+ssm"),
        (["recall", "--arch", "fnn+ssm", "--no-certify"], r"--no-certify: no library ships fnn\+ssm"),
        (["token-selection", "--keys", "plane", "--size", "3"], "size = 3 is no sum of two squares.*size = 4 works"),
        (["token-selection", "--keys", "plane", "--size", "11"], "size = 11 is no sum .* size = 13 works"),
        (["unique-induction", "--length", "1"], "length = 1 is too small, .* the smallest length that works is 2"),
        (["token-selection", "--keys", "signs", "--size", "11"], r"size = 11 makes 2\^11 keys of signs"),
        (["recall", "--keys", "2", "--pairs", "3", "--distinct"], "pairs = 3 cannot have distinct keys out of 2"),
        (["copy-ngram", "--n", "9"], "n = 9 has more than 8,192 contexts over 4 tokens"),
        (["recall", "--arch", "fnn+ssm", "--dtype", "float16"], r"dtype = 'float16' has no meaning for fnn\+ssm"),
        (["copy", "--arch", "fnn+ssm", "--max-d-state", "4"], r"max_d_state = 4 has no meaning for fnn\+ssm"),
    ],
)
def test_wrong_use_is_told_in_one_sentence(words, reason):
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, ValueError) or done.exit_code == 2
    with pytest.raises(ValueError, match=reason):
        raise done.exception


SHORT = {
    "recall": (["--keys", "3", "--values", "3", "--pairs", "2"], 5),
    "unique-induction": (["--vocab", "3", "--length", "5"], 5),
    "token-selection": (["--size", "3", "--values", "2", "--length", "4"], 4),
    "copy": (["--n", "2"], 6),
    "copy-ngram": (["--length", "3", "--n", "1"], 9),
    "selective-copy": (["--n", "2", "--length", "3"], 7),
}


@pytest.mark.parametrize("name", SHORT)
def test_a_promise_shorter_than_the_task_is_refused_and_the_smallest_is_built(name):
    words, least = SHORT[name]
    for arch in ("mamba", "fnn+ssm"):
        done = CliRunner().invoke(app, [name, *words, "--arch", arch, "--max-length", str(least - 1)])
        with pytest.raises(ValueError, match=f"^max_length = {least - 1} is too small, .* that works is {least}"):
            raise done.exception
    done = CliRunner().invoke(app, [name, "--max-length", "-4"])
    with pytest.raises(ValueError, match="^max_length = -4 is too small, .* the smallest max_length that works is 0"):
        raise done.exception
    arguments = [name, *words, "--arch", "fnn+ssm", "--max-length", str(least), "--samples", "4", "--json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0 and json.loads(done.stdout)["params"]["max_length"] == least, done.output


def test_the_module_is_what_is_verified():
    """A damaged weight of the torch module is found."""
    built = network.build(AssociativeRecall(2, 2, 2, arch="fnn+ssm"))
    module = built.compiled.module
    damaged = module()
    with torch.no_grad():
        damaged.decoder.weight[0, 0] += 1
    object.__setattr__(built.compiled, "module", lambda: damaged)
    results = network.verify(built, "random", 8, QUIET)
    assert not network.passed(built, results)


def test_mamba2_takes_n_grams_of_as_long_strings_as_the_page_states():
    """Of n = 3 and 8 tokens: its norm has no room for what more contexts might add up to."""
    page = " ".join((Path(__file__).parents[2] / "docs" / "token_selection.md").read_text("utf-8").split())
    longest = int(re.findall(r"strings of up to (\d+) tokens fit", page)[0])
    build(CopyNgram(3, 8, longest, arch="mamba2"))
    with pytest.raises(CompileError, match="float32 has no room for the norm's sum of squares"):
        build(CopyNgram(3, 8, longest + 1, arch="mamba2"))
