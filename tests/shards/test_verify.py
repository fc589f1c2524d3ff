"""`verify --workers`: the shards of a verification are the verification, sequence for sequence."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

from compiler.artifact.load import load
from constructions.checkpoints import artifact, sharded
from constructions.checkpoints.built import Built, build
from constructions.checkpoints.saved import rebuild
from constructions.command.cli import app
from constructions.command.sharding import Where
from constructions.copy_dp.copy import Copy
from constructions.selectivity.mqar import MQAR
from constructions.shards.table import Table
from verify.check import Verification
from verify.tasks.mqar.paper import PaperLayout
from verify.tasks.task import Task

PYTHON = {"mqar": MQAR(kappa=2, vocab=2, length=7), "copy": Copy(form="string", n=3, vocab=2)}


@pytest.fixture(scope="module", params=PYTHON)
def checkpoint(request, tmp_path_factory) -> tuple[Path, Built]:
    place = tmp_path_factory.mktemp("shared") / request.param
    artifact.save(build(PYTHON[request.param]), {}, place)
    return place, rebuild(place)


def _shared(place: Path, built: Built, mode: str, samples: int) -> dict[str, Verification]:
    plan = sharded.sharded(place, built, mode, samples)
    assert len(plan.shards) > len(set(plan.of)) + 1, "one shard would show nothing"
    found = [json.loads(json.dumps(sharded.verified(**shard.arguments))) for shard in plan.shards]
    return sharded.summed(plan, found)


@pytest.mark.parametrize("mode", ["exhaustive", "random"])
def test_shards_add_up_to_the_verification(checkpoint, mode, monkeypatch) -> None:
    place, built = checkpoint
    monkeypatch.setattr(sharded, "_POSITIONS", 1 << (10 if mode == "random" else 6))
    whole = artifact.verify(built, load(place), mode, 500, built.construction.seed + 1)
    assert _shared(place, built, mode, 500) == whole and all(found.passed for found in whole.values())


def test_a_wrong_weight_is_found_in_the_shard_that_shows_it(checkpoint, monkeypatch) -> None:
    place, built = checkpoint
    monkeypatch.setattr(sharded, "_POSITIONS", 1 << 6)
    right, file = (place / "model.safetensors").read_bytes(), place / "model.safetensors"
    weights = load_file(file)
    (name,) = [name for name in weights if re.search(r"lm_head|head\.weight", name)] or ["backbone.embeddings.weight"]
    weights[name] = weights[name].copy()
    row, column = np.argwhere(weights[name] != 0)[-1]
    weights[name][row, column] *= 2
    try:
        save_file(weights, file, {"format": "pt"})
        monkeypatch.setattr(sharded, "load", lambda directory: load(directory, sealed=False))
        found = sum(_shared(place, built, "exhaustive", 0).values(), start=Verification())
    finally:
        file.write_bytes(right)
    assert not (found.passed and found.bit_exact) and found.failure is not None


def test_a_checkpoint_that_is_another_one_beside_the_worker_is_refused(checkpoint, tmp_path) -> None:
    place, built = checkpoint
    (first, *_) = sharded.sharded(place, built, "random", 10).shards
    with pytest.raises(ValueError, match="is missing beside a worker, or is another checkpoint there"):
        sharded.verified(**first.arguments | {"directory": str(tmp_path)})
    with pytest.raises(ValueError, match="is another checkpoint there"):
        sharded.verified(**first.arguments | {"files": first.arguments["files"] | {"model.safetensors": "0"}})


@pytest.mark.parametrize(
    "task",
    [
        PaperLayout(2, 2, 7, filler="mixed"),
        PaperLayout(3, 2, 6, pairs=2, queries=2, filler="values", rebind=True, write="last"),
        PaperLayout(2, 2, 7, filler="neutral", repeat_queries=True),
        *Copy(form="string", n=3, vocab=2).tasks(),
    ],
    ids=lambda task: task.name,
)
def test_rows_are_gone_to_as_they_are_gone_through(task: Task) -> None:
    every = list(task.rows())
    assert len(every) == task.exhaustive_count()
    for first in {0, 1, 7, len(every) // 3, len(every) // 2, len(every) - 1, len(every)}:
        assert list(task.rows_from(first)) == every[first:]


def test_random_sequences_are_numbered(checkpoint) -> None:
    """Long ones, so that a chunk of them holds few; one at a time, so that chains stay in their order."""
    _, built = checkpoint
    (task,) = built.construction.tasks()
    task = replace(task, length=2**15) if isinstance(task, PaperLayout) else task
    joined = lambda batches: [row for batch in batches for row in _asked(batch)]
    every = [row for i in range(12) for row in joined(task.random(1, 5, first=i))]
    assert sorted(joined(task.random(12, 5, batch_size=1))) == sorted(every)
    for first, count in ((1, 4), (5, 7)):
        found = joined(task.random(count, 5, batch_size=1, first=first))
        assert sorted(found) == sorted(every[first : first + count])  # chains come in the order of their lengths


def _asked(batch) -> list[tuple[list[int], list[int]]]:
    return list(zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True))


@pytest.mark.parametrize("checkpoint", ["mqar"], indirect=True)
def test_the_command_shares_the_work_keeps_it_and_goes_on(checkpoint, tmp_path) -> None:
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    place, _ = checkpoint
    table = tmp_path / "table.parquet"
    asked = ["verify", str(place), "--verify", "exhaustive", "--json"]
    shared = [*asked, "--workers", "1", "--table", str(table)]
    alone, once, again = (CliRunner().invoke(app, command) for command in (asked, shared, shared))
    assert (alone.exit_code, once.exit_code, again.exit_code) == (0, 0, 0), once.output
    assert json.loads(once.stdout)["verification"] == json.loads(alone.stdout)["verification"]
    told = [json.loads(run.stdout) for run in (once, again)]
    asked = [found.pop("shards") for found in told]
    assert told[0] == told[1] and asked[0]["read"] == asked[0]["run_again"] == 0
    assert 0 < asked[1]["read"] == asked[1]["all"] == asked[1]["run_again"] == asked[0]["all"] <= 3


def _row_of(table: Path, change) -> None:
    """Write a table again with a change of every result."""
    import pyarrow
    from pyarrow import parquet

    held = parquet.read_table(table)
    rows = [row | {"result": json.dumps(change(json.loads(row["result"])))} for row in held.to_pylist()]
    parquet.write_table(pyarrow.Table.from_pylist(rows, schema=held.schema), table)


_WRONG = {"correct": 0, "exact_sequences": 0, "margin": -1.0, "failure": {"case": "x", "tokens": [0], "position": 0}}


@pytest.mark.parametrize("checkpoint", ["mqar"], indirect=True)
@pytest.mark.parametrize(
    ("forged", "says"),
    [
        ({"sequences": 10**9, "queries": 10**9, "correct": 10**9, "exact_sequences": 10**9}, "and the shard has"),
        ({"sequences": -10}, "sequences is -10"),
        ({"sequences": 5.0}, "result.sequences is 5.0, expected an integer"),
        ({"failure": ["garbage"]}, "result.failure is a list with 1 entry, expected an object"),
        ({"margin": float("nan")}, "NaN is no JSON number"),
        ({"margin": 1.0}, "was run again, and the table says margin = 1.0, and now"),
        ({"queries": 1, "correct": 1}, "was run again, and the table says queries = 1, and now"),
        (_WRONG, "was run again, and the table says correct = 0, and now"),
    ],
)
def test_a_forged_table_is_noticed(checkpoint, forged, says, tmp_path, monkeypatch) -> None:
    """By what its rows owe each other, or else by those that are run again."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    here = lambda where, shards: ((shard, sharded.verified(**shard.arguments)) for shard in shards)
    monkeypatch.setattr(Where, "results", here)
    table = tmp_path / "table.parquet"
    command = ["verify", str(checkpoint[0]), "--verify", "exhaustive", "--workers", "1", "--table", str(table)]
    assert CliRunner().invoke(app, command).exit_code == 0
    said = " ".join(CliRunner().invoke(app, command).stdout.split())
    assert re.search(r"(\d+) of \1 shards read from \S+, not run; \1 of those run again, with the same result", said)
    _row_of(table, lambda row: row | forged)
    refused = CliRunner().invoke(app, command)
    assert isinstance(refused.exception, ValueError) and says in str(refused.exception), refused.output
    assert str(table) in str(refused.exception)


