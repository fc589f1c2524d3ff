"""How deep are the brackets open? The answer is the depth, or `!` once a bracket was closed that was never opened.

Two running sums and one latch. The depth is the number of `(` less the number of `)`; `present` keeps for ever that
it was negative once.
"""

from collections.abc import Sequence

from compiler import Alphabet, Circuit, InputLanguage, Tokens, emit, present

DEPTHS = range(9)
ALPHABET = Alphabet.of("(", ")", *(str(n) for n in DEPTHS), "!")
LANGUAGE = InputLanguage.of(ALPHABET, "text", [("text", "text", ("(", ")"))], 8, "strings of up to 8 brackets")


def circuit() -> Circuit:
    x = Tokens(ALPHABET)
    depth = (x.is_in("(").cumsum() - x.is_in(")").cumsum()).named("depth")
    broken = present(depth < 0)
    answer = emit(ALPHABET, (broken, "!"), *((depth == n, str(n)) for n in DEPTHS[1:]), otherwise="0")
    return Circuit("bracket-depth", answer, LANGUAGE)


def plain_python(word: Sequence[str]) -> str:
    """What the circuit must answer after the last token of the word."""
    depth = 0
    for bracket in word:
        depth += 1 if bracket == "(" else -1
        if depth < 0:
            return "!"
    return str(depth)
