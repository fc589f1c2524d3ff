"""Paper A on recall: Theorems 2, 3 and 4, Appendices C and D, and the public benchmark's data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from constructions.papers import SELECTIVITY
from constructions.truths.truth import Finding, Truth
from verify.tasks.mqar import BenchmarkLayout, PaperLayout, mqar_oracle
from verify.tasks.task import IGNORED, Batch


def answered(construction, batch: Batch) -> float:
    """The share of labels that the bare real module answers."""
    from compiler.artifact.package import bare
    from constructions.artifact import module_scores

    compiled = construction.compiled()
    scores = module_scores(bare(compiled))(batch.tokens)
    asked = batch.labels != IGNORED
    rows = np.arange(int(asked.sum()))
    labels, of = batch.labels[asked], scores[asked]
    right = of[rows, labels].copy()
    of[rows, labels] = -np.inf
    return float((right > of.max(axis=1)).mean())


def _one(task) -> Batch:
    return next(iter(task.random(100, 0, batch_size=100)))


def independent_keys() -> Finding:
    from constructions.selectivity.mqar import MQAR

    circuit = MQAR(kappa=16, vocab=64, length=100)
    options = {"filler": "neutral", "pairs": 16, "rebind": True, "write": "last"}
    asked_often = _one(PaperLayout(16, 64, 100, repeat_queries=True, **options))
    often, latch = answered(circuit, asked_often), answered(replace(circuit, write="last"), asked_often)
    once = answered(circuit, _one(PaperLayout(16, 64, 100, **options)))
    distinct = answered(circuit, _one(PaperLayout(16, 64, 100, "neutral", 16)))
    return Finding(
        {"queries right, keys and queries drawn independently": often, "each key asked at most once": once},
        often < 0.5 and once < 0.75,
        {"queries right with distinct keys": distinct, "with --write last on the first data": latch},
        distinct == latch == 1,
    )


def repeated_query() -> Finding:
    """k0 v1 k0 v2 k0: the second pair is a query and the noise after it."""
    from constructions.selectivity.mqar import MQAR

    tokens = [1, 4, 1, 5, 1]
    found = {}
    for write in ("sum", "first", "last"):
        wanted = 5 if write == "last" else 4
        batch = Batch(np.array([tokens]), np.array([[IGNORED] * 4 + [wanted]]))
        found[write] = answered(MQAR(kappa=2, vocab=4, write=write), batch)
    return Finding(
        {"second query right": found["sum"]},
        found["sum"] == 0,
        {"right with --write first": found["first"], "with --write last": found["last"]},
        found["first"] == found["last"] == 1,
    )


def filler_rebinds() -> Finding:
    from constructions.selectivity.mqar import MQAR

    batch = _one(BenchmarkLayout(32, 32, 64, 4, filler="vocabulary"))
    contradicted = np.mean([_rebound(*row) for row in zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True)])
    answers = {w: answered(MQAR(kappa=32, vocab=32, write=w), batch) for w in ("sum", "last", "first")}
    return Finding(
        {"share of labels that a later pair contradicts": float(contradicted)}
        | {f"queries right with --write {w}": answers[w] for w in ("sum", "last")},
        contradicted > 0 and answers["sum"] < 1 and answers["last"] < 1,
        {"queries right with --write first": answers["first"]},
        answers["first"] == 1,
    )


def _rebound(tokens: list[int], labels: list[int]) -> float:
    """The share of a sequence's labels that are not the last value of their key."""
    last = mqar_oracle(tokens, 32, 32, "last")
    return float(np.mean([last[t] != label for t, label in enumerate(labels) if label != IGNORED]))


def adjacent_keys() -> Finding:
    """k0 v0, then k1 v1 over and over, then k1 k0: how often k1 may have been written."""
    from constructions.selectivity.mqar import MQAR

    def right(times: int, arch: str) -> float:
        tokens = [1, 3, *([2, 4] * times), 2, 1]
        batch = Batch(np.array([tokens]), np.array([[IGNORED] * (len(tokens) - 1) + [3]]))
        return answered(MQAR(kappa=2, vocab=2, arch=arch), batch)

    printed = {times: right(times, "mamba") for times in (95, 96, 97)}
    return Finding(
        {f"right after {times} writes of the neighbour": value for times, value in printed.items()},
        list(printed.values()) == [1, 0, 0],
        {"after 200, on channels of their own (Mamba-2)": right(200, "mamba2")},
        right(200, "mamba2") == 1,
    )


def signs_pass_silu() -> Finding:
    rng = np.random.default_rng(0)
    codes = np.float32(rng.choice([-1, 1], (16, 64)))
    one_sided = codes > 0
    scale = np.float32(128)
    silu = lambda x: x / (1 + np.exp(-np.maximum(x, -80)))
    write = np.concatenate([silu(scale * codes), silu(-scale * codes)], axis=1)
    read, swapped = write, np.roll(write, 64, axis=1)
    difference = (write @ read.T - write @ swapped.T) / scale**2
    off_diagonal = ~np.eye(16, dtype=bool)
    crossing = (one_sided @ one_sided.T.astype(np.float32))[off_diagonal]
    return Finding(
        {"mean product of two other keys behind SiLU, over that of a key with itself": float(crossing.mean() / 32)},
        crossing.mean() > 8,
        {"largest error of the difference of two halves": float(np.abs(difference - codes @ codes.T).max())},
        bool(np.array_equal(difference, codes @ codes.T)),
    )


