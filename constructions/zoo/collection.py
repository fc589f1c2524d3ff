"""All circuits of the zoo, and how they are named: by name, glob, or family."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache

from compiler.language.arguments import close_to
from constructions.zoo.entry import Entry, Family
from constructions.zoo.families import (
    arithmetic,
    brackets,
    counting,
    interpreters,
    languages,
    memories,
    ngrams,
    papers,
    programs,
    search,
    signals,
    windows,
    writing,
)

FAMILIES: tuple[Family, ...] = tuple(
    module.FAMILY
    for module in (
        *(counting, windows, signals, search, writing, brackets, arithmetic, memories, interpreters, ngrams),
        *(languages, papers, programs),
    )
)


@cache
def entries() -> dict[str, Entry]:
    """Every circuit by its name, family by family."""
    return {entry.name: entry for family in FAMILIES for entry in family.entries}


@cache
def family_of() -> dict[str, Family]:
    """The family of each name."""
    return {entry.name: family for family in FAMILIES for entry in family.entries}


def chosen(names: Sequence[str], everything: bool = False) -> list[Entry]:
    """The circuits that these names, globs and families mean, each once, in the order of the zoo.

    ValueError for a name that means none, with the nearest one, and where nothing is named.
    """
    if everything == bool(names):
        raise ValueError(
            "name circuits or families (globs such as 'dyck-*' work), or all of them by --all; "
            "`construct zoo list` shows them"
        )
    found = set(entries()) if everything else {name for given in names for name in _meant(given)}
    return [entry for name, entry in entries().items() if name in found]


def _meant(given: str) -> list[str]:
    family = [family for family in FAMILIES if family.name == given]
    if family:
        return [entry.name for entry in family[0].entries]
    found = [name for name in entries() if fnmatchcase(name, given)]
    if not found:
        known = [*entries(), *(family.name for family in FAMILIES)]
        raise ValueError(f"the zoo has no circuit or family {given!r}{close_to(given, known)}")
    return found
