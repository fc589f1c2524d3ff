"""All that a kernel is asked that takes all options, and documents in every way, by kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache

from conformance.cases import cases
from conformance.cases.companion import companion_cases
from conformance.cases.crossings import NAMED
from conformance.loader import Case

KINDS: Mapping[str, Callable[[str], Iterable[Case]]] = {"basic": cases, **NAMED, "random": companion_cases}
"""The cases of an operation, by the names that pages give them."""


@cache
def of_kind(kind: str, op: str) -> tuple[Case, ...]:
    """The cases of a kind and an operation."""
    return tuple(KINDS[kind](op))


def all_of(op: str) -> list[Case]:
    """The cases of every kind."""
    return [case for kind in KINDS for case in of_kind(kind, op)]
