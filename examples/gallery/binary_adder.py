"""A serial adder: each token holds one binary digit of two numbers, lowest first.

The answer is that digit of their sum.

The carry is a latch, not a recurrence. Two ones set it, two zeros clear it, and any other pair hands it on unchanged,
so it is the last value that was written.
"""

from collections.abc import Sequence

from compiler import Alphabet, Circuit, InputLanguage, Tokens, emit, latch

ALPHABET = Alphabet.of("0+0", "0+1", "1+0", "1+1", "0", "1")
PAIRS = ("0+0", "0+1", "1+0", "1+1")
LANGUAGE = InputLanguage.of(ALPHABET, "digits", [("digits", "digits", PAIRS)], 64, "two numbers of up to 64 digits")


def circuit() -> Circuit:
    x = Tokens(ALPHABET)
    generates, passes_none = x.is_in("1+1"), x.is_in("0+0")
    carry = latch(generates, when=generates | passes_none).named("carry")
    odd = x.is_in(("0+1", "1+0"))
    return Circuit("binary-adder", emit(ALPHABET, (odd ^ carry.shift(1), "1"), otherwise="0"), LANGUAGE)


def plain_python(word: Sequence[str]) -> str:
    """What the circuit must answer after the last token of the word."""
    first, second = (sum(int(pair[side]) << i for i, pair in enumerate(word)) for side in (0, 2))
    return str((first + second) >> (len(word) - 1) & 1)
