"""Hugging Face's models must run on their own PyTorch code when they serve as a check."""

import sys
from types import ModuleType

import pytest

from compiler.runtime import huggingface, torch_only_transformers
from tests.fresh import fresh

FUNCTIONS = {
    "mamba": ["mamba_selective_scan", "mamba_selective_state_update", "mamba_inner_fn", "causal_conv1d_fn"],
    "mamba2": ["mamba2_chunk_scan", "mamba2_selective_state_update", "mamba2_split_conv1d_scan_combined"],
}

# transformers' models imported after mamba_ssm: they bind its functions, must run with them on a CPU (forward,
# training, generation), and must agree with their own code once that is put back.
BOUND_FIRST = """
import inspect
import torch
from compiler.runtime import mamba_classes, torch_only_transformers, huggingface
mamba_classes()
from transformers import MambaConfig, MambaForCausalLM, Mamba2Config, Mamba2ForCausalLM
from transformers.models.mamba import modeling_mamba
wrapper = inspect.getclosurevars(modeling_mamba.mamba_selective_scan).nonlocals
assert wrapper["implementation"].__module__.startswith("mamba_ssm")

torch.manual_seed(0)
sizes = dict(hidden_size=32, num_hidden_layers=2, vocab_size=40, state_size=8)
models = [MambaForCausalLM(MambaConfig(**sizes)),
          Mamba2ForCausalLM(Mamba2Config(**sizes, num_heads=4, head_dim=16, n_groups=1, chunk_size=16))]
tokens = torch.randint(40, (2, 30))

def results(model):
    with torch.no_grad():
        logits = model.eval()(tokens).logits
    written = model.generate(tokens, max_new_tokens=5, min_new_tokens=5, do_sample=False)
    loss = model.train()(tokens, labels=tokens).loss
    model.zero_grad()
    loss.backward()
    return logits, written, model.backbone.layers[0].mixer.in_proj.weight.grad.clone()

bound = [results(model) for model in models]
torch_only_transformers()
assert not huggingface._is_routed(modeling_mamba.mamba_selective_scan)
for model, (logits, written, gradient) in zip(models, bound):
    own_logits, own_written, own_gradient = results(model)
    assert (own_logits - logits).abs().max() < 1e-5
    assert torch.equal(own_written, written)
    assert (own_gradient - gradient).abs().max() < 1e-5
"""


def test_every_function_is_their_own():
    for module, names in zip(torch_only_transformers(), FUNCTIONS.values(), strict=True):
        for name in names:
            function = getattr(module, name)
            assert function.__module__ == module.__name__
            assert not huggingface._is_routed(function), name


def test_models_bound_to_mamba_ssm_run_and_are_unbound():
    run = fresh("-c", BOUND_FIRST)
    assert run.returncode == 0, run.stderr


def test_hiding_restores_what_was_imported(monkeypatch):
    stand_in = ModuleType("causal_conv1d")
    monkeypatch.setitem(sys.modules, "causal_conv1d", stand_in)
    monkeypatch.delitem(sys.modules, "mambapy", raising=False)
    with huggingface._hidden(("causal_conv1d", "mambapy")), pytest.raises(ImportError):
        import causal_conv1d  # noqa: F401
    assert sys.modules["causal_conv1d"] is stand_in
    assert "mambapy" not in sys.modules


def test_an_unknown_transformers_is_refused():
    with pytest.raises(RuntimeError, match="transformers 5.23.0 has it"):
        huggingface._check_torch_only(ModuleType("transformers.models.mamba.modeling_mamba"), "mamba_selective_scan")
