"""Blocks without values: the shapes of PyTorch's own meta device, without what it imports for them."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from compiler.runtime import block_classes, has_mamba_ssm, own_modules, real_block
from compiler.runtime.shapes_only import ShapesOnly
from tests.fresh import fresh

ARGUMENTS = [
    ("mamba", {"d_state": 5, "dt_rank": 3}),
    ("mamba", {"d_state": 1, "d_conv": 2, "conv_bias": False, "bias": True}),
    ("mamba2", {"d_state": 6, "headdim": 4, "rmsnorm": False}),
    ("mamba2", {"d_state": 6, "headdim": 2, "ngroups": 2}),
]


def shapes(block: torch.nn.Module) -> dict[str, tuple]:
    named = {**dict(block.named_parameters()), **dict(block.named_buffers())}
    return {
        name: (tensor.shape, tensor.dtype, tensor.device.type, tensor.requires_grad, vars(tensor))
        for name, tensor in named.items()
    }


@pytest.mark.parametrize("kind, arguments", ARGUMENTS)
def test_a_block_has_the_shapes_that_pytorch_tells(kind, arguments):
    told = block_classes()[kind](8, layer_idx=3, device="meta", **arguments)
    assert shapes(real_block(kind, 8, 3, arguments)) == shapes(told)
    own = {"mamba": own_modules.Mamba, "mamba2": own_modules.Mamba2}[kind]
    told = own(8, device="meta", **arguments)
    with ShapesOnly():
        assert shapes(own(8, device="meta", **arguments)) == shapes(told)


def test_no_random_number_is_drawn():
    before = torch.random.get_rng_state()
    for kind, arguments in ARGUMENTS:
        real_block(kind, 8, 0, arguments)
    assert torch.equal(torch.random.get_rng_state(), before)


FLOATS = torch.empty(3, 4, device="meta")
HALVES = torch.empty(3, 4, device="meta", dtype=torch.float16)
ROW = torch.empty(4, device="meta")
WHOLE = torch.empty(4, device="meta", dtype=torch.int64)


@pytest.mark.parametrize(
    "function",
    [
        lambda: torch.exp(FLOATS) + FLOATS,
        lambda: -HALVES * 2 + 1.5,
        lambda: HALVES.clamp(min=1e-4),
        lambda: HALVES + FLOATS,
        lambda: ROW + FLOATS,
        lambda: ROW.clamp(min=FLOATS),
        lambda: torch.log(WHOLE),
        lambda: WHOLE * 1.5,
        lambda: 1.5 * WHOLE,
        lambda: torch.exp(ROW, out=torch.empty(4, device="meta", dtype=torch.float64)),
        lambda: torch.arange(1, 7, device="meta", dtype=torch.float32),
        lambda: torch.arange(7, 1, -2, device="meta", dtype=torch.float16),
        lambda: torch.arange(5, device="meta"),
        lambda: torch.arange(0, 2, 0.5, device="meta", dtype=torch.float32),
        lambda: torch.arange(end=5, device="meta", dtype=torch.float32),
    ],
)
def test_what_a_constructor_may_do_has_the_shape_that_pytorch_tells(function):
    told = function()
    with ShapesOnly():
        found = function()
    assert (found.shape, found.dtype, found.device) == (told.shape, told.dtype, told.device)


def test_values_are_computed():
    with ShapesOnly():
        assert (torch.ones(2).exp() * 2 + torch.arange(2, dtype=torch.float32, device="cpu")).tolist() == [
            2 * torch.tensor(1.0).exp().item(),
            2 * torch.tensor(1.0).exp().item() + 1,
        ]


START = """
import sys
from compiler.runtime import real_block

real_block("mamba", 8, 0, {"d_state": 4})
real_block("mamba2", 8, 0, {"d_state": 4, "headdim": 2})
heavy = ("torch._dynamo", "torch._inductor", "sympy", "transformers.generation")
assert [name for name in heavy if name in sys.modules] == []
"""


LATER = """
import sys
import transformers.generation

del sys.modules["transformers.generation"]  # as where nobody has asked for it
from compiler.runtime import block_classes

block_classes()
from mamba_ssm.utils import generation

assert "transformers.generation" not in sys.modules
answer = generation.GenerateDecoderOnlyOutput(sequences=1)
from transformers.generation import GenerateDecoderOnlyOutput

assert type(answer) is GenerateDecoderOnlyOutput and answer.sequences == 1
"""


def test_a_block_is_built_without_the_compiler_of_pytorch():
    """What mamba_ssm takes from transformers for `generate` is imported when it is called."""
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True)
    assert not done.returncode, done.stderr


@pytest.mark.skipif(not has_mamba_ssm(), reason="mamba_ssm is not installed")
def test_what_generate_answers_is_transformers_own():
    done = fresh("-c", LATER)
    assert not done.returncode, done.stderr
