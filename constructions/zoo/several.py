"""Several circuits of the zoo: one after the other, or by many processes, from which each comes back as its files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from compiler.artifact.files import CARD
from compiler.artifact.place import staging
from compiler.artifact.save import check_target, keep_what_is_not_ours
from constructions.command.sharding import Where
from constructions.shards.shard import Shard
from constructions.zoo.build import build
from constructions.zoo.collection import chosen
from constructions.zoo.entry import Entry
from constructions.zoo.row import Row

_JOB = "constructions.zoo.several:built"


def several(entries: Sequence[Entry], out: Path, seed: int, arch: str, where: Where) -> Iterator[tuple[str, Row | str]]:
    """(name, its row) of each circuit whose checkpoint stands in `out` now, (name, reason) of one that is refused."""
    if where.asked:
        shards = [Shard(e.name, 0, 1, _JOB, {"name": e.name, "seed": seed, "arch": arch}) for e in entries]
        for shard, found in where.results(shards):
            yield shard.part, found["refused"] if "refused" in found else _put_down(found, out)
        return
    for entry in entries:
        try:
            row: Row | str = build(entry, out / entry.name, seed, arch)
        except ValueError as reason:  # a CompileError is one
            row = str(reason)
        yield entry.name, row


def built(name: str, seed: int, arch: str) -> dict[str, Any]:
    """A circuit, on a worker: its row and the bytes of its files, or why it was refused."""
    (entry,) = chosen([name], False)
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place) / name
        try:
            row = build(entry, directory, seed, arch)
        except ValueError as reason:
            return {"refused": str(reason)}
        return {"row": row.to_json(), "files": {path.name: path.read_bytes() for path in directory.iterdir()}}


def _put_down(found: dict[str, Any], out: Path) -> Row:
    """Write what came back to a directory of the circuit's name, all of it or nothing; the user's own files stay."""
    row = Row(**found["row"])
    target = out / row.name
    check_target(target, overwrite=True)  # it may have come there since
    with staging(target) as place:
        kept = keep_what_is_not_ours(target, place)
        for name, content in found["files"].items():
            if not (kept and name == CARD):
                (place / name).write_bytes(content)
    return row
