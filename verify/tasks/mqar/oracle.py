"""What is right on MQAR: a dictionary walk over the tokens, in plain Python.

Token ids: 0 is the neutral filler `_`, 1..kappa are the keys k0.., kappa+1..kappa+vocab are the values v0...
"""

from collections.abc import Sequence

from verify.arguments import one_of

POLICIES = {
    "first": lambda written: written[0] if written else None,
    "last": lambda written: written[-1] if written else None,
    "sum": lambda written: written[0] if len(written) == 1 else None,
}
"""Write policy -> the answer, given the values written to a key so far; a sum of two values is no value."""


def mqar_oracle(tokens: Sequence[int], kappa: int, vocab: int, write: str) -> list[int | None]:
    """The value token that is right at each position, None where the token is no key or the key has no answer.

    A value at t right after a key at t-1 is written to that key, as the memory of paper A, App. C.1, does; a read at t
    sees every write up to and including t. Raises ValueError for an unknown policy or token.
    """
    one_of("write", write, tuple(POLICIES))
    if tokens and not 0 <= min(tokens) <= max(tokens) <= kappa + vocab:
        bad = next(token for token in tokens if not 0 <= token <= kappa + vocab)
        raise ValueError(f"token {bad} is outside 0..{kappa + vocab}, the ids of kappa = {kappa}, vocab = {vocab}.")
    answer = POLICIES[write]
    written: dict[int, list[int]] = {}
    answers: list[int | None] = [None] * len(tokens)
    previous = 0
    for position, token in enumerate(tokens):
        if token > kappa:
            if 1 <= previous <= kappa:
                written.setdefault(previous, []).append(token)
        elif token in written:
            answers[position] = answer(written[token])
        previous = token
    return answers
