"""Problems of one's own that several tests build: sums of letters, and those of docs/dp.md."""

from __future__ import annotations

import re
from pathlib import Path

from constructions.copy_dp.problem import DPProblem

DOCS = (Path(__file__).parents[2] / "docs" / "dp.md").read_text("utf-8")


def from_the_page(name: str) -> str:
    """The program of the page that gives this name a value."""
    (program,) = (code for code in re.findall(r"```python\n(.*?)```", DOCS, re.S) if f"\n{name} = " in code)
    return program


def named_on_the_page(name: str):
    space: dict = {}
    exec(from_the_page(name), space)
    return space[name]


def problem(**changes) -> DPProblem:
    """Running sums of the letters."""
    given = {
        "name": "sums",
        "letters": "ab",
        "inputs": (3,),
        "cells": [(i,) for i in range(3)],
        "reads": lambda i: [(0, i)],
        "needs": lambda i: [(i - 1,)],
        "transition": lambda cell, letters, values: values[0] + letters[0],
        "plain": lambda cell, letters, values: values[0] + letters[0],
        "largest": 3,
    }
    return DPProblem(**given | changes)
