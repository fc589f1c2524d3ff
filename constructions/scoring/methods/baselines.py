"""What a score of the scorer itself must be: near 0.5 and near 0 at random, 1 for who reads the truth."""

from __future__ import annotations

import numpy as np
import torch

from constructions.scoring.problem import Featurizer, Found, Given, Problem


def random(given: Given) -> Found:
    """Scores and directions by chance."""
    rng = np.random.default_rng(given.seed)
    components = [rng.random(site.width) for site in given.nodes]
    draw = lambda name: torch.from_numpy(rng.normal(size=(given.site[name].width, given.labels[name].shape[-1])))
    return Found(components, {name: Featurizer.onto(draw(name)) for name in given.site})


def oracle(problem: Problem) -> Found:
    """The truth itself."""
    return Found([used.astype(float) for used in problem.used], problem.oracle)
