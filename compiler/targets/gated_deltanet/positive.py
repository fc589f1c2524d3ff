"""Target `gated-deltanet-qwen`: the gated delta rule with β of at most 1, as Qwen's models have it: no reflections."""

from __future__ import annotations

from compiler.targets.gated_deltanet import GatedDeltaNet


class GatedDeltaNetQwen(GatedDeltaNet):
    name = "gated-deltanet-qwen"
    reflects = False
    largest_beta = 1

    @property
    def family(self):
        from compiler.targets.gated_deltanet.qwen import FAMILY

        return FAMILY


TARGET = GatedDeltaNetQwen()
