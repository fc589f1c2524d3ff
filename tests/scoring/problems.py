"""The problems that these tests score methods on."""

from __future__ import annotations

from pathlib import Path

from compiler.disguise.key import read_key
from constructions.command.cli import command_line
from constructions.scoring.build import problem_of
from constructions.zoo.collection import entries

ROOT = Path(__file__).parents[2]


def circuit(name: str):
    return entries()[name].circuit()


def run(*arguments: object) -> int:
    return command_line()([str(a) for a in arguments], standalone_mode=False) or 0


def problem(place: Path, kind: str):
    return (
        problem_of(place / "plain")
        if kind == "plain"
        else problem_of(place / "hidden", read_key(place / "hidden.key.json"))
    )
