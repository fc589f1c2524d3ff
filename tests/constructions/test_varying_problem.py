"""Dynamic programs of one's own whose inputs have ranges of lengths, and an answer made of their last rows."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path

import pytest

from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.copy_dp.own_problem import OwnProblem
from constructions.copy_dp.problem import Aggregation, DPProblem
from tests.constructions.own_problems import named_on_the_page, problem

PAGE = Path(__file__).parents[2] / "docs" / "dp.md"


@pytest.mark.parametrize(
    ("lengths", "said"), [(range(1, 2), "1 letter"), (range(2, 3), "2 letters"), (range(1, 3), "1 to 2 letters")]
)
def test_a_range_of_one_length_is_said_as_one(lengths: range, said: str):
    own = varying(inputs=(lengths,))
    assert own.language().description.startswith(f"inputs of {said}, and")
    cells = "1 cell" if lengths == range(1, 2) else "2 cells"
    assert own.solver().describe() == f"sums, tables of at most {cells}"


@pytest.mark.parametrize(
    ("lengths", "said"),
    [(range(1, 8, 3), "1, 4 or 7"), (range(5, 0, -2), "1, 3 or 5"), (range(2, 30, 9), "2, 11, 20 or 29")],
)
def test_a_promise_names_no_length_that_it_does_not_have(lengths: range, said: str):
    language = varying(inputs=(lengths,)).language()
    assert language.description.startswith(f"inputs of {said} letters, and")
    asked = lambda n: language.alphabet.encode(" ".join([*n * "a", ";"]))
    assert [n for n in range(1, 40) if language.accepts(asked(n))] == sorted(lengths)


def changes(one: str, other: str) -> int:
    """The least number of letters put in, dropped or changed, by trying all first steps."""

    @cache
    def least(a: str, b: str) -> int:
        if not a or not b:
            return len(a) + len(b)
        return min(least(a[1:], b) + 1, least(a, b[1:]) + 1, least(a[1:], b[1:]) + (a[0] != b[0]))

    return least(one, other)


def found_in(pattern: str, text: str) -> list[int]:
    """For each prefix of the pattern and end in the text the best match that ends there, then the best of all: by
    trying every part of the text.
    """
    best = lambda word, end: min(changes(word, text[start:end]) for start in range(end + 1))
    table = [[best(pattern[:r], end) for end in range(len(text) + 1)] for r in range(len(pattern) + 1)]
    parts = [text[i:j] for j in range(len(text) + 1) for i in range(j + 1)]
    return [*(entry for row in table for entry in row), min(changes(pattern, part) for part in parts)]


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_lengths_from_separators_and_an_aggregation_of_the_last_row(arch: str):
    """Every pattern and text of the page's problem, on the real modules, against all parts of the text."""
    match = named_on_the_page("MATCH")
    assert f"{len(match.plan.states)} places" in PAGE.read_text("utf-8")
    built = build(OwnProblem(match, arch=arch))
    assert built.compiled.source.name == match.name
    solver, prompts = match.solver(), set()
    for one, other in product(range(1, 4), range(4)):
        for letters in product("ab", repeat=one + other):
            pattern, text = "".join(letters[:one]), "".join(letters[one:])
            prompt = (*pattern, "|", *text, ";")
            assert solver.chain(prompt) == [*map(str, found_in(pattern, text)), "."]
            prompts.add(prompt)
    assert set(solver.prompts()) == prompts and solver.count() == len(prompts)
    results = artifact.verify(built, built.stack(), "exhaustive", 1, seed=0)
    assert artifact.passed(built, results) and results.popitem()[1].sequences >= len(prompts)


def varying(**changed) -> DPProblem:
    """Sums of the letters of an input of 1 to 2 letters, then twice the last one."""
    given = {
        "inputs": (range(1, 3),),
        "cells": lambda n: [(i,) for i in range(n[0])],
        "reads": lambda n, i: [(0, i)],
        "needs": lambda n, i: [(i - 1,)],
        "largest": 6,
        "answer": Aggregation(lambda n: [(n[0] - 1,)], lambda values: 2 * values[0], lambda values: 2 * values[0]),
    }
    return problem(**given | changed)


