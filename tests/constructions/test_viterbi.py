"""The Viterbi path: the textbook against every path, and the tables of costs that are refused."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from constructions.copy_dp.viterbi import Viterbi


def _cost(problem: Viterbi, path: tuple[int, ...], seen: list[int]) -> int:
    start, moves, shown = problem._start(), problem._transitions(), problem._emissions()
    moved = sum(moves[a][b] for a, b in zip(path, path[1:], strict=False))
    return start[path[0]] + moved + sum(shown[s][o] for s, o in zip(path, seen, strict=True))


@pytest.mark.parametrize(("states", "kinds"), [(1, 2), (2, 3), (3, 2)])
def test_the_textbook_finds_the_cheapest_of_all_paths(states: int, kinds: int):
    rng = np.random.default_rng(states)
    shapes = {"start": (1, states), "transitions": (states, states), "emissions": (states, kinds)}
    drawn = {what: rng.integers(0, 3, shape).tolist() for what, shape in shapes.items()}
    problem = Viterbi(4, **{what: ";".join(",".join(map(str, row)) for row in rows) for what, rows in drawn.items()})
    for prompt in problem.solver().prompts():
        seen = [int(name[1:]) for name in prompt[:-1]]
        costs = {path: _cost(problem, path, seen) for path in product(range(states), repeat=len(seen))}
        rows, told = " ".join(problem.solver().chain(prompt)[:-1]).split(" | ")
        assert tuple(int(name[1:]) for name in told.split()) == min((cost, p[::-1]) for p, cost in costs.items())[1]
        last = [min(cost for p, cost in costs.items() if p[-1] == s) for s in range(states)]
        assert rows.split(" ; ")[-1] == " ".join(map(str, last))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"start": "1,x"}, "'x', and a cost is a whole number from 0 to 64"),
        ({"start": "1,65"}, "'65'"),
        ({"start": "1;2"}, "several rows"),
        ({"start": ",".join("0" * 9)}, "9 states, and at most 8 work"),
        ({"transitions": "0,1"}, "must have 2 rows .* of 2 each"),
        ({"emissions": "0,1;2"}, "must have 2 rows .* of 2 each"),
        ({"length": 0}, "length"),
    ],
)
def test_tables_that_do_not_fit(given: dict, reason: str):
    with pytest.raises(ValueError, match=reason):
        Viterbi(**given)
