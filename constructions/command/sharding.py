"""`--workers`, `--scheduler` and `--table`: a command's work in shards, with a bar, kept as it comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from constructions.command.display import Bars, say
from constructions.command.outputs import check_outside

if TYPE_CHECKING:
    from constructions.checkpoints.saved import Finding
    from constructions.shards.shard import Place, Shard
    from constructions.shards.table import Table


class Plan(Protocol):
    """Work in shards whose results a table may hold: `check` and `differs` say of these what they can be."""

    @property
    def shards(self) -> Sequence[Shard]: ...

    @property
    def run(self) -> dict[str, Any]: ...

    def check(self, place: Place, result: Any) -> None: ...

    def differs(self, result: Any, again: Any) -> str | None: ...


@dataclass(frozen=True)
class Where:
    """Who does the work, and where it is kept; ValueError for a table in a model's directory. quiet: whether nobody is
    told of the dashboard.
    """

    workers: int | None
    scheduler: str | None
    table: Path | None = None
    quiet: bool = False

    def __post_init__(self) -> None:
        if self.table is not None:
            check_outside(self.table, "--table")

    @property
    def asked(self) -> bool:
        """Whether the work is to be shared; ValueError for a table of work that is not."""
        if self.table is not None and self.workers is None and self.scheduler is None:
            raise ValueError(f"--table {self.table} keeps shards: pass --workers N or --scheduler ADDRESS as well.")
        return self.workers is not None or self.scheduler is not None

    def results(self, shards: Sequence[Shard]) -> Iterator[tuple[Shard, Any]]:
        """Each shard with what came out, in the order in which they are done."""
        from constructions.shards.engine import results

        return results(shards, self.workers, self.scheduler, self._told, partial(say, err=True))

    def kept(self, plan: Plan, bars: Bars, name: str) -> Kept:
        """What came out of each shard, in their order: those of the table are not done again, but for a few of them.

        ValueError where one of these comes out otherwise than the table says.
        """
        from constructions.shards.shard import code
        from constructions.shards.table import Table

        table = Table(self.table, plan.run | {"code": code()}, plan.shards, plan.check)
        left = table.left(plan.shards)
        again = set(table.some(plan.shards))
        read = len(plan.shards) - len(left)
        advance = bars(name, sum(shard.count for shard in plan.shards))
        advance(sum(shard.count for shard in plan.shards) - sum(shard.count for shard in (*again, *left)))
        for shard, found in self.results([*again, *left]):
            if shard in again:
                self._check_again(table, shard, plan.differs(table.result(shard), found))
            else:
                table.add(shard, found)
            advance(shard.count)
        found_all = [table.result(shard) for shard in plan.shards]
        return Kept(found_all, None if self.table is None else str(self.table), read, len(again))

    def _check_again(self, table: Table, shard: Shard, other: str | None) -> None:
        if other is not None:
            raise ValueError(
                f"table {table.path} is not what this run gives: {shard} was run again, and the table says {other}; "
                "name another file."
            )

    def _told(self, address: str) -> None:
        if not self.quiet:
            say(f"dashboard: {address}", err=True)


@dataclass(frozen=True)
class Kept:
    """results: of all shards; of these were read from the table, not run; again: so many of those were run as well."""

    results: list[Any]
    table: str | None
    read: int
    again: int

    def to_json(self) -> dict[str, Any]:
        """How many shards there are, and how many of them were not run now."""
        return {"all": len(self.results), "table": self.table, "read": self.read, "run_again": self.again}

    def sentence(self) -> str:
        """What was not run now; empty where all was."""
        if not self.read:
            return ""
        same = f"{self.again} of those run again, with the same result"
        return f"{self.read:,} of {len(self.results):,} shards read from {self.table}, not run; {same}"


def check_shared(directory: Path) -> None:
    """ValueError, before any process is started, for what no worker reads: a disguised checkpoint, or an export."""
    from compiler.artifact.manifest import is_disguised
    from constructions.checkpoints.saved_export import is_export

    kind = "disguised" if is_disguised(directory) else "an export" if is_export(directory) else None
    if kind is not None:
        raise ValueError(
            f"{directory} is {kind}, and --workers and --scheduler share the sequences of a plain checkpoint alone; "
            "leave them out."
        )


def verify_shared(
    directory: Path, compared: Finding, mode: str, samples: int, where: Where, bars: Bars
) -> tuple[Finding, Kept | None]:
    """What was compared of a checkpoint, with what its sequences give; None where it cannot be run."""
    from constructions.checkpoints.sharded import sharded, summed

    if compared.stack is None:
        return compared, None
    plan = sharded(directory, compared.built, mode, samples)
    kept = where.kept(plan, bars, "verify")
    return replace(compared, results=summed(plan, kept.results)), kept
