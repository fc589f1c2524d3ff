"""`--workers`, `--scheduler` and `--table`: a command's work in shards, with a bar, kept as it comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from constructions.command.display import Bars

if TYPE_CHECKING:
    from constructions.checkpoints.saved import Finding
    from constructions.shards.shard import Shard


@dataclass(frozen=True)
class Where:
    """Who does the work, and where it is kept. quiet: whether nobody is told of the dashboard."""

    workers: int | None
    scheduler: str | None
    table: Path | None = None
    quiet: bool = False

    @property
    def asked(self) -> bool:
        """Whether the work is to be shared; ValueError for a table of work that is not."""
        if self.table is not None and self.workers is None and self.scheduler is None:
            raise ValueError(f"--table {self.table} keeps shards: pass --workers N or --scheduler ADDRESS as well.")
        return self.workers is not None or self.scheduler is not None

    def results(self, shards: Sequence[Shard]) -> Iterator[tuple[Shard, Any]]:
        """Each shard with what came out, in the order in which they are done."""
        from constructions.shards.engine import results

        return results(shards, self.workers, self.scheduler, self._told, partial(typer.echo, err=True))

    def kept(self, shards: Sequence[Shard], run: dict[str, Any], bars: Bars, name: str) -> list[Any]:
        """What came out of each shard, in their order: those of the table are not done again."""
        from constructions.shards.shard import code
        from constructions.shards.table import Table

        table, advance = Table(self.table, run | {"code": code()}), bars(name, sum(shard.count for shard in shards))
        left = table.left(shards)
        advance(sum(shard.count for shard in shards) - sum(shard.count for shard in left))
        for shard, found in self.results(left):
            table.add(shard, found)
            advance(shard.count)
        return [table.result(shard) for shard in shards]

    def _told(self, address: str) -> None:
        if not self.quiet:
            typer.echo(f"dashboard: {address}", err=True)


def verify_shared(directory: Path, compared: Finding, mode: str, samples: int, where: Where, bars: Bars) -> Finding:
    """What was compared of a checkpoint, with what its sequences give."""
    from constructions.checkpoints.sharded import sharded, summed

    if compared.stack is None:
        return compared
    plan = sharded(directory, compared.built, mode, samples)
    found = where.kept(plan.shards, plan.run, bars, "verify")
    return replace(compared, results=summed(compared.built, plan, found))
