"""A proof that one block counts runs: every count is put into the state, and one real step is taken from it.

The block's state is a count times a unit. From every count n up to a bound, after every window of digits that the
convolution can hold and that fits the count, the digit 1 must lead to exactly n + 1 units and the digit 0 to exactly 0,
and the right answer must win. With the empty start this is an induction over the sequence, of any length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
import torch

from compiler.artifact.model import Stack
from verify.certificates.certificate import Certificate, Refused, Violated
from verify.certificates.finite import check_finite, lead

_STATES_AT_ONCE = 1 << 13


@dataclass(frozen=True)
class RunCertificate(Certificate):
    """longest_run: the counts that were put into the state; steps: how many were taken from them."""

    longest_run: int
    steps: int
    level: ClassVar = "margin-certified"


def certify_runs(stack: Stack, digits: Sequence[int], answers: Sequence[int], longest: int) -> RunCertificate:
    """A bare one-block stack answers every sequence of digits with its run length, for runs up to `longest`.

    digits:  the token ids of 0 and 1.
    answers: the token ids of the counts 0, 1, …; longer runs are answered by the last of them.
    Refused for several blocks; Violated at the first step that goes elsewhere.
    """
    if len(stack.blocks) != 1:
        raise Refused(f"runs are certified for one block, and the stack has {len(stack.blocks)}")
    check_finite(stack)
    memory = stack.blocks[0].d_conv - 1
    unit = _after(stack, [digits[1]])[0][1]
    margin, steps = np.inf, 0
    for window, counts in _cases(memory, longest):
        ((taps, _),) = _after(stack, [digits[d] for d in window])
        for digit in (0, 1):
            state = [(taps.repeat(len(counts), 1, 1), _units(counts, unit))]
            scores, ((_, after),) = stack.step(torch.full((len(counts),), digits[digit]), state)
            reached = digit * (counts + 1)
            wrong = (after != _units(reached, unit)).flatten(1).any(1).numpy()
            if wrong.any():
                raise Violated(
                    f"from a run of {counts[wrong][0]}, the digit {digit} does not lead to a run of {reached[wrong][0]}"
                )
            right = np.asarray(answers)[np.minimum(reached, len(answers) - 1)]
            margin = min(margin, lead(scores, torch.from_numpy(right)))
            steps += len(counts)
    return RunCertificate(
        float(margin), f"every sequence of any length whose runs of ones are at most {longest} long", longest, steps
    )


def _cases(memory: int, longest: int) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """(the last digits, counts below `longest` that fit them), every pair once; fewer digits are the whole sequence."""
    for window in (w for length in range(memory + 1) for w in product((0, 1), repeat=length)):
        tail = next((k for k, digit in enumerate(reversed(window)) if digit == 0), len(window))
        last = longest if tail == memory else min(tail + 1, longest)
        for start in range(tail, last, _STATES_AT_ONCE):
            yield window, np.arange(start, min(last, start + _STATES_AT_ONCE))


def _after(stack: Stack, tokens: Sequence[int]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The caches after these tokens."""
    state = stack.initial_state(1)
    for token in tokens:
        _, state = stack.step(torch.tensor([token]), state)
    return state


def _units(counts: np.ndarray, unit: torch.Tensor) -> torch.Tensor:
    """The state that holds these counts: (counts, channels, columns)."""
    return torch.from_numpy(counts).view(-1, 1, 1).to(unit) * unit
