"""Shards done by the workers of a cluster: each result as it comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from constructions.shards.cluster import check_code, cluster
from constructions.shards.shard import Shard, done

if TYPE_CHECKING:
    from distributed import Client, Future

_TRIES = 3  # of a shard whose workers die
_PAUSE = 0.05  # seconds between two looks at what is done
_LOOK = 5  # seconds between two looks at who works, while nothing comes
_ALONE = 60  # seconds without any worker: a nanny that starts another one has done so by then


def results(
    shards: Sequence[Shard],
    workers: int | None = None,
    scheduler: str | None = None,
    told: Callable[[str], None] = lambda address: None,
    warned: Callable[[str], None] = lambda sentence: None,
) -> Iterator[tuple[Shard, Any]]:
    """(shard, what came out) in the order in which they are done. A shard whose worker dies is done by another.

    workers: processes that are started here and end with the last shard; or scheduler: the address of one that runs.
    told: hears where the dashboard is, if there is one. warned: that a scheduler has lost its workers; others are
    waited for. ValueError where the cluster cannot be used, or is lost, or none is left of the workers that were
    started here: what came out before stands.
    """
    if not shards:
        return
    with cluster(workers, scheduler) as client:
        if "dashboard" in client.scheduler_info()["services"]:
            told(client.dashboard_link)
        yield from _gathered(client, shards, scheduler, warned)


def _gathered(
    client: Client, shards: Sequence[Shard], scheduler: str | None, warned: Callable[[str], None]
) -> Iterator[tuple[Shard, Any]]:
    from distributed.client import FutureCancelledError
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    keys = {f"{shard} of {id(shards)}": shard for shard in shards}
    futures = [
        client.submit(done, shard.job, shard.arguments, key=key, pure=False, retries=0) for key, shard in keys.items()
    ]
    try:
        for batch in _batches(futures, _Watch(client, scheduler, warned)):
            for future, _ in batch:  # all at once: what is not released is done again where its worker dies
                future.release()
            for future, result in sorted(batch, key=lambda pair: isinstance(pair[1], BaseException)):
                if isinstance(result, BaseException):
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


def _batches(futures: Sequence[Future], watch: _Watch) -> Iterator[list[tuple[Future, Any]]]:
    """What is done, as it comes, each with its result or its exception."""
    from distributed import as_completed

    coming = as_completed(futures, with_results=True)
    while not coming.is_empty():
        batch = coming.next_batch(block=False)
        if batch:
            watch.rest()
            yield [
                (future, result[1].with_traceback(result[2]) if future.status == "error" else result)
                for future, result in batch
            ]
        else:
            watch()
            time.sleep(_PAUSE)


class _Watch:
    """Looks, while nothing comes, whether anybody works at all: dask waits for ever where nobody does.

    A nanny gives up a worker that dies before it is known to have started, and one that it cannot start.
    """

    def __init__(self, client: Client, scheduler: str | None, warned: Callable[[str], None]) -> None:
        self.client, self.scheduler, self.warned = client, scheduler, warned
        self.rest()

    def rest(self) -> None:
        """Something came: all begins again."""
        self.looked = time.monotonic()
        self.alone: float | None = None  # since when nobody works
        self.said = False

    def __call__(self) -> None:
        """ValueError where no worker of this process has lived for a minute; of a scheduler it is said, once."""
        now = time.monotonic()
        if now - self.looked < _LOOK:
            return
        if self._anybody():
            self.rest()
            return
        self.looked, self.alone = now, self.alone or now
        if now - self.alone < _ALONE or self.said:
            return
        if self.scheduler is None:
            raise ValueError(
                f"every worker of this process died, and none has started for {_ALONE} seconds: give them more memory, "
                "or start fewer; the same command goes on from what is kept"
            )
        self.said = True
        self.warned(f"the scheduler at {self.scheduler} has no workers; `dask worker {self.scheduler}` starts one")

    def _anybody(self) -> bool:
        """Whether the scheduler has workers; of one that is away its futures will say so."""
        try:
            return bool(self.client.nthreads())
        except OSError:
            return True
