"""A head whose weights are off: how far the right letter still leads (lemma of a perturbed head)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from verify.checker.arithmetic.model import Proved, logit
from verify.checker.files import Matrix
from verify.checker.formats import Rejected
from verify.checker.values.bounds import bounds, largest
from verify.checker.values.exact import above

_MOST_TERMS = 1 << 20
_UPWARD = 1 + 2.0**-30  # covers what float64 rounds off a sum of that many terms ≥ 0, each of a few operations
_TINY = Fraction(2) ** -126  # a product or a sum below it may be flushed to 0


def lead_of(model: Proved, head: Matrix, margin: Fraction, letters: int) -> Fraction:
    """The least lead of the right letter where this head reads the model's lanes.

    margin: the least lead where the model's own head reads them. Rejected where another letter may score as high, or a
    special token.
    """
    if head.shape != model.head.shape:
        raise Rejected(f"the head has the shape {head.shape}, expected {model.head.shape}")
    off = _off(model, head)
    among = Fraction(float(off[:letters].max()))
    lead = margin - 2 * among
    if lead <= 0:
        raise Rejected(
            f"a score may be off by {float(among):.3g}, and the right letter leads by {float(margin):g} with exact "
            "weights, which must be more than twice as much"
        )
    if head.shape[0] > letters:
        _check_specials(model, off, among, letters)
    return lead


def _off(model: Proved, head: Matrix) -> np.ndarray:
    """(rows,) how far a score is off at most: by its weights, and by rounding, in any order of its terms.

    n terms w·x are added with an error of at most γ_n Σ|w·x|, γ_n = n·u/(1 − n·u), u = 2^-p, and of
    2n(1 + γ_n)·2^-126 where products or sums are flushed to 0 (Perturbed.sums_rounded). No number on the way is larger
    than Σ|w·x| and that error.
    """
    used = np.union1d(model.head.cols, head.cols)
    for lane in used.tolist():
        if model.lanes[lane].upto is not None:
            raise Rejected(f"the head reads lane {lane}, a count that outgrows {model.world.format.name}")
    terms = int(np.bincount(head.rows, minlength=1).max(initial=0))
    rounded = Fraction(terms, model.world.format.units)
    if terms > _MOST_TERMS or rounded >= 1:
        raise Rejected(f"a score is a sum of {terms} terms, too many for {model.world.format.name}")
    size = np.zeros(head.shape[1])
    size[used] = [above(largest(model.world, model.lanes[lane])) for lane in used.tolist()]
    count = head.shape[0]
    weight = lambda m: np.bincount(m.rows, np.abs(m.data) * size[m.cols], count)
    gamma = rounded / (1 - rounded)
    error = above(gamma) * weight(head) + above(2 * terms * (1 + gamma) * _TINY)
    if float((weight(head) + error).max(initial=0.0)) * _UPWARD > model.world.format.largest:
        raise Rejected(f"a score may be beyond what {model.world.format.name} holds")
    return (weight(_difference(head, model.head)) + error) * _UPWARD


def _difference(one: Matrix, other: Matrix) -> Matrix:
    """one − other, as float64 differences of two float32, which lose at most a half unit in the last of 53 places."""
    width = one.shape[1]
    places = np.concatenate([m.rows.astype(np.int64) * width + m.cols for m in (one, other)])
    at, which = np.unique(places, return_inverse=True)
    data = np.bincount(which.reshape(-1), np.concatenate([one.data, -other.data]), len(at))
    return Matrix(one.shape, at // width, at % width, data)


def _check_specials(model: Proved, off: np.ndarray, among: Fraction, letters: int) -> None:
    """Rejected unless all special tokens stay below some letter, whose score the right one has at least."""
    reach = lambda row: bounds(model.world, logit(model.world, model.lanes, model.head, row))
    highest = max(reach(row)[1] + Fraction(float(off[row])) for row in range(letters, len(off)))
    if not any(reach(row)[0] - among > highest for row in range(letters)):
        raise Rejected("a special token may score as high as every letter")
