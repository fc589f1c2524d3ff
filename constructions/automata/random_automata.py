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
RUNS = {"mamba": (500, 10, 1_000), "mamba2": (20, 10, 1_000), "gated-deltanet": (3, 2, 1_000)}
"""Of each mixer: how many of the automata are built, where it holds them for every length; how many words of how many
letters are run.
"""
ALIKE = (2, 100)  # the words of those that answer every word alike


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


def _built(table: Table, arch: str, count: int, length: int) -> dict[str, Any]:
    try:
        built = build(Automaton(table=table_json(table), arch=arch))  # type: ignore[arg-type]
    except CompileError as reason:
        return {"refused": str(reason)}
    wrong = wrong_in_transformers(built, words(task_of(built), count, length, 0))
    sizes = {"blocks": len(built.compiled.blocks), "d_model": built.compiled.lanes.count}
    return sizes | {"wrong": {f"{count} x {length}": wrong}}
