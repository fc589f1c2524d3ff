"""Side conditions of rewritings: shown from the domains where a rule fires, never taken from a declared type.

Each raises NotImplementedError with the reason, which the pass gathers into its CompileError.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from compiler.analysis.domains import Domains
from compiler.analysis.domains.linear import interval_within
from compiler.analysis.least_size import least_size
from compiler.language.operations.exact import number_text
from compiler.language.stream import Stream
from compiler.lattice.domain import power_of_two

_WIDEST = 1 << 16  # sizes of a real number that is compared, in its gap: beyond, its rounding counts


def is_one_hot(domains: Domains, stream: Stream) -> bool:
    """Whether every lane is 0 or 1, and at most one of them 1."""
    domain = domains.of(stream)
    return domain.is_flag and domain.l1 <= 1


def need_flags(domains: Domains, *streams: Stream) -> None:
    """Every lane of these streams is 0 or 1."""
    for stream in streams:
        if not domains.of(stream).is_flag:
            raise NotImplementedError(f"its operand {_held(domains, stream)}, and it must be shown to be 0 or 1")


def need_level(domains: Domains, stream: Stream) -> None:
    """Every value is an integer of at most 1, so that it is positive exactly where it is 1: what Δ rectifies."""
    need_whole(domains, stream)
    if domains.of(stream).hi > 1:
        raise NotImplementedError(f"its operand {_held(domains, stream)}, and it must be shown to be at most 1")


def need_one_hot(domains: Domains, *streams: Stream) -> None:
    """At most one lane of each of these streams is 1, all others are 0."""
    for stream in streams:
        if not is_one_hot(domains, stream):
            raise NotImplementedError(
                f"its operand {_held(domains, stream)}, Σ over lanes ≤ {domains.of(stream).l1}, "
                "and it must be shown to be one-hot"
            )


def need_whole(domains: Domains, *streams: Stream) -> None:
    """Every value of these streams is an integer."""
    for stream in streams:
        step = domains.of(stream).step
        if not step or step.denominator != 1:
            raise NotImplementedError(f"its operand {_held(domains, stream)}, and it must be shown to be an integer")


def need_non_negative(domains: Domains, *streams: Stream) -> None:
    """No value of these streams is below 0."""
    for stream in streams:
        if domains.of(stream).lo < 0:
            raise NotImplementedError(f"its operand {_held(domains, stream)}, and it must be shown to be at least 0")


def need_gap(domains: Domains, stream: Stream) -> Fraction:
    """A power of two g such that no value of the stream but 0 is less than g in size."""
    gap = least_size(domains, stream)
    if not gap:
        raise NotImplementedError(
            f"it compares real numbers: {_held(domains, stream)}, and nothing shows how near to 0 it may come; declare "
            "that an input keeps away, as numbers(Real(-1, 1, gap=1/64)), or take exceeds(a, b, gap), which is no flag"
        )
    within, (low, high) = 1 / power_of_two(1 / gap), interval_within(stream, domains)
    most = Fraction(float(np.maximum(np.abs(low), np.abs(high)).max()))  # behind what cancels
    if most / within > _WIDEST:
        raise NotImplementedError(
            f"it compares real numbers: {_held(domains, stream)}, more than {_WIDEST} times its gap of "
            f"{number_text(within)}; in float32 what is compared needs a gap of "
            f"{number_text(power_of_two(most / _WIDEST))}"
        )
    return within


def _held(domains: Domains, stream: Stream) -> str:
    domain = domains.of(stream)
    grid = f"in steps of {domain.step}" if domain.step else "on no lattice"
    return f"{stream.label} can hold {number_text(domain.lo)}…{number_text(domain.hi)} {grid}"
