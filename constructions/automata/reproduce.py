"""The named languages and random automata, built and run: `construct reproduce languages`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiler.artifact.plain_files import text_of, write_whole
from compiler.errors import CompileError
from constructions.automata.automaton import Automaton, table_json
from constructions.automata.controls import TRAINED, trained
from constructions.automata.explain import decide, with_swaps
from constructions.automata.languages import NAMED
from constructions.automata.random_automata import (
    RUNS,
    built_on,
    decided,
    holds,
    long_on,
    long_run,
    missing,
    proved_on_mamba,
    weights_of,
    work,
)
from constructions.automata.runs import task_of, words, wrong_in_modules
from constructions.checkpoints.built import Built, build
from constructions.checkpoints.guarantee import verdict_of

ARCHS = tuple(RUNS)
BOUNDED = 500  # letters that are promised where a length is needed
WORDS = {500: 8, 10_000: 2}  # how many words of each length
LONG = {
    "mamba": (100_000, 1_000_000),
    "parity gated-deltanet": (1_000_000,),
    "tomita-2 gated-deltanet": (1_000_000,),
}
"""By mixer or row: one word of each of these lengths, where the promise covers it."""


@dataclass(frozen=True)
class Run:
    """What is asked of each language. proves: whether the checker is asked as well, which may take a minute."""

    seed: int = 0
    proves: bool = True


def names() -> list[str]:
    """The rows of the table: a language on a mixer."""
    return [f"{name} {arch}" for name in NAMED for arch in ARCHS]


def row(name: str, arch: str, asked: Run) -> dict[str, Any]:
    """A language on a mixer: what it is, what was built, and what was right."""
    language = NAMED[name]
    table = language.make()
    alone = decide(table)
    decision = with_swaps(alone, table)
    told = decision.to_json()
    found = {"name": name, "arch": arch, "source": language.source, "what": language.says}
    found |= {key: told[key] for key in ("states", "monoid", "star_free", "groups", "levels", "swaps")}
    held = holds(decision)
    if arch not in held:
        last = (decision if arch == "gated-deltanet" else alone).says[-1]  # the sentence for this mixer
        return found | {"refused": last, "good": True}
    length = None if held[arch] is None else min(BOUNDED, held[arch])
    started = time.process_time()
    try:
        built = build(Automaton(table=table_json(table), arch=arch, max_length=length, seed=asked.seed))  # type: ignore[arg-type]
    except CompileError as reason:
        return found | {"refused": str(reason), "good": True}
    found |= {"length": length, "blocks": len(built.compiled.blocks), "d_model": built.compiled.lanes.count}
    found |= {"compiled_in": round(time.process_time() - started, 1)}
    found |= {"wrong": _wrong(built, _lengths(name, arch, length), asked.seed)}
    started = time.process_time()
    if asked.proves:
        verdict = verdict_of(built)
        found["proved"] = {part: why is None for part, why in verdict.parts().items()}
        found["proved_in"] = round(time.process_time() - started, 1)
    return found | {"good": not any(found["wrong"].values())}


def _lengths(name: str, arch: str, most: int | None) -> dict[int, int]:
    """How many words of each length are run."""
    longer = (*LONG.get(arch, ()), *LONG.get(f"{name} {arch}", ()))
    wanted = WORDS | dict.fromkeys(longer, 1)
    return {length: count for length, count in wanted.items() if most is None or length <= most}


def _wrong(built: Built, lengths: dict[int, int], seed: int) -> dict[str, int]:
    """Wrong answers of the language model, by "words x letters"."""
    return {
        f"{count} x {length}": wrong_in_modules(built, words(task_of(built), count, length, seed))
        for length, count in lengths.items()
    }


def kept_rows(keep: Path | None, only: list[str], asked: Run) -> Iterator[dict[str, Any]]:
    """Each row, from the file where it stands there, and added to it where it does not."""
    held = _read(keep)
    for name in only or names():
        language, _, arch = name.partition(" ")
        if language not in NAMED or arch not in ARCHS:
            raise ValueError(f"--only {name}: a row is a language and a mixer, such as {names()[0]!r}")
        if name not in held["rows"]:
            held["rows"][name] = row(language, arch, asked)
            _write(keep, held)
        yield held["rows"][name]


def kept_random(keep: Path | None, count: int) -> Iterator[dict[str, Any]]:
    """The random automata likewise: each is decided, then built where it is to be."""
    held = _read(keep)
    for number in range(count):
        if number == len(held["random"]):
            held["random"].append(decided(number))
    _write(keep, held)
    proved = {weights_of(row): row["proved"] for row in held["random"] if "proved" in row}
    for row in held["random"][:count]:
        if row["star_free"] and "proved" not in row:
            weights = weights_of(row)
            row["proved"] = proved[weights] = proved.get(weights) or proved_on_mamba(row)
            _write(keep, held)
        for arch in missing(row):
            row["built"][arch] = built_on(row, arch)
            _write(keep, held)
        yield row


def kept_long(keep: Path, minutes: float) -> list[dict[str, Any]]:
    """The random automata of the file after so many more CPU minutes of long texts, those of least work first.

    Those that have the weights of another one have its result, and say which.
    """
    held, begun = _read(keep), time.process_time()
    known = {weights_of(row): row for row in held["random"] if "long" in row and "as" not in row["long"]}
    left = [row for row in held["random"] if long_on(row) is not None and "long" not in row]
    for row in sorted(left, key=lambda row: (work(row), row["number"])):
        if time.process_time() - begun >= 60 * minutes:
            break
        same = known.setdefault(weights_of(row), row)
        row["long"] = long_run(row) if same is row else same["long"] | {"as": same["number"]}
        _write(keep, held)
    return held["random"]


def kept_controls(keep: Path | None, trains: bool) -> dict[str, dict[str, Any]]:
    """The trained controls of the file; trains: also train those that are missing."""
    held = _read(keep)
    for name in TRAINED if trains else ():
        if name not in held["controls"]:
            held["controls"][name] = trained(name)
            _write(keep, held)
    return {name: held["controls"][name] for name in TRAINED if name in held["controls"]}


def _read(keep: Path | None) -> dict[str, Any]:
    if keep is None or not keep.exists():
        return {"rows": {}, "random": [], "controls": {}}
    try:
        held = json.loads(text_of(keep))
        whole = isinstance(held, dict) and isinstance(held["rows"], dict) and isinstance(held["random"], list)
    except (ValueError, KeyError, RecursionError):
        whole = False
    if not whole:
        raise ValueError(f"--keep {keep}: it holds no rows of languages; give another file.")
    return {"controls": {}} | held


def _write(keep: Path | None, held: dict[str, Any]) -> None:
    """Rows in the order of `names`, whichever were run first."""
    if keep is not None:
        held["rows"] = {name: held["rows"][name] for name in names() if name in held["rows"]}
        write_whole(keep, json.dumps(held, ensure_ascii=False, indent=1) + "\n")
