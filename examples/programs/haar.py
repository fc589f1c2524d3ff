"""A Haar coefficient (after paper A, Theorem 1): how much more the signal holds in the first half of an interval than
in the second.

The unnormalised ±1 wavelet, so that integers stay integers; the answer stands at the last
position of the interval and from there on.
"""

from collections.abc import Sequence

from compiler import Int, Stream, numbers, position, select

SIGNAL = numbers(Int(-8, 8), "signal")


def coefficient(x: Stream, start: int, length: int) -> Stream:
    """Σ of the first half of x(start + 1 … start + length) minus Σ of its second half."""
    at, middle = position(), start + length // 2
    first = (at > start) & (at <= middle)
    second = (at > middle) & (at <= start + length)
    return (select(first, x) - select(second, x)).cumsum()


def answer(signal: Sequence[int], start: int, length: int) -> int:
    middle = start + length // 2
    return sum(signal[start:middle]) - sum(signal[middle : start + length])
