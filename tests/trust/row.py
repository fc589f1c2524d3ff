"""What a row of a store of `make trust` must be: anybody may have written it, and its numbers go into a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compiler.artifact.schema import parse
from constructions.shards.shard import Place

_COUNTED = ("programs", "cases", "kills")  # entries of a result that say how many cases it is of


@dataclass(frozen=True)
class Chunk:
    """cases: of what is run again, how many; else the place says it."""

    commit: str
    result: dict[str, Any]
    cases: int | None = None


@dataclass(frozen=True)
class Reason:
    """Why programs were refused: how many, and the least seed."""

    reason: str
    count: int
    seed: int


_FORMS = {
    "failures": list[Any],
    "survivors": list[dict[str, Any]],
    "ran": list[str],
    "not proved": dict[str, str],
    "reasons": list[Reason],
    "most": dict[str, float],
}


def check(place: Place, row: Any) -> None:
    """ValueError in one sentence for what no chunk of this place gives."""
    chunk = parse(Chunk, row, "chunk")
    if not 0 < len(chunk.commit) <= 41 or not chunk.commit.isprintable():
        raise ValueError("its commit is none")
    for name, form in _FORMS.items():
        if name in chunk.result:
            parse(form, chunk.result[name], name)  # type: ignore[arg-type]
    for where, number in _numbers(chunk.result):
        if number < 0:
            raise ValueError(f"{where} is {number:g}, and it counts something")
    count = place[2] if chunk.cases is None else chunk.cases
    given = {name: chunk.result[name] for name in _COUNTED if name in chunk.result and chunk.cases is None}
    given |= {"ran": len(chunk.result["ran"])} if "ran" in chunk.result else {}
    for name, found in given.items():
        if found != count or type(found) is not int:
            raise ValueError(f"{name} is {found!r:.40}, and it is of {count:,} cases")


def _numbers(value: Any, where: str = "result") -> Iterator[tuple[str, float]]:
    """All numbers of a value, with where each stands."""
    if isinstance(value, dict):
        for name, below in value.items():
            yield from _numbers(below, name)
    elif isinstance(value, list):
        for below in value:
            yield from _numbers(below, where)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield where, value
