"""Relative steps: nothing changes at the start, constants stay, a circuit survives what plain AdamW breaks it by."""

from copy import deepcopy

import numpy as np
import pytest
import torch

from compiler import compile, language_model
from compiler.graft import GraftError, finished, graft, parameters_to_train, trainable
from compiler.graft.relative import relative_steps
from compiler.runtime.huggingface import torch_only_transformers
from constructions.selectivity.induction_heads import InductionHeads
from tests.graft.hosts import host, induction, induction_answers

LETTERS = 8


def compiled(arch: str = "mamba"):
    """Induction heads as a language model of transformers; letter i has id i, 0 is the blank."""
    torch_only_transformers()
    from transformers import AutoConfig, AutoModelForCausalLM

    model = language_model(compile(InductionHeads(vocab=LETTERS, arch=arch).circuit(), arch))
    told = {k: v for k, v in model.config.items() if k not in ("architectures", "dtype")}
    made = AutoModelForCausalLM.from_config(AutoConfig.for_model(told.pop("model_type"), **told))
    made.load_state_dict({name: tensor.clone() for name, tensor in model.tensors.items()})
    return made.eval()


def batch(rng: np.random.Generator, count: int = 16, length: int = 20) -> tuple[torch.Tensor, torch.Tensor]:
    """(ids, answers by plain Python)."""
    ids = rng.integers(1, 1 + LETTERS, (count, length))
    names = tuple("abcdefgh")
    rows = [induction_answers([names[i - 1] for i in row], names) for row in ids]
    wanted = [[0 if answer is None else 1 + names.index(answer) for answer in row] for row in rows]
    return torch.from_numpy(ids), torch.tensor(wanted)


@torch.no_grad()
def right(model) -> float:
    ids, wanted = batch(np.random.default_rng(99), 32)
    return float((model.eval()(ids).logits.argmax(-1) == wanted).float().mean())


