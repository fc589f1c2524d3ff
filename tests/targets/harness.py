"""A target alone: a block of the IR and the module that is printed for it, on the same lanes, at any room to spare."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from compiler.compiled import run_blocks
from compiler.driver import compile
from compiler.language import memory
from compiler.language.stream import Stream
from compiler.language.words import latch
from compiler.targets import target_of
from tests.circuits import is_a, is_b, over_abc, token

WITHOUT_LATCH = {
    "sum": is_a.cumsum() * 3,
    "memory": memory.write(key=token.shift(1), value=token).read(token),
    "relu": (is_a.cumsum() - is_b.cumsum()).relu(),
}
STREAMS = {
    **WITHOUT_LATCH,
    "latch": latch(token, is_b),
    "last": memory.write(key=token.shift(1), value=token, policy="last").read(token),
}


def check(target: str, stream: Stream, printer: str = "", spare_state: int = 0) -> None:
    """Assert that the module adds to the lanes what the block adds, and that its tensors have the layout's shapes."""
    compiled = compile(over_abc("alone", stream), target)
    mixer = target_of(printer or target)
    tokens = np.random.default_rng(0).integers(0, 3, (6, 20))
    streams = run_blocks(compiled, tokens)
    for number, block in enumerate(compiled.blocks):
        lanes = np.arange(compiled.lanes.count)
        size = mixer.packaged(mixer.sizes(block, compiled.lanes.count), block)
        size = replace(size, d_state=size.d_state + spare_state)
        emission = mixer.emit(block, size, lanes, lanes)
        for name, tensor in emission.tensors.items():
            assert tuple(axis.size for axis in emission.layout.axes[name]) == tuple(tensor.shape), name
        module = mixer.module(size, number)
        module.load_state_dict(emission.tensors, assign=True)
        before = torch.from_numpy(np.pad(streams[number], [(0, 0), (0, 0), (0, size.d_model - len(lanes))])).float()
        with torch.no_grad():
            added = module(before).double().numpy()[..., : len(lanes)]
        assert np.array_equal(added, streams[number + 1] - streams[number]), (target, number)
