"""What the compiler knows of a language model that decides which changes of its basis are exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.analysis.affine_form import ONE
from compiler.artifact.package import LanguageModel
from compiler.compiled import Compiled
from compiler.disguise.errors import DisguiseError
from compiler.disguise.spaces import SPACES
from compiler.disguise.steps import Tensors
from compiler.formats import FLOAT16, Format
from compiler.lattice.units import array_units
from compiler.targets.family import mixer_prefix

LARGEST_SHIFT = 3  # powers of two go up to 2^3


@dataclass
class Facts:
    """The weights of a model, and of each lane of its residual stream a bound and a quantum.

    data: how many lanes the circuit has; they stand first. The ballast stands last, idle lanes between.
    bounds: (d_model,) on |value| at every position, 0 for idle lanes; units: (d_model,) powers of two of which
    values are multiples; level: the K of the norms (E7). gated: for each layer a bound on |y·silu(z)| of each channel,
    and gated_units its quantum. Draws that change one of these keep it up to date.
    """

    config: Mapping[str, Any]
    tensors: Tensors
    format: Format
    data: int
    ballast: int
    level: float
    one: int
    bounds: np.ndarray
    units: np.ndarray
    gated: list[np.ndarray]
    gated_units: list[np.ndarray]

    @property
    def width(self) -> int:
        return self.config["hidden_size"]

    @property
    def mixable(self) -> range:
        """Lanes that are no ballast."""
        return range(self.width - self.ballast)

    @property
    def shift(self) -> int:
        """The largest exponent of a power of two: float16 has no range to spare."""
        return 0 if self.format is FLOAT16 else LARGEST_SHIFT

    def hidden(self, bounds: np.ndarray, level: float) -> bool:
        """Whether the ballast of a norm of this K hides numbers of these bounds (E7)."""
        return float((bounds**2).sum()) * self.format.absorbed <= level**2

    def divisible(self, units: np.ndarray) -> bool:
        """Whether no lane is flushed to 0 between the division by K and the weight."""
        return bool((units >= self.level * self.format.smallest).all())

    def exact_rows(self, layer: int, rows: np.ndarray, bounds: np.ndarray, units: np.ndarray) -> bool:
        """Whether these rows of out_proj (lanes, d_inner) add exactly to lanes of these bounds, in any order (E11).

        The norm inside Mamba-2 is the identity, so its channels are as large as they were before it.
        """
        live = rows != 0
        reach = np.abs(rows.astype(float)) @ self.gated[layer] + bounds
        quanta = np.where(live, array_units(rows.astype(float)) * self.gated_units[layer], np.inf).min(axis=1)
        return bool((reach <= self.format.exact_integers * np.minimum(quanta, units)).all())


def facts_of(compiled: Compiled, model: LanguageModel) -> Facts:
    """DisguiseError where sums of the circuit may round: their order, and so their bits, would change."""
    if model.config["model_type"] not in SPACES:
        raise DisguiseError(
            f"model_type is {model.config['model_type']!r}, and disguises are known of {' and '.join(SPACES)} only."
        )
    if compiled.error_bound != 0:
        raise DisguiseError(
            f"the circuit {compiled.source.name!r} promises bounded errors, and another basis adds in another order: "
            "its logits would differ in their last bits. Only circuits that promise exact bits can be disguised."
        )
    width = model.config["hidden_size"]
    bounds, units = np.zeros(width), np.full(width, np.inf)
    bounds[: compiled.lanes.count] = compiled.lane_bounds()
    one = int(compiled.lanes.index[ONE][0])
    units[one] = 1
    for stream, at in compiled.lanes.index.items():
        if stream is not ONE:
            units[at[at >= 0]] = compiled.domains.of(stream).units[at >= 0]
    units[bounds == 0] = np.inf
    tensors = {name: tensor.numpy() for name, tensor in model.tensors.items()}
    outputs = [tensors[f"{mixer_prefix(i)}out_proj.weight"] for i in range(model.config["num_hidden_layers"])]
    return Facts(
        config=model.config,
        tensors=tensors,
        format=compiled.context.format,
        data=compiled.lanes.count,
        ballast=len(model.ballast.factors),
        level=model.ballast.level,
        one=one,
        bounds=bounds,
        units=units,
        gated=[_over_outputs(bounds, out, np.maximum, 0.0) for out in outputs],
        gated_units=[_over_outputs(units, out, np.minimum, np.inf) for out in outputs],
    )


def _over_outputs(lanes: np.ndarray, out: np.ndarray, choose: np.ufunc, start: float) -> np.ndarray:
    """What a number of each lane says of the channels that write it: the norm inside Mamba-2 is the identity."""
    found = np.full(out.shape[1], start)
    lane, channel = np.nonzero(out)
    choose.at(found, channel, lanes[lane] / np.abs(out[lane, channel]))
    return found
