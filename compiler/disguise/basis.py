"""Where a disguise put things, read off its key: for whoever holds methods to the truth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler.disguise.steps import Patch, Permute, Step, applied, undone
from compiler.targets.family import EMBEDDING, mixer_prefix


def lane_basis(steps: Sequence[Step], width: int, inverse: bool = False) -> np.ndarray:
    """T (d_model, d_model) float64 with T · (the plain stream) = the disguised stream; or T⁻¹, as exact."""
    on_lanes = [step for step in steps if any(leg[0] == EMBEDDING for leg in step.legs)]
    legs = lambda step: [leg for leg in step.legs if leg[0] == EMBEDDING]
    kept = [type(step)(**{**vars(step), "legs": legs(step)}) for step in on_lanes]
    change = undone if inverse else applied
    return change(kept, {EMBEDDING: np.eye(width, dtype=np.float32)})[EMBEDDING].T.astype(float)


def channels_used(steps: Sequence[Step], layer: int, used: np.ndarray) -> np.ndarray:
    """Of the plain block's channels that are used (d_inner,) those that the disguised block uses, decoys left out."""
    found, name = used.copy(), f"{mixer_prefix(layer)}out_proj.weight"
    for step in steps:
        if isinstance(step, Patch) and step.what.get("layer") == layer:
            channel, seats, change = (step.what[name] for name in ("channel", "seats", "change"))
            if change == "merged":  # one channel weighs what both did
                found[channel] |= found[seats].any()
            found[seats] = change == "split" and found[channel]
        elif isinstance(step, Permute) and any(leg[:2] == (name, 1) for leg in step.legs):
            found = found[np.array(step.order)]
    return found
