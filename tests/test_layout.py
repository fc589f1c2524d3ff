"""Every nonzero weight of every construction explains itself, in both forms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pytest
import torch

from compiler.artifact.package import bare, language_model
from compiler.driver import compile
from compiler.exactness.levels import KEEP_LOG, OFF
from compiler.layout import Axis, Layout
from constructions.polynomials.count_in_row import CountInRow
from constructions.selectivity.absolute_time import AbsoluteTime
from constructions.selectivity.induction_heads import InductionHeads
from constructions.selectivity.keep_nth import KeepNth
from constructions.selectivity.mqar import MQAR

CONSTRUCTIONS = [
    MQAR(kappa=3, vocab=6),
    MQAR(kappa=3, vocab=6, arch="mamba2"),
    MQAR(kappa=3, vocab=6, arch="s4d"),
    MQAR(kappa=3, vocab=6, write="first", layout="benchmark", pairs=3),
    MQAR(kappa=3, vocab=6, write="last"),
    InductionHeads(vocab=5),
    InductionHeads(vocab=5, arch="mamba2"),
    InductionHeads(vocab=5, arch="mamba-delta-t"),
    KeepNth(),
    AbsoluteTime(),
    CountInRow(),
]


def _name(construction) -> str:
    return f"{construction.name}-{construction.target}-{getattr(construction, 'write', '')}"


def _models(compiled) -> Iterator[tuple[Layout, Mapping[str, torch.Tensor]]]:
    stack = bare(compiled)
    yield stack.layout, stack.state_dict()
    if compiled.context.target.family:
        model = language_model(compiled)
        yield model.layout, model.tensors


def _padded(axes: tuple[Axis, ...], index) -> bool:
    return any(int(i) not in axis.places for axis, i in zip(axes, index, strict=True))


@pytest.mark.parametrize("construction", CONSTRUCTIONS, ids=_name)
def test_every_nonzero_weight_is_explained(construction):
    circuit = construction.circuit()
    compiled = compile(circuit, construction.target, construction.dtype)
    for layout, tensors in _models(compiled):
        assert set(layout.axes) == set(tensors)
        for name, tensor in tensors.items():
            axes = layout.axes[name]
            assert tuple(axis.size for axis in axes) == tuple(tensor.shape), name
            for index in np.argwhere(tensor.numpy() != 0):
                value = float(tensor[tuple(index)])
                if _padded(axes, index):  # a place that no number uses holds what switches it off, and nothing else
                    assert value in (OFF, KEEP_LOG), (name, index, value)
                    continue
                found = layout.explain(name, index)
                fixed = "ballast" in found.name or ("lane one" in found.name and not found.source)
                assert found.name and found.meaning, found
                assert fixed or (found.source and found.operation), found


def test_what_an_explanation_says():
    compiled = compile(MQAR(kappa=3, vocab=6).circuit())
    stack = bare(compiled)
    (row, lane), *_ = np.argwhere(stack.state_dict()["blocks.0.in_proj.weight"].numpy() != 0)
    found = stack.layout.explain("blocks.0.in_proj.weight", (row, lane))
    assert str(found).startswith(f"blocks.0.in_proj.weight[{row}, {lane}]: x̂ ")
    assert "3 for v0" in found.meaning and "u.value[0]" in found.meaning
    assert (found.gadget, found.operation) == ("OuterProductMemory", "memory[sum]")
    assert found.source.startswith("mqar.py:")


def test_places_that_are_not_there_are_refused():
    layout = bare(compile(MQAR(kappa=3, vocab=6).circuit())).layout
    with pytest.raises(KeyError, match="no tensor 'A_log'.*blocks.0.A_log"):
        layout.explain("A_log", (0,))
    with pytest.raises(IndexError, match="2 dimensions, and the index has 1"):
        layout.explain("blocks.0.A_log", (0,))
    with pytest.raises(IndexError, match="outside the"):
        layout.explain("blocks.0.A_log", (0, 99))
