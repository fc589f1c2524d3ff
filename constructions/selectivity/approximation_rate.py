"""How fast N bases approach a piecewise-constant function (paper A, Corollary 1).

Statement. For m jumps there are N Mamba bases with an L² error of O(2^(−N/(3m))); N S4D bases (they make
Fourier series) reach O(1/N). What is plotted and asserted here is the route of the proof, over Haar
wavelets, and the *squared* L² error on [0, 1], for which both rates hold: (28) writes the norm where its
square stands. By slope alone m + 1 Heaviside bases reach any error. Three Mamba bases make one Haar
wavelet (Theorem 1) and one makes the mean, so N bases give the mean and ⌊(N − 1)/3⌋ wavelets, the
best ones. At every scale at most m wavelets (one a jump) have a nonzero coefficient, whence the rate.
A jump at a dyadic point ends the series: then the error is 0 from some N on.

Both rates are for N → ∞. Jumps δ apart are one jump to the wavelets of scales below log2(1/δ), and to the first 1/δ
frequencies, so that the rates are fitted from there on, over `bases_needed` bases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, log2, pi

import numpy as np

from compiler import digits
from constructions.rationals import rational

SCALES = 48
_FOURIER_TERMS = 1 << 20
_TERMS_AT_ONCE = 1 << 12
MOST_BASES = 1 << 16
LARGEST_CUT = 0.01  # of an error: what the frequencies that are not computed may take off it
LARGEST = 140  # the power of ten up to which the squares of values and of errors are floats, and below 0 as well


@dataclass(frozen=True)
class PiecewiseConstant:
    """values[i] between breaks[i − 1] and breaks[i]; breaks strictly inside (0, 1), rising."""

    breaks: tuple[Fraction, ...]
    values: tuple[Fraction, ...]

    @classmethod
    def of(
        cls, breaks: Sequence[str | float | Fraction], values: Sequence[str | float | Fraction]
    ) -> PiecewiseConstant:
        """From numbers or strings such as "1/3"; ValueError in one sentence where they do not fit."""
        function = cls(tuple(map(_rational, breaks)), tuple(map(_rational, values)))
        if not function.breaks or len(function.values) != len(function.breaks) + 1:
            raise ValueError(
                f"{len(breaks)} breaks and {len(values)} values do not fit: at least one break and one value "
                "more than breaks are needed."
            )
        ends = (Fraction(0), *function.breaks, Fraction(1))
        if any(a >= b for a, b in zip(ends, ends[1:], strict=False)):
            raise ValueError(f"the breaks {', '.join(map(str, breaks))} must rise and lie strictly between 0 and 1.")
        if any(a == b for a, b in zip(function.values, function.values[1:], strict=False)):
            raise ValueError("neighbouring values must differ, or there is no jump between them.")
        return function

    @property
    def jumps(self) -> int:
        return len(self.breaks)

    @property
    def gap(self) -> Fraction:
        """The least distance between two jumps, or a jump and an end: a period of the function has a jump there too."""
        ends = (Fraction(0), *self.breaks, Fraction(1))
        return min(b - a for a, b in zip(ends, ends[1:], strict=False))

    def integral(self, s: Fraction) -> Fraction:
        """∫_0^s."""
        ends = (Fraction(0), *self.breaks, Fraction(1))
        return sum(
            (v * (min(s, b) - a) for v, a, b in zip(self.values, ends, ends[1:], strict=False) if s > a), Fraction(0)
        )

    def squared_norm(self) -> Fraction:
        ends = (Fraction(0), *self.breaks, Fraction(1))
        return sum((v**2 * (b - a) for v, a, b in zip(self.values, ends, ends[1:], strict=False)), Fraction(0))


def haar_energies(function: PiecewiseConstant, scales: int = SCALES) -> list[Fraction]:
    """The nonzero squared coefficients <ρ, ψ_{j,k}>² of all scales below `scales`, exactly, the largest first."""
    energies = []
    for j in range(scales):
        width = Fraction(1, 2**j)
        for k in sorted({int(b / width) for b in function.breaks}):
            start, middle, end = (
                function.integral((k + half) * width) for half in (Fraction(0), Fraction(1, 2), Fraction(1))
            )
            energies.append(2**j * (2 * middle - start - end) ** 2)
    return sorted((e for e in energies if e), reverse=True)


def mamba_errors(function: PiecewiseConstant, most: int) -> np.ndarray:
    """The squared error of the best N Mamba bases, N = 1 … most: (most,)."""
    left = function.squared_norm() - function.integral(Fraction(1)) ** 2
    errors = [left]
    for energy in haar_energies(function)[: most // 3 + 1]:
        left -= energy
        errors.append(left)
    return np.array([float(errors[min((n - 1) // 3, len(errors) - 1)]) for n in range(1, most + 1)])


def fourier_errors(function: PiecewiseConstant, most: int) -> np.ndarray:
    """The squared error of the best N Fourier bases e^(2πint), N = 1 … most: (most,).

    The best of the first 2^20 frequencies: `most_bases` says up to which N others matter little.
    """
    energies, left = _fourier_series(function)
    mean = float(function.integral(Fraction(1)) ** 2)
    larger = int((energies > mean).sum())  # so many bases are better than the mean
    return np.maximum(np.concatenate([mean + left[1 : larger + 1], left[larger:]])[:most], 0.0)


def _jumps_on_the_circle(function: PiecewiseConstant) -> np.ndarray:
    """(jumps + 1,): the circle closes with a jump at 0, the first."""
    before = (function.values[-1], *function.values)
    return np.array([float(b - a) for a, b in zip(before, function.values, strict=False)])


@lru_cache(maxsize=1)
def _fourier_series(function: PiecewiseConstant) -> tuple[np.ndarray, np.ndarray]:
    """|c_n|² of the frequencies that are computed, ±n, the largest first; the squared error of the mean and the first
    k of them, k = 0 …

    e^(−2πibn) is the product of two factors, of the part of n and of the place in it: the sums are a product of
    matrices.
    """
    ends = np.array([0.0, *map(float, function.breaks)])
    starts = np.arange(0, _FOURIER_TERMS, _TERMS_AT_ONCE)
    parts = np.exp(-2j * pi * starts[:, None] * ends) * _jumps_on_the_circle(function)
    within = np.exp(-2j * pi * ends[:, None] * np.arange(1, _TERMS_AT_ONCE + 1))
    coefficients = (parts @ within).ravel() / (2 * pi * np.arange(1, _FOURIER_TERMS + 1))
    energies = np.sort(np.repeat(np.abs(coefficients) ** 2, 2))[::-1]
    total = float(function.squared_norm() - function.integral(Fraction(1)) ** 2)
    return energies, total - np.concatenate([[0.0], np.cumsum(energies)])


def most_bases(function: PiecewiseConstant) -> int:
    """So many bases at most, for the frequencies that are not computed take less than `LARGEST_CUT` off any error.

    Instead of a frequency of energy e, one of those could be among the best, of at most a²/n² for a = Σ|jump|/2π: all
    together gain at most Σ_{n > T} 2(a²/n² − e)⁺, and no more than the energy that they have.
    """
    energies, left = _fourier_series(function)
    energies, left = energies[:MOST_BASES], left[: MOST_BASES + 1]
    reach = (np.abs(_jumps_on_the_circle(function)).sum() / (2 * pi)) ** 2
    last = np.maximum(np.sqrt(reach / np.maximum(energies, np.finfo(float).tiny)), _FOURIER_TERMS)
    gain = 2 * (reach * (1 / _FOURIER_TERMS - 1 / last) - energies * (last - _FOURIER_TERMS))
    beyond = max(float(_fourier_series(function)[1][-1]), 0.0)
    off = np.flatnonzero(np.minimum(gain, beyond) > LARGEST_CUT * left[1:])
    return int(off[0]) if len(off) else MOST_BASES


def bases_needed(function: PiecewiseConstant) -> int:
    """So many bases show both rates: 24 scales of wavelets, and 60 frequencies for each time that the gap fits into [0,
    1].
    """
    needed = max(72 * function.jumps, ceil(60 / function.gap))
    if needed > MOST_BASES:
        raise ValueError(
            f"breaks must be at least {digits.at_most(60 / MOST_BASES, 2)} apart, from 0 and 1 too, and at most "
            f"{MOST_BASES // 72}: else both rates show only after more than the {MOST_BASES:,} bases that are computed."
        )
    return needed


def slopes(function: PiecewiseConstant, most: int) -> dict[str, float]:
    """Fitted rates: of log2(error²) against N for Mamba, of log(error²) against log N for S4D.

    Mamba is fitted from the scale on that tells all jumps apart, the fourth at least; errors below 2^−40 of the first
    are left out, near the end of the scales kept.
    """
    n, mamba, fourier = np.arange(1, most + 1), mamba_errors(function, most), fourier_errors(function, most)
    scale = max(4, ceil(-log2(function.gap)))
    settled = (n > 3 * scale * function.jumps) & (mamba > 2.0**-40 * mamba[0])
    if settled.sum() < 6 * function.jumps:
        raise ValueError(_no_rate(function, most, (3 * scale + 6) * function.jumps))
    later = n >= max(8, ceil(most / 16))
    return {
        "mamba": float(np.polyfit(n[settled], np.log2(mamba[settled]), 1)[0]),
        "s4d": float(np.polyfit(np.log(n[later]), np.log(fourier[later]), 1)[0]),
    }


def _no_rate(function: PiecewiseConstant, most: int, enough: int) -> str:
    """Why no rate can be fitted to the errors of so many bases."""
    if most < enough:
        return f"{most} bases are too few: the error of these breaks settles after {enough} bases."
    dyadic = [str(at) for at in function.breaks if not at.denominator & (at.denominator - 1)]
    if dyadic:
        return (
            f"breaks = {', '.join(map(str, function.breaks))}: a jump at {', '.join(dyadic)} is the sum of a few "
            "wavelets, so that its error ends at 0 and has no rate; the denominator of a break must not be a power of "
            "two, as in 1/3."
        )
    return (
        f"breaks = {', '.join(map(str, function.breaks))}: the error falls to 2^−40 of the first before it settles, "
        "as it does where a break is close to one whose denominator is a power of two; breaks such as 1/3 show a rate."
    )


def _rational(number: str | float | Fraction) -> Fraction:
    """A rational number as it is written; ValueError for anything else."""
    try:
        return rational(number) if isinstance(number, str) else Fraction(number)
    except OverflowError as reason:
        raise ValueError(str(reason)) from None
    except (ValueError, TypeError):
        raise ValueError(f"{number!r:.60} is no rational number, such as 1/3 or 0.25") from None


def _check_sizes(function: PiecewiseConstant, values: Sequence) -> None:
    """ValueError for squares that no float holds."""
    jumps = (abs(b - a) for a, b in zip(function.values, function.values[1:], strict=False))
    if max(map(abs, function.values)) > Fraction(10) ** LARGEST or max(jumps) < Fraction(10) ** -LARGEST:
        raise ValueError(
            f"values = {', '.join(map(str, values))}: each must be within ±1e{LARGEST} and some jump at least "
            f"1e-{LARGEST}, or no float holds the squared errors."
        )


def rate_report(breaks: Sequence, values: Sequence, most: int = 0) -> dict:
    """Both curves of squared errors, the fitted slopes and those of Corollary 1: plain numbers for JSON."""
    function = PiecewiseConstant.of(breaks, values)
    _check_sizes(function, values)
    needed = bases_needed(function)
    if most > MOST_BASES:
        raise ValueError(f"bases = {most:,} are more than the {MOST_BASES:,} that are computed.")
    if most and most < needed:
        raise ValueError(f"bases = {most} are too few to show both rates of these breaks; the least is {needed}.")
    least, most = needed, most or needed
    possible = most_bases(function)
    if most > possible:
        instead = f"at most {possible:,} are possible" if possible >= least else "take fewer jumps"
        raise ValueError(
            f"bases = {most:,}: frequencies above the {_FOURIER_TERMS:,} that are computed may be among the best; "
            f"{instead}."
        )
    return {
        "theorem": "after Corollary 1, of the squared error",
        "jumps": function.jumps,
        "most_bases": possible,
        "breaks": [str(b) for b in function.breaks],
        "values": [str(v) for v in function.values],
        "bases": list(range(1, most + 1)),
        "mamba_squared_error": mamba_errors(function, most).tolist(),
        "s4d_squared_error": fourier_errors(function, most).tolist(),
        "slopes": slopes(function, most),
        "slopes_are_of": "the squared error",
        "corollary": {"mamba": -1 / (3 * function.jumps), "s4d": -1.0},
    }
