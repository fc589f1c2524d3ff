"""Programs after paper B: every chain that a model writes, at full size and where every prompt can be tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from constructions.construction import Construction
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.knapsack import Knapsack
from constructions.copy_dp.lists import LongestIncreasingSubsequence, MaximumSubarray
from constructions.copy_dp.local import CoinChange, Fibonacci
from constructions.copy_dp.phonebook import Phonebook
from constructions.copy_dp.selective_copy import SelectiveCopy
from constructions.copy_dp.tables import MatrixChain, ShortestPath
from constructions.copy_dp.viterbi import Viterbi
from constructions.copy_dp.words import EditDistance, LongestCommonSubsequence


def chains() -> Iterator[Construction]:
    """Full size: random prompts, each chain forced token by token."""
    return _for_every_mixer(
        Copy(n=64, vocab=16),
        SelectiveCopy(n=16, vocab=16, length=256),
        Phonebook(names=30, entries=10, digits=6),
        EditDistance(length=40),
        LongestCommonSubsequence(length=40),
        LongestIncreasingSubsequence(length=64, values=32),
        MaximumSubarray(length=16, values=8),
        Knapsack(items=16, capacity=32, values=8),
        Fibonacci(modulus=7, length=200),
        CoinChange(amount=60, coins="1,5,8"),
        Viterbi(length=32),
        ShortestPath(nodes=5, lengths=3),
        MatrixChain(matrices=4, largest=3),
    )


def every_chain() -> Iterator[Construction]:
    """Small sizes: every prompt."""
    return _for_every_mixer(
        Copy(n=8, vocab=2),
        SelectiveCopy(n=2, vocab=2, length=6),
        Phonebook(names=2, entries=2, digits=1),
        EditDistance(length=3, distinct_letters=3),
        LongestCommonSubsequence(length=3, distinct_letters=3),
        LongestIncreasingSubsequence(length=5, values=4),
        MaximumSubarray(length=5, values=4),
        Knapsack(items=3, capacity=4, values=2),
        Fibonacci(modulus=7, length=60),
        CoinChange(amount=40, coins="3,4"),
        Viterbi(length=5),
        ShortestPath(nodes=4, lengths=2),
        MatrixChain(matrices=3, largest=3),
    )


def _for_every_mixer(*constructions: Construction) -> Iterator[Construction]:
    """Each on both mixers, in float32 and in bfloat16."""
    for arch, construction, dtype in product(("mamba", "mamba2"), constructions, ("float32", "bfloat16")):
        yield replace(construction, arch=arch, dtype=dtype)
