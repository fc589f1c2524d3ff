"""Results kept chunk by chunk in Parquet tables, and their sum with the record: what docs/trust.json has already.

Of each part the record says which cases it counts. These are run no more, and a chunk of a store that has any of them
is not counted again. To begin a part anew, take it out of docs/trust.json.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from constructions.shards.engine import results
from constructions.shards.shard import Shard
from constructions.shards.table import Table
from tests.fuzz.run import DTYPES, FORMS, TARGETS
from tests.trust.parts import OVERSIZED, Part
from tests.trust.process import commit, finished, ran
from tests.trust.ranges import Range, merged, missing
from tests.trust.refusals import TODAY, shown
from tests.trust.row import check

UNPROVED = "again plants"
AGAIN = {
    "again": "failing programs",
    "again hostile": "damaged checkpoints that failed",
    "again oversized": "files that asked for too much and failed",
    "again mutation": "mutants that nobody noticed",
    UNPROVED: "checkpoints that were not proved",
    **dict.fromkeys(TODAY, "programs that are examples of a refusal"),
}


# Running ----------------------------------------------------------------------------------------------


def run(
    parts: Iterable[Part],
    stores: Sequence[Table],
    record: dict,
    share: float,
    tell: Callable[[str], None],
    workers: int | None = None,
    scheduler: str | None = None,
) -> None:
    """Run what neither the record nor a store has, here or by many processes; results go to the first store.

    A chunk without a result is told and left for the next run.
    """
    left = [shard for part in parts for shard in shards(part, stores, record, share)]
    shared = workers is not None or scheduler is not None
    here = ((shard, ran(**shard.arguments)) for shard in left)
    for shard, chunk in results(left, workers, scheduler, tell, tell) if shared else here:
        if chunk["result"] is None:
            tell(f"{shard.part} {shard.first}: no result ({chunk['why']})")
            continue
        stores[0].add(shard, chunk)
        tell(f"{shard}: {len(chunk['result'].get('failures', ()))} failures")


def shards(part: Part, stores: Sequence[Table], record: dict, share: float) -> Iterator[Shard]:
    """What is left to run of a part, a process each."""
    have = covered(part.name, stores, record)
    for start, count in part.chunks(share):
        for first, last in missing((start, start + count), have):
            command = part.command(first, last - first)
            yield Shard(part.name, first, last - first, "tests.trust.process:ran", {"command": command})


def again(stores: Sequence[Table], found: dict, tell: Callable[[str], None], only: Iterable[str] = AGAIN) -> None:
    """Run what failed, was not proved or is an example of a refusal once more, with today's compiler and checker.

    Results are kept under the names of AGAIN. only: some of these.
    """
    of_programs = [f for part in found.values() for f in part["result"].get("failures", ()) if isinstance(f, dict)]
    refused = ["tests.fuzz", "--json", "--refused"]
    everywhere = [*refused, "--targets", *TARGETS, "--dtypes", *DTYPES]
    commands = {
        "again": lambda names: [*_programs(of_programs), "--seeds", *names],
        "again hostile": lambda names: ["tests.artifact.hostile", "--json", "--numbers", *names],
        "again oversized": lambda names: ["tests.artifact.hostile", "--json", *OVERSIZED, "--numbers", *names],
        "again mutation": lambda names: ["benchmarks.mutation_guard", "--json", "--named", *names],
        UNPROVED: lambda names: ["tests.verify.checker.evidence", "--json", "--named", *names],
        "again refusals": lambda names: [*refused, "--seeds", *names],
        "again refusals in every form": lambda names: [*everywhere, "--seeds", *names],
    }
    for name, failing in failed(found).items():
        if not failing or name not in only:
            continue
        at, child = commit(), finished(commands[name](failing))
        result = json.loads(child.stdout) | {"ran": failing}
        stores[0].add(_once(name), {"commit": at, "cases": len(failing), "result": result})
        still = len(result["failures"]) + len(result.get("not proved", ()))
        tell(f"{name}: {still} of {len(failing)} {'still are not' if name == UNPROVED else 'fail'}")


def failed(found: dict) -> dict[str, list[str]]:
    """What is run under each name of AGAIN: the seeds, the numbers of cases and the mutants that failed, the
    checkpoints that were not proved, and the programs that the page names beside a reason.
    """
    failures = {name: part["result"].get("failures", ()) for name, part in found.items() if name not in AGAIN}
    seeds = {f["seed"] for of_part in failures.values() for f in of_part if isinstance(f, dict)}
    cases = lambda part: [n.group(1) for f in failures.get(part, ()) if (n := re.match(r"case (\d+),", f))]
    return {
        "again": [str(seed) for seed in sorted(seeds)],
        "again hostile": cases("hostile"),
        "again oversized": cases("oversized"),
        "again mutation": list(dict.fromkeys(failures.get("mutation", ()))),
        UNPROVED: sorted(found.get("plants", {"result": {}})["result"].get("not proved", {})),
        **{name: shown(found, parts) for name, parts in TODAY.items()},
    }


def _programs(failures: list[dict]) -> list[str]:
    """The command that runs failing programs where they failed."""
    command = ["tests.fuzz", "--json"]
    places = [{f["where"][i] for f in failures} for i in range(3)]
    for option, values, known in zip(("--targets", "--dtypes", "--forms"), places, (TARGETS, DTYPES, FORMS)):
        chosen = sorted(values & set(known))
        command += [option, *chosen] if chosen else []
    return command


# Keeping ----------------------------------------------------------------------------------------------


def opened(path: Path) -> Table:
    """A table of results; ValueError for rows that no run gives.

    Those of several commits stand in one, each with its commit: none can be run again and compared, so all that can be
    true is taken on trust.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    return Table(path, {"counts": "docs/trust.md"}, check=check)


