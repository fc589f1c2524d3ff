"""How many a's stood so far, modulo 3? The answer is a token that the circuit reads out as a number.

`count % 3` is a staircase: the compiler writes it as a sum of thresholds over the range that the input language proves.
"""

from collections.abc import Sequence

from compiler import Alphabet, Circuit, InputLanguage, Tokens, readout_integer

ALPHABET = Alphabet.of("a", "b", "0", "1", "2")
LANGUAGE = InputLanguage.of(ALPHABET, "text", [("text", "text", ("a", "b"))], 30, "strings of up to 30 letters")


def circuit() -> Circuit:
    remainder = Tokens(ALPHABET).is_in("a").cumsum() % 3
    return Circuit("remainder", readout_integer(remainder, ALPHABET, {"0": 0, "1": 1, "2": 2}), LANGUAGE)


def plain_python(word: Sequence[str]) -> str:
    """What the circuit must answer after the last token of the word."""
    return str(word.count("a") % 3)
