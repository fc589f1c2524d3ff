"""Noise: every weight that is not 0 is off by a random share. Nothing is exact then; the key still takes it back."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from compiler.disguise.errors import DisguiseError
from compiler.disguise.steps import Patch, patch_of
from compiler.targets.family import HEAD

LARGEST = 0.5
WHERE = {"all": "every weight", "head": "every weight of the head"}
"""Where noise can be, and what is said of it."""


def check_epsilon(epsilon: float, where: str = "all") -> None:
    """DisguiseError for a share that is none, and for a place that is none; 0 is no noise."""
    if not 0 <= epsilon <= LARGEST:  # NaN is none either
        raise DisguiseError(
            f"--noise {epsilon:g}: noise is a share of each weight, at least 0 and at most {LARGEST:g}."
        )
    if where not in WHERE or (where != "all" and not epsilon):
        needs = "it needs --noise" if where in WHERE else f"it is one of {', '.join(WHERE)}"
        raise DisguiseError(f"--noise-in {where}: {needs}.")


def noise(tensors: Mapping[str, np.ndarray], epsilon: float, seed: int, where: str = "all") -> Patch:
    """The step that makes each weight w to w · (1 + ε·u), u uniform in [-1, 1], rounded to float32. Weights of 0, and
    infinite ones, stay. where: "head" leaves all other tensors as they are.
    """
    after = dict(tensors)
    for number, name in enumerate(sorted(tensors)):
        if where == "head" and name != HEAD:
            continue
        rng, before = np.random.default_rng([seed, number]), tensors[name]
        changed = before * (1 + epsilon * rng.uniform(-1, 1, before.shape))
        after[name] = np.where(np.isfinite(before), changed, before).astype(np.float32)
    return patch_of(dict(tensors), after, {"noise": epsilon, "where": where})
