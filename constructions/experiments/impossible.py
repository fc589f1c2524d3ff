"""Why some rows of paper A have no weights at all: two theorems about KEEP n-th with n ≥ 2, and what they leave open.

Both compare four answers in which only the place of one token changes; in every model of the kind the four leads add
up to 0, so that one of the four is no strict maximum. Width, state size, decays (real or complex) and head are free.

**Linear in the past** (S4D, with a position or without). The score of a token at time t is Σ_s K(t − s)·e(x_s) plus
what does not depend on the tokens, the position included. Take x with x_n = u and x_{n−1} = z, and exchange the two:
the lead of u over z changes by κ(t − n) − κ(t − n + 1), κ(j) = the lead that u has over z from lag j. Both answers are
right at t only if κ(t − n) > κ(t − n + 1). Exchange x_n = u with x_{n+1} = z instead and look at t + 1: both right only
if κ(t − n + 1) > κ(t − n). So for every pair of tokens one of the two exchanges goes wrong; those of different pairs
are different sequences, and the two errors together are at least (1 − 1/V)/2. The same holds of any two times less than
n apart (exchange the n-th with the token that far before or behind it), so that a share (1 − 1/V)/4 of all answers is
wrong: `linear_ceiling`.

**One block that sees a window** (S6, Mamba, and Mamba-2 without its gated norm, rmsnorm=False, with w taps and any gate
on the present token, without a position, n > w). Feed one token z everywhere but a u at place p. From p + w on all
inputs are alike again, so what u has changed in a state entry is multiplied by the same a at every step; and the state
before p was c + b·a^p by then. The lead of u over z at t is therefore E(t − p) + (what does not depend on p). The right
answers at p = n and p = n − 1 at time t need E(t − n) > E(t − n + 1), those at p = n and p = n + 1 at t + 1 need
E(t − n + 1) > E(t − n): `four_leads` of them add up to 0. It takes n + w + 1 tokens. (w = 1 is a block without
convolution.)

The norm of Mamba-2 as it is shipped divides the channels by a number that depends on the past, so its four leads do not
add up to 0. With one group and nothing added to the output (no residual stream) that number is positive and common to
all scores at t: no lead changes its sign, and one of the four is still no win. With groups, or a residual stream, the
proof says nothing.

What does it: a position that Δ sees (Corollary 2), or a block before that counts (Proposition 1): `keep-nth`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from compiler.digits import at_most
from verify.arguments import at_least


@dataclass(frozen=True)
class Impossible:
    """name: what tables call it; statement: one sentence; ceiling: the most answers that can be right, 1 if unknown."""

    name: str
    statement: str
    ceiling: float = 1.0


def linear_ceiling(n: int, vocab: int, length: int) -> float:
    """The most answers of KEEP n-th, on uniform tokens, that a model linear in the past can have right.

    The times from n on are taken in pairs, and three of them together where one is left over and n allows it.
    """
    at_least("n", n, 1, "the first position is 1")
    at_least("vocab", vocab, 1, "there must be a token to keep")
    at_least("length", length, n, "the token to keep must stand in the sequence")
    times = length - n + 1
    paired = 0 if n == 1 else times if n > 2 and times > 1 else times // 2 * 2
    return 1 - (1 - 1 / vocab) / 4 * paired / times


def keep_linear(n: int, vocab: int, length: int) -> Impossible:
    most = linear_ceiling(n, vocab, length)
    return Impossible(
        "linear in the past",
        f"a score that is linear in the past tokens (S4D of any size, with a position or without) has at most "
        f"{at_most(100 * most)} % of KEEP n-th right at n = {n}, V = {vocab}, T = {length}",
        most,
    )


def keep_one_block(n: int, window: int = 1) -> Impossible:
    return Impossible(
        "one block without a position",
        f"one S6 block of any size that sees {window} token{'s' * (window > 1)} and no position fails KEEP n-th for "
        f"some sequence of {n + window + 1} tokens or more, where n = {n} > {window}",
    )


def four_leads(scores: Callable[[np.ndarray], np.ndarray], n: int, window: int = 1) -> np.ndarray:
    """The leads of the right answer in the four sequences of the proof, which add up to 0.

    scores: tokens (4, length) of {0, 1} to (4, length, tokens). All must be above 0 in a model that is right.
    """
    time = n + window  # the first at which all three places lie a window back
    places, at = (n, n - 1, n, n + 1), (time, time, time + 1, time + 1)
    tokens = np.zeros((4, time + 1), dtype=np.int64)
    for row, place in enumerate(places):
        tokens[row, place - 1] = 1
    answer = [int(place == n) for place in places]
    found = scores(tokens)
    return np.array([found[i, at[i] - 1, a] - found[i, at[i] - 1, 1 - a] for i, a in enumerate(answer)])
