"""Every construction that the `construct` command knows, by name."""

from __future__ import annotations

from constructions.construction import CircuitFamily, Construction
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.knapsack import Knapsack
from constructions.copy_dp.lists import LongestIncreasingSubsequence, MaximumSubarray
from constructions.copy_dp.local import CoinChange, Fibonacci
from constructions.copy_dp.phonebook import Phonebook
from constructions.copy_dp.selective_copy import SelectiveCopy
from constructions.copy_dp.tables import MatrixChain, ShortestPath
from constructions.copy_dp.viterbi import Viterbi
from constructions.copy_dp.words import EditDistance, LongestCommonSubsequence
from constructions.polynomials.count_in_row import CountInRow
from constructions.selectivity.absolute_time import AbsoluteTime
from constructions.selectivity.fuzzy_recall import FuzzyRecall
from constructions.selectivity.in_context_recall import InContextRecall
from constructions.selectivity.induction_heads import InductionHeads
from constructions.selectivity.keep_nth import KeepNth
from constructions.selectivity.mad_compression import MadCompression
from constructions.selectivity.mad_copying import MadCopying
from constructions.selectivity.mad_memorization import MadMemorization
from constructions.selectivity.mqar import MQAR
from constructions.token_selection.copy_ngram import CopyNgram
from constructions.token_selection.recall import AssociativeRecall
from constructions.token_selection.selection import TokenSelection
from constructions.token_selection.unique_induction import UniqueInduction

CONSTRUCTIONS: dict[str, type[Construction]] = {
    c.name: c
    for c in (
        *(MQAR, InductionHeads, KeepNth, AbsoluteTime, CountInRow),
        *(InContextRecall, FuzzyRecall, MadCopying, MadCompression, MadMemorization),
        *(TokenSelection, AssociativeRecall, UniqueInduction, CopyNgram),
        *(Copy, EditDistance, LongestCommonSubsequence, LongestIncreasingSubsequence, MaximumSubarray),
        *(Knapsack, Fibonacci, CoinChange, Viterbi, ShortestPath, MatrixChain, Phonebook, SelectiveCopy),
    )
}


def families() -> dict[str, type[CircuitFamily]]:
    """These, automata, and the constructions over numbers, which import torch and sympy."""
    from constructions.automata.automaton import Automaton
    from constructions.copy_dp.copy_vectors import CopyVectors
    from constructions.polynomials.linear_attention import LinearAttention
    from constructions.polynomials.polynomial_mamba import PolynomialCircuit
    from constructions.selectivity.haar import Haar
    from constructions.selectivity.with_position import AbsoluteTimePosition, KeepNthPosition

    over_numbers = (Haar, PolynomialCircuit, LinearAttention, KeepNthPosition, AbsoluteTimePosition, CopyVectors)
    return {**CONSTRUCTIONS, **{c.name: c for c in (Automaton, *over_numbers)}}
