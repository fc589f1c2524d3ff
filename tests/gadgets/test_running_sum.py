"""The running sum alone."""

from __future__ import annotations

from tests.gadgets.harness import COUNTED, SIGNED, agrees, counted, signed

ALL = ("mamba", "mamba2", "s4d")


def test_of_what_is_not_negative():
    agrees(
        counted.cumsum(),
        lambda word: [[sum(COUNTED[x] for x in word[: t + 1])] for t in range(len(word))],
        ALL,
        "RunningSum",
    )


def test_of_signed_numbers():
    agrees(
        signed.cumsum(),
        lambda word: [[sum(SIGNED[x] for x in word[: t + 1])] for t in range(len(word))],
        ALL,
        "RunningSum",
    )
