"""Types of streams: what one position of a stream may hold.

Every type has a `width` (how many numbers stand at a position) and says whether
its numbers are integers. Bounds left open (None) are found by the domains pass;
of an input they stand for −2^62 and 2^62 (`OPEN`).
A position where a stream is *absent* (before the start of the sequence, before
the first write) holds zeros, whatever the type.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.language.codebook import Codebook

OPEN = 2**62  # the size that a number of an input may have where its bound is open
LATER = {"left out": True}  # a field that older data do not have: it is not written where it is the default


@dataclass(frozen=True)
class Bool:
    """Flags, each 0 or 1."""

    width: int = 1
    integral = True


@dataclass(frozen=True)
class OneHot:
    """One of n alternatives (one lane is 1) or absent (all lanes 0)."""

    n: int
    integral = True

    @property
    def width(self) -> int:
        """Lanes of such a stream: one for each value."""
        return self.n


@dataclass(frozen=True)
class Int:
    """Integers lo…hi; an open bound is None (of an input: 2^62 in size).

    kinds: one byte for each lane, where lanes differ (`compiler.language.kinds`).
    """

    lo: int | None = None
    hi: int | None = None
    width: int = 1
    kinds: bytes = field(default=b"", init=False, repr=False, compare=False)
    integral = True


@dataclass(frozen=True)
class Code:
    """A codeword of a ±1 codebook, a sum of codewords, or absent (zeros)."""

    book: Codebook = field(repr=False)
    integral = True

    @property
    def width(self) -> int:
        """Lanes of such a stream: one for each place of a codeword."""
        return self.book.length


@dataclass(frozen=True)
class Real:
    """Real numbers lo…hi; an open bound is None (of an input: 2^62 in size).

    gap: no number is nearer to 0 without being 0. A comparison with 0 is then decided (`numbers` alone reads it).
    kinds: as for Int.
    """

    lo: float | None = None
    hi: float | None = None
    width: int = 1
    gap: float = field(default=0.0, metadata=LATER)
    kinds: bytes = field(default=b"", init=False, repr=False, compare=False)
    integral = False


@dataclass(frozen=True)
class Logits:
    """One score per token of the alphabet; the answer is the argmax."""

    width: int
    integral = False


Type = Bool | OneHot | Int | Code | Real | Logits
