"""The stack: real blocks between an embedding and a head, with and without norms."""

import math

import pytest
import torch
from torch import nn

from compiler.artifact.files import tensor_shapes
from compiler.artifact.model import RMSNorm, Stack
from compiler.runtime import mamba_classes, torch_only_transformers
from compiler.targets.mamba.family import mamba_config
from compiler.targets.mamba2.family import mamba2_config

KINDS = ("mamba", "mamba2")
VOCAB, D_MODEL, LAYERS = 11, 16, 2
BLOCK_CONFIG = {
    "mamba": {"d_state": 5, "d_conv": 4, "expand": 2, "dt_rank": 3},
    "mamba2": {"d_state": 5, "d_conv": 4, "expand": 2, "headdim": 8, "chunk_size": 4},
}


def lm_config(kind, vocab=VOCAB, d_model=D_MODEL, layers=LAYERS):
    sizes = {"vocab": vocab, "d_model": d_model, "d_state": 5, "layers": layers}
    return mamba_config(dt_rank=3, **sizes) if kind == "mamba" else mamba2_config(head_dim=8, chunk_size=4, **sizes)


def random_tensors(config, seed=0):
    """Weights small enough for a stack without norms not to blow up: a block is cubic in its input."""
    generator = torch.Generator().manual_seed(seed)
    return {name: 0.2 * torch.randn(shape, generator=generator) for name, shape in tensor_shapes(config).items()}


def mixers(tensors):
    """The block state dicts among Hugging Face's names."""
    prefix = "backbone.layers.{}.mixer."
    return [
        {name.removeprefix(prefix.format(i)): t for name, t in tensors.items() if name.startswith(prefix.format(i))}
        for i in range(LAYERS)
    ]


def bare_stack(kind, tensors=None, residual=True):
    tensors = tensors or random_tensors(lm_config(kind))
    return Stack.bare(
        tensors["backbone.embeddings.weight"],
        mixers(tensors),
        kind,
        BLOCK_CONFIG[kind],
        tensors["lm_head.weight"],
        residual,
        D_MODEL,
    )


def lm_stack(kind):
    config = lm_config(kind)
    return Stack.from_language_model(config, random_tensors(config))


def some_tokens(batch=3, length=9, seed=1):
    return torch.randint(VOCAB, (batch, length), generator=torch.Generator().manual_seed(seed))


def ballast(d_model):
    """Up to four positive integers whose squares sum to d_model, the largest first."""
    top = math.isqrt(d_model)
    for a in range(top, 0, -1):
        for b in range(min(a, math.isqrt(d_model - a * a)), -1, -1):
            for c in range(min(b, math.isqrt(d_model - a * a - b * b)), -1, -1):
                d = math.isqrt(d_model - a * a - b * b - c * c)
                if a * a + b * b + c * c + d * d == d_model:
                    return [n for n in (a, b, c, d) if n]
    raise AssertionError("every positive integer is a sum of four squares")


def with_ballast(data, d_model, scale):
    """Data lanes followed by ballast lanes a_i·scale, and the norm weight that undoes the scale."""
    weights = ballast(d_model)
    x = torch.zeros(len(data), d_model)
    x[:, : data.shape[1]] = data
    x[:, -len(weights) :] = scale * torch.tensor(weights, dtype=torch.float32)
    weight = torch.full((d_model,), float(scale))
    weight[-len(weights) :] = 0
    return x, weight


def sufficient_scale(d_model, squares):
    """The smallest power of two K >= 2^4 with K²·d_model >= 2^25·squares (note E7)."""
    scale = 16
    while scale * scale * d_model < 2**25 * squares:
        scale *= 2
    return scale


def norm_of(x, weight):
    norm = RMSNorm(x.shape[-1])
    norm.weight = nn.Parameter(weight)
    with torch.no_grad():
        return norm(x)


# RMSNorm


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_norm_has_the_bits_of_hugging_faces(dtype):
    theirs = torch_only_transformers().mamba.MambaRMSNorm(24, eps=1e-5)
    ours = RMSNorm(24)
    theirs.weight = ours.weight = nn.Parameter(torch.randn(24).to(dtype))
    x = (3 * torch.randn(50, 24)).to(dtype)
    assert ours(x).dtype == dtype
    assert torch.equal(ours(x), theirs(x))


