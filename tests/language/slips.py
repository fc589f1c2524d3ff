"""What a slip gives: one sentence, with the words that name the argument and what would work."""

from __future__ import annotations

from collections.abc import Callable

import pytest


def one_sentence(mistake: Callable[[], object], words: str) -> None:
    """AssertionError where the last line of the error does not say so, or a line is too long to be read."""
    with pytest.raises((TypeError, ValueError, IndexError)) as caught:
        mistake()
    lines = str(caught.value).splitlines()
    assert words in lines[-1], lines
    assert all(len(line) < 300 for line in lines)
