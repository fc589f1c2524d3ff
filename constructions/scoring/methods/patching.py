"""Which components matter: by exchanging each one, or by gradients that guess what an exchange would do.

Attribution patching is Nanda's (2023), EAP's scores of nodes and edges are those of Syed et al. (2023), integrated
gradients those of Hanna et al. (2024). The measure is the right letter's logit less the mean of all, at every position
that asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np
import torch

from constructions.scoring.problem import Edges, Found, Given
from constructions.scoring.sites import Site, read_all
from verify.tasks.task import IGNORED

ROWS = 16  # inputs
POINTS = 5  # of the path of integrated gradients


def activation_patching(given: Given) -> Found:
    """|change of the measure| where one coordinate has its values from another input."""
    base, source, wanted = inputs(given)
    components = []
    with torch.no_grad():
        plain = measure(given.model(base, use_cache=False).logits, wanted)
        here, there = (read_all(given.model, given.nodes, ids) for ids in (base, source))
        for site, other in zip(given.nodes, there, strict=True):
            found = np.zeros(site.width)
            for i in range(site.width):
                if other[..., i].std() > 0:
                    found[i] = abs(float(_exchanged(given, site, i, other, base, wanted) - plain))
            components.append(found)
        moves = [after - before for before, after in zip(here, there, strict=True)]
        edges = [_edges_patched(given, each, moves[each.source], base, wanted, plain) for each in given.edges]
    return Found(components, edges=edges)


def _edges_patched(
    given: Given, edges: Edges, moves: torch.Tensor, base: torch.Tensor, wanted: torch.Tensor, plain: torch.Tensor
) -> np.ndarray:
    """|change of the measure| where one reader alone gets what one coordinate of a node adds to the stream on
    another input.

    moves: by how much each coordinate differs there, (n, time, width); plain: the measure without a change.
    """
    found = np.zeros(moves.shape[-1])
    for i in np.flatnonzero(moves.abs().amax(dim=(0, 1)).numpy()):
        move = moves[..., i, None] * edges.written[:, i]
        with edges.reader.changed(given.model, lambda x, m=move: (x + m).to(x.dtype)):
            found[i] = abs(float(measure(given.model(base, use_cache=False).logits, wanted) - plain))
    return found


def _exchanged(
    given: Given, site: Site, i: int, other: torch.Tensor, base: torch.Tensor, wanted: torch.Tensor
) -> torch.Tensor:
    def change(values: torch.Tensor) -> torch.Tensor:
        values = values.clone()
        values[..., i] = other[..., i]
        return values

    with site.changed(given.model, change):
        return measure(given.model(base, use_cache=False).logits, wanted)


def attribution_patching(given: Given) -> Found:
    """|(source - base) · gradient| of each coordinate, summed over positions; of each edge, at its reader (EAP)."""
    (components, steps), (base, _, wanted) = _attributed(given, [0.0]), inputs(given)
    edges = []
    for each in given.edges:
        here = each.reader.read(given.model, base)
        by_channel = _gradient(given, each.reader, here, base, wanted) @ each.written.double()
        edges.append((by_channel * steps[each.source]).sum(dim=(0, 1)).abs().numpy())
    return Found(components, edges=edges)


def integrated_gradients(given: Given) -> Found:
    """The same with gradients along the straight path from base to source."""
    return Found(_attributed(given, [(k + 0.5) / POINTS for k in range(POINTS)])[0])


def _attributed(given: Given, points: Sequence[float]) -> tuple[list[np.ndarray], list[torch.Tensor]]:
    """For each site the scores, and the steps from base to source: (n, time, width) float64."""
    base, source, wanted = inputs(given)
    ends = [read_all(given.model, given.nodes, ids) for ids in (base, source)]
    components, steps = [], [(there - here).double() for here, there in zip(*ends, strict=True)]
    for site, here, step in zip(given.nodes, ends[0], steps, strict=True):
        total = sum(_gradient(given, site, (here + a * step).to(here.dtype), base, wanted) for a in points)
        components.append((total * step).sum(dim=(0, 1)).abs().numpy() / len(points))
    return components, steps


def _gradient(given: Given, site: Site, values: torch.Tensor, base: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Of the measure by what stands at a site."""
    values = values.clone().requires_grad_()
    with ExitStack() as hooks:
        hooks.enter_context(site.changed(given.model, lambda _: values))
        result = measure(given.model(base, use_cache=False).logits, wanted)
    return torch.autograd.grad(result, values)[0].double()


def inputs(given: Given) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Those that are changed, those that they take values from, and the right letters of the first."""
    return given.ids[:ROWS], given.ids[ROWS : 2 * ROWS], given.answers[:ROWS]


def measure(logits: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """The right logit less the mean, on average over what is asked."""
    asked = wanted != IGNORED
    right = logits.gather(-1, wanted.clamp(min=0)[..., None])[..., 0]
    return (right - logits.mean(dim=-1))[asked].double().mean()
