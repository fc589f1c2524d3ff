"""Running a model over numbers against the interpreter and against what the outputs should be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

import numpy as np

from verify.check import Verification
from verify.tasks.numbers import NumberBatch

Run = Callable[[Mapping[str, np.ndarray]], np.ndarray]
"""Inputs by name to outputs (batch, time, outputs): float64 of a module, or Fractions of the interpreter."""

_exact = np.vectorize(lambda value: Fraction(float(value)), otypes=[object])


def check_numbers(
    model: Run,
    reference: Run,
    batches: Iterable[NumberBatch],
    bound: Callable[[float], float],
    progress: Callable[[int], None] = lambda n: None,
) -> Verification:
    """Run every batch; `progress` is told how many sequences each step finished.

    bound: from the largest real input to how far an output may be from the interpreter's, 0 where the promise is for
    bits. An answer that someone knows is right where the output is within that and its own slack.
    """
    total = Verification()
    for batch in batches:
        total = total + _check(model, reference, batch, bound(batch.size))
        progress(len(batch))
    return total


def _check(model: Run, reference: Run, batch: NumberBatch, bound: float) -> Verification:
    outputs = model(batch.inputs)
    circuit = reference({name: _exact(values) for name, values in batch.inputs.items()})
    rounded = circuit.astype(np.float64)
    bit_exact = bool((outputs == rounded).all())
    error = _distance(outputs, circuit)
    apart = ~((error <= bound) if bound else (outputs == rounded))
    asked, wrong = np.zeros(outputs.shape, dtype=bool), np.zeros(outputs.shape, dtype=bool)
    if batch.expected is not None:
        asked = ~np.isnan(batch.expected)
        slack = 0.0 if batch.slack is None else batch.slack
        wrong = asked & ~(np.abs(outputs - np.where(asked, batch.expected, 0)) <= bound + slack)
    failure: tuple[str, list[int], int] | None = None
    if (apart | wrong).any():
        row, position = np.argwhere((apart | wrong).any(axis=-1))[0]
        failure = (_shown(batch, int(row), int(position)), [], int(position))
    return Verification(
        sequences=len(batch),
        queries=int(asked.sum()),
        correct=int((asked & ~wrong).sum()),
        exact_sequences=int((~wrong.any(axis=(1, 2))).sum()),
        bit_exact=bit_exact,
        failure=failure,
        within=not apart.any(),
        share=float(error.max(initial=0.0) / bound) if bound else None,
        wrong_inside=int(wrong.sum()),
    )


def _distance(outputs: np.ndarray, circuit: np.ndarray) -> np.ndarray:
    """|output − circuit| in exact arithmetic, rounded to float64 at the end; infinite for what is no number."""
    finite = np.isfinite(outputs)
    error = abs(_exact(np.where(finite, outputs, 0.0)) - circuit).astype(np.float64)
    return np.where(finite, error, np.inf)


def _shown(batch: NumberBatch, row: int, position: int) -> str:
    """The inputs of a sequence up to a position, for a message."""
    parts = []
    for name, values in batch.inputs.items():
        numbers = " ".join(f"{value:.9g}" for value in values[row, : position + 1].reshape(-1)[-8:])
        parts.append(f"{name} = {'… ' if values[row, : position + 1].size > 8 else ''}{numbers}")
    return f"{batch.case + ': ' if batch.case else ''}{', '.join(parts)}"
