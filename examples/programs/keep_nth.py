"""KEEP n-TH (after paper A, Corollary 2): from the n-th token on, answer that token.

A latch closed by the position. No model is told the position: the compiler counts it.
"""

from compiler import Alphabet, Circuit, InputLanguage, Tokens, latch, position, readout_one_hot

LETTERS = Alphabet.of("a", "b", "c")


def circuit(n: int = 3, max_length: int = 12) -> Circuit:
    token = Tokens(LETTERS).one_hot()
    kept = latch(token, when=position() == n)
    return Circuit("keep-nth", readout_one_hot(kept, LETTERS), InputLanguage.everything(LETTERS, max_length))


def answers(word: list[str], n: int = 3) -> list[str | None]:
    """The n-th letter from there on (None: nobody reads the answer)."""
    return [word[n - 1] if t >= n - 1 else None for t in range(len(word))]
