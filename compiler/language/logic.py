"""Words made of other words: chains of flags in one comparison, and the largest lane."""

from __future__ import annotations

import numpy as np

from compiler.language.arguments import instance, shown
from compiler.language.kinds import is_flags
from compiler.language.stream import Stream, constant, given_stream


def any_of(*flags: Stream) -> Stream:
    """Whether at least one of the flags holds: Σ flags ≥ 1, one comparison however many there are."""
    return _held("any_of", flags) >= 1


def all_of(*flags: Stream) -> Stream:
    """Whether all of the flags hold: Σ flags ≥ n, one comparison however many there are."""
    return _held("all_of", flags) >= len(flags)


def _held(what: str, flags: tuple[Stream, ...]) -> Stream:
    """How many of the flags hold."""
    if not flags:
        raise ValueError(f"{what} was given no flags, and at least one is needed")
    for flag in flags:
        instance(flag, Stream, f"an input of {what}", "a flag")
        if flag.width != 1 or not is_flags(flag.type):
            raise TypeError(f"an input of {what} is {flag.label}, {shown(flag.type)}, and a single flag is needed")
    return sum(flags[1:], start=flags[0])


def argmax(scores: Stream) -> Stream:
    """Which lane holds the largest number, 0 for the first: the lowest lane wins a tie.

    Lane i wins where it reaches each later lane and no earlier lane reaches it.
    """
    given_stream(scores, "the scores of argmax")
    width = scores.width
    if width == 1:
        return constant(0)
    pairs = [(i, j) for i in range(width) for j in range(i + 1, width)]
    differences, owner = np.zeros((len(pairs), width)), np.zeros((width, len(pairs)))
    for row, (i, j) in enumerate(pairs):
        differences[row, [i, j]] = owner[[i, j], row] = 1, -1
    apart = (differences @ scores).named(f"differences({scores.label})")
    reached = (apart >= 0).named(f"argmax({scores.label})")
    later = np.arange(width)[::-1, None] @ constant(1)
    return np.arange(width)[None, :] @ ((owner @ reached - later) == 0)


def hardmax(scores: Stream) -> Stream:
    """OneHot of the lane that holds the largest number; the lowest lane wins a tie."""
    return argmax(scores).one_hot(scores.width)
