"""Bounds at each edge of the input language (lemma of edges), against every path spelled out."""

from __future__ import annotations

import json
import random
from fractions import Fraction

import numpy as np
import pytest

from tests.circuits import CASES
from tests.verify.checker.checkpoints import write
from tests.verify.checker.values import Sequence
from verify.checker.arithmetic.columns import most_held
from verify.checker.arithmetic.running import running_sum
from verify.checker.arithmetic.states import Step, state_output
from verify.checker.check import check
from verify.checker.formats import FORMATS, Rejected
from verify.checker.values.bent import relu
from verify.checker.values.bounds import along
from verify.checker.values.language import Language, parse
from verify.checker.values.latches import latch
from verify.checker.values.values import Value, World, combine, constant, later, of_letters

LETTERS = 4


def language(rng: random.Random, length: int) -> Language:
    """Four states, some edges of one or two letters."""
    states = ["start", "p", "q", "r"]
    edges = []
    for i, source in enumerate(states):
        for target in rng.sample(states, 2):
            first = rng.randrange(LETTERS)
            tokens = [[first, min(first + rng.randrange(2), LETTERS - 1)]]
            edges.append({"from": source, "to": target, "tokens": tokens, "distinct": False})
        edges.append({"from": source, "to": states[(i + 1) % 4], "tokens": [[i, i]], "distinct": False})
    return parse({"language": {"tokens": LETTERS, "start": "start", "edges": edges}, "length": length})


def paths(found: Language):
    """Every path as a list of (edge, letter)."""
    pending = [(found.start, [])]
    for state, path in pending:  # grows while it is read
        if path:
            yield path
        if len(path) < found.length:
            for number, edge in enumerate(found.edges):
                if edge.source == state:
                    pending += [(edge.target, [*path, (number, int(a))]) for a in np.flatnonzero(edge.letters)]


@pytest.mark.parametrize("seed", range(6))
def test_bounds_hold_on_every_path_and_sums_are_reached(seed):
    rng = random.Random(seed)
    found = language(rng, 5)
    world = World(found, FORMATS["float32"])
    step, stored = ([rng.randrange(0, 3) for _ in range(LETTERS)] for _ in range(2))
    flag = [rng.randrange(2) for _ in range(LETTERS)]
    values = {
        "step": of_letters(np.array(step, float)),
        "before": later(world, of_letters(np.array(stored, float)), 1),
        "sum": running_sum(world, of_letters(np.array(step, float)), "a sum"),
        "latch": latch(world, of_letters(np.array(stored, float)), of_letters(np.array(flag, float))),
    }
    bounds = {name: along(world, value) for name, value in values.items()}
    driven = values["step"]  # what is written with it, by a letter that stands one or two positions before
    columns = [later(world, of_letters(np.array(stored, float)), k) for k in (0, 1, 2)]
    totals = [most_held(world, column, driven) for column in columns]
    largest = 0
    for path in paths(found):
        letters = [a for _, a in path]
        written = [a for a in letters if flag[a]]
        here = {
            "step": step[letters[-1]],
            "before": stored[letters[-2]] if len(letters) > 1 else 0,
            "sum": sum(step[a] for a in letters),
            "latch": stored[written[-1]] if written else 0,
        }
        largest = max(largest, here["sum"])
        for k, bound in enumerate(totals):
            assert sum(stored[a] * step[b] for a, b in zip(letters, letters[k:], strict=False)) <= bound, (k, path)
        for name, value in here.items():
            low, high = bounds[name][:, path[-1][0]]
            assert low <= value <= high, (name, path)
    assert found.graph.added(np.full((2, len(found.edges)), 2.0**51)) is None  # float64 might round
    assert values["sum"].zero or bounds["sum"][1].max() >= largest


@pytest.mark.parametrize("seed", range(12))
def test_columns_that_flags_close_hold_what_paths_leave(seed):
    """A letter counts for a column only where, as many steps later, the column can be more than 0 on some edge."""
    rng = random.Random(seed)
    found = language(rng, 5)
    world = World(found, FORMATS["float32"])
    table = lambda: of_letters(np.array([rng.randrange(3) for _ in range(LETTERS)], float))
    closed = latch(world, constant(1), of_letters(np.array([rng.randrange(2) for _ in range(LETTERS)], float)))
    open_ = lambda v: relu(world, combine([(Fraction(1), v), (Fraction(-4), closed)]))
    columns, drive = [open_(later(world, table(), k)) for k in (0, 1, 2)], rng.choice([open_(table()), table()])
    totals = [most_held(world, column, drive) for column in columns if not drive.constant]
    for path in paths(found):
        sequence, length = Sequence(world, [a for _, a in path]), len(path)
        for k, bound in enumerate(totals):
            held = sum(sequence.value(columns[k], t) * sequence.value(drive, t) for t in range(1, length + 1))
            assert held <= bound, (k, path)


def test_a_key_that_no_value_can_follow_writes_nothing(tmp_path):
    """Keys are asked once more behind the pairs; only before a value do they write. Not so if pairs may come again."""
    case = next(c for c in CASES if c.name == "mqar_once")
    directory = write(tmp_path / "c", case.build(), "mamba2")
    assert check(directory).accepted
    manifest = json.loads((directory / "construction.json").read_text())
    manifest["promise"]["length"] *= 8  # so long that the norms have no room for pairs that come again
    (directory / "construction.json").write_text(json.dumps(manifest))
    assert check(directory).arithmetic is None
    edges = manifest["promise"]["language"]["edges"]
    assert any(edge["distinct"] for edge in edges)
    for edge in edges:
        edge["distinct"] = False
    (directory / "construction.json").write_text(json.dumps(manifest))
    assert "absorb" in check(directory).arithmetic


def test_a_count_since_a_reset_needs_a_step_that_is_never_0():
    """Where Δ is 0 nothing is counted, and nothing is erased: not the count that a root says."""
    found = language(random.Random(0), 5)
    world = World(found, FORMATS["float32"])
    fading = (Fraction(1, 1 << 41), Fraction(1, 1 << 40))
    counted = of_letters(np.array([1.0, 1.0, 0.0, 0.0]))
    columns: list[tuple[Value, Value, tuple]] = [(constant(1), constant(1), fading)]

    def output(steps: list[float]) -> Value:
        positive = tuple(Fraction(s) for s in sorted({s for s in steps if s}))
        step = Step(of_letters(np.array(steps)), positive, max(positive), loose=True)
        return state_output(world, step, counted, columns, "a channel")

    assert not output([32.0, 32.0, 32.0, 2.0**50 + 32]).zero
    with pytest.raises(Rejected):
        output([32.0, 0.0, 32.0, 2.0**50 + 32])


@pytest.mark.parametrize("name", ["delay_of_seventeen", "division_of_counters"])
def test_partial_sums_lie_between_those_of_one_sign(name, tmp_path):
    """In float16 the sizes of all terms add up to more than it holds, and no partial sum does."""
    case = next(c for c in CASES if c.name == name)
    verdict = check(write(tmp_path / "c", case.build(), "mamba", "float16"))
    assert verdict.accepted, verdict.reason
