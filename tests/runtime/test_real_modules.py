"""The real mamba_ssm modules on CPU: against Hugging Face's own code, forward against step, and the shim itself."""

import sys

import pytest
import torch

from compiler.runtime import cpu_layers, fake_triton, mamba_classes, real_modules, torch_only_transformers
from tests.fresh import fresh
from tests.runtime.lattice import lattice_block, one_hot_inputs

M = mamba_classes()
VOCAB = 40


def mamba(**options):
    torch.manual_seed(0)
    return M.Mamba(24, **({"d_state": 5} | options))


def mamba2(**options):
    torch.manual_seed(0)
    return M.Mamba2(32, **({"d_state": 6, "headdim": 16, "chunk_size": 16} | options))


BLOCKS = {
    "mamba": lambda: mamba(),
    "mamba, d_conv 2": lambda: mamba(d_conv=2),
    "mamba, d_conv 3, biased": lambda: mamba(d_conv=3, bias=True),
    "mamba, d_state 1, no conv bias": lambda: mamba(d_state=1, conv_bias=False),
    "mamba2": lambda: mamba2(),
    "mamba2, d_conv 2": lambda: mamba2(d_conv=2),
    "mamba2, two groups": lambda: mamba2(ngroups=2),
    "mamba2, two groups, d_conv 3, no norm": lambda: mamba2(ngroups=2, d_conv=3, rmsnorm=False),
    "mamba2, no norm": lambda: mamba2(rmsnorm=False),
    "mamba2, norm before gate": lambda: mamba2(norm_before_gate=True),
    "mamba2, MLP part": lambda: mamba2(d_ssm=32),
}


@pytest.fixture(params=BLOCKS)
def block(request):
    return BLOCKS[request.param]()


def steps(block, x):
    """Runs x (b, l, d) through `block.step` one position at a time."""
    conv, ssm = block.allocate_inference_cache(x.shape[0], x.shape[1])
    return torch.cat([block.step(x[:, t : t + 1], conv, ssm)[0] for t in range(x.shape[1])], dim=1)


@torch.no_grad()
def test_forward_equals_step_by_step(block):
    x = torch.randn(2, 37, block.d_model)
    assert (block(x) - steps(block, x)).abs().max() < 2e-6


@torch.no_grad()
def test_prefill_then_step_equals_forward(block):
    block.layer_idx = 0
    x = torch.randn(2, 20, block.d_model)
    params = M.InferenceParams(max_seqlen=20, max_batch_size=2)
    parts = [block(x[:, :15], inference_params=params)]
    for t in range(15, 20):
        params.seqlen_offset = t
        parts.append(block(x[:, t : t + 1], inference_params=params))
    assert (torch.cat(parts, dim=1) - block(x)).abs().max() < 2e-6


@pytest.mark.parametrize("name", ["Mamba", "Mamba2"])
@torch.no_grad()
def test_blocks_are_exact_on_lattice_data(name):
    """Bit for bit: forward, one step at a time, and float64 (rounded, as exp(-128) is not 0 there)."""
    options = {"Mamba": dict(d_state=4), "Mamba2": dict(d_state=16, headdim=16, rmsnorm=False, chunk_size=32)}[name]
    block = lattice_block(getattr(M, name)(16, **options))
    x = one_hot_inputs(2, 200, 16)
    y = block(x)
    assert y.any() and torch.equal(steps(block, x), y)
    assert torch.equal(block.double()(x.double()).round().float(), y)


def test_backward_reaches_every_parameter(block):
    x = torch.randn(2, 20, block.d_model, requires_grad=True)
    y = block(x)
    with torch.no_grad():
        assert (block(x) - y).abs().max() < 2e-6, "the differentiable path must agree with the fast one"
    y.square().sum().backward()
    for name, parameter in [("x", x), *block.named_parameters()]:
        assert parameter.grad is not None and parameter.grad.isfinite().all() and parameter.grad.any(), name


@pytest.mark.parametrize("options", [{}, {"rmsnorm": False}, {"ngroups": 2}, {"d_ssm": 32}, {"D_has_hdim": True}])
@torch.no_grad()
def test_mamba2_paths_agree(options):
    block = mamba2(**options)
    x = torch.randn(2, 33, block.d_model)
    fused = block(x)
    block.use_mem_eff_path = False
    assert (block(x) - fused).abs().max() < 1e-6


