"""Identities of rectifiers that several rules share."""

from __future__ import annotations

from compiler.analysis.domain import power_of_two
from compiler.analysis.domains import Domains
from compiler.analysis.linear_form import linear_form
from compiler.exactness.saturation import rising_count
from compiler.language.stream import Stream


def step(x: Stream) -> Stream:
    """[x > 0] for integers: relu(x) − relu(x − 1)."""
    return x.relu() - (x - 1).relu()


def positive(domains: Domains, x: Stream) -> Stream:
    """[x > 0] for integers; of a growing count by falling ramps, which stay exact where the count saturates."""
    if x.width == 1 and rising_count(linear_form(x), domains):
        return 1 - step(1 - x)
    return step(x)


def masked(domains: Domains, x: Stream, flag: Stream) -> Stream:
    """x where the flag is 1, 0 where it is at most 0: relu(±x + M(flag − 1)) for a power of two M ≥ |x|."""
    domain = domains.of(x)
    room = power_of_two(domain.bound) * (flag - 1)
    if domain.hi <= 0:
        return -(room - x).relu()
    above = (x + room).relu()
    return above - (room - x).relu() if domain.lo < 0 else above
