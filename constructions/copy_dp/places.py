"""Copying on mixers that forget nothing, fnn+ssm and S4D: where a token stands, and which place is asked.

On Mamba one count does both: it counts the kept tokens and starts again at the separator. A filter cannot start again.

fnn+ssm (after paper D, Theorems 3.1 and D.2, which look up n-grams): the place is a running sum, and what is asked is
the separator's flag, r positions late for place r + 1, by cosines over the window. S4D: what the sum was at the
separator is added up once more, masked, and taken off. Tokens are kept as binary digits of 1 … vocab; 0 is the end,
which stands wherever nothing is.
"""

from __future__ import annotations

from typing import Literal

from compiler.language import memory
from compiler.language.codebook import bits
from compiler.language.output import readout_nearest
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.types import Bool
from compiler.language.words import concatenate, select

Arch = Literal["mamba", "mamba2", "s4d", "fnn+ssm"]
FORGETS = ("mamba", "mamba2")


def copied_by_sums(arch: str, x: Tokens, bar: Stream, n: int, end: str) -> Stream:
    """The scores of the next token of the copy, of up to n tokens x0, x1, …; what is no such token has no place."""
    book = bits(len(x.alphabet.ids("x")))
    kept, value = x.is_in("x"), x.code("x", book, "value")
    before = (1 - bar.cumsum()).relu().retyped(Bool()).named("before")
    number = kept.cumsum().named("number")
    text = memory.write((number - 1).one_hot(n), value, when=kept & before, name="text")
    asked = _asked_late(bar, n) if arch == "fnn+ssm" else _asked_by_number(bar, number, before, n)
    return readout_nearest(text.read(asked), book, x.alphabet, "x", end)


def _asked_late(bar: Stream, n: int) -> Stream:
    return concatenate(*(bar.shift(r) for r in range(n))).named("asked")


def _asked_by_number(bar: Stream, number: Stream, before: Stream, n: int) -> Stream:
    """After the separator the tokens since then are as many as have been copied."""
    at_bar = select(bar, number, 0).cumsum().named("number at the separator")
    return (number - at_bar - n * before).one_hot(n)


def by_hand(n: int, vocab: int, longest: int) -> dict[str, int]:
    """Construction B of places, counted by hand: P cosines and sines for each of two flags, a bank of n + 1 places.

    D_1 = 4(⌊P/2⌋ + 1) + 3 + d and D_2 = (n + 1)(d + 1) for P places of the window and d digits.
    """
    d = max(1, vocab.bit_length())
    return {"M": 2, "D": max(4 * (longest // 2 + 1) + 3 + d, (n + 1) * (d + 1))}