@pytest.mark.parametrize("d_model", [16, 17, 24, 60, 64, 100, 128, 255, 256, 500, 512, 768, 1000, 1024])
@pytest.mark.parametrize("largest", [1, 7, 100])
def test_ballast_makes_the_norm_the_identity_on_a_lattice(d_model, largest):
    lanes = d_model - len(ballast(d_model))
    data = torch.randint(-2 * largest, 2 * largest + 1, (64, lanes)) / 2
    data[0], data[1] = 0, largest  # the extremes of the sum of squares
    scale = sufficient_scale(d_model, lanes * largest**2)
    x, weight = with_ballast(data, d_model, scale)
    normed = norm_of(x, weight)
    assert torch.equal(normed[:, :lanes], x[:, :lanes])
    assert not normed[:, lanes:].any()


@pytest.mark.parametrize("d_model", [16, 64, 256, 1024])
def test_a_ballast_too_small_is_off_by_parts_in_ten_million(d_model):
    lanes = d_model - len(ballast(d_model))
    data = torch.full((1, lanes), 3.0)
    scale = sufficient_scale(d_model, lanes * 9) // 8
    x, weight = with_ballast(data, d_model, scale)
    error = (norm_of(x, weight)[0, :lanes] - 3).abs().max()
    assert 0 < error < 1e-5


# Forward and step


@pytest.mark.parametrize("kind", KINDS)
def test_language_model_with_ballast_has_the_bits_of_the_bare_stack(kind):
    """The norms become the identity, so both packages of one circuit compute the same."""
    config = lm_config(kind)
    tensors = random_tensors(config)
    first, scale = D_MODEL - len(ballast(D_MODEL)), 2.0**30
    for name, tensor in tensors.items():
        if name.endswith(("in_proj.weight", "lm_head.weight")):
            tensor[:, first:] = 0  # nothing reads the ballast
        if name.endswith("out_proj.weight"):
            tensor[first:] = 0  # nothing writes it
    for name in ("backbone.norm_f.weight", *(f"backbone.layers.{i}.norm.weight" for i in range(LAYERS))):
        tensors[name].fill_(scale)[first:] = 0
    tensors["backbone.embeddings.weight"][:, first:] = scale * torch.tensor(ballast(D_MODEL)).float()
    model, bare = Stack.from_language_model(config, tensors), bare_stack(kind, tensors)
    with torch.no_grad():
        assert torch.equal(model(some_tokens()), bare(some_tokens()))


@pytest.mark.parametrize("kind", KINDS)
def test_norm_weights_reach_the_logits(kind):
    config = lm_config(kind)
    tensors = random_tensors(config)
    with torch.no_grad():
        before = Stack.from_language_model(config, tensors)(some_tokens())
        for name in ("backbone.layers.0.norm.weight", "backbone.norm_f.weight"):
            changed = Stack.from_language_model(config, tensors | {name: 2 * tensors[name]})
            assert not torch.allclose(changed(some_tokens()), before)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("build", [bare_stack, lm_stack])