@pytest.mark.parametrize("checkpoint", ["mqar"], indirect=True)
def test_a_table_of_fewer_or_other_shards_is_refused(checkpoint, tmp_path, monkeypatch) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    place, built = checkpoint
    plan = sharded.sharded(place, built, "exhaustive", 0)
    monkeypatch.setattr(sharded, "_POSITIONS", 1 << 6)
    other = sharded.sharded(place, built, "exhaustive", 0)
    assert len(other.shards) > len(plan.shards) and other.run == plan.run
    (extra, *_) = [shard for shard in other.shards if shard not in plan.shards]
    Table(tmp_path / "t", plan.run, other.shards, other.check).add(extra, sharded.verified(**extra.arguments))
    with pytest.raises(ValueError, match="which is no shard of this run"):
        Table(tmp_path / "t", plan.run, plan.shards, plan.check)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--table", "t"], "--table t keeps shards: pass --workers N or --scheduler ADDRESS as well"),
        (["--workers", "2", "--runtime", "transformers"], "leave out --runtime, --data and --key"),
        (["--workers", "2", "--verify", "none"], "--verify none runs nothing: leave out --workers"),
        (["--workers", "2", "--scheduler", "tcp://a:1"], "give one"),
        (["--workers", "2", "--table", "no/such/place"], "there is no folder no/such"),
    ],
)
def test_what_does_not_go_together_is_a_sentence(checkpoint, options, says) -> None:
    refused = CliRunner().invoke(app, ["verify", str(checkpoint[0]), *options])
    assert isinstance(refused.exception, ValueError) and says in str(refused.exception)
