"""INDUCTION HEADS (after paper A, Lemma 3): the token that followed the last time this one was here.

The previous token is the key under which the present one is stored; the present one asks.
The read sees the write of its own position, so "a a" answers a: a has just followed a.
"""

from compiler import Alphabet, Circuit, InputLanguage, Tokens, memory, readout_one_hot

LETTERS = Alphabet.of("a", "b", "c")


def circuit(max_length: int = 12) -> Circuit:
    token = Tokens(LETTERS).one_hot()
    followers = memory.write(key=token.shift(1), value=token, policy="last")
    return Circuit(
        "induction-heads",
        readout_one_hot(followers.read(token), LETTERS),
        InputLanguage.everything(LETTERS, max_length),
    )


def answers(word: list[str]) -> list[str | None]:
    """By search: what stands behind the last earlier place of the present letter."""
    result = []
    for t, letter in enumerate(word):
        earlier = [s for s in range(t) if word[s] == letter]
        result.append(word[earlier[-1] + 1] if earlier else None)
    return result
