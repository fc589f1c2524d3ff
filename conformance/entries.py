"""Which entries of a result are wrong, in words that are read off the data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from conformance.loader import Case

_RESULTS = {"y": "y", "last_state": "the last state", "document_states": "the states of documents"}
_AXES = {
    ("selective_scan", "y"): ("row", "channel", "position"),
    ("selective_scan", "state"): ("row", "channel", "state column"),
    ("ssd", "y"): ("row", "position", "head", "channel of a head"),
    ("ssd", "state"): ("row", "head", "channel of a head", "state column"),
    ("conv", "y"): ("row", "channel", "position"),
    ("conv", "state"): ("row", "channel", "place of the window"),
    ("norm", "y"): ("row", "position", "channel"),
    ("delta_rule", "y"): ("row", "position", "head", "channel of a head"),
    ("delta_rule", "state"): ("row", "head", "place of a key", "channel of a head"),
}
_MODULI = (2, 3, 4, 8, 16, 32, 64, 128, 256)
_LISTED = 4
_BORNE_OUT = 3  # entries that differ; by chance one of three is the same as another


def described(case: Case, wrong: Mapping[str, Tensor], results: Mapping[str, Tensor]) -> str:
    """Where each wrong result is wrong, and what stands there instead, where that is known."""
    return "; ".join(
        ": ".join((_RESULTS[name], "; ".join((_place(axes, mask), *_instead(axes, case, name, mask, results[name])))))
        for name, mask in wrong.items()
        if mask.any() and (axes := axes_of(case.op, name))
    )


def axes_of(op: str, name: str) -> tuple[str, ...]:
    """What the axes of a result are."""
    axes = _AXES[op, "y" if name == "y" else "state"]
    return ("document", *axes[1:]) if name == "document_states" else axes


def _place(axes: Sequence[str], mask: Tensor) -> str:
    """The smallest box around the wrong entries."""
    places = []
    for i in range(mask.dim()):
        others = [k for k in range(mask.dim()) if k != i]
        places.append(torch.nonzero(mask.amax(others) if others else mask).flatten().tolist())
    return boxed(axes, places, mask)


def boxed(axes: Sequence[str], places: Sequence[list[int]], mask: Tensor, what: str = "entries") -> str:
    """The box of these places of every axis in words, and how many of its entries are wrong where not all are."""
    said = [indices(*each) for each in zip(axes, places, mask.shape, strict=True)]
    box = ", ".join(filter(None, said))
    count, size = int(mask.sum()), math.prod(map(len, places))
    if count == size:
        return f"only in {box}" if box else "all over"
    return f"only in {box}: {count:,} of the {size:,} {what} there" if box else f"{count:,} of {size:,} {what}"


def indices(axis: str, places: list[int], size: int) -> str:
    """Some of the indices of an axis in words; "" where they are all of them."""
    first, last, count = places[0], places[-1], len(places)
    if count == size:
        return ""
    if count == 1:
        return f"{axis} {first}"
    noun, *more = axis.split(" ", 1)
    plural = " ".join([f"{axis}s"] if more and not more[0].startswith("of ") else [f"{noun}s", *more])
    if last - first + 1 == count:
        return f"{plural} from {first} on" if last == size - 1 else f"{plural} {first} to {last}"
    for modulus in _MODULI:
        like = list(range(first % modulus, size, modulus))
        if places == [i for i in like if i >= first]:
            behind = "" if places == like else f" from {first} on"
            return f"{plural} ≡ {first % modulus} mod {modulus}{behind}"
    if count <= _LISTED:
        return f"{plural} {', '.join(map(str, places))}"
    if first == 0 and last == size - 1:
        return f"{count} of {size} {plural}"
    return f"{count} of the {plural} from {first} " + ("on" if last == size - 1 else f"to {last}")


def _instead(axes: Sequence[str], case: Case, name: str, mask: Tensor, result: Tensor) -> Iterator[str]:
    """What the wrong entries are: a multiple, the right ones of another index, nothing, or no numbers."""
    found, expected = result.double(), case.expected[name].float().to(result.dtype).double()
    there, right = found[mask], expected[mask]
    times = _times(there, right)
    if times and len(right.abs().unique()) > 1:  # of different sizes: no other index has the same multiple by chance
        yield times
    elif others := list(_of_others(axes, found, expected, mask)):
        yield ", ".join(others[:_LISTED])
    elif torch.isnan(there).all():
        yield "they are NaN"
    elif (there == 0).all():
        yield "they are 0"
    elif torch.isinf(there).all():
        yield "they are " + " or ".join(f"{value:g}" for value in sorted({*there.tolist()}))
    elif times:
        yield times


def _times(there: Tensor, right: Tensor) -> str:
    """Which multiple of what is right the wrong entries are; "" where they are of none, or of 0."""
    if not (there.isfinite().all() and (right != 0).all() and there.any() and len(set((there / right).tolist())) == 1):
        return ""
    times = float(there[0] / right[0])
    short = f"{times:.6g}"
    if float(short) != times and len(there) == 1:  # any one entry is some multiple
        return ""
    return f"they are {short if float(short) == times else times} times what is right"


def _of_others(axes: Sequence[str], found: Tensor, expected: Tensor, mask: Tensor) -> Iterator[str]:
    """Where every wrong index of an axis has the result of another: "row 1 has that of row 0"."""
    for i, axis in enumerate(axes):
        others = [k for k in range(mask.dim()) if k != i]
        pairs = []
        for place in torch.nonzero(mask.amax(others)).flatten().tolist():
            here = found.select(i, place)
            same = (expected.movedim(i, 0) == here).flatten(1).all(1)
            matches = [j for j in torch.nonzero(same).flatten().tolist() if j != place]
            if not matches or not here.any():
                break
            pairs.append((place, min(matches, key=lambda j: (abs(j - place), j))))
        else:
            if _borne_out(pairs, [found.select(i, place)[mask.select(i, place)] for place, _ in pairs], mask.shape[i]):
                yield from (f"{axis} {place} has that of {axis} {other}" for place, other in pairs)


def _borne_out(pairs: Sequence[tuple[int, int]], there: Sequence[Tensor], count: int) -> bool:
    """Whether so many differing entries say it that small integers do not by chance: the more indices each might have
    been of, the more entries. Indices that are all as far off are one such choice.

    pairs: each wrong index and its other; there: the wrong entries of each; count: the indices of their axis.
    """
    differing = sum(len(each.unique()) for each in there)
    choices = len({place - other for place, other in pairs})
    return differing >= _BORNE_OUT + choices * math.log(max(1, count - 1), _BORNE_OUT)
