"""Real numbers on Mamba-2, in linear maps, running sums, sums under flags and latches: within the promised error.

The oracle adds fractions: every float is one, so it rounds nothing.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from compiler import Circuit, CompileError, Int, Real, compile, dot, latch, numbers, sum_where
from compiler.artifact.numeric import numeric_stack

LENGTH = 12
Rows = list[list[Fraction]]


def _program(rng: np.random.Generator, reach: float) -> tuple[Circuit, dict, list]:
    """A random circuit over two real numbers and an integer, and the same as a list for the oracle."""
    x, y, n = numbers(Real(-reach, reach), "x"), numbers(Real(-reach, reach), "y"), numbers(Int(-2, 2), "n")
    streams, plain = [x, y], [("x",), ("y",)]
    for _ in range(rng.integers(2, 5)):
        i, j = (int(k) for k in rng.integers(len(streams), size=2))
        kind = str(rng.choice(["add", "cumsum", "latch", "sum_where", "shift"]))
        level, weight = int(rng.integers(-1, 2)), int(rng.choice([-3, -1, 1, 2]))
        flag = n > level
        if kind == "add":
            streams.append(streams[i] + weight * streams[j])
        elif kind == "cumsum":
            streams.append(streams[i].cumsum())
        elif kind == "latch":
            streams.append(latch(streams[i], when=flag))
        elif kind == "sum_where":
            streams.append(sum_where(streams[i], flag))
        else:
            streams.append(streams[i].shift(1 + abs(weight)))
        plain.append((kind, i, j, level, weight))
    return Circuit("reals", streams[-1], length=LENGTH), {"x": x, "y": y, "n": n}, plain


def _oracle(plain: list, given: dict[str, list]) -> list[Fraction]:
    rows: Rows = []
    for kind, *rest in plain:
        if kind in given:
            rows.append([Fraction(v) for v in given[kind]])
            continue
        i, j, level, weight = rest
        a, total, row = rows[i], Fraction(0), []
        for t, value in enumerate(a):
            on = given["n"][t] > level
            if kind == "add":
                row.append(value + weight * rows[j][t])
            elif kind == "shift":
                row.append(a[t - 1 - abs(weight)] if t > abs(weight) else Fraction(0))
            else:
                taken = value if on or kind == "cumsum" else 0
                total = (value if on else total) if kind == "latch" else total + taken
                row.append(total)
        rows.append(row)
    return rows[-1]


@pytest.mark.parametrize("seed", range(24))
def test_sums_and_latches_of_real_numbers_stay_within_the_promised_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    reach = float(rng.choice([1, 1000, 2.0**40]))
    circuit, inputs, plain = _program(rng, reach)
    made = compile(circuit, "mamba2")
    assert made.error_bound is not None and made.error_bound < 1e-2 * reach
    sizes = rng.choice([1.0, 1e-3, 2.0**-60], (2, 8, LENGTH))  # numbers that differ much in size
    real = np.float32(rng.uniform(-reach, reach, (2, 8, LENGTH)) * sizes).astype(float)
    whole = rng.integers(-2, 3, (8, LENGTH))
    given = {"x": real[0], "y": real[1], "n": whole}
    used = {s.name for s in made.source.streams if s.operation.source}
    found = numeric_stack(made).run({k: given[k][..., None].astype(float) for k in inputs if k in used})[..., 0]
    for row in range(8):
        right = _oracle(plain, {k: v[row].tolist() for k, v in given.items()})
        off = max(abs(Fraction(float(a)) - b) for a, b in zip(found[row], right, strict=True))
        assert off <= Fraction(made.error_bound), (plain, row)


X, N = numbers(Real(-4, 4), "x"), numbers(Int(-3, 3), "n")


@pytest.mark.parametrize("stream", [X * N, X.relu(), dot(X, X), (X.cumsum() * X)])
def test_what_else_is_made_of_real_numbers_is_refused(stream) -> None:
    with pytest.raises(CompileError, match="real numbers is lowered for mamba only, and the target is mamba2, which"):
        compile(Circuit("t", stream, length=4), "mamba2")