def test_step_equals_forward(build, kind):
    stack, tokens = build(kind), some_tokens()
    with torch.no_grad():
        whole = stack(tokens)
    state = stack.initial_state(len(tokens))
    for position in range(tokens.shape[1]):
        logits, state = stack.step(tokens[:, position], state)
        assert torch.allclose(logits, whole[:, position], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_states_of_narrow_weights_are_float32(kind):
    state = lm_stack(kind).to(torch.bfloat16).initial_state(1)
    assert {memory.dtype for _, memory in state} == {torch.float32}
    assert {window.dtype for window, _ in state} == {torch.bfloat16}


@pytest.mark.parametrize("kind", KINDS)
def test_streams_are_those_between_the_blocks(kind):
    stack, tokens = bare_stack(kind), some_tokens()
    with torch.no_grad():
        logits, streams = stack(tokens, return_stream=True)
        assert len(streams) == LAYERS + 1
        assert torch.equal(streams[0], stack.embedding.weight[tokens])
        assert torch.equal(streams[1], streams[0] + stack.blocks[0](streams[0]))
        assert torch.equal(logits, stack.head(streams[-1]))
        for i, stream in enumerate(streams):
            assert torch.equal(stack.hidden(tokens, i), stream)
    with pytest.raises(ValueError, match="after 3 blocks"):
        stack.hidden(tokens, LAYERS + 1)


def test_without_residual_a_block_replaces_the_stream():
    stack, tokens = bare_stack("mamba", residual=False), some_tokens()
    with torch.no_grad():
        _, (start, middle, _) = stack(tokens, return_stream=True)
        assert torch.equal(middle, stack.blocks[0](start))


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_are_the_unmodified_library_modules(kind):
    real = mamba_classes()
    for block in lm_stack(kind).blocks:
        assert type(block) is {"mamba": real.Mamba, "mamba2": real.Mamba2}[kind]
        assert block.A_log._no_weight_decay and block.D._no_weight_decay


def test_any_mixer_module_can_be_a_block():
    embedding, head = nn.Embedding(VOCAB, D_MODEL), nn.Linear(D_MODEL, VOCAB, bias=False)
    stack = Stack(embedding, [nn.Linear(D_MODEL, D_MODEL)], head, residual=True)
    assert stack(some_tokens()).shape == (3, 9, VOCAB)


def test_gradients_reach_every_weight():
    stack = lm_stack("mamba")
    stack(some_tokens()).square().mean().backward()
    assert all(parameter.grad is not None for parameter in stack.parameters())


# Building


def test_blocks_of_one_bare_stack_may_differ():
    configs = [BLOCK_CONFIG["mamba"], BLOCK_CONFIG["mamba"] | {"d_state": 7, "expand": 1}]
    small, wide = (
        random_tensors(lm_config("mamba") | {"state_size": c["d_state"], "expand": c["expand"]}) for c in configs
    )
    stack = Stack.bare(
        torch.randn(VOCAB, D_MODEL),
        [mixers(small)[0], mixers(wide)[1]],
        "mamba",
        configs,
        torch.randn(3, D_MODEL),
        True,
        D_MODEL,
    )
    assert [block.d_inner for block in stack.blocks] == [2 * D_MODEL, D_MODEL]
    assert stack(some_tokens()).shape == (3, 9, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_vocabulary_is_neither_initialised_nor_copied(kind):
    config = lm_config(kind, vocab=50_257, d_model=1_056, layers=1)
    tensors = {name: torch.zeros(shape) for name, shape in tensor_shapes(config).items()}
    stack = Stack.from_language_model(config, tensors)
    given = {tensor.data_ptr() for tensor in tensors.values()}
    assert {parameter.data_ptr() for parameter in stack.parameters()} == given


@pytest.mark.parametrize(
    "tokens, fragment",
    [
        (torch.zeros(2, 3), "int64"),
        (torch.zeros(3, dtype=torch.int64), "(3,)"),
        (torch.tensor([[0, VOCAB]]), "range from 0 to 11"),
        (torch.tensor([[-1, 2]]), "range from -1 to 2"),
    ],
)
def test_bad_tokens_are_refused(tokens, fragment):
    with pytest.raises(ValueError) as caught:
        lm_stack("mamba")(tokens)
    assert fragment in str(caught.value)


@pytest.mark.parametrize(
    "change, fragment",
    [
        ({"lm_head.weight": torch.zeros(4, D_MODEL)}, "head.weight has shape (4, 16), expected (11, 16)"),
        ({"lm_head.bias": torch.zeros(VOCAB)}, "no place for the tensor lm_head.bias"),
        ({"lm_head.weight": None}, "no tensor head.weight"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(change, fragment):
    config = lm_config("mamba")
    tensors = {name: t for name, t in (random_tensors(config) | change).items() if t is not None}
    with pytest.raises(ValueError) as caught:
        Stack.from_language_model(config, tensors)
    assert fragment in str(caught.value)


def test_configs_that_do_not_fit_are_refused():
    config = lm_config("mamba")
    tensors = random_tensors(config)
    with pytest.raises(ValueError, match="no entry 'state_size'"):
        Stack.from_language_model({k: v for k, v in config.items() if k != "state_size"}, tensors)
    with pytest.raises(ValueError, match="model_type 's4' is no family of ours, expected 'mamba' or 'mamba2'"):
        Stack.from_language_model(config | {"model_type": "s4"}, tensors)
    with pytest.raises(ValueError, match="block_tensors is for 2 blocks, and block_config for 1"):
        Stack.bare(
            tensors["backbone.embeddings.weight"],
            mixers(tensors),
            "mamba",
            [BLOCK_CONFIG["mamba"]],
            tensors["lm_head.weight"],
            True,
            D_MODEL,
        )
