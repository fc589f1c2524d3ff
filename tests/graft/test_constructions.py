"""Constructions of the papers in a host: which go in and answer among its tokens, and what refuses the others."""

import pytest
import torch

from compiler import CompileError
from compiler.graft import graft
from compiler.graft.measure import answers, host_difference, mixed_text
from constructions.construction import NumericConstruction
from constructions.copy_dp.copy import Copy
from constructions.registry import CONSTRUCTIONS
from tests.graft.hosts import VOCAB, host, host_text

TAKEN = [
    ("mqar", {"kappa": 4, "vocab": 8}, "mamba"),
    ("keep-nth", {"n": 3, "vocab": 6}, "mamba"),
    ("absolute-time", {}, "mamba"),
    ("selective-copy", {"n": 2, "vocab": 3, "length": 8}, "mamba"),
    ("edit-distance", {"length": 2, "distinct_letters": 2}, "mamba"),
    ("phonebook", {"names": 3, "entries": 2, "digits": 2}, "mamba"),
    ("copy", {"n": 4, "vocab": 3}, "mamba"),
    ("copy", {"n": 4, "vocab": 3, "form": "place"}, "mamba"),
    ("copy", {"n": 4, "vocab": 3, "form": "pointer"}, "mamba"),
    ("copy", {"n": 3, "vocab": 3, "form": "delay"}, "mamba"),
    ("copy", {"n": 4, "vocab": 3, "arch": "mamba2"}, "mamba2"),
    ("mqar", {"kappa": 4, "vocab": 8}, "mamba2"),
    ("mqar", {"kappa": 16, "vocab": 128}, "mamba"),
    ("induction-heads", {"vocab": 6}, "mamba2"),
]
REFUSED = [
    ("count-in-row", {}, "mamba", "would fit"),
    ("keep-nth", {"n": 3, "vocab": 6}, "mamba2", "times shorter may fit"),
    ("mqar", {}, "mamba", "float32 adds exactly up to"),
    ("mqar", {}, "mamba2", "float32 adds exactly up to"),
]


@pytest.mark.parametrize(("name", "options", "kind"), TAKEN)
def test_constructions_that_go_into_a_host(name, options, kind):
    model = host(kind)
    grafted = graft(model, CONSTRUCTIONS[name](**options).circuit())
    assert host_difference(model, grafted, host_text()).equal
    found = answers(grafted, mixed_text(grafted, VOCAB, 16, 40, seed=0))
    assert found.asked > 20 and not found.wrong and not found.intruding


@pytest.mark.parametrize("kind", ["mamba", "mamba2"])
def test_construct_copy_is_written_to_its_end_among_tokens_of_the_host(kind):
    """Words of the host stand before, between and behind what is copied; none of them is."""
    model = host(kind)
    grafted = graft(model, Copy(n=3, vocab=2, arch=kind).circuit())
    ids = grafted.ids
    assert len(grafted.compiled.blocks) > 1
    prompt = torch.tensor([[1, ids["x0"], 3, ids["x1"], ids["x0"], 5, 6, ids["|"]]])
    written = grafted.model.generate(prompt, max_new_tokens=12, do_sample=False, pad_token_id=0)[0, 8:].tolist()
    assert written == [ids["x0"], ids["x1"], ids["x0"], ids["."]]
    known = model.generation_config.eos_token_id
    assert grafted.model.generation_config.eos_token_id == [known, ids["."]]


OVER_TOKENS = [name for name, family in CONSTRUCTIONS.items() if not issubclass(family, NumericConstruction)]
STAY_OUT = {("mqar", "mamba"), ("mqar", "mamba2"), ("count-in-row", "mamba"), ("count-in-row", "mamba2")}
STAY_OUT |= {("keep-nth", "mamba2"), ("absolute-time", "mamba2")}
"""As docs/graft.md has them."""


@pytest.mark.parametrize("kind", ["mamba", "mamba2"])
@pytest.mark.parametrize("name", OVER_TOKENS)
def test_defaults_go_into_a_host_but_for_those_that_the_page_names(name, kind):
    circuit = CONSTRUCTIONS[name]().circuit()
    if (name, kind) in STAY_OUT:
        with pytest.raises(CompileError):
            graft(host(kind), circuit)
        return
    promise = graft(host(kind), circuit).report["circuit_promise"]
    assert (promise["level"] == "up to rounding") == (name == "viterbi")


@pytest.mark.parametrize(("vocab", "quanta"), [(8, 22), (128, 52)])
def test_how_many_quanta_recall_must_lead_by(vocab, quanta):
    promise = graft(host("mamba"), CONSTRUCTIONS["mqar"](kappa=4, vocab=vocab).circuit()).report["circuit_promise"]
    assert promise["level"] == "up to rounding" and round(promise["lead_needed"] / promise["least_lead"]) == quanta


@pytest.mark.parametrize(("name", "options", "kind", "words"), REFUSED)
def test_constructions_that_do_not(name, options, kind, words):
    with pytest.raises(CompileError, match=words):
        graft(host(kind), CONSTRUCTIONS[name](**options).circuit())
