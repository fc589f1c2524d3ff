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
    told: hears where the dashboard is, if there is one. ValueError where the cluster cannot be used, or is lost: what
    came out before stands.
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
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    keys = {f"{shard} of {id(shards)}": shard for shard in shards}
    futures = [
        client.submit(done, shard.job, shard.arguments, key=key, pure=False, retries=0) for key, shard in keys.items()
    ]
    try:
        for batch in as_completed(futures, with_results=True).batches():
            for future, _ in batch:  # all at once: what is not released is done again where its worker dies
                future.release()
            for future, result in batch:
                if isinstance(result, BaseException):  # of a shard that was given up with its scheduler
                    raise result
                code, found = result
                check_code(code, "a worker")
                yield keys[future.key], found
    except KilledWorker as lost:
        raise ValueError(
            f"{keys[lost.task]}: {_TRIES + 1} workers died of it; give it more memory, or take it out of the run"
        ) from None
    except (FutureCancelledError, CommClosedError) as reason:
        where = f"the scheduler at {scheduler}" if scheduler else "the cluster of this process"
        raise ValueError(
            f"{where} went away ({type(reason).__name__}); the same command goes on from what is kept"
        ) from None