@pytest.mark.parametrize("lengths", [range(1, 3), range(2, 3), range(1, 6, 2), range(3)])
def test_every_length_that_a_range_has(lengths: range):
    some = {} if 0 not in lengths else {"cells": lambda n: [(i,) for i in range(max(1, n[0]))], "blank": 0}
    answer = Aggregation(lambda n: [(max(0, n[0] - 1),)], lambda values: 2 * values[0], lambda values: 2 * values[0])
    own = varying(inputs=(lengths,), largest=12, answer=answer, **some)
    built = build(OwnProblem(own))
    results = artifact.verify(built, built.stack(), "exhaustive", 1, seed=0)
    assert artifact.passed(built, results)
    longest = ("b",) * max(lengths)
    sums = list(map(str, range(1, len(longest) + 1)))
    assert own.solver().chain((*longest, ";")) == [*sums, str(2 * len(longest)), "."]
    assert not built.compiled.source.language.accepts(
        built.compiled.source.alphabet.encode(" ".join(["b"] * (max(lengths) + 1)))
    )


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"cells": [(0,)]}, "cells is a list, and an input has a range of lengths; give both or neither"),
        ({"inputs": (2,)}, "cells is a function of n, and no input has a range"),
        ({"inputs": (range(0),)}, "a range of lengths holds some"),
        ({"inputs": (range(-1, 3),)}, "none of them below 0"),
        ({"inputs": (range(10**9),)}, r"inputs is \(range\(0, 1000000000\),\) .*more than 8192 letters in all"),
        ({"inputs": (range(2**70, 0, -1),)}, "more than 8192 letters in all"),
        ({"inputs": (range(2**70, -(2**70), -1),)}, "none of them below 0"),
        ({"inputs": (range(1),)}, "some input of it has a letter"),
        ({"inputs": (range(60), range(60))}, "3600 combinations, and at most 2048 work"),
        ({"inputs": (range(1, 90),)}, "the number of cells of all sizes together is over 2048"),
        ({"cells": lambda n: 1 // 0}, r"cells of size \(1,\), line \d+: ZeroDivisionError"),
        ({"reads": lambda n, i: [(0, i)] * n[0]}, "every cell must have as many"),
        ({"answer": Aggregation([(0,)], min, min)}, "the answer's cells are a function of n where lengths vary"),
        ({"answer": Aggregation(lambda n: [(7,)], min, min)}, r"its answer needs \(7,\), which is no cell of size"),
        ({"answer": Aggregation(lambda n: [(0,)] * n[0], min, min)}, "every size must have as many"),
        ({"answer": Aggregation(lambda n: [], min, min)}, "and at least one"),
        ({"answer": Aggregation(lambda n: [0], min, min)}, "its answer needs 0, and a cell"),
    ],
)
def test_varying_problems_that_do_not_fit(changed: dict, reason: str):
    with pytest.raises(ValueError, match=reason):
        varying(**changed)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Aggregation(lambda n: [(0,)], lambda values: 1 // 0, min), "its aggregation, line .*ZeroDivisionError"),
        (Aggregation(lambda n: [(0,)], lambda values: "x", min), "its aggregation gives 'x', and a stream is needed"),
    ],
)
def test_an_aggregation_that_goes_wrong(answer: Aggregation, reason: str):
    with pytest.raises(ValueError, match=reason):
        varying(answer=answer).circuit()


@pytest.mark.parametrize(
    ("plain", "reason"),
    [(None, "the answer's plain is None"), (lambda values: 99, "the value of the answer can be 99, .*largest = 99")],
)
def test_an_answer_on_integers_that_goes_wrong(plain, reason: str):
    own = varying(answer=Aggregation(lambda n: [(0,)], lambda values: values[0], plain))
    with pytest.raises(ValueError, match=reason):
        own.solver().chain(("b", ";"))
