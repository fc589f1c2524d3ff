"""Every constant of the exact arithmetic, and the inequalities between them.

A *level* is a physical value that a lane, a pre-activation or a step stands at. All are powers of two where
they multiply data, so that nothing rounds; what each is for is in docs/exactness.md (E1 to E9).
"""

from __future__ import annotations

from fractions import Fraction

# What silu, softplus and exp do exactly -----------------------------------------------------------

SAFE_POSITIVE = 20.1  # silu(x) = softplus(x) = x from here on (E2, E4)
SAFE_NEGATIVE = -104.0  # silu(x) = softplus(x) = exp(x) = 0 up to here (E2, E4)
KEPT = 2.0**-26  # exp(−x) is 1 up to here, in every float32 exp (E9)

# Pre-activations ------------------------------------------------------------------------------------

POSITIVE = 32  # the least positive pre-activation that a scale aims at
NEGATIVE = 104  # the least negative one, by its absolute value
HALF = 128  # the least scale of a half of a real number (E3)
WIDEST_HALF = Fraction(2) ** 40  # the largest one, where no operation asks for less
LARGEST_HALF = Fraction(2) ** 59  # of |S·v|: a product of two such stays within float32

LEAST_STATE = SAFE_POSITIVE**4  # what is read of a state whose Δ, x̂, B and C all come from softplus and silu (E11)

# Steps and gates ------------------------------------------------------------------------------------

ON = 128.0  # Δ of a channel that writes (E4, E5)
OFF = -200.0  # the Δ pre-activation of a channel that never writes
GATE = 32.0  # z of an open gate (E6)
CONSTANT = 32.0  # x̂ of the channel that is on at every position (E6)
COUNT = 32.0  # Δ of a channel that adds and keeps, although its A is not 0 (E9)
RESET = 2.0**50  # what a reset adds to it
LARGEST_RATE = Fraction(2) ** 60  # of a scaled sum
LARGEST_SCALED_SUM = Fraction(2) ** 119  # leaves a factor of 2^8 below the largest float32

# Decays: A = −exp(A_log) ----------------------------------------------------------------------------

KEEP_LOG = -200.0  # A = −0 in float32 (E1)
ERASE_LOG = 0.0  # A = −1 (E4)
FORGET_LOG = 2.0  # A ≈ −7.4, which no step of a channel that is always on survives (E15)
FAINT_LOG = -28.0  # A ≈ −7e−13, which Δ = COUNT does not feel and Δ = RESET does not survive (E9)

# The norm's ballast (E7) ----------------------------------------------------------------------------

NORM_EPSILON = 1e-5
LEAST_BALLAST = 16.0  # K² ≥ 256: then ε vanishes too
BALLAST_MARGIN = 16  # how many times the K that our bounds need is taken where there is room, for whoever bounds worse
LARGEST_MARGIN = Fraction(2) ** 119  # of K² · width with that margin
LARGEST_SQUARES = Fraction(2) ** 127


def inequalities() -> dict[str, bool]:
    """Everything that the derivations assume of these numbers, by what it is for, and whether it holds."""
    from math import exp

    faint = exp(FAINT_LOG)
    return {
        "positive pre-activations are where silu is the identity": POSITIVE >= SAFE_POSITIVE,
        "negative pre-activations are where silu is 0": -NEGATIVE <= SAFE_NEGATIVE,
        "an open gate is where silu is the identity": GATE >= SAFE_POSITIVE,
        "the constant channel is where silu is the identity": CONSTANT >= SAFE_POSITIVE,
        "a step that writes is where softplus is the identity": ON >= SAFE_POSITIVE,
        "a latch that is not set has a step of 0": -ON <= SAFE_NEGATIVE,
        "a latch that is set forgets": -ON * exp(ERASE_LOG) <= SAFE_NEGATIVE,
        "every step of a channel that is always on forgets": -min(ON, COUNT) * exp(FORGET_LOG) <= SAFE_NEGATIVE,
        "a channel that is off has a step of 0": OFF <= SAFE_NEGATIVE,
        "a step that adds to a count is where softplus is the identity": COUNT >= SAFE_POSITIVE,
        "a count is kept while it adds": COUNT * faint <= KEPT,
        "a reset erases a count": -(COUNT + RESET) * faint <= SAFE_NEGATIVE,
        "A of a state that is kept is below the least float32": exp(KEEP_LOG) < 2.0**-150,
        "halves are where a lattice is exact": max(POSITIVE, NEGATIVE) <= HALF,
        "ε vanishes beside the least ballast": NORM_EPSILON < LEAST_BALLAST**2 * 2.0**-24,
        "levels are powers of two": all(
            Fraction(level).numerator.bit_count() == 1 == Fraction(level).denominator.bit_count()
            for level in (POSITIVE, HALF, ON, GATE, CONSTANT, COUNT, RESET, LEAST_BALLAST, BALLAST_MARGIN)
        ),
    }
