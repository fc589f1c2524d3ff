"""What the tests of the MQAR tasks share."""

import numpy as np

from verify.tasks.mqar import BenchmarkLayout

# The public benchmark with a vocabulary of 512 and its random filler.
PUBLIC = BenchmarkLayout(kappa=255, vocab=256, length=256, pairs=16, filler="vocabulary")


def by_definition(tokens, kappa, write):
    """Answers straight from the sentence: all values that stand right behind a copy of this key, up to here."""
    answers = []
    for t, key in enumerate(tokens):
        written = [tokens[s] for s in range(1, t + 1) if tokens[s - 1] == key and tokens[s] > kappa]
        answer = {"first": written[:1], "last": written[-1:], "sum": written if len(written) == 1 else []}[write]
        answers.append(answer[0] if answer and 1 <= key <= kappa else None)
    return answers


def gather(batches):
    """(tokens, labels) of all batches of one length."""
    batches = list(batches)
    return np.concatenate([b.tokens for b in batches]), np.concatenate([b.labels for b in batches])


def shown(task):
    return task.describe()
