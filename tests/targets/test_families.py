"""The folder of a target is the one home of its model family: what the package knows of a family, it asks there."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from compiler import targets
from compiler.artifact.card import _warnings
from compiler.artifact.config import check_config, cuda_limits
from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import check_shapes, tensor_shapes
from compiler.artifact.model import Stack
from compiler.runtime.ssd import MAX_CHUNK
from compiler.targets import families, family_of, shipped, target_of, target_running
from compiler.targets.gated_deltanet.heads import DeltaSizes
from compiler.targets.mamba import Mamba
from compiler.targets.mamba.family import MambaFamily, mamba_config
from compiler.targets.mamba2.emit import Mamba2Sizes
from compiler.targets.mamba2.family import mamba2_config
from compiler.targets.sizes import MambaSizes, Sizes

SIZES = {
    "mamba": MambaSizes(8, 16, 3, 2),
    "mamba2": Mamba2Sizes(8, 16, 3, 4),
    "s4d": MambaSizes(8, 16, 3, 1),
    "mamba-delta-t": MambaSizes(8, 16, 3, 1),
    "gated-deltanet": DeltaSizes(8, 16, 4, 4),
    "gated-deltanet-qwen": DeltaSizes(8, 16, 4, 4, largest_beta=1),
}


class ToyFamily(MambaFamily):
    """Mamba under another name, with one more channel convolved."""

    model_type = "toy"
    class_name = "ToyForCausalLM"
    printer = "toy"
    warnings = ("It is a toy.",)

    def rewritten(self, config):
        return super().rewritten(config) | {"model_type": "toy", "architectures": ["ToyForCausalLM"]}

    def convolved(self, config):
        return super().convolved(config) + 1


class Toy(Mamba):
    name = "toy"
    family = ToyFamily()


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> dict:
    monkeypatch.setattr(targets, "_TARGETS", dict(targets._TARGETS))
    targets.register("toy", Toy)
    sizes = mamba_config(vocab=9, d_model=8, d_state=3, dt_rank=2, layers=2)
    return sizes | {"model_type": "toy", "architectures": ["ToyForCausalLM"]}


def test_a_new_family_is_a_folder_and_a_line(toy: dict) -> None:
    """Config, shapes, modules, limits and card know it, and none of them was told."""
    check_config(toy)
    assert "toy" in families() and "toy" in shipped()
    assert "17 convolved channels" in cuda_limits(toy)[0]
    assert "- It is a toy." in _warnings({"cuda_limits": []}, toy)
    shapes = tensor_shapes(toy)
    check_shapes(toy, shapes)
    stack = Stack.from_language_model(toy, {name: torch.zeros(shape) for name, shape in shapes.items()})
    assert stack(torch.zeros(1, 2, dtype=torch.int64)).shape == (1, 2, 9)


def test_without_its_line_nobody_knows_it(toy: dict) -> None:
    del targets._TARGETS["toy"]
    with pytest.raises(CheckpointError, match="model_type 'toy' is no family of ours, expected 'mamba' or 'mamba2'"):
        check_config(toy)
    with pytest.raises(ValueError, match="is no family of ours"):
        family_of(["toy"])


@pytest.mark.parametrize("name", SIZES)
def test_every_module_is_the_mixer_of_one_target(name: str) -> None:
    ours = [target for target, where in targets._TARGETS.items() if isinstance(where, str)]  # others came from outside
    assert set(SIZES) == set(ours)
    module = target_of(name).module(SIZES[name], 0)
    assert [other for other in ours if target_of(other).runs(module)] == [name]
    assert target_running(module).name == name


def test_a_foreign_module_is_refused() -> None:
    """It used to be run as a Mamba."""
    with pytest.raises(ValueError, match="a Linear is the mixer of no target; there are mamba, mamba2, s4d"):
        target_running(nn.Linear(2, 2))


@pytest.mark.parametrize("name", families())
def test_shapes_are_those_of_the_modules(name: str) -> None:
    """Written down in the family, so that a header can be checked without torch; the real class has the same."""
    size: Sizes = SIZES[family_of(name).printer]
    config = family_of(name).config(size, 9, 1, None, 0.0)
    module = family_of(name).module(config, 0)
    assert family_of(name).mixer_shapes(config) == {n: tuple(p.shape) for n, p in module.named_parameters()}
    weight = module.conv1d.weight
    assert weight.shape[0] == family_of(name).convolved(config) == target_of(family_of(name).printer).convolved(size)


def test_transformers_pads_a_prompt_of_mamba2_no_further_than_our_own_scan() -> None:
    """Its scan takes the square of chunk_size for every head: 256 made short prompts a hundred times slower."""
    assert mamba2_config(vocab=9, d_model=8, d_state=3, head_dim=4, layers=1)["chunk_size"] <= MAX_CHUNK
