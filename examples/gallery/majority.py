"""Which of two letters stood more often? `a`, `b`, or `=` for a tie.

One running sum of +1 and −1 and two comparisons: the circuit by which a state-space model counts.
"""

from collections.abc import Sequence

from compiler import Alphabet, Circuit, InputLanguage, Tokens, emit

ALPHABET = Alphabet.of("a", "b", "=")
LANGUAGE = InputLanguage.of(ALPHABET, "text", [("text", "text", ("a", "b"))], 1000, "strings of a and b")


def circuit() -> Circuit:
    x = Tokens(ALPHABET)
    lead = (x.is_in("a").cumsum() - x.is_in("b").cumsum()).named("lead")
    return Circuit("majority", emit(ALPHABET, (lead > 0, "a"), (lead < 0, "b"), otherwise="="), LANGUAGE)


def plain_python(word: Sequence[str]) -> str:
    """What the circuit must answer after the last token of the word."""
    a, b = word.count("a"), word.count("b")
    return "a" if a > b else "b" if b > a else "="
