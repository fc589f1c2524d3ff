"""The fused path of Mamba on a CPU: the bits of the other path, whatever weight is wrong, and nothing approximated."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from compiler.artifact.model import Stack
from compiler.runtime import cpu_layers, mamba_classes, native, own_modules
from compiler.runtime.fused import fused, is_fused
from constructions.checkpoints.built import build
from constructions.selectivity.induction_heads import InductionHeads
from constructions.selectivity.mqar import MQAR
from tests.runtime.lattice import integers, lattice_block, one_hot_inputs

CLASSES = {"mamba_ssm": mamba_classes().Mamba, "own": own_modules.Mamba}
needs_compiler = pytest.mark.skipif(native._library("inner") is None, reason="no C++ compiler on this machine")


def padded(kind: str = "mamba_ssm") -> nn.Module:
    """A block on lattice data of which half of the channels is idle, as in a language model."""
    block = lattice_block(CLASSES[kind](16, d_state=4, expand=4))
    with torch.no_grad():
        for rows in (block.in_proj.weight.chunk(2), [block.x_proj.weight.T], [block.out_proj.weight.T]):
            for part in rows:
                part[32:] = 0
    return block


@pytest.fixture
def taken(monkeypatch) -> list[bool]:
    """For each call of the native path, whether it gave a result."""
    calls: list[bool] = []
    original = cpu_layers.exact_inner

    def called(*arguments):
        found = original(*arguments)
        calls.append(found is not None)
        return found

    monkeypatch.setattr(cpu_layers, "exact_inner", called)
    return calls


def both(run: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        plain = run(x)
        with fused():
            return plain, run(x)


def same(a: Tensor, b: Tensor) -> bool:
    """Whether all bits agree, but for those of no numbers."""
    return torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(0.0), b.nan_to_num(0.0))


@needs_compiler
@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("length", [1, 3, 63, 64, 65, 200])
def test_lattice_data_is_exact_and_not_left_to_pytorch(kind: str, length: int, taken: list[bool]) -> None:
    plain, fast = both(padded(kind), one_hot_inputs(3, length, 16))
    assert torch.equal(plain, fast) and taken == [True]
    assert length < 64 or plain.any()


@needs_compiler
@pytest.mark.parametrize("construction", [MQAR(kappa=4, vocab=8), InductionHeads(vocab=5)], ids=["mqar", "induction"])
def test_compiled_models_are_exact(construction, taken: list[bool]) -> None:
    built = build(construction)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(built.compiled.source.alphabet.size, (5, 150), generator=generator)
    for stack in (built.bare_stack(), built.stack()):
        assert isinstance(stack, Stack)
        plain, fast = both(stack.before_head, ids)
        assert torch.equal(plain.view(torch.int32), fast.view(torch.int32))
    assert taken and all(taken)


@needs_compiler
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 3e38, -3e38, 0.5, 7.0, 0.0])
def test_a_wrong_weight_is_as_wrong_as_in_pytorch(value: float, monkeypatch) -> None:
    """One entry of each tensor, in a channel that is used and in one that is idle; also where it is no number."""
    native_path = cpu_layers.exact_inner
    x = one_hot_inputs(2, 70, 16)
    places = {name: {(0,) * p.dim(), tuple(n - 1 for n in p.shape)} for name, p in padded().named_parameters()}
    for name in places:
        for place in places[name]:
            block = padded()
            with torch.no_grad():
                block.get_parameter(name)[place] = value
            with torch.no_grad(), fused():
                monkeypatch.setattr(cpu_layers, "exact_inner", lambda *arguments: None)
                plain = block(x)
                monkeypatch.setattr(cpu_layers, "exact_inner", native_path)
                assert same(plain, block(x)), (name, place)


@needs_compiler
def test_one_weight_moves_both_paths_alike(taken: list[bool]) -> None:
    """A fault that keeps the lattice is computed natively: for most of them the output changes, and the same."""
    x, changed = one_hot_inputs(2, 70, 16), 0
    right = both(padded(), x)[1]
    for name, _ in padded().named_parameters():
        block = padded()
        with torch.no_grad():
            weight = block.get_parameter(name)
            weight[(0,) * weight.dim()] += 128.0
        plain, fast = both(block, x)
        assert same(plain, fast), name
        changed += not same(fast, right)
    assert changed >= 4 and sum(taken) >= 5


@pytest.mark.parametrize("kind", CLASSES)
def test_what_is_rounded_is_left_to_pytorch(kind: str, taken: list[bool]) -> None:
    torch.manual_seed(0)
    plain, fast = both(CLASSES[kind](24, d_state=5), torch.randn(2, 37, 24))
    assert (plain - fast).abs().max() < 2e-6 and taken == [False]


@pytest.mark.parametrize("kind", CLASSES)
def test_gradients_and_other_dtypes_take_pytorch(kind: str, taken: list[bool]) -> None:
    block, x = padded(kind), one_hot_inputs(2, 20, 16)
    with fused():
        block(x.requires_grad_()).sum().backward()
        with torch.no_grad():
            narrow = block.bfloat16()(x.bfloat16())
    assert x.grad is not None and x.grad.any() and narrow.dtype == torch.bfloat16
    assert taken == [False, False]


def test_outside_the_context_hooks_see_what_they_saw() -> None:
    from mamba_ssm.modules import mamba_simple

    seen: list[int] = []
    block = padded()
    block.out_proj.register_forward_pre_hook(lambda _, given: seen.append(1))
    before = mamba_simple.causal_conv1d_fn
    with torch.no_grad(), fused():
        block(one_hot_inputs(1, 5, 16))
        assert is_fused() and not seen
    with torch.no_grad():
        block(one_hot_inputs(1, 5, 16))
    assert seen == [1] and mamba_simple.causal_conv1d_fn is before and not is_fused()


@needs_compiler
def test_biases_and_windows_of_any_width(taken: list[bool]) -> None:
    block = lattice_block(CLASSES["mamba_ssm"](16, d_state=3, d_conv=3, conv_bias=False, bias=True))
    with torch.no_grad():
        block.in_proj.bias.mul_(128)
        block.out_proj.bias.copy_(integers(torch.Generator().manual_seed(1), 16))
    plain, fast = both(block, one_hot_inputs(2, 90, 16))
    assert torch.equal(plain, fast) and taken == [True]