def read(stores: Sequence[Table], parts: Iterable[str]) -> str:
    """How much is taken from stores and not run; empty where nothing is."""
    known = {*parts, *AGAIN}
    found = sum(len(store.places(name)) for store in stores for name in known)
    names = ", ".join(str(store.path) for store in stores)
    return f"{found:,} chunks read from {names}, not run" if found else ""


def _once(name: str) -> Shard:
    """The one row of what is run again."""
    return Shard(name, 0, 1, "tests.trust.store:again")


def covered(name: str, stores: Iterable[Table], record: dict) -> list[Range]:
    """The cases of a part that the record or a store has."""
    return merged([*_recorded(name, record), *(cases for cases, _ in _chunks(name, stores, record))])


def _recorded(name: str, record: dict) -> list[list[int]]:
    return record.get(name, {}).get("ranges", [])


def _chunks(name: str, stores: Iterable[Table], record: dict) -> Iterator[tuple[Range, dict]]:
    """Chunks with their cases: those that the record lacks, none of which is in two; the longer before the shorter."""
    known = [tuple(cases) for cases in _recorded(name, record)]
    places = [(first, -count, store) for store in stores for first, count in store.places(name)]
    for first, less, store in sorted(places, key=lambda place: place[:2]):
        cases = (first, first - less)
        if missing(cases, known) == [cases]:
            known.append(cases)
            yield cases, store.result(Shard(name, first, -less, ""))


def collect(stores: Sequence[Table], parts: Iterable[str], record: dict) -> dict[str, Any]:
    """The sum of the record and the chunks of each part that has any: commits, cases, ranges, result."""
    found: dict[str, Any] = {}
    for name in parts:
        sums = [record[name]] if name in record else []
        for cases, chunk in _chunks(name, stores, record):
            sums.append({"ranges": [cases], **_told(chunk)})
        if sums:
            ranges = merged(cases for one in sums for cases in one["ranges"])
            found[name] = {
                "commits": sorted({at for one in sums for at in one["commits"]}),
                "cases": sum(last - first for first, last in ranges),
                "ranges": [list(cases) for cases in ranges],
                "result": _sum(name, [one["result"] for one in sums]),
            }
    return found


def collect_again(stores: Sequence[Table], record: dict) -> dict[str, Any]:
    """What was run again is not added: what a store has stands, or else what the record has."""
    found = {name: record[name] for name in AGAIN if name in record}
    for store, name in ((store, name) for store in stores for name in AGAIN if store.places(name)):
        chunk = store.result(_once(name))
        found[name] = {"cases": chunk["cases"], **_told(chunk)}
    return found


def _told(chunk: dict) -> dict:
    """A chunk as the record tells it: what stays and what is not proved with its commit, and no start to be added."""
    result = {key: value for key, value in chunk["result"].items() if key != "start"}
    if "survivors" in result:
        result["survivors"] = [entry | {"commit": chunk["commit"]} for entry in result["survivors"]]
    if "not proved" in result:
        unproved = result["not proved"].items()
        result["not proved"] = {name: {"reason": reason, "commit": chunk["commit"]} for name, reason in unproved}
    return {"commits": [chunk["commit"]], "result": result}


def _sum(name: str, results: list[Any]) -> Any:
    """`added`; ValueError where one chunk has numbers where another has texts."""
    try:
        return added(results)
    except (TypeError, AttributeError, KeyError) as reason:
        raise ValueError(f"the chunks of {name} cannot be added: {reason}") from reason


def added(results: list[Any]) -> Any:
    """Numbers added, lists joined, objects key by key; of anything else the first.

    Equal reasons become one, and of numbers under "most" the largest counts.
    """
    first = results[0]
    if isinstance(first, dict):
        keys = dict.fromkeys(key for result in results for key in result)
        values = {key: [result[key] for result in results if key in result] for key in keys}
        return {key: {"reasons": _reasons, "most": _largest}.get(key, added)(value) for key, value in values.items()}
    if isinstance(first, list):
        return [entry for result in results for entry in result]
    if isinstance(first, int | float) and not isinstance(first, bool):
        return sum(results)
    return first


def _largest(results: list[dict[str, float]]) -> dict[str, float]:
    return {key: max(result[key] for result in results) for key in results[0]}


def _reasons(lists: list[list[dict]]) -> list[dict]:
    """The reasons of refusals, each once: how often, and the least seed."""
    found: dict[str, dict] = {}
    for entry in (entry for one in lists for entry in one):
        seen = found.setdefault(entry["reason"], entry | {"count": 0})
        found[entry["reason"]] = seen | {
            "count": seen["count"] + entry["count"], "seed": min(seen["seed"], entry["seed"]),
        }  # fmt: skip
    return sorted(found.values(), key=lambda entry: (-entry["count"], entry["reason"]))
