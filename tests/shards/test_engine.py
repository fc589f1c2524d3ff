"""Shards on processes of this machine and on a scheduler of its own: nothing is lost with what is killed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch
from urllib.request import urlopen

import pytest

from constructions.shards import cluster, engine
from constructions.shards.engine import results
from constructions.shards.shard import ROOT, Shard
from constructions.shards.table import Table

pytest.importorskip("distributed", reason="dask.distributed is not installed")

CLIENT = """
from pathlib import Path
from types import SimpleNamespace
from constructions.command.sharding import Where
from constructions.command.display import progress
from tests.shards.test_engine import shards

where = Where(None, {scheduler!r}, Path({table!r}), quiet=True)
with progress(quiet=True) as bars:
    anything = lambda *results: None
    plan = SimpleNamespace(shards=shards("slow", {log!r}, 12), run={{}}, check=anything, differs=anything)
    print(where.kept(plan, bars, "work"))
"""


def shards(job: str, log: str, count: int = 6) -> list[Shard]:
    return [Shard("numbers", i, 1, f"tests.shards.jobs:{job}", {"number": i, "log": log}) for i in range(count)]


def done(log: Path) -> list[str]:
    return sorted(log.read_text().split()) if log.exists() else []


@contextmanager
def running(*command: str):
    """A process that is killed at the end."""
    process = subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def scheduler():
    """(its address, its process) of a scheduler with one worker."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    address = f"tcp://127.0.0.1:{port}"
    with (
        running("-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard") as process,
        worker(address),
    ):
        yield address, process


def worker(address: str):
    """A worker of the scheduler, which nobody starts again."""
    alone = ("--no-nanny", "--nthreads", "1", "--memory-limit", "0", "--no-dashboard")
    return running("-m", "dask", "worker", address, *alone)


def wait_for(condition, seconds: float = 60) -> None:
    """Until the condition holds: processes take as long to start as the machine is busy."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)


def test_workers_of_this_machine_do_every_shard_once_and_a_killed_one_costs_its_own_alone(tmp_path) -> None:
    log, heard = tmp_path / "log", []
    found = {}
    for shard, result in results(shards("dies_once", str(log)), workers=2, told=heard.append):
        found[shard] = result
        if len(found) == 1:
            assert urlopen(heard[0]).status == 200  # the dashboard
    assert sorted((shard.first, result) for shard, result in found.items()) == [(i, i) for i in range(6)]
    assert done(log).count("3") == 2
    assert len(done(log)) < 12  # what it was at, and what it had just done, of which nobody had heard


def test_a_shard_that_kills_every_worker_is_named(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"numbers 0–0: 4 workers died of it"):
        list(results(shards("dies", str(tmp_path / "log"), 1), workers=1))


def test_workers_that_nobody_starts_again_are_a_sentence(tmp_path) -> None:
    """A nanny starts no other worker where the first dies before the nanny knows that it runs."""
    import distributed

    with (
        patch.object(distributed.Nanny, "_on_worker_exit", lambda nanny, code: nanny._unregister()),
        patch.multiple(engine, _LOOK=0.2, _ALONE=1),
        pytest.raises(ValueError, match="every worker of this process died, and none has started for 1 seconds"),
    ):
        list(results(shards("dies", str(tmp_path / "log"), 1), workers=1))


def test_a_scheduler_without_workers_is_said_and_others_are_waited_for(tmp_path) -> None:
    log, said, lives = str(tmp_path / "log"), [], ExitStack()
    with lives, scheduler() as (address, _), patch.multiple(engine, _LOOK=0.2, _ALONE=0.5):

        def warned(sentence: str) -> None:
            said.append(sentence)
            lives.enter_context(worker(address))

        found = list(results(shards("dies_once", log), scheduler=address, warned=warned))
    assert sorted(result for _, result in found) == [*range(6)]
    assert said == [f"the scheduler at {address} has no workers; `dask worker {address}` starts one"]


def test_what_a_shard_refuses_is_the_sentence_of_the_run(tmp_path) -> None:
    with scheduler() as (address, _):
        with pytest.raises(ValueError, match="number = 0 is refused"):
            list(results(shards("refuses", str(tmp_path / "log"), 1), scheduler=address))
        with pytest.raises(FileNotFoundError, match="none"):  # a worker's, which is no loss of the scheduler
            list(results(shards("finds_no_file", str(tmp_path), 1), scheduler=address))
        squares, found = shards("square", str(tmp_path / "squares"), 2), []
        with patch.object(engine, "_PAUSE", 0.5), pytest.raises(ValueError, match="number = 2 is refused"):
            for _, result in results(squares + shards("refuses", "", 3)[2:], scheduler=address):
                found.append(result)
        assert found == [0, 1]  # all at once, and what was done is not lost with what was refused
        with (
            patch.object(cluster, "code", lambda: "0.1.0+of-another-machine"),
            pytest.raises(ValueError, match=r"has the code .*, and this process has 0\.1\.0\+of-another-machine"),
        ):
            list(results(shards("square", str(tmp_path / "log"), 1), scheduler=address))
        assert done(tmp_path / "log") == []


def test_a_killed_client_and_a_killed_scheduler_lose_nothing(tmp_path) -> None:
    """Of 12 shards a client is killed in the midst of them, and then the scheduler; a third run does the rest."""
    log, path = tmp_path / "log", tmp_path / "table.parquet"
    program = lambda address: CLIENT.format(scheduler=address, table=str(path), log=str(log))
    rows = lambda: 12 - len(Table(path, _run(path)).left(shards("slow", str(log), 12))) if path.exists() else 0
    with scheduler() as (address, _), running("-c", program(address)):
        wait_for(lambda: rows() >= 2)
    first = rows()
    with scheduler() as (address, process), running("-c", program(address)) as client:
        wait_for(lambda: rows() >= first + 2)
        process.kill()
        said = client.stderr.read()
        assert client.wait() == 1 and f"the scheduler at {address} went away" in said.splitlines()[-1], said
    second = rows()
    assert first + 2 <= second < 12
    found = list(results(Table(path, _run(path)).left(shards("slow", str(log), 12)), workers=1))
    assert len(found) == 12 - second
    assert len(done(log)) <= 12 + 2 * 2 + 3  # two kills, each with a shard at work and at most one that had just begun,
    # and of what the second found in the table three that it runs again


def _run(path: Path) -> dict:
    import json

    from pyarrow import parquet

    return json.loads(parquet.read_schema(path).metadata[b"run"])


def test_nobody_at_the_address_is_a_sentence() -> None:
    with (
        patch.object(cluster, "_SECONDS", 1),
        pytest.raises(ValueError, match=r"--scheduler tcp://127\.0\.0\.1:9: nobody answers there"),
    ):
        list(results(shards("square", "none"), scheduler="tcp://127.0.0.1:9"))


def test_without_dask_it_says_what_to_install() -> None:
    with (
        patch.dict(sys.modules, {"distributed": None}),
        pytest.raises(ValueError, match="pip install distributed"),
    ):
        list(results(shards("square", "none"), workers=1))
