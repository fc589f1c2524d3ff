"""The chains that docs/dp.md shows: the solvers write them, and so do the circuits of the default sizes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from compiler import interpret
from constructions.registry import CONSTRUCTIONS

PAGE = Path(__file__).parents[2] / "docs" / "dp.md"
ROWS = re.findall(r"^\| `([a-z-]+)` \| `(.*)` \| `(.*)` \|$", PAGE.read_text("utf-8"), re.MULTILINE)
BESIDE = [("max-subarray", "-1 -2 ;", "0 0 0 ."), ("shortest-path", "- - - - - - ;", "0 10 10 10 .")]


def test_every_program_has_a_row():
    assert sorted(name for name, *_ in ROWS) == sorted(name for name, c in CONSTRUCTIONS.items() if c.group == "dp")


def test_the_page_answers_prompts_beside_the_table():
    assert all(f"`{prompt}` is answered `{chain}`" in PAGE.read_text("utf-8") for _, prompt, chain in BESIDE)


@pytest.mark.parametrize(("name", "prompt", "chain"), ROWS + BESIDE)
def test_the_solver_and_the_circuit_write_the_chain(name: str, prompt: str, chain: str):
    construction = CONSTRUCTIONS[name]()
    asked, told = (text.replace("\\", "").split() for text in (prompt, chain))
    assert construction.solver().chain(asked) == told
    circuit = construction.circuit()
    ids = np.array([circuit.alphabet.encode(" ".join([*asked, *told[:-1]]))])
    scores = interpret(circuit, ids, dtype=np.float64)[circuit.output][0, len(asked) - 1 :]
    assert circuit.alphabet.decode(scores.argmax(-1)) == " ".join(told)
