"""Where shards are done: new processes of this machine, or the workers of a scheduler that runs already."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from constructions.shards.shard import code

if TYPE_CHECKING:
    from distributed import Client

_SECONDS = 10  # to find a scheduler, or the first of its workers
_LOCAL = "127.0.0.1:0"  # any free port, which no other machine sees


@contextmanager
def cluster(workers: int | None, scheduler: str | None) -> Iterator[Client]:
    """A client of the scheduler, or of so many new processes.

    ValueError in one sentence: where dask.distributed is missing, nobody answers, or a worker has other code.
    """
    try:
        import distributed
    except ImportError:
        raise ValueError("--workers and --scheduler need dask.distributed: pip install distributed") from None
    for name in ("distributed", "tornado", "asyncio"):  # what they say of lost workers is no message of ours
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    if scheduler is None:
        with (
            distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, memory_limit=0, dashboard_address=_LOCAL
            ) as local,
            distributed.Client(local) as client,
        ):
            yield client
        return
    if workers is not None:
        raise ValueError(f"--workers {workers} starts processes here, and --scheduler uses those that run: give one.")
    try:
        client = distributed.Client(scheduler, timeout=_SECONDS)
    except (OSError, TimeoutError, ValueError) as reason:
        raise ValueError(
            f"--scheduler {scheduler}: nobody answers there ({type(reason).__name__}); `dask scheduler` starts one and "
            "prints its address"
        ) from None
    with client:
        _check_workers(client, scheduler)
        yield client


def _check_workers(client: Client, scheduler: str) -> None:
    """ValueError where the scheduler has no workers, or one of them has other code than this process."""
    try:
        client.wait_for_workers(1, timeout=_SECONDS)
    except TimeoutError:
        raise ValueError(
            f"--scheduler {scheduler} has no workers; `dask worker {scheduler}` starts one, in an environment with "
            "this package"
        ) from None
    for worker, found in client.run(_code_here).items():
        check_code(found, worker)


def _code_here() -> str:
    """The code of a worker; what it has instead where it has none."""
    try:
        return code()
    except Exception as reason:
        return f"none ({reason})"


def check_code(found: str, worker: str) -> None:
    """ValueError where a worker has other code: its results would be of something else."""
    if found != code():
        raise ValueError(
            f"{worker} has the code {found}, and this process has {code()}: install the same version there, and start "
            "the worker again"
        )
