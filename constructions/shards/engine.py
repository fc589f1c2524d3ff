"""Shards done by the workers of a cluster: each result as it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from constructions.shards.cluster import check_code, cluster
from constructions.shards.shard import Shard, done

if TYPE_CHECKING:
    from distributed import Client

_TRIES = 3  # of a shard whose workers die


def results(
    shards: Sequence[Shard],
    workers: int | None = None,
    scheduler: str | None = None,
    told: Callable[[str], None] = lambda address: None,
) -> Iterator[tuple[Shard, Any]]:
    """(shard, what came out) in the order in which they are done. A shard whose worker dies is done by another.

    workers: processes that are started here and end with the last shard; or scheduler: the address of one that runs.
    told: hears where the dashboard is, if there is one. ValueError where the cluster cannot be used, or is lost: what came out before
    stands.
    """
    if not shards:
        return
    with cluster(workers, scheduler) as client:
        if "dashboard" in client.scheduler_info()["services"]:
            told(client.dashboard_link)
        yield from _gathered(client, shards, scheduler)


def _gathered(client: Client, shards: Sequence[Shard], scheduler: str | None) -> Iterator[tuple[Shard, Any]]:
    from distributed import as_completed
    from distributed.client import FutureCancelledError
    from distributed.scheduler import KilledWorker

    futures = {
        client.submit(done, shard.job, shard.arguments, key=f"{shard} of {id(shards)}", pure=False, retries=0): shard
        for shard in shards
    }
    try:
        for future in as_completed(futures):
            shard = futures[future]
            try:
                code, found = future.result()
            except KilledWorker:
                raise ValueError(
                    f"{shard}: {_TRIES + 1} workers died of it; give it more memory, or take it out of the run"
                ) from None
            check_code(code, "a worker")
            future.release()
            yield shard, found
    except (FutureCancelledError, OSError) as reason:
        where = f"the scheduler at {scheduler}" if scheduler else "the cluster of this process"
        raise ValueError(
            f"{where} went away ({type(reason).__name__}); the same command goes on from what is kept"
        ) from None
