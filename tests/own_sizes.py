"""Sizes of our own circuits, counted lane by lane and channel by channel: no paper states them, and no report prints
them. A circuit that takes more than this has grown.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.language.codebook import balanced_length


@dataclass(frozen=True)
class OwnSizes:
    """So many layers, each with at most these sizes."""

    d_model: int
    d_inner: int
    d_state: int
    layers: int


def induction_heads(vocab: int, arch: str, codes: bool = False) -> OwnSizes:
    """p bits for a value or the blank. "mamba-delta-t": Lemma 3's d = 2 vocab and N = vocab, and more lanes with codes.
    "mamba": a latch for each token and bit, a channel for each previous token (q + 1 with codes) and one constant.
    "mamba2": two layers, the first carries the previous token to lanes.
    """
    p, q = vocab.bit_length(), max(1, (vocab - 1).bit_length())
    previous = q + 1 if codes else vocab
    if arch == "mamba-delta-t":
        return OwnSizes(max(2 * vocab, vocab + 1 + (previous if codes else 0)), 2 * vocab, vocab, 1)
    if arch == "mamba2":
        return OwnSizes(2 * vocab + 2 * p + 1 + (previous if codes else 0), max(vocab * p, previous), 1, 2)
    return OwnSizes(vocab + p + 1 + (previous if codes else 0), vocab * p + previous + 1, 1, 1)


def keep_nth(vocab: int, arch: str = "mamba") -> OwnSizes:
    """p latches, two ramps of the count and one constant, whatever n, behind a layer that counts; Mamba-2, whose step
    sees lanes only, has one more, which carries the comparison.
    """
    p, later = balanced_length(vocab), arch == "mamba2"
    return OwnSizes(2 * p + 2 + 2 * later, p + (0 if later else 3), 1, 2 + later)


def keep_nth_position(vocab: int, arch: str = "mamba") -> OwnSizes:
    """The same where the position is an input: no layer counts. Mamba-2 has ramps and latches on lanes as well."""
    p, later = balanced_length(vocab), arch == "mamba2"
    return OwnSizes(vocab + 2 + (2 + p) * later, p + (0 if later else 3), 1, 1 + later)