@pytest.mark.parametrize("dtype, tolerance", [(torch.bfloat16, 4e-2), (torch.float16, 5e-3)])
@torch.no_grad()
def test_low_precision_stays_near_float32(block, dtype, tolerance):
    x = torch.randn(2, 20, block.d_model)
    expected = block(x)
    for module in block.children():
        module.to(dtype)
    actual = block(x.to(dtype))
    assert actual.dtype == dtype
    assert (actual.float() - expected).abs().max() < tolerance * expected.abs().max()


def lm_pair(layer, ngroups=1, d_conv=4, layers=2):
    """Returns a MambaLMHeadModel and a Hugging Face model with the same weights."""
    torch.manual_seed(1)
    hf = torch_only_transformers()
    common = dict(
        hidden_size=32, num_hidden_layers=layers, vocab_size=VOCAB, conv_kernel=d_conv, expand=2, use_bias=False,
        layer_norm_epsilon=1e-5, residual_in_fp32=True, tie_word_embeddings=True,
    )  # fmt: skip
    if layer == "Mamba1":
        ssm = {"layer": layer, "d_state": 8, "d_conv": d_conv, "dt_rank": 3}
        config = hf.mamba.MambaConfig(**common, state_size=8, time_step_rank=3)
        theirs = hf.mamba.MambaForCausalLM(config)
    else:
        ssm = {"layer": layer, "d_state": 8, "d_conv": d_conv, "headdim": 16, "ngroups": ngroups, "chunk_size": 16}
        config = hf.mamba2.Mamba2Config(
            **common, state_size=8, num_heads=4, head_dim=16, n_groups=ngroups, chunk_size=16
        )
        theirs = hf.mamba2.Mamba2ForCausalLM(config)
    ours = M.MambaLMHeadModel(M.MambaConfig(d_model=32, n_layer=layers, vocab_size=VOCAB, ssm_cfg=ssm))
    weights = {k.replace("embedding.", "embeddings."): v for k, v in ours.state_dict().items()}
    theirs.load_state_dict(weights, strict=True)
    return ours.eval(), theirs.eval()


@pytest.mark.parametrize(
    "layer, options",
    [("Mamba1", {}), ("Mamba1", {"d_conv": 2}), ("Mamba2", {}), ("Mamba2", {"ngroups": 2}), ("Mamba2", {"d_conv": 3})],
)
@torch.no_grad()
def test_language_model_agrees_with_hugging_face(layer, options):
    ours, theirs = lm_pair(layer, **options)
    tokens = torch.randint(VOCAB, (2, 70))
    expected = theirs(tokens, use_cache=False).logits
    difference = (ours(tokens).logits - expected).abs().max()
    assert difference < 2e-5 * max(1, expected.abs().max())


def test_the_stand_in_for_triton_is_gone_after_the_import():
    import torch.utils._triton

    if "triton" in sys.modules:
        assert not isinstance(sys.modules["triton"].language, fake_triton._Language)
    assert not any(isinstance(m, fake_triton._Language) for m in sys.modules.values())
    if fake_triton.is_missing("triton"):
        assert not torch.utils._triton.has_triton_package()
        from mamba_ssm.ops.triton import layer_norm

        with pytest.raises(RuntimeError, match="triton is not installed"):
            layer_norm._layer_norm_fwd_1pass_kernel[(1,)]()


def test_loading_twice_changes_nothing():
    from mamba_ssm.ops import selective_scan_interface

    dispatcher = selective_scan_interface.SelectiveScanFn
    assert isinstance(dispatcher, real_modules.ByDevice)
    assert mamba_classes() == M
    assert selective_scan_interface.SelectiveScanFn is dispatcher
    assert not isinstance(dispatcher.original, real_modules.ByDevice)


def test_missing_mamba_ssm_names_the_command(monkeypatch):
    monkeypatch.setattr(fake_triton, "is_missing", lambda name: name == "mamba_ssm")
    with pytest.raises(ImportError, match="construct install-mamba"):
        real_modules._load.__wrapped__()


