"""Token selection (after paper D): of the letters seen so far, the one whose key fits the present query best.

Every letter has a key vector and a query vector; the score of letter i at position t is
<key_i, query_t>. A bank of latches knows which letters were seen, the last linear map and
the argmax do the rest.
"""

import numpy as np

from compiler import Alphabet, Circuit, InputLanguage, Tokens, constant, latch_bank, readout_one_hot, select

LETTERS = Alphabet.of("a", "b", "c", "d")
KEYS = np.array([[2, 0], [0, 3], [1, 1], [-2, 1]])
QUERIES = np.array([[1, 3], [-1, 0], [3, -1], [0, -2]])


def circuit(max_length: int = 12) -> Circuit:
    tokens = Tokens(LETTERS)
    query = tokens.rows(None, QUERIES, "query")
    seen = latch_bank(constant(1), index=tokens.one_hot())
    lowest = int((KEYS @ QUERIES.T).min())
    score = select(seen, KEYS @ query - lowest + 1)  # at least 1 where seen, else 0
    return Circuit("best-match", readout_one_hot(score, LETTERS), InputLanguage.everything(LETTERS, max_length))


def answers(word: list[str]) -> list[str | None]:
    """None where two letters fit equally well."""
    result = []
    for t, letter in enumerate(word):
        query = QUERIES[LETTERS.index(letter)]
        scores = {seen: int(KEYS[LETTERS.index(seen)] @ query) for seen in word[: t + 1]}
        best = [seen for seen, score in scores.items() if score == max(scores.values())]
        result.append(best[0] if len(best) == 1 else None)
    return result