def logarithmic_codes() -> Finding:
    from compiler.language.codebook import least_coherence
    from verify.random_codes import failure_rate, key_code_for

    at_log = min(least_coherence(kappa, max(1, (kappa - 1).bit_length())) for kappa in range(2, 1000))
    eight = {kappa: failure_rate(12, 8 * (kappa - 1).bit_length(), kappa) for kappa in (8, 16, 32)}
    per_key = {kappa: key_code_for(0.01, 12, kappa) / kappa for kappa in (8, 16, 32)}
    return Finding(
        {"least coherence of ⌈log₂ κ⌉ entries, κ = 2 … 999": at_log}
        | {f"wrong with 8⌈log₂ κ⌉ entries, κ = {kappa}, V = 512": rate for kappa, rate in eight.items()},
        at_log == 1 and 0.1 < eight[8] < eight[16] < eight[32],
        {f"entries per key for 1 % wrong, κ = {kappa}": share for kappa, share in per_key.items()},
        all(5 < share < 9 for share in per_key.values()),
    )


def printed_constants() -> Finding:
    from constructions.selectivity.mqar import MQAR

    silu = lambda x: x / (1 + np.exp(-x))
    hits = np.array([1.0, 3.0])  # c0·k + c1·v − b with k = 2, c0 = 10, b = c0·k and codes of 1 and 3
    missed = np.array([-1.0, -3.0])
    batch = _one(PaperLayout(4, 8, 40, "values", 4))
    right = answered(MQAR(kappa=4, vocab=8, arch="s4d"), batch)
    return Finding(
        {
            "relative error of SiLU for ReLU at 1": float(1 - silu(hits[0])),
            "what a miss of −1 leaves": float(silu(missed[0])),
        },
        abs(silu(hits[0]) - 1) > 0.2 and abs(silu(missed[0])) > 0.2,
        {"queries right with hits from 32 on and misses below −104": right},
        right == 1,
    )


TRUTHS = (
    Truth(
        "independent-keys",
        SELECTIVITY,
        "Appendix D.3",
        "Keys are drawn independently and the model of Theorem 2 answers every query.",
        "A key that is drawn twice holds the sum of two values. κ = 16, T = 100, neutral noise, on the real module.",
        "With distinct keys, each asked at most once, every query is right; `--write last` answers all of it.",
        independent_keys,
    ),
    Truth(
        "repeated-query",
        SELECTIVITY,
        "Theorems 2–4, Appendix C.1",
        "Every query is answered.",
        "A query and the noise value after it are stored as if they were a pair: in k0 v1 k0 v2 k0 the second query "
        "reads two values.",
        "Each key may be asked once; `--write first` and `--write last` have no such condition.",
        repeated_query,
    ),
    Truth(
        "filler-rebinds",
        SELECTIVITY,
        "the public benchmark (Zoology)",
        "The label is the value that the key has.",
        "The default filler is drawn from the whole vocabulary, keys and values included, and rebinds keys.",
        "The label is the first value of the key: `--write first` is right.",
        filler_rebinds,
    ),
    Truth(
        "adjacent-keys",
        SELECTIVITY,
        "Theorem 2",
        "The size-2 convolution keeps the present key alone.",
        "At adjacent keys k' q the read sees h[q] + h[k']/96 with these constants, and a share of it with any.",
        "It is right while k' was written at most 95 times; separate channels do not leak.",
        adjacent_keys,
    ),
    Truth(
        "signs-pass-silu",
        SELECTIVITY,
        "Theorem 3",
        "B and C carry ±1 codes, so that other keys cancel.",
        "In Mamba-2 both pass SiLU, which leaves one sign: products are then never negative, and nothing cancels.",
        "[silu(Sc), silu(−Sc)] against its halves swapped gives S²<c, q> exactly.",
        signs_pass_silu,
    ),
    Truth(
        "logarithmic-codes",
        SELECTIVITY,
        "Theorem 3",
        "N = O(log κ) columns hold κ values.",
        "⌈log₂ κ⌉ signs force a word and its negative, whose values cancel; with 8⌈log₂ κ⌉ a fifth of the answers is "
        "wrong at κ = 8, more with more keys.",
        "The length that keeps 1 % wrong grows with κ, not log κ: κ values are κ·log₂ V bits. One-hot keys (N = κ) "
        "answer everything.",
        logarithmic_codes,
    ),
    Truth(
        "printed-constants",
        SELECTIVITY,
        "Theorem 4",
        "c₀ = 10, c₁ = 1 and b = k·c₀ single out the key's chunk.",
        "Behind ReLU they do; the module has SiLU, and ±1 is not far enough from 0.",
        "k = 8, c₀ = 128, c₁ = 32, b = 1024 put every hit at 32 or more and every miss below −104.",
        printed_constants,
    ),
)
