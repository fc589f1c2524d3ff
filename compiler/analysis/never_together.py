"""Never together: a proof that of three streams one is 0 at every position of every sequence of the input language."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import sparse

from compiler.analysis.affine_form import ONE, affine_form
from compiler.analysis.domains import Domains
from compiler.analysis.paths import MOST_STEPS, TooManyPaths, paths
from compiler.language import operations as ops
from compiler.language.graph import operation_of
from compiler.language.operations import Source
from compiler.language.stream import Stream
from compiler.language.types import Bool
from compiler.lattice.intervals import Value


def never_together(
    key: Stream, query: Stream, value: Stream, domains: Domains, spend: Callable[[int], None] = lambda steps: None
) -> bool:
    """Whether key_n · query_n · value_c is 0 for all n and c at every position: shown over all paths (`paths`), at each
    step of which one of the three is certainly 0. False also where there are too many paths.

    spend: is told how many steps were taken.
    """
    if domains.language is None:
        return False
    try:
        found = paths(domains.language, domains.of, (key, query, _support(value)), work=domains.work)
    except TooManyPaths:
        spend(MOST_STEPS)
        return False
    spend(sum(map(len, found)))
    return not any(_may_meet(*step.values) for node in found for step in node)


def _may_meet(key: Value, query: Value, value: Value) -> bool:
    met = any(_may_be(k) and _may_be(q) for k, q in zip(key, query, strict=True))
    return met and any(map(_may_be, value))


def _may_be(interval: Sequence) -> bool:
    """Whether a number of an interval can be other than 0."""
    return interval[0] != 0 or interval[1] != 0


def _support(value: Stream) -> Stream:
    """A stream that is 0 only where the value is, and tells fewer tokens apart where that is a function of a token."""
    while value.operation.rectifies:  # relu(x) is 0 where x is
        value = value.inputs[0]
    form = affine_form(value)
    lags = {lag for _, lag in form}
    if len(lags) != 1 or any(atom is ONE or atom.operation.source is not Source.TOKEN for atom, _ in form):
        return value
    embeds = [operation_of(atom, ops.Embed) for atom, _ in form]
    read = [abs(matrix) @ abs(embed.table).T for embed, matrix in zip(embeds, form.values(), strict=True)]
    stored = np.logical_or.reduce([part.sum(axis=0) > 0 for part in read])
    flag = Stream(ops.Embed(embeds[0].alphabet, sparse.csr_array(stored[:, None].astype(float)), Bool()), ())
    (lag,) = lags
    return flag.shift(lag) if lag else flag
