"""What scores of the scorer itself must be: near 0.5 and near 0 at random, 1 for who reads the truth, little for who
names everything."""

from __future__ import annotations

import numpy as np
import torch

from constructions.scoring.problem import Featurizer, Found, Given, Problem


def random(given: Given) -> Found:
    """Scores and directions by chance."""
    rng = np.random.default_rng(given.seed)
    components = [rng.random(site.width) for site in given.nodes]
    draw = lambda name: torch.from_numpy(rng.normal(size=(given.site[name].width, given.labels[name].shape[-1])))
    variables = {name: Featurizer.onto(draw(name)) for name in given.site}
    return Found(components, variables, [rng.random(given.nodes[edges.source].width) for edges in given.edges])


def whole_stream(given: Given) -> Found:
    """Every direction of the stream, for every variable."""
    return Found(variables={n: Featurizer.onto(torch.eye(s.width, dtype=torch.float64)) for n, s in given.site.items()})


def oracle(problem: Problem) -> Found:
    """The truth itself."""
    as_scores = lambda truth: [used.astype(float) for used in truth]
    return Found(as_scores(problem.used), problem.oracle, as_scores(problem.edges_used))