FAKE_CAUSAL_CONV1D = {
    "__init__.py": "def causal_conv1d_fn(*a, **k): raise TypeError('CUDA only')\n"
    "causal_conv1d_update = causal_conv1d_fn\n",
    "cpp_functions.py": "def causal_conv1d_fwd_function(*a, **k): raise TypeError('CUDA only')\n"
    "causal_conv1d_bwd_function = causal_conv1d_update_function = causal_conv1d_fwd_function\n",
    "causal_conv1d_varlen.py": "causal_conv1d_varlen_states = None\n",
}
CPU_WITH_CAUSAL_CONV1D = """
import torch
from compiler.runtime import mamba_classes
M = mamba_classes()
from mamba_ssm.modules import mamba_simple
assert mamba_simple.causal_conv1d_fn is not None
torch.manual_seed(0)
x = torch.randn(2, 20, 32)
with torch.no_grad():
    for block in (M.Mamba(32), M.Mamba2(32, headdim=16), M.Mamba2(32, headdim=16, use_mem_eff_path=False)):
        conv, ssm = block.allocate_inference_cache(2, 20)
        stepped = torch.cat([block.step(x[:, t:t+1], conv, ssm)[0] for t in range(20)], dim=1)
        assert (block(x) - stepped).abs().max() < 2e-6
    block = M.Mamba(32)
    fused = block(x)
    block.use_fast_path = False
    assert (block(x) - fused).abs().max() < 1e-6
"""


def test_cpu_tensors_stay_on_cpu_where_causal_conv1d_is_installed(tmp_path):
    package = tmp_path / "causal_conv1d"
    package.mkdir()
    for name, text in FAKE_CAUSAL_CONV1D.items():
        (package / name).write_text(text)
    run = fresh("-c", CPU_WITH_CAUSAL_CONV1D, cwd=tmp_path)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: cpu_layers.add_norm(x, x[0], None, dropout_p=0.1), "dropout_p is not supported"),
        (lambda x: cpu_layers.add_norm(x, x[0], None, x1=x), "x1 is not supported"),
        (lambda x: cpu_layers.causal_conv1d(x[None], x, seq_idx=x), "seq_idx is not supported"),
        (lambda x: cpu_layers.mamba_inner(x, x, x, x, x, x, None, x, B=x), "not supported on CPU"),
    ],
)
def test_refuses_in_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call(torch.zeros(2, 2))


@pytest.mark.parametrize("rms, bias", [(True, False), (True, True), (False, True)])
def test_add_norm_matches_the_reference(rms, bias):
    from mamba_ssm.ops.triton.layer_norm import layer_norm_ref, rms_norm_ref

    x, residual, weight = torch.randn(3, 4, 7), torch.randn(3, 4, 7), torch.randn(7)
    offset = torch.randn(7) if bias else None
    y, total = cpu_layers.add_norm(x, weight, offset, residual, eps=1e-5, prenorm=True, is_rms_norm=rms)
    reference = rms_norm_ref if rms else layer_norm_ref
    expected, expected_total = reference(x, weight, offset, residual, eps=1e-5, prenorm=True)
    assert (y - expected).abs().max() < 2e-6
    assert torch.equal(total, expected_total)


@pytest.mark.parametrize("norm_before_gate", [False, True])
@pytest.mark.parametrize("group_size", [None, 4])
def test_gated_norm_matches_the_reference(norm_before_gate, group_size):
    from mamba_ssm.ops.triton.layernorm_gated import rms_norm_ref

    x, z, weight = torch.randn(3, 8), torch.randn(3, 8), torch.randn(8)
    options = dict(z=z, eps=1e-5, group_size=group_size, norm_before_gate=norm_before_gate)
    y = cpu_layers.gated_norm(x, weight, None, **options, is_rms_norm=True)
    assert (y - rms_norm_ref(x, weight, None, **options)).abs().max() < 1e-6


@pytest.mark.parametrize("groups", [1, 2])
def test_state_update_matches_the_reference(groups):
    from mamba_ssm.ops.triton.selective_state_update import selective_state_update_ref

    draw = torch.randn
    state, x, dt, z = draw(2, 4, 3, 5), draw(2, 4, 3), draw(2, 4, 3), draw(2, 4, 3)
    A, B, C = -torch.rand(4, 3, 5), draw(2, groups, 5), draw(2, groups, 5)
    options = dict(D=draw(4, 3), z=z, dt_bias=draw(4, 3), dt_softplus=True)
    other = state.clone()
    y = cpu_layers.selective_state_update(state, x, dt, A, B, C, **options)
    assert (y - selective_state_update_ref(other, x, dt, A, B, C, **options)).abs().max() < 1e-5
    assert (state - other).abs().max() < 1e-6
