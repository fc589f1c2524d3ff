"""How many states a task needs: what any machine must tell apart to answer everything that is promised.

Counted are beginnings of promised inputs. Every two of them go on in some common way, promised for both, up to a
question whose right answers differ. A machine that treats every position alike is in another state behind each of them.
Its state is all that it carries from token to token: of a real model the windows of the convolutions and the states of
all blocks. What is asked for nowhere separates nothing, and no beginning is counted after which no token may come.
"""

from __future__ import annotations

from math import ceil, comb, factorial

from verify.arguments import at_least

LETTERS = "a sequence needs a token"
ROOM = 1e-9  # above a whole number it is the number itself


def induction_heads_states(vocab: int, length: int | None = None) -> int:
    """1 + Σ_j C(V, j)·j^(j−1), exact, for sequences of up to `length` tokens: the next answers tell all these apart.

    Say u was followed by f(u) when it stood last. For the last token l no f(l) is needed: the next token is written
    there before anything is read. For any other u the last place of f(u) is behind that of u, so f has no cycle, and f
    makes the j tokens that were seen a tree with the root l. There are j^(j−1) rooted trees of j tokens (Cayley). Each
    is reached: write u f(u) for every u but l, children before parents. The answer to a next token q is f(q); it is q
    for q = l alone, and blank where q is new. So no two trees answer alike. The 1 is the start.

    A tree of j tokens and k leaves takes j + k − 1 tokens at least: wherever the last places of two tokens follow one
    another and the second is no parent of the first, another token stands between, and so it is k − 1 times or more.
    Another token is still to come, so shorter promises have the trees with j + k − 1 < length.
    """
    at_least("vocab", vocab, 1, LETTERS)
    most = 2 * vocab if length is None else length - 1
    if most >= 2 * vocab - 2 and most:
        return 1 + sum(comb(vocab, j) * j ** (j - 1) for j in range(1, vocab + 1))
    return 1 + sum(
        comb(vocab, j) * _trees(j, leaves)
        for j in range(1, min(vocab, most) + 1)
        for leaves in range(1, min(j, most + 1 - j) + 1)
    )


def _trees(size: int, leaves: int) -> int:
    """Rooted labelled trees by their leaves: n!/k!·S(n − 1, n − k), S of the second kind."""
    blocks = size - leaves
    onto = sum((-1) ** i * comb(blocks, i) * (blocks - i) ** (size - 1) for i in range(blocks + 1))
    return factorial(size) // factorial(leaves) * (onto // factorial(blocks))


def keep_nth_states(n: int, vocab: int, length: int | None = None) -> int:
    """V + min(n, length − n): the token once it is kept, or before it how many came; exact for length ≥ 2n.

    Never both: behind n nothing is counted, and before n there is nothing to keep. Of two counts i < j < n the later
    one is asked about another token. A count i and the kept token part at the n-th token, n − i tokens on, where the
    kept one stands at 2n − i: in a short sequence only for the last length − n counts. With one token, or where only
    the present token is asked for (length = n), one state does.
    """
    at_least("n", n, 1, "the first position is 1")
    at_least("vocab", vocab, 1, LETTERS)
    left = n if length is None else length - n
    return vocab + min(n, left) if vocab > 1 and left > 0 else 1


def whole_bits(bits: float) -> int:
    """A lower bound on a number of bits, as a whole number: rounded up, for part of a bit holds nothing."""
    return ceil(bits - ROOM)
