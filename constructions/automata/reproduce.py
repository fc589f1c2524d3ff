"""The named languages and random automata, built and run: `construct reproduce languages`."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from compiler.artifact.json_files import text_of
from compiler.automata.table import NO, YES, Table
from compiler.compiled import Compiled, run_blocks
from constructions.automata.automaton import Automaton, table_json
from constructions.automata.explain import decide
from constructions.automata.languages import NAMED
from constructions.checkpoints.built import Built, build
from constructions.checkpoints.guarantee import verdict_of
from constructions.command.reporting import write_whole

ARCHS = ("mamba", "mamba2")
LONG = 10_000  # letters of the longest word that is run
SHORT = 500  # letters that are promised where a length is needed
WORDS = {SHORT: 8, LONG: 1}  # how many words of each length
RANDOM = 500
MOST_STATES = 8


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
    decision = decide(table)
    found = {"name": name, "arch": arch, "source": language.source, "what": language.says} | decision.to_json()
    del found["says"], found["sizes"], found["swaps"]
    if decision.levels is None and decision.bounded is None:
        return found | {"refused": decision.says[-1], "good": True}
    started = time.process_time()
    length = None if decision.bounded is None else min(SHORT, decision.bounded)
    construction = Automaton(
        table=table_json(table),
        arch=arch,  # type: ignore[arg-type]
        max_length=length,
        seed=asked.seed,
    )
    found |= {"length": length}
    built = build(construction)
    found |= {"blocks": len(built.compiled.blocks), "d_model": built.compiled.lanes.count}
    found |= {"compiled_in": round(time.process_time() - started, 1), "wrong": _wrong(built, asked.seed)}
    started = time.process_time()
    if asked.proves:
        verdict = verdict_of(built)
        found["proved"] = {part: why is None for part, why in verdict.parts().items()}
        found["proved_in"] = round(time.process_time() - started, 1)
    return found | {"good": not any(found["wrong"].values())}


def _wrong(built: Built, seed: int) -> dict[str, int]:
    """Wrong answers of the language model on random words, by their length."""
    (task,) = built.construction.tasks()
    stack, rng = built.stack(), np.random.default_rng(seed)
    assert stack is not None
    found = {}
    for length, count in WORDS.items():
        if length > built.construction.circuit().max_length:
            continue
        rows = np.array([task.word(rng, length) for _ in range(count)])
        labels = np.array([task.labels(word) for word in rows.tolist()])
        with torch.no_grad():
            scores = stack(torch.tensor(rows))
        found[str(length)] = int((scores.argmax(dim=-1).numpy() != labels).sum())
    return found


# Random automata ----------------------------------------------------------------------------------------------------


def drawn(number: int) -> Table:
    """The random automaton of this number: 2 to 8 states, two or three letters."""
    draw = random.Random(f"automaton {number}")
    states, letters = draw.randint(2, MOST_STATES), "abc"[: draw.randint(2, 3)]
    following = tuple(tuple(draw.randrange(states) for _ in letters) for _ in range(states))
    outputs = tuple(draw.choice((NO, YES)) for _ in range(states))
    return Table(tuple(letters), following, 0, outputs, tuple(f"s{i}" for i in range(states)))


def random_row(number: int) -> dict[str, Any]:
    """What a random automaton is, and of a star-free one the blocks, run beside its table."""
    table = drawn(number)
    decision = decide(table)
    hard = [group.name for group in decision.groups if not group.solvable]
    found = {"number": number, "states": decision.states, "monoid": decision.monoid, "star_free": decision.star_free}
    found |= {"groups": [group.name for group in decision.groups], "solvable": not hard}
    if decision.levels is None:
        return found
    construction = Automaton(table=table_json(table))
    compiled = construction.compiled()
    found |= {"levels": decision.levels, "blocks": len(compiled.blocks), "d_model": compiled.lanes.count}
    return found | {"wrong": _wrong_blocks(compiled, construction)}


def _wrong_blocks(compiled: Compiled, construction: Automaton) -> int:
    """Wrong answers of the blocks on random words of 200 letters."""
    (task,) = construction.tasks()
    rng = np.random.default_rng(0)
    rows = np.array([task.word(rng, 200) for _ in range(20)])
    labels = np.array([task.labels(word) for word in rows.tolist()])
    last = run_blocks(compiled, rows)[-1]
    scores = last @ compiled.head.toarray().T
    return int((scores.argmax(axis=-1) != labels).sum())


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


def kept_random(keep: Path | None, count: int) -> list[dict[str, Any]]:
    """The random automata likewise."""
    held = _read(keep)
    for number in range(len(held["random"]), count):
        held["random"].append(random_row(number))
        if number % 20 == 0:
            _write(keep, held)
    _write(keep, held)
    return held["random"][:count]


def _read(keep: Path | None) -> dict[str, Any]:
    if keep is None or not keep.exists():
        return {"rows": {}, "random": []}
    return json.loads(text_of(keep))


def _write(keep: Path | None, held: dict[str, Any]) -> None:
    if keep is not None:
        write_whole(keep, json.dumps(held, ensure_ascii=False, indent=1) + "\n")
