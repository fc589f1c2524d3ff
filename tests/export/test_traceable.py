"""`torch.export` and `torch.compile` of packaged models, with lengths that were not there when they were traced."""

import numpy as np
import pytest
import torch

from compiler import load
from compiler.export.traceable import traceable

LENGTHS = (7, 2, 33, 60)


@pytest.mark.parametrize("name", ["induction-heads-mamba", "count-in-row-mamba2"])
def test_an_exported_program_computes_every_bit_at_any_length(cases, name, tmp_path):
    case = cases[name]
    ids = torch.from_numpy(case.ids)
    first = ids[:, :9].clone()  # a view would tell the program of the whole
    batch, length = torch.export.Dim("batch", max=64), torch.export.Dim("length", min=2, max=4096)
    with torch.no_grad():
        program = torch.export.export(traceable(case.directory), (first,), dynamic_shapes=({0: batch, 1: length},))
        torch.export.save(program, tmp_path / "model.pt2")
        model = torch.export.load(tmp_path / "model.pt2").module()
        for count in LENGTHS:
            assert np.array_equal(model(ids[:, :count]).numpy(), case.scores[:, :count]), count
        assert np.array_equal(model(ids[:1]).numpy(), case.scores[:1])


@pytest.mark.parametrize("name", ["keep-nth-mamba", "mqar-mamba2"])
def test_a_compiled_model_computes_every_bit_at_any_length(cases, name):
    """torch.compile of the loaded checkpoint itself; the backend that needs no C++ compiler."""
    case = cases[name]
    ids = torch.from_numpy(case.ids)
    torch._dynamo.reset()
    model = torch.compile(load(case.directory), dynamic=True, backend="aot_eager")
    with torch.no_grad():
        for count in (7, 33):
            assert np.array_equal(model(ids[:, :count]).numpy(), case.scores[:, :count]), count
