"""Methods that look inside: on circuits whose channels are known, and on ordinary models."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import Mamba2Config, Mamba2ForCausalLM, MambaConfig, MambaForCausalLM

from compiler import compile
from compiler.disguise.key import read_key
from constructions.scoring.build import problem_of
from constructions.scoring.evaluate import score
from constructions.scoring.methods.named import ORACLE, found_by
from constructions.scoring.methods.recurrence import mixers, recurrence
from constructions.scoring.methods.relevance import linear
from constructions.scoring.problem import Found
from tests.scoring.problems import ROOT, circuit, problem, run
from tests.tracing.models import NAMED as CASES


def test_patching_finds_the_channels_of_a_plain_circuit(place):
    one = problem(place, "plain")
    assert score(one, found_by("activation-patching", one)).area > 0.9


def test_the_method_of_the_page_runs(place, tmp_path):
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "scores.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "my_method.py").write_text(program, "utf-8")
    one = problem(place, "plain")
    found = score(one, found_by(f"{tmp_path / 'my_method.py'}:find", one))
    assert found.area == 1 and found.interchange > 0.9


def two_blocks(place: Path, kind: str):
    compile(circuit("at-least-3"), "mamba").save(place / "two")
    if kind == "plain":
        return problem_of(place / "two")
    assert run("disguise", place / "two", "--out", place / "other", "--seed", 1, "--samples", 10) == 0
    return problem_of(place / "other", read_key(place / "other.key.json"))


@pytest.mark.parametrize("kind", ["plain", "hidden"])
def test_an_edge_is_used_where_its_reader_feels_the_channel(kind, tmp_path):
    """Another way to the same truth: move what a channel writes, and see whether the reader's own output moves."""
    one = two_blocks(tmp_path, kind)
    readers = {"backbone.layers.1.norm": "backbone.layers.1.mixer.in_proj", "backbone.norm_f": "lm_head"}
    model, found = one.given.model, []
    assert [(e.source, e.reader.path) for e in one.given.edges] == [
        (0, [*readers][0]),
        (0, [*readers][1]),
        (1, [*readers][1]),
    ]
    for edges, used in zip(one.given.edges, one.edges_used, strict=True):
        written = model.get_submodule(one.given.nodes[edges.source].path).weight.detach()
        norm = model.get_submodule(edges.reader.path).weight.detach()
        reads = (model.get_submodule(readers[edges.reader.path]).weight.detach() * norm) @ written
        felt = (reads.abs().amax(dim=0) > 0).numpy()
        assert not (used == 1)[~felt].any()  # and what is felt but not used is a decoy
        if kind == "plain":
            assert (felt[used >= 0] == (used[used >= 0] == 1)).all()
        found.append((used == 1).sum())
    assert found[0] and found[2] and not found[1]
    assert score(one, found_by(ORACLE, one)).edges == 1
    assert score(one, found_by("attribution-patching", one)).edges > 0.85
    backwards = Found(edges=[-used.astype(float) for used in one.edges_used])
    assert score(one, backwards).edges == 0
    with pytest.raises(ValueError, match="shapes"):
        score(one, Found(edges=[np.zeros(3)]))


def ordinary(mixer: str) -> MambaForCausalLM | Mamba2ForCausalLM:
    """A model of ordinary initialisation without biases: what is relevant stands at the embedding alone."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 9, "hidden_size": 16, "num_hidden_layers": 3, "use_conv_bias": False}
    if mixer == "mamba":
        return MambaForCausalLM(MambaConfig(**sizes, state_size=4, layer_norm_epsilon=0.0)).eval()
    heads = {"num_heads": 4, "head_dim": 8, "n_groups": 2, "chunk_size": 4}
    return Mamba2ForCausalLM(Mamba2Config(**sizes, **heads, state_size=6, layer_norm_epsilon=0.0)).eval()


def some_ids() -> torch.Tensor:
    return torch.randint(0, 9, (2, 7), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("mixer", ["mamba", "mamba2"])
def test_relevance_is_neither_made_nor_lost(mixer):
    """The logit that is asked for stands, whole, at the embedding, and the forward pass is the model's own."""
    model, ids = ordinary(mixer), some_ids()
    stream = model.backbone.embeddings(ids).detach().requires_grad_()
    plain = model(inputs_embeds=stream, use_cache=False).logits
    with linear(model):
        logits = model(inputs_embeds=stream, use_cache=False).logits
    assert torch.allclose(plain, logits, atol=1e-6)
    asked = logits[0, -1, 3]
    (gradient,) = torch.autograd.grad(asked, stream)
    assert float((gradient * stream).sum().detach()) == pytest.approx(float(asked.detach()), rel=1e-4)
    (gradient,) = torch.autograd.grad(plain[0, -1, 3], stream)  # which an ordinary gradient does not give
    assert abs(float((gradient * stream).sum().detach() - asked.detach())) > 0.1 * abs(float(asked.detach()))


@torch.no_grad()
@pytest.mark.parametrize("mixer", ["mamba", "mamba2"])
def test_the_hidden_attention_times_the_channels_is_what_states_put_out(mixer):
    """Held to what out_proj of the library's own block reads, gate and norm included."""
    model, ids, read = ordinary(mixer), some_ids(), []
    one = mixers(model, "a method")[1]
    one.register_forward_pre_hook(lambda module, given: read.append(given[0]))
    one.out_proj.register_forward_pre_hook(lambda module, given: read.append(given[0]))
    model(ids, use_cache=False)
    parts = recurrence(one, read[0])
    attention = parts.attention()
    assert attention.shape == (2, 32, 7, 7) and not attention.triu(1).any()
    put = torch.einsum("ndij,njd->nid", attention, parts.x) + parts.skip * parts.x
    assert torch.allclose(put, parts.scanned(), atol=1e-5)
    whole = one.norm(put, parts.gate) if mixer == "mamba2" else put * torch.nn.functional.silu(parts.gate)
    assert torch.allclose(whole, read[1], atol=1e-5)


def test_methods_that_look_inside_blocks_find_channels_and_refuse_other_blocks(place, tmp_path):
    compile(circuit("last-name"), "mamba2").save(tmp_path / "two")
    compile(CASES["accepted"].build(), "gated-deltanet").save(tmp_path / "other")
    one, two, other = problem(place, "plain"), problem_of(tmp_path / "two"), problem_of(tmp_path / "other")
    for method in ("mamba-lrp", "hidden-attention"):
        assert score(one, found_by(method, one)).area == score(two, found_by(method, two)).area == 1
        with pytest.raises(ValueError, match="blocks of Mamba"):
            found_by(method, other)
