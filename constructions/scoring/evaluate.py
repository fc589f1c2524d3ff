"""Holds what a method found to the truth: two tracks, as in MIB (Mueller et al., 2025)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from constructions.scoring.problem import Featurizer, Found, Problem
from constructions.scoring.sites import Site, read_all
from constructions.scoring.truth import Pairs
from verify.tasks.task import IGNORED


@dataclass(frozen=True)
class Score:
    """None where a method does not speak of it, or where it is undefined.

    area: chance that a used component is ranked above one that is not (ties count half). faithfulness: answers that
    stay right when all but as many best-ranked components as are used have their mean; of components that tie all are
    kept or none. interchange: answers that are the circuit's when the variable is exchanged, on pairs and at positions
    where the exchange changes the answer. matched: mean |correlation| of each number of a variable with the feature
    that is matched to it; undefined where none varies. Both count by `_share_of_size`. answers: how many answers
    interchange counts. edges: as area, of edges.
    """

    area: float | None = None
    faithfulness: float | None = None
    interchange: float | None = None
    matched: float | None = None
    answers: int = 0
    edges: float | None = None


def score(problem: Problem, found: Found) -> Score:
    """All numbers of a method on one problem; ValueError for shapes that are none of the problem's."""
    area = faithful = interchange = matched = edges = None
    count = 0
    if found.components is not None:
        _check_components([site.width for site in problem.given.nodes], found.components)
        area = _area(problem.used, found.components)
        faithful = _faithfulness(problem, found.components)
    if found.edges is not None and problem.edges_used:
        _check_components([len(used) for used in problem.edges_used], found.edges)
        edges = _area(problem.edges_used, found.edges)
    if found.variables is not None:
        given = {name: _checked(problem, name, found.variables) for name in problem.held}
        share = {name: _share_of_size(problem, name, one) for name, one in given.items()}
        rights = [share[name] * _interchanged(problem, name, one) for name, one in given.items()]
        count = sum(len(r) for r in rights)
        interchange = float(np.concatenate(rights).mean()) if count else None
        sizes = {name: _matched(problem, name, one) for name, one in given.items()}
        defined = [share[name] * size for name, size in sizes.items() if size is not None]
        matched = float(np.mean(defined)) if defined else None
    return Score(area, faithful, interchange, matched, count, edges)


def _check_components(widths: list[int], components: list[np.ndarray]) -> None:
    shapes = [np.shape(c) for c in components]
    if shapes != [(w,) for w in widths]:
        raise ValueError(f"a method gave component scores of shapes {shapes}, and the sites have widths {widths}.")
    if not all(_is_real(c) for c in components):
        raise ValueError("a method gave component scores that are no finite real numbers.")


def _is_real(values: np.ndarray | torch.Tensor) -> bool:
    """Whether all are finite real numbers, of which one can be greater than another."""
    array = np.asarray(values)
    return array.dtype.kind in "biuf" and bool(np.isfinite(array).all())


def _checked(problem: Problem, name: str, variables: Mapping[str, Featurizer]) -> Featurizer:
    """The featurizer of a variable, of the shape that its site asks for, in finite numbers."""
    width = problem.given.site[name].width
    if name not in variables:
        raise ValueError(f"a method gave no featurizer for the variable {name!r}.")
    read, write = (torch.as_tensor(part).detach() for part in (variables[name].read, variables[name].write))
    if read.shape != (*write.shape[1:], width) or write.ndim != 2 or len(write) != width:
        raise ValueError(
            f"a method read {name!r} with {tuple(read.shape)} and wrote it with {tuple(write.shape)}, expected "
            f"(k, {width}) and ({width}, k)."
        )
    if not (_is_real(read) and _is_real(write)):
        raise ValueError(f"a method gave a featurizer for {name!r} that is not of finite real numbers.")
    return Featurizer(read.double(), write.double())  # with no way of its own to exchange


def _share_of_size(problem: Problem, name: str, featurizer: Featurizer) -> float:
    """1, or of more directions than the variable stands on the share that can be its own: who names the whole stream
    has found nothing, although an exchange of all of it is one of the variable as well.
    """
    return min(1.0, problem.given.size[name] / max(1, len(featurizer.read)))


def _area(used: list[np.ndarray], found: list[np.ndarray]) -> float | None:
    truth, scores = np.concatenate(used), np.concatenate(found)
    good, bad = (truth == 1).sum(), (truth == 0).sum()
    if not good or not bad:
        return None
    ranks = rankdata(scores[truth >= 0])
    return float((ranks[truth[truth >= 0] == 1].sum() - good * (good + 1) / 2) / (good * bad))


