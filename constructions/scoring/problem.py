"""A model whose variables and components are known, and what of it a method is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from constructions.scoring.sites import Site, read_all
from constructions.scoring.truth import Pairs


@dataclass(frozen=True, eq=False)
class Scale:
    """Coordinates of a site less their mean, over their spread: what is constant, such as a ballast, is 0."""

    mean: torch.Tensor
    spread: torch.Tensor

    @classmethod
    def of(cls, values: torch.Tensor) -> Scale:
        flat = values.double().flatten(0, -2)
        spread = flat.std(dim=0)
        constant = spread <= 1e-9 * flat.abs().amax(dim=0).clamp(min=1e-30)
        return cls(flat.mean(dim=0), torch.where(constant, torch.ones_like(spread), spread))

    def of_values(self, values: torch.Tensor) -> torch.Tensor:
        return (values.double() - self.mean) / self.spread


class NothingFound(ValueError):
    """A method does not speak of models of this kind. The message says why."""


@dataclass(frozen=True, eq=False)
class Edges:
    """From each coordinate of a node to one reader of the residual stream.

    source: the node's place in `nodes`; reader: the input of the norm of a later block, or of the head's. written:
    (d_model, width), what one unit of each coordinate adds to the stream.
    """

    source: int
    reader: Site
    written: torch.Tensor


@dataclass(frozen=True, eq=False)
class Given:
    """All that a method sees: a plain model of transformers and data, nothing of where anything stands.

    ids, answers: (n, time), -100 where nobody asks, or no letter alone is right. nodes: sites whose coordinates are
    ranked. site: for each variable where its subspace is sought, and scale: how that site's coordinates are measured.
    labels: for each variable (n, time, width) values on `ids`. pairs: for each variable interchanges with the answers
    that they should give. size: on how many directions each variable stands. seed: for all that the method draws.
    edges: what edges are ranked; none where a compiled model has one block.
    """

    model: Any
    ids: torch.Tensor
    answers: torch.Tensor
    nodes: tuple[Site, ...]
    site: Mapping[str, Site]
    scale: Mapping[str, Scale]
    labels: Mapping[str, torch.Tensor]
    pairs: Mapping[str, Pairs]
    size: Mapping[str, int]
    seed: int
    edges: tuple[Edges, ...] = ()

    def features(self, name: str) -> torch.Tensor:
        """What stands at a variable's site on `ids`, in scale: (n, time, width)."""
        return self.scale[name].of_values(self.site[name].read(self.model, self.ids))


@dataclass(frozen=True, eq=False)
class Featurizer:
    """A subspace in scaled coordinates, exchanged as h + write · (read · h_source − read · h). read: (k, width); write:
    (width, k).
    """

    read: torch.Tensor
    write: torch.Tensor

    @classmethod
    def onto(cls, directions: torch.Tensor) -> Featurizer:
        """The orthogonal projection on the span of these columns (width, k)."""
        basis = torch.linalg.qr(directions.double())[0]
        return cls(basis.T, basis)

    def swapped(self, base: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        return base + (source - base) @ self.read.T @ self.write.T


@dataclass(frozen=True, eq=False)
class Found:
    """What a method returns. components: for each site of `nodes` a score of each coordinate; variables: a
    featurizer each; edges: for each of `edges` a score of each channel."""

    components: list[np.ndarray] | None = None
    variables: Mapping[str, Featurizer] | None = None
    edges: list[np.ndarray] | None = None


@dataclass(frozen=True, eq=False)
class Problem:
    """What a method is given, and what it is held to.

    used: for each site of `given.nodes` whether a coordinate is part of the algorithm (1), is not (0), or does not
    count (-1). held: pairs that no method saw, by variable, all of the same inputs, with their labels and answers;
    oracle: the true featurizers. edges_used: the same as `used` for each of `given.edges`. equal: for each variable
    the names of the streams that are one with it. left_out: what no method is asked for, with the reason. asked: at
    which positions answers are scored, in words.
    """

    name: str
    kind: str
    given: Given
    used: list[np.ndarray]
    held: Mapping[str, Pairs]
    held_labels: Mapping[str, torch.Tensor]
    held_answers: np.ndarray
    oracle: Mapping[str, Featurizer]
    edges_used: list[np.ndarray] = field(default_factory=list)
    equal: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    asked: str = ""


def scales(model: Any, sites: Mapping[str, Site], ids: torch.Tensor) -> dict[str, Scale]:
    """For each variable the scale of its site."""
    seen = read_all(model, list(sites.values()), ids)
    return {name: Scale.of(values) for name, values in zip(sites, seen, strict=True)}
