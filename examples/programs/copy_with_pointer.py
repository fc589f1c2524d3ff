"""COPY (after paper B, Theorem 2): a pointer token p3 answers the letter at position 3.

Every letter is stored under its own position, and a pointer asks for one. The position is
a key like any other: no position is written twice, so the additive memory is exact.
"""

from compiler import Alphabet, Circuit, InputLanguage, Tokens, memory, position, readout_one_hot


def circuit(places: int = 6) -> Circuit:
    alphabet = Alphabet.of(x=3, p=places)  # letters x0 … x2, pointers p0 … p5
    tokens = Tokens(alphabet)
    place = (position() - 1).one_hot(places)
    copied = memory.write(key=place, value=tokens.one_hot("x")).read(tokens.one_hot("p"))
    return Circuit("copy", readout_one_hot(copied, alphabet, "x"), InputLanguage.everything(alphabet, 2 * places))


def answers(word: list[str]) -> list[str | None]:
    """The letter that a pointer points to, if one stands there already."""
    result = []
    for t, token in enumerate(word):
        place = int(token[1:]) if token[0] == "p" else t + 1
        result.append(word[place] if place <= t and word[place][0] == "x" else None)
    return result
