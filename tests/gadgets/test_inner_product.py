"""The inner product alone: in one channel where B and C are linear maps, as a sum of products elsewhere."""

from __future__ import annotations

from compiler.language.words import concatenate, dot
from tests.gadgets.harness import COUNTED, SIGNED, agrees, counted, signed


def test_of_two_vectors():
    def oracle(word):
        out = []
        for t, x in enumerate(word):
            past = (SIGNED[word[t - 1]], COUNTED[word[t - 1]]) if t else (0, 0)
            out.append([SIGNED[x] * past[0] + COUNTED[x] * past[1]])
        return out

    vector = concatenate(signed, counted)
    agrees(dot(vector, vector.shift(1)), oracle, ("mamba",), "InnerProduct")
    agrees(dot(vector, vector.shift(1)), oracle, ("mamba2", "s4d", "mamba-delta-t"), "Product")
