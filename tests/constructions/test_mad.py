"""Recall and copying of the MAD suite, forgetting MQAR, and data of one's own, on real modules."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.checkpoints.guarantee import proof_of
from constructions.checkpoints.saved import recorded
from constructions.selectivity.fuzzy_recall import FuzzyRecall
from constructions.selectivity.in_context_recall import InContextRecall
from constructions.selectivity.keep_nth import KeepNth
from constructions.selectivity.mad_compression import MadCompression
from constructions.selectivity.mad_copying import MadCopying
from constructions.selectivity.mad_memorization import MadMemorization
from constructions.selectivity.mqar import MQAR
from tests.constructions.test_construct import run
from verify.tasks.mqar import BenchmarkLayout

EVERY = [
    InContextRecall(vocab=5, length=8),
    InContextRecall(vocab=6, noise=1, share=0.3, length=6, arch="mamba2"),
    InContextRecall(vocab=4, every=True, length=8, arch="s4d"),
    MadCopying(n=3, vocab=4, length=9),
    MadCopying(n=3, vocab=4, length=10, selective=True, arch="mamba2"),
    MadCompression(n=3, vocab=3, questions=2),
    MadCompression(n=3, vocab=4, questions=1, arch="mamba2"),
    MadMemorization(vocab=8, length=6),
    MadMemorization(vocab=9, length=4, arch="mamba2", seed=1),
    MadMemorization(vocab=7, length=6, arch="s4d"),
    MadMemorization(vocab=7, length=6, arch="gated-deltanet"),
    FuzzyRecall(vocab=6, key_size=2, value_size=2, length=12),
    FuzzyRecall(vocab=6, key_size=1, value_size=2, length=10, arch="mamba2"),
    MQAR(kappa=2, vocab=3, write="last", layout="forgetting", pairs=2, length=12),
]


@pytest.mark.parametrize("construction", EVERY, ids=lambda c: f"{c.name}-{c.arch}")
def test_every_sequence_of_small_formats(construction) -> None:
    built = build(construction)
    for stack, bare in ((built.bare_stack(), True), (built.stack(), False)):
        if stack is None:
            continue
        for result in artifact.verify(built, stack, "exhaustive", 0, 0, bare=bare).values():
            assert result.passed and result.bit_exact and result.sequences >= 10


LARGE = [
    InContextRecall(vocab=32, noise=16, share=0.2),
    MadCopying(selective=True),
    MadCompression(),
    MadMemorization(),
    FuzzyRecall(vocab=16, key_size=3, length=128),
    FuzzyRecall(vocab=10, key_size=4, value_size=1, length=64),
    FuzzyRecall(vocab=14, key_size=2, value_size=5, length=64),
    MQAR(kappa=63, vocab=64, write="last", layout="forgetting", pairs=16, length=128),
    MQAR(kappa=63, vocab=64, write="first", layout="benchmark", pairs=16, length=128, power=0.5),
]


@pytest.mark.parametrize("construction", LARGE, ids=lambda c: c.name)
def test_the_suites_own_sizes(construction) -> None:
    built = build(construction)
    (result,) = artifact.verify(built, built.bare_stack(), "random", 20, 0, bare=True).values()
    assert result.passed and result.bit_exact and result.queries >= 20


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_in_context_recall_is_proved(arch: str) -> None:
    told, _ = proof_of(build(InContextRecall(vocab=7, noise=2, share=0.2, arch=arch, length=16)))
    assert told is not None and told["holds"] and told["parts"]["task"]


def test_data_of_ones_own(tmp_path, capsys: pytest.CaptureFixture) -> None:
    """Zoology's ids are the circuit's; a wrong label is found, other files are refused in one sentence."""
    place = str(tmp_path / "m")
    command = (
        "mqar",
        "--kappa",
        "7",
        "--vocab",
        "8",
        "--write",
        "first",
        "--samples",
        "5",
        "--no-certify",
        "--out",
        place,
    )
    assert run(*command, "--json") == 0
    (batch,) = BenchmarkLayout(7, 8, 24, 4, filler="vocabulary").random(12, 3)
    np.savez(tmp_path / "d.npz", inputs=batch.tokens, labels=batch.labels)
    capsys.readouterr()
    assert run("verify", place, "--data", str(tmp_path / "d.npz"), "--json") == 0
    told = json.loads(capsys.readouterr().out)["verification"]
    assert (told["sequences"], told["queries"], told["accuracy"]) == (12, 48, 1.0)
    labels = batch.labels.copy()
    labels[labels > 0] = 8 + (labels[labels > 0] + 1) % 8
    np.savez(tmp_path / "w.npz", inputs=batch.tokens, labels=labels)
    assert run("verify", place, "--data", str(tmp_path / "w.npz")) == 1
    capsys.readouterr()
    assert run("verify", place, "--data", str(tmp_path / "none.npz")) == 2
    assert capsys.readouterr().err == f"--data {tmp_path / 'none.npz'} cannot be read: no such file or directory\n"
    assert run("verify", place, "--data", "zoology", "--samples", "20", "--json") == 0
    told = json.loads(capsys.readouterr().out)["verification"]
    assert told["accuracy"] == 1.0 and told["queries"] >= 20 * 7 and "benchmark" in next(iter(told["tasks"]))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: MQAR(layout="forgetting"), "use --write last"),
        (lambda: MQAR(power=0.0), "no power law"),
        (lambda: InContextRecall(share=0.5), "needs noise tokens"),
        (lambda: InContextRecall(vocab=2), "vocab = 2"),
        (lambda: FuzzyRecall(vocab=12, key_size=5), "key_size = 5"),
        (lambda: MadCopying(n=8, length=10), "length = 10"),
    ],
)
def test_what_cannot_be_is_refused(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("write, layout", [("sum", "filler neutral"), ("last", "forgetting")])
def test_the_public_benchmark_by_name(write: str, layout: str) -> None:
    task = recorded(Path("zoology"), build(MQAR(kappa=7, vocab=8, write=write, length=32, pairs=4)))
    assert layout in task.describe() and task.length == 32


def test_the_public_benchmark_is_recall() -> None:
    with pytest.raises(ValueError, match="the checkpoint is keep-nth"):
        recorded(Path("zoology"), build(KeepNth(n=1, vocab=2)))
    with pytest.raises(ValueError, match="the promise ends at 128"):
        recorded(Path("zoology"), build(MQAR(kappa=7, vocab=8, max_length=128)))


@pytest.mark.parametrize("sizes", [{}, {"key_size": 4}, {"value_size": 1}, {"key_size": 1, "value_size": 2}], ids=str)
def test_fuzzy_recall_names_the_smallest_vocabulary_that_works(sizes):
    with pytest.raises(ValueError, match="the smallest vocab that works is") as refusal:
        FuzzyRecall(vocab=2, **sizes)
    least = int(str(refusal.value).rstrip(".").split()[-1])
    assert FuzzyRecall(vocab=least, **sizes).tasks()
    with pytest.raises(ValueError, match="vocab"):
        FuzzyRecall(vocab=least - 1, **sizes)