@torch.no_grad()
def _faithfulness(problem: Problem, found: list[np.ndarray]) -> float | None:
    """Coordinates that do not count stay as they are."""
    given = problem.given
    parts = np.split(_kept(problem.used, found), np.cumsum([site.width for site in given.nodes])[:-1])
    means = [values.flatten(0, 1).mean(dim=0) for values in read_all(given.model, given.nodes, given.ids)]
    first = next(iter(problem.held.values()))
    with ExitStack() as hooks:
        for site, keep, mean in zip(given.nodes, parts, means, strict=True):
            mask = torch.from_numpy(keep)
            hooks.enter_context(site.changed(given.model, lambda x, m=mask, v=mean: torch.where(m, x, v.to(x.dtype))))
        logits = given.model(torch.from_numpy(first.base), use_cache=False).logits
    wanted = problem.held_answers
    asked = wanted != IGNORED
    return float((logits.argmax(-1).numpy() == wanted)[asked].mean()) if asked.any() else None


def _kept(used: list[np.ndarray], found: list[np.ndarray]) -> np.ndarray:
    """Those of which no more than are used have as high a score. So what ties is kept together or not at all, whatever
    the order of coordinates; what does not count comes first."""
    truth, scores = np.concatenate(used), np.concatenate(found)
    as_high = rankdata(-np.where(truth >= 0, scores, np.inf), method="max")
    return as_high <= (truth != 0).sum()


@torch.no_grad()
def _interchanged(problem: Problem, name: str, featurizer: Featurizer) -> np.ndarray:
    """Whether each answer is the circuit's, where the exchange changes it."""
    pairs = problem.held[name]
    changed = (pairs.answers != problem.held_answers) & (pairs.answers != IGNORED)
    found = exchanged_answers(problem, name, featurizer, pairs)
    return (found == pairs.answers)[changed]


@torch.no_grad()
def exchanged_answers(problem: Problem, name: str, featurizer: Featurizer, pairs: Pairs) -> np.ndarray:
    """What the model answers with the subspace of another input."""
    given = problem.given
    site, scale = given.site[name], given.scale[name]
    overflows = ValueError(
        f"a method's featurizer for {name!r} has numbers so large that the model overflows with them."
    )
    source = scale.of_values(site.read(given.model, torch.from_numpy(pairs.source)))

    def change(values: torch.Tensor) -> torch.Tensor:
        base = scale.of_values(values)
        moved = (featurizer.swapped(base, source) - base) * scale.spread
        found = (values.double() + moved).to(values.dtype)
        if not found.square().sum(dim=-1).isfinite().all():  # which a norm forms, and answers 0 where it overflows
            raise overflows
        return found

    with site.changed(given.model, change):
        logits = given.model(torch.from_numpy(pairs.base), use_cache=False).logits
    if not logits.isfinite().all():  # argmax would take a NaN for the answer
        raise overflows
    return logits.argmax(-1).numpy()


def _matched(problem: Problem, name: str, featurizer: Featurizer) -> float | None:
    """Each number of the variable that varies is matched to one feature, so that the sum of |correlations| is
    greatest; None where none varies."""
    given, pairs = problem.given, problem.held[name]
    site: Site = given.site[name]
    values = given.scale[name].of_values(site.read(given.model, torch.from_numpy(pairs.base)))
    features = (values @ _scaled_rows(featurizer.read).T).flatten(0, 1).numpy()
    labels = problem.held_labels[name].flatten(0, 1).double().numpy()
    labels = labels[:, labels.std(axis=0) > 0]
    if not labels.shape[1]:
        return None
    size = np.minimum(np.abs(_correlations(labels, features)), 1.0)  # which rounding exceeds
    rows, columns = linear_sum_assignment(-size)
    return float(size[rows, columns].sum() / labels.shape[1])


def _scaled_rows(read: torch.Tensor) -> torch.Tensor:
    """Large rows times a power of two, which no correlation sees, so that none overflows."""
    exponent = torch.frexp(read.abs().amax(dim=1, keepdim=True)).exponent
    return torch.ldexp(read, -exponent.clamp(min=0))


def _correlations(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(columns of one, columns of the other); 0 for what is constant."""
    a, b = (m - m.mean(axis=0) for m in (one, other))
    sizes = np.outer(np.linalg.norm(a, axis=0), np.linalg.norm(b, axis=0))
    return np.divide(a.T @ b, sizes, out=np.zeros_like(sizes), where=sizes > 1e-12)
