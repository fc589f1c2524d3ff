"""Scaled sums alone: exact on integers in the block IR, whatever the signs.

As close as their docstring says in the module.
"""

from __future__ import annotations

import numpy as np
import torch

from compiler.artifact.package import bare
from compiler.compiled import run_blocks
from compiler.language.words import scaled_sum
from tests.gadgets.harness import COUNTED, LETTERS, SIGNED, compiled, counted, signed


def test_gate_times_a_sum_of_products():
    made = compiled(scaled_sum(signed, counted, signed))
    ids = np.random.default_rng(0).integers(0, 4, (4, 16))
    expected = []
    for row in ids.tolist():
        word = [LETTERS.tokens[i] for i in row]
        sums = np.cumsum([SIGNED[x] * COUNTED[x] for x in word])
        expected.append([[SIGNED[x] * n] for x, n in zip(word, sums.tolist(), strict=True)])
    last = run_blocks(made, ids)[-1]
    assert np.array_equal(last @ made.head.toarray().T, np.array(expected, dtype=float))
    with torch.no_grad():
        got = bare(made)(torch.from_numpy(ids)).double().numpy()
    assert np.abs(got - expected).max() <= 2.0**-20 * max(1, np.abs(expected).max())
