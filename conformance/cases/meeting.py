"""Which values of factors may stand together, and rows in which any so many of them meet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.cases.covering import Allowed, covering
from conformance.cases.factors import CHUNK_SIZES, STRENGTH, Factors
from conformance.cases.options import PACKED_ROWS, Option, option_of


def rows_without(factors: Factors, without: frozenset[Option], strength: int = STRENGTH) -> list[dict[str, Any]]:
    """Rows in which any so many of the factors meet, without values that a kernel does not take."""
    kept: Factors = {name: [v for v in values if option_of(name, v) not in without] for name, values in factors.items()}
    if "chunk" in kept and not kept["chunk"]:  # at a size that it takes
        kept["chunk"] = [size for size in CHUNK_SIZES if ("chunk", size) not in without][:1] or [*factors["chunk"]]
    op = {"op": "conv"} if "activation" in kept else {}
    allowed = lambda levels: meets({**levels, **op}) and not (PACKED_ROWS in without and _is_packed_in_rows(levels))
    kept = {name: [v for v in values if _stands(name, v, kept, allowed)] for name, values in kept.items()}
    return covering(kept, strength, allowed) if kept and all(kept.values()) else []


def _is_packed_in_rows(levels: Mapping[str, Any]) -> bool:
    """Or must be: rows share operands where there are several, and numbers are those of documents."""
    several = levels.get("batch", 1) > 1 or levels.get("shared")
    return bool(several) and ("documents" in levels.get("start", "") or bool(levels.get("numbers")))


def _stands(name: str, value: Any, factors: Factors, allowed: Allowed) -> bool:
    """Whether every other factor has a value that may stand beside this one."""
    others = ((other, values) for other, values in factors.items() if other != name)
    return all(any(allowed({name: value, other: each}) for each in values) for other, values in others)


def meets(levels: Mapping[str, Any]) -> bool:
    """Whether there are as many heads as groups at least: one head has one group. Of a convolution no last state is
    asked for beside documents: its window may hold inputs of the document before, or none of them. Rows share operands
    where there are several; numbers are those of documents; B and C have an axis for one group; and a step is below 0
    where no softplus follows, and of ssd, whose limits are 0 and more by default, where both are given.
    """
    sizes = levels.get("sizes")
    if levels.get("shared") and levels.get("batch", 2) == 1:
        return False
    if levels.get("numbers") and "documents" not in levels.get("start", "documents"):
        return False
    if levels.get("axis of one group") and levels.get("groups", 1) > 1:
        return False
    if levels.get("steps below 0") and (levels.get("softplus") or levels.get("limit", "both") != "both"):
        return False
    if not _may_be_told(levels):
        return False
    packed = levels.get("start") == "documents" or bool(levels.get("numbers"))
    if levels.get("op") == "conv" and packed and levels.get("last state"):
        return False
    return not isinstance(sizes, tuple) or levels.get("groups", 1) == 1 or sizes[0] > 1


def _may_be_told(levels: Mapping[str, Any]) -> bool:
    """Whether a call may be told of documents and asked for states as `told` has it: offsets are of one row, and beside
    them alone stands a state only where there is one document, for kernels may take one for each; numbers alone give no
    states of documents; and what is not asked for is no last state.
    """
    told, asked, last = (levels.get(name) for name in ("told", "asked", "last state"))
    if (told or asked) and levels.get("batch", 1) > 1:
        return False
    if told == "offsets" and not levels.get("whole", True) and "state" in levels.get("start", ""):
        return False
    if (told == "numbers" and asked) or (told == "offsets" and asked == "no states of documents"):
        return False
    return not (asked == "no states" and last) and not (asked == "no states of documents" and last is False)
