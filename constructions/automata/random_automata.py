"""Random automata: which mixer can hold each, how large it is there, and what transformers answers."""

from __future__ import annotations

import random
from typing import Any

from compiler.automata.table import NO, YES, Table
from compiler.errors import CompileError
from constructions.automata.automaton import Automaton, table_json
from constructions.automata.explain import Decision, decide, with_swaps
from constructions.automata.runs import task_of, words, wrong_in_transformers
from constructions.checkpoints.built import build

RANDOM = 500
MOST_STATES = 8
RUNS = {"mamba": (500, 10, 1_000), "mamba2": (100, 10, 1_000), "gated-deltanet": (10, 2, 1_000)}
"""Of each mixer: how many of the automata are built, where it holds them for every length; how many words of how many
letters are run.
"""
ALIKE = (10, 100)  # the words of those that answer every word alike
LONG = (1, 100_000)  # so many of those with more than one state also read a word of so many letters, on Mamba


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


def random_row(number: int, before: list[dict[str, Any]]) -> dict[str, Any]:
    """What a random automaton is, what holds it, and what was built and run. before: the rows of smaller numbers."""
    table = drawn(number)
    decision = with_swaps(decide(table), table)
    hard = [group.name for group in decision.groups if not group.solvable]
    found = {"number": number, "states": decision.states, "monoid": decision.monoid, "star_free": decision.star_free}
    found |= {"groups": [group.name for group in decision.groups], "solvable": not hard, "levels": decision.levels}
    found |= {"swaps": decision.swaps, "holds": holds(decision), "built": {}}
    for arch, most in found["holds"].items():
        automata, count, length = RUNS[arch]
        if number < automata and most is None:
            long = arch == "mamba" and _remembers(found) and sum(map(_remembers, before)) < LONG[0]
            first = ALIKE if decision.states == 1 else (count, length)
            found["built"][arch] = _built(table, arch, [first] + [(1, LONG[1])] * long)
    return found


def _remembers(row: dict[str, Any]) -> bool:
    """Whether it holds no group and its answers are not all the same."""
    return bool(row["star_free"]) and row["states"] > 1


def _built(table: Table, arch: str, runs: list[tuple[int, int]]) -> dict[str, Any]:
    try:
        built = build(Automaton(table=table_json(table), arch=arch))  # type: ignore[arg-type]
    except CompileError as reason:
        return {"refused": str(reason)}
    found: dict[str, Any] = {"blocks": len(built.compiled.blocks), "d_model": built.compiled.lanes.count, "wrong": {}}
    for count, letters in runs:
        given = words(task_of(built), count, letters, 0)
        found["wrong"][f"{count} x {letters}"] = wrong_in_transformers(built, given)
    return found
