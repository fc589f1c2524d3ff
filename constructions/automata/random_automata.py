"""Random automata: which mixer can hold each, how large it is there, and what transformers answers."""

from __future__ import annotations

import random
import time
from collections.abc import Hashable
from typing import Any

from compiler.automata.table import NO, YES, Table, minimal
from compiler.errors import CompileError
from constructions.automata.automaton import Automaton, table_json
from constructions.automata.explain import Decision, decide, with_swaps
from constructions.automata.runs import task_of, words, wrong_in_transformers
from constructions.checkpoints.built import build
from constructions.checkpoints.guarantee import verdict_of

RANDOM = 500
MOST_STATES = 8
RUNS = {"mamba": (500, 10, 1_000), "mamba2": (20, 10, 1_000), "gated-deltanet": (3, 2, 1_000)}
"""Of each mixer: how many of the automata are built, where it holds them for every length; how many words of how many
letters are run.
"""
ALIKE = (2, 100)  # the words of those that answer every word alike


LONG = 100_000
"""Letters of the one long text that each automaton is to read, on the mixer that holds it and is least work."""
PIECE = 2048  # letters at a time, where a model begins from a cache


def drawn(number: int) -> Table:
    """The random automaton of this number: 2 to 8 states, two or three letters."""
    draw = random.Random(f"automaton {number}")
    states, letters = draw.randint(2, MOST_STATES), "abc"[: draw.randint(2, 3)]
    following = tuple(tuple(draw.randrange(states) for _ in letters) for _ in range(states))
    outputs = tuple(draw.choice((NO, YES)) for _ in range(states))
    return Table(tuple(letters), following, 0, outputs, tuple(f"s{i}" for i in range(states)))


def holds(decision: Decision) -> dict[str, int | None]:
    """The mixers that can hold a language, and to how many letters; None: every length."""
    if decision.levels is not None:
        found: dict[str, int | None] = {"mamba": None, "mamba2": None}
    else:
        found = {} if decision.bounded is None else {"mamba": decision.bounded, "mamba2": decision.bounded}
    return found | ({} if decision.swaps is None else {"gated-deltanet": None})


def decided(number: int) -> dict[str, Any]:
    """What the random automaton of this number is, and what holds it; nothing is built yet."""
    table = drawn(number)
    decision = with_swaps(decide(table), table)
    hard = [group.name for group in decision.groups if not group.solvable]
    found = {"number": number, "states": decision.states, "monoid": decision.monoid, "star_free": decision.star_free}
    found |= {"groups": [group.name for group in decision.groups], "solvable": not hard, "levels": decision.levels}
    return found | {"swaps": decision.swaps, "holds": holds(decision), "built": {}}


def missing(row: dict[str, Any]) -> list[str]:
    """The mixers on which a random automaton is still to be built."""
    wanted = (arch for arch, most in row["holds"].items() if most is None and row["number"] < RUNS[arch][0])
    return [arch for arch in wanted if arch not in row["built"]]


def built_on(row: dict[str, Any], arch: str) -> dict[str, Any]:
    """Its sizes on a mixer, and how many answers of transformers were wrong."""
    _, *words_of = RUNS[arch]
    count, length = ALIKE if row["states"] == 1 else words_of
    return _built(drawn(row["number"]), arch, count, length)


def long_on(row: dict[str, Any]) -> str | None:
    """The mixer on which an automaton reads its long text; None where none holds it for every length."""
    return next((arch for arch in ("mamba", "gated-deltanet") if row["holds"].get(arch, 0) is None), None)


def work(row: dict[str, Any]) -> int:
    """About how much its long text takes: the blocks of its circuit, those of Gated DeltaNet several times as much."""
    if long_on(row) == "mamba":
        return 1 + row["levels"]
    return 4 * (4 * ((row["levels"] or 0) + row["swaps"]) + 2)


def weights_of(row: dict[str, Any]) -> Hashable:
    """The same for automata whose weights on `long_on` are the same: what a circuit is made of."""
    table = drawn(row["number"])
    least = minimal(table)
    classes = tuple(dict.fromkeys((*least.outputs, *table.outputs)))
    return (long_on(row), least.letters, least.following, least.start, least.outputs, classes)


def long_run(row: dict[str, Any], length: int = LONG) -> dict[str, Any]:
    """One text of that many letters through transformers, on `long_on`: sizes, wrong answers, CPU seconds."""
    arch, started = long_on(row), time.process_time()
    try:
        built = build(Automaton(table=table_json(drawn(row["number"])), arch=arch))  # type: ignore[arg-type]
    except CompileError as reason:
        return {"arch": arch, "refused": str(reason)}
    given = words(task_of(built), 1, length, row["number"])
    wrong = wrong_in_transformers(built, given, None if arch == "mamba" else PIECE)
    found = {"arch": arch, "blocks": len(built.compiled.blocks), "d_model": built.compiled.lanes.count}
    return found | {"letters": length, "wrong": wrong, "cpu_s": round(time.process_time() - started, 1)}


def proved_on_mamba(row: dict[str, Any]) -> dict[str, bool]:
    """What the checker proves of a star-free automaton on Mamba, for every length."""
    verdict = verdict_of(build(Automaton(table=table_json(drawn(row["number"])))))
    return {part: why is None for part, why in verdict.parts().items()}


def _built(table: Table, arch: str, count: int, length: int) -> dict[str, Any]:
    try:
        built = build(Automaton(table=table_json(table), arch=arch))  # type: ignore[arg-type]
    except CompileError as reason:
        return {"refused": str(reason)}
    wrong = wrong_in_transformers(built, words(task_of(built), count, length, 0))
    sizes = {"blocks": len(built.compiled.blocks), "d_model": built.compiled.lanes.count}
    return sizes | {"wrong": {f"{count} x {length}": wrong}}
