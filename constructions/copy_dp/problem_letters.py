"""The letters of the inputs of a problem of one's own."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.language.arguments import instance, shown

NEEDED = "a text, or a list of texts,"


def check_letters(letters: Sequence[str], marks: Sequence[str], largest: int) -> None:
    """TypeError for what lists no letters; ValueError for a letter that is no text, stands twice, or is also written
    by the chain: it has `marks` and the numbers 0 to `largest`.
    """
    seen, written = set(), {*marks, *map(str, range(largest + 1))}
    for letter in instance(letters, Sequence, "letters", NEEDED):  # never listed whole: a range may have 10^9 entries
        if not isinstance(letter, str) or not letter or letter in written or letter in seen:
            raise ValueError(
                f"letters has {shown(letter)}, and they must be different texts, none of them {' '.join(marks)} or a "
                f"number from 0 to {largest}, which the chain writes"
            )
        seen.add(letter)