def train(model, parameters, rate: float, steps: int) -> None:
    adam, rng = torch.optim.AdamW(parameters, lr=rate, weight_decay=0.0), np.random.default_rng(0)
    for _ in range(steps):
        ids, wanted = batch(rng)
        logits = model.train()(ids, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_nothing_changes_until_it_is_trained_and_the_file_is_the_same_after(arch):
    model = compiled(arch)
    ids, _ = batch(np.random.default_rng(1))
    with torch.no_grad():
        before = model(ids).logits
        names = set(model.state_dict())
        assert torch.equal(trainable(model)(ids).logits, before)
        assert set(finished(model).state_dict()) == names
        assert torch.equal(model(ids).logits, before)


def test_constants_stay_and_weights_move():
    model = compiled()
    start = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    trainable(model)
    train(model, parameters_to_train(model), 1e-2, 2)
    after = finished(model).state_dict()
    norm = start["backbone.layers.0.norm.weight"]
    closed = norm == 0
    table = "backbone.embeddings.weight"
    assert closed.any() and torch.equal(after[table][:, closed], start[table][:, closed])
    out = "backbone.layers.0.mixer.out_proj.weight"
    assert not after[out][closed].any()
    for name in ("norm.weight", "mixer.A_log", "mixer.D", "mixer.dt_proj.bias"):
        assert torch.equal(after[f"backbone.layers.0.{name}"], start[f"backbone.layers.0.{name}"])
    for name in ("mixer.x_proj.weight", "mixer.in_proj.weight", "mixer.conv1d.weight"):
        assert not torch.equal(after[f"backbone.layers.0.{name}"], start[f"backbone.layers.0.{name}"])


def test_steps_are_those_of_the_weight_and_of_the_row_for_zeros():
    weight = torch.tensor([[0.0, -4.0, 0.5], [0.0, 0.0, 0.0]])
    assert relative_steps(weight).tolist() == [[0.5, 4.0, 0.5], [0.5, 0.5, 0.5]]
    assert relative_steps(torch.zeros(2, 2)).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_its_own_task_survives_relative_steps_and_not_plain_ones():
    plain, relative = compiled(), trainable(compiled(), head_scale=4.0)
    assert right(plain) == right(relative) == 1
    train(plain, plain.parameters(), 1e-3, 5)
    train(relative, parameters_to_train(relative), 1e-2, 5)
    assert right(plain) < 0.95 and right(relative) > 0.99


def test_other_models_are_refused():
    for model in (torch.nn.Linear(2, 2), compiled("gated-deltanet"), compiled("gated-deltanet-qwen")):
        with pytest.raises(GraftError, match="relative steps are for MambaForCausalLM and Mamba2ForCausalLM[.]$"):
            trainable(model)
    with pytest.raises(GraftError, match="side branch"):
        trainable(graft(host(), induction()).model)


def test_a_checkpoint_for_long_texts_is_no_direct_sum():
    """The norm of a promise for 2^50 tokens is as large as that of faint lanes."""
    model = compiled()
    with torch.no_grad():
        model.backbone.norm_f.weight.mul_(2.0**40)
        model.lm_head.weight.mul_(2.0**-40)
    assert right(trainable(model)) == 1


def test_a_model_in_training_is_not_saved(tmp_path):
    model = trainable(compiled(), head_scale=4.0)
    ids, _ = batch(np.random.default_rng(1))
    with pytest.raises(GraftError, match="finished"):
        model.save_pretrained(tmp_path)
    with torch.no_grad():
        before = model(ids).logits
    finished(model).save_pretrained(tmp_path)
    assert torch.equal(type(model).from_pretrained(tmp_path)(ids).logits, before)
    assert torch.equal(trainable(model)(ids).logits, before)


def weights(model) -> dict[str, torch.Tensor]:
    """What every weight is now, in training too, by the names that the files have."""
    places = (name.rpartition(".") for name, _ in compiled().named_parameters())
    return {f"{place}.{key}": getattr(model.get_submodule(place), key).detach().clone() for place, _, key in places}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def test_a_copy_in_training_and_its_original_are_finished_apart(tmp_path):
    model = trainable(compiled(), head_scale=4.0)
    copied = deepcopy(model)
    train(copied, parameters_to_train(copied), 1e-2, 1)
    start, trained = weights(model), weights(copied)
    assert not same(start, trained)
    assert same(dict(finished(copied).named_parameters()), trained)
    assert same(weights(model), start)
    with pytest.raises(GraftError, match="finished"):
        model.save_pretrained(tmp_path)
    assert same(dict(finished(model).named_parameters()), start)
    assert type(model) is type(copied) is type(compiled())


def test_gradients_are_asked_for_where_they_were_before():
    model = compiled()
    model.backbone.embeddings.weight.requires_grad_(False)
    before = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
    finished(trainable(model))
    assert {name: parameter.requires_grad for name, parameter in model.named_parameters()} == before
    assert all(wanted == (name != "backbone.embeddings.weight") for name, wanted in before.items())


def test_what_is_finished_is_a_whole_model():
    for call in (finished, parameters_to_train):
        with pytest.raises(GraftError, match="the model is None, and a module of PyTorch is needed"):
            call(None)
    with pytest.raises(GraftError, match="a part of a model"):
        finished(trainable(compiled()).backbone)
    plain = torch.nn.Linear(2, 2)
    assert finished(plain) is plain


def test_weights_that_are_computed_or_shared_are_refused_and_stay():
    model = compiled()
    model.lm_head.weight = model.backbone.embeddings.weight
    before = model.lm_head.weight.detach().clone()
    with pytest.raises(GraftError, match="one weight"):
        trainable(model)
    assert torch.equal(model.lm_head.weight, before)
    model = compiled()
    torch.nn.utils.parametrizations.weight_norm(model.lm_head)
    with pytest.raises(GraftError, match="lm_head has a parametrization"):
        trainable(model)


@pytest.mark.parametrize("scale", [0, -1.0, float("nan"), float("inf"), 1e38, "4"])
def test_a_scale_that_is_no_positive_number_is_refused_and_the_head_stays(scale):
    model = compiled()
    before = model.lm_head.weight.detach().clone()
    with pytest.raises(GraftError, match="head_scale is"):
        trainable(model, scale)
    assert torch.equal(model.lm_head.weight, before)


def test_it_is_not_started_twice():
    model = trainable(compiled(), head_scale=4.0)
    with pytest.raises(GraftError, match="already"):
        trainable(model, head_scale=4.0)
