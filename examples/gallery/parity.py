"""Is the number of ones even or odd?

Parity is what a recurrence with positive decay cannot hold in one bit: the state would have to change its sign. The
circuit counts instead and takes the remainder, so its promise ends where its table of thresholds does.
"""

from collections.abc import Sequence

from compiler import Alphabet, Circuit, InputLanguage, Tokens, emit

ALPHABET = Alphabet.of("0", "1", "even", "odd")
LANGUAGE = InputLanguage.of(ALPHABET, "bits", [("bits", "bits", ("0", "1"))], 32, "strings of up to 32 bits")


def circuit() -> Circuit:
    ones = Tokens(ALPHABET).is_in("1").cumsum().named("ones")
    return Circuit("parity", emit(ALPHABET, (ones % 2 == 1, "odd"), otherwise="even"), LANGUAGE)


def plain_python(word: Sequence[str]) -> str:
    """What the circuit must answer after the last token of the word."""
    return "odd" if word.count("1") % 2 else "even"
