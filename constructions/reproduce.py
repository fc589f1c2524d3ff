"""The experiments of *Understanding Input Selectivity in Mamba*, with built weights in place of trained ones.

Paper B's chains.

Figures 2, A.2 and A.3 (MQAR over a grid), Table 1 (KEEP FIFTH) and Figure 3 (induction heads, with
the hard setting of App. D.4). Each row compares the paper's bound, the size that was built and the
information bound: the bits that any state must hold, beside the state entries that ours has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch

from compiler.artifact.package import bare, bare_sizes
from compiler.driver import compile
from constructions.construction import Construction
from constructions.copy_dp.chains import PAPER
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.knapsack import Knapsack
from constructions.copy_dp.lists import LongestIncreasingSubsequence, MaximumSubarray
from constructions.copy_dp.local import CoinChange, Fibonacci
from constructions.copy_dp.phonebook import Phonebook
from constructions.copy_dp.selective_copy import SelectiveCopy
from constructions.copy_dp.words import EditDistance, LongestCommonSubsequence
from constructions.selectivity.induction_heads import InductionHeads
from constructions.selectivity.keep_nth import KeepNth
from constructions.selectivity.mqar import MQAR
from verify.check import Verification, check, chosen_batches


def figure_2() -> Iterator[Construction]:
    for arch, vocab, kappa in product(("mamba", "mamba2", "s4d"), (128, 256, 512), (4, 8, 16, 32)):
        yield MQAR(kappa=kappa, vocab=vocab, arch=arch, length=100)


def table_1() -> Iterator[Construction]:
    for arch in ("mamba", "mamba2"):
        yield KeepNth(n=5, vocab=128, length=50, arch=arch)


def figure_3() -> Iterator[Construction]:
    for arch, vocab in product(("mamba", "mamba-delta-t", "mamba2"), (5, 10, 20, 40)):
        yield InductionHeads(vocab=vocab, length=100, arch=arch)


def chains() -> Iterator[Construction]:
    """Paper B at full size: random prompts, each chain forced token by token."""
    for arch in ("mamba", "mamba2"):
        yield Copy(n=64, vocab=16, arch=arch)
        yield SelectiveCopy(n=16, vocab=16, length=256, arch=arch)
        yield Phonebook(names=30, entries=10, digits=6, arch=arch)
        yield EditDistance(length=40, arch=arch)
        yield LongestCommonSubsequence(length=40, arch=arch)
        yield LongestIncreasingSubsequence(length=64, values=32, arch=arch)
        yield MaximumSubarray(length=16, values=8, arch=arch)
        yield Knapsack(items=16, capacity=32, values=8, arch=arch)
        yield Fibonacci(modulus=7, length=200, arch=arch)
        yield CoinChange(amount=60, coins="1,5,8", arch=arch)


def every_chain() -> Iterator[Construction]:
    """Paper B at small sizes: every prompt."""
    for arch in ("mamba", "mamba2"):
        yield Copy(n=8, vocab=2, arch=arch)
        yield EditDistance(length=3, distinct_letters=3, arch=arch)
        yield LongestCommonSubsequence(length=3, distinct_letters=3, arch=arch)
        yield LongestIncreasingSubsequence(length=5, values=4, arch=arch)
        yield MaximumSubarray(length=5, values=4, arch=arch)
        yield Knapsack(items=3, capacity=4, values=2, arch=arch)
        yield Fibonacci(modulus=7, length=60, arch=arch)
        yield CoinChange(amount=40, coins="3,4", arch=arch)


EXPERIMENTS: dict[str, Callable[[], Iterator[Construction]]] = {
    "figure-2": figure_2,
    "table-1": table_1,
    "figure-3": figure_3,
    "chains": chains,
    "every-chain": every_chain,
}
EXHAUSTIVE = ("every-chain",)


@dataclass(frozen=True)
class Row:
    """One built model of an experiment."""

    arch: str
    parameters: str
    accuracy: float
    bit_exact: bool
    bound: dict[str, int]
    used: dict[str, int]
    state_entries: int
    information_bits: float


def count(experiment: str) -> int:
    """How many models an experiment builds."""
    return sum(1 for _ in EXPERIMENTS[experiment]())


def rows(experiment: str, samples: int, seed: int) -> Iterator[Row]:
    """Build and run every model of an experiment: adversarial cases and `samples` random sequences each."""
    for construction in EXPERIMENTS[experiment]():
        compiled = compile(construction.circuit(), construction.target)
        stack, vocabulary = bare(compiled), compiled.source.alphabet.size

        def scores(tokens: np.ndarray, stack=stack) -> np.ndarray:
            with torch.no_grad():
                return stack(torch.from_numpy(tokens)).numpy()

        results = []
        for task in construction.tasks():
            mode = "exhaustive" if experiment in EXHAUSTIVE else "random"
            _, batches = chosen_batches(task, mode, min(samples, task.most_random), seed, vocabulary)
            results.append(check(scores, compiled.interpret, batches))
        total = sum(results, start=Verification())
        sizes = bare_sizes(compiled)
        yield Row(
            construction.target,
            _parameters(construction),
            total.accuracy,
            total.bit_exact,
            construction.bound(),
            {name: max(getattr(size, name) for size in sizes) for name in ("d_model", "d_inner", "d_state")},
            sum(compiled.context.target.state_entries(block) for block in compiled.blocks),
            construction.information_bits(),
        )


def _parameters(construction: Construction) -> str:
    hidden = ("arch", "dtype", "seed", "max_length") if construction.theorem.startswith(PAPER) else ()
    shown = ("kappa", "vocab", "n")
    given = {k: v for k, v in construction.params().items() if (k not in hidden if hidden else k in shown)}
    told = " ".join(f"{name}={value}" for name, value in given.items())
    return f"{construction.name} {told}" if hidden else told
