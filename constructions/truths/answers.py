"""What the real module of a construction answers."""

from __future__ import annotations

import numpy as np

from verify.tasks.task import IGNORED, Batch


def answered(construction, batch: Batch) -> float:
    """The share of labels that the bare real module answers: above every other token."""
    from compiler.artifact.package import bare
    from constructions.checkpoints.scores import module_scores

    compiled = construction.compiled()
    scores = module_scores(bare(compiled))(batch.tokens)
    asked = batch.labels != IGNORED
    rows = np.arange(int(asked.sum()))
    labels, of = batch.labels[asked], scores[asked]
    right = of[rows, labels].copy()
    of[rows, labels] = -np.inf
    return float((right > of.max(axis=1)).mean())


def one_batch(task, count: int) -> Batch:
    """`count` sequences of seed 0."""
    return next(iter(task.random(count, 0, batch_size=count)))
