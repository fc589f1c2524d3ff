"""e^−x for x ≥ 0 (Lemma F.3, exp): (R(1 − x/n))^n with n = 2^k, by k squares.

With y = x/n ≤ 1, (1 + y)e^−y ≤ 1 gives 1 − y ≥ e^−y(1 − y²), so 0 ≤ e^−x − (1 − x/n)^n ≤ e^−x·x²/n ≤ 4e^−2/n; for x > n
it is e^−x ≤ n·e^−n ≤ 4e^−2/n. Each square errs by at most 4^−(m+1), and what it is given counts at most twice (numbers
of at most 1): 2^k·4^−(m+1) in all. Both errors together: 4e^−2/2^k + 2^k·4^−(m+1).
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, exp, log, log2

from compiler.machines.fnn_ssm.relu_network import ReluNetwork, SparseAffine, linear
from constructions.token_selection.relu_gadgets.approximation import Approximation, tooth
from constructions.token_selection.relu_gadgets.products import square


def exponential(k: int, m: int) -> Approximation:
    """e^−x for x ≥ 0 by k squares of m teeth: L = km + 2, W = 3, B = 4."""
    start = ReluNetwork((SparseAffine.of(1, [{0: -Fraction(1, 2**k)}], [1]), SparseAffine.of(1, [{0: 1}])))
    network = start.then(*[square(m).network] * k)
    return Approximation(network, 4 * exp(-2) / 2**k + 2**k * tooth(m))


def exponential_within(error: float) -> Approximation:
    """k = ⌈log2(1.09/ε)⌉ squares of m = ⌈log4(2^(k+1)/ε)⌉ − 1 teeth: within ε."""
    if not 0 < error < 1:
        raise ValueError(f"error = {error}: e^−x is at most 1, so an error lies above 0 and below 1.")
    k = max(1, ceil(log2(1.09 / error)))
    return exponential(k, max(1, ceil(log(2 ** (k + 1) / error, 4)) - 1))


def exponential_of(error: float, slope: float) -> Approximation:
    """e^−(slope·x) for x ≥ 0."""
    made = exponential_within(error)
    return Approximation(linear(1, [{0: slope}]).then(made.network), made.error)
