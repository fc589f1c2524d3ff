"""Several circuits of the zoo, one after the other or by many processes: each is built, proved and asked aside, and
comes back as its files.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import CARD
from compiler.artifact.place import staging
from compiler.artifact.save import keep_what_is_not_ours
from constructions.command.sharding import Where
from constructions.shards.shard import Shard
from constructions.zoo.build import build
from constructions.zoo.collection import chosen
from constructions.zoo.entry import Entry
from constructions.zoo.kept import Kept
from constructions.zoo.row import Row

_JOB = "constructions.zoo.several:built"


class Came(NamedTuple):
    """What came of a circuit. row: None where it is refused, for `reason`; stood: whether the same checkpoint stood in
    its place already.
    """

    name: str
    row: Row | None
    reason: str = ""
    stood: bool = False


def several(entries: Sequence[Entry], kept: Kept, seed: int, arch: str, where: Where) -> Iterator[Came]:
    """Each circuit, in its place where it is not refused."""
    for name, found in _found(entries, seed, arch, where):
        yield Came(name, None, found["refused"]) if "refused" in found else _put_down(found, kept)


def _found(entries: Sequence[Entry], seed: int, arch: str, where: Where) -> Iterable[tuple[str, dict[str, Any]]]:
    if not where.asked:
        return ((entry.name, _made(entry, seed, arch)) for entry in entries)
    shards = [Shard(e.name, 0, 1, _JOB, {"name": e.name, "seed": seed, "arch": arch}) for e in entries]
    return ((shard.part, found) for shard, found in where.results(shards))


def built(name: str, seed: int, arch: str) -> dict[str, Any]:
    """A circuit, on a worker: its row and the bytes of its files, or why it was refused."""
    (entry,) = chosen([name], False)
    return _made(entry, seed, arch)


def _made(entry: Entry, seed: int, arch: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place) / entry.name
        try:
            row = build(entry, directory, seed, arch)
        except ValueError as reason:  # a CompileError is one
            return {"refused": str(reason)}
        return {"row": row.to_json(), "files": {path.name: path.read_bytes() for path in directory.iterdir()}}


def _put_down(found: dict[str, Any], kept: Kept) -> Came:
    """Write what came back to a directory of the circuit's name, all of it or nothing; the user's own files stay."""
    row = Row(**found["row"])
    target = kept.directory / row.name
    try:
        stood = kept.check_replaced(row.name, found["files"])
    except CheckpointError as reason:
        return Came(row.name, None, str(reason))
    with staging(target) as place:
        own_card = keep_what_is_not_ours(target, place)
        for name, content in found["files"].items():
            if not (own_card and name == CARD):
                (place / name).write_bytes(content)
    return Came(row.name, row, stood=stood)
