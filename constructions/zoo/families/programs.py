"""Dynamic programs whose table the model writes itself, token by token (after paper B)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from constructions.construction import Construction
from constructions.copy_dp.knapsack import Knapsack
from constructions.copy_dp.lists import LongestIncreasingSubsequence, MaximumSubarray
from constructions.copy_dp.local import CoinChange, Fibonacci
from constructions.copy_dp.tables import MatrixChain, ShortestPath
from constructions.copy_dp.viterbi import Viterbi
from constructions.copy_dp.words import EditDistance, LongestCommonSubsequence
from constructions.zoo.entry import Family, FromPaper

_WRITES = "behind a prompt, the table of"


def _of(name: str, says: str, construction: Callable[..., Construction], **given: Any) -> FromPaper:
    return FromPaper(name, f"{_WRITES} {says}, written token by token", lambda: construction(**given))


FAMILY = Family(
    "programs",
    "dynamic programs whose table the model writes itself",
    [
        _of("edit-distance-2", "the edit distance of two words of up to 2 letters", EditDistance, length=2),
        _of("edit-distance-4", "the edit distance of two words of up to 4 letters", EditDistance, length=4),
        _of("lcs-3", "the longest common subsequence of two words of up to 3", LongestCommonSubsequence, length=3),
        _of("lcs-5", "the longest common subsequence of two words of up to 5", LongestCommonSubsequence, length=5),
        _of(
            "lis-4",
            "the longest rising subsequence of up to 4 numbers",
            LongestIncreasingSubsequence,
            length=4,
            values=4,
        ),
        _of(
            "max-subarray-4", "the largest sum of neighbours among up to 4 numbers", MaximumSubarray, length=4, values=4
        ),
        _of("knapsack-2", "a knapsack of up to 2 items and capacity 4", Knapsack, items=2, capacity=4, values=3),
        _of("fibonacci-10", "Fibonacci numbers modulo 10", Fibonacci, modulus=10, length=20),
        _of("fibonacci-7", "Fibonacci numbers modulo 7", Fibonacci, modulus=7, length=12),
        _of("coin-change-134", "the fewest coins of 1, 3, 4 for each amount up to 12", CoinChange, amount=12),
        _of("coin-change-25", "the fewest coins of 2, 5 for each amount up to 12", CoinChange, amount=12, coins="2,5"),
        _of("shortest-path-3", "shortest paths in a graph of 3 nodes", ShortestPath, nodes=3),
        _of("shortest-path-4", "shortest paths in a graph of 4 nodes", ShortestPath, nodes=4),
        _of("matrix-chain-3", "the cheapest order for a product of 3 matrices", MatrixChain, matrices=3, largest=2),
        _of("viterbi-2", "the best path of a hidden chain of 2 states", Viterbi, length=4),
    ],
)
