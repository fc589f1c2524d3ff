"""Circuits in hosts with the gated delta rule: the host's own logits before, and plain Python for the answers."""

import json

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from compiler.compiled import Compiled
from compiler.driver import compile
from compiler.graft import GraftError, graft, save
from compiler.graft.families import family_of, qwen
from compiler.graft.families.delta import DeltaHost
from compiler.graft.measure import host_difference, same_sums
from compiler.targets.gated_deltanet import emit
from tests.constructions.test_refusals import run
from tests.graft.hosts import VOCAB, delta_host, host_text, induction
from tests.graft.test_branch_delta import CASES, CIRCUIT, swaps
from tests.graft.test_direct_sum import LETTERS, check_answers, mixed

KINDS = ("olmo", "qwen")
OTHER = {"attention_bias": True, "tie_word_embeddings": True, "linear_conv_kernel_dim": 3, "linear_num_value_heads": 2}
OWN = {"olmo": CASES["olmo-hybrid: a gated delta rule"][1:], "qwen": CASES["qwen3.5: a gated delta rule"][1:]}
"""A circuit that overwrites or swaps, and what plain Python says of it."""


def lanes_of(grafted, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The circuit's lanes behind its last layer, as the last norm makes them audible, and as the compiler says."""
    compiled: Compiled = grafted.compiled
    alphabet = compiled.source.token_alphabet
    symbol = np.full(grafted.model.config.vocab_size, alphabet.size - 1)
    symbol[list(grafted.ids.values())] = [alphabet.index(letter) for letter in grafted.ids]
    with torch.no_grad():
        stream = grafted.model(torch.from_numpy(rows), output_hidden_states=True).hidden_states[len(compiled.blocks)]
    first = grafted.report["host"]["d_model"]
    level = family_of(grafted.model.config.model_type).last_norm(grafted.model)[first].item()
    held = stream[..., first : first + compiled.lanes.count].double().numpy() * level
    return held, compiled.lane_values(symbol[rows])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("options", [{}, OTHER])
@pytest.mark.parametrize("kind", KINDS)
def test_host_logits_are_bit_equal_and_the_circuit_answers(kind, options, dtype):
    model = delta_host(kind, dtype=dtype, **options)
    grafted = graft(model, induction(LETTERS))
    promise = grafted.report["host_promise"]
    assert promise["norm_change"] == 0 and promise["level"] == "same operands"
    assert same_sums(model, grafted, host_text(2, 12))
    assert host_difference(model, grafted, host_text()).equal
    assert check_answers(grafted.model, grafted, mixed(grafted, 0.3)) > 50
    held, expected = lanes_of(grafted, mixed(grafted, 0.3, count=3))
    assert np.array_equal(held, expected) and expected.std() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_cache_padding_generation_and_a_round_trip(kind, tmp_path):
    model = delta_host(kind)
    grafted = graft(model, induction(LETTERS))
    save(grafted, tmp_path / "grafted")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "grafted")
    assert type(again) is type(model)
    ids = host_text(3, 70)
    mask = torch.stack([(torch.arange(70) >= start).long() for start in (9, 3, 0)])
    with torch.no_grad():
        whole = again(ids).logits
        assert torch.equal(whole, grafted.model(ids).logits)
        assert torch.equal(whole[..., :VOCAB], model(ids).logits)
        before, after = (m(ids, attention_mask=mask).logits[..., :VOCAB] for m in (model, again))
        assert torch.equal(before[mask > 0], after[mask > 0])
        states = [None, None]
        for part in ids.split([62, 1, 1, 6], 1):
            parts = [m(part, past_key_values=s, use_cache=True) for m, s in zip((model, again), states, strict=True)]
            assert torch.equal(parts[0].logits, parts[1].logits[..., :VOCAB])
            states = [each.past_key_values for each in parts]
    rows = mixed(grafted, 0.4)
    padded = np.hstack([np.zeros((len(rows), 5), dtype=np.int64), rows])
    told = torch.ones(padded.shape, dtype=torch.int64)
    told[:, :5] = 0
    assert check_answers(again, grafted, padded, told) > 50
    options = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    prompt = torch.tensor([[grafted.ids[letter] for letter in "abcab"]])
    kept = again.generate(prompt, max_new_tokens=6, **options)
    assert kept[0].tolist() == [grafted.ids[letter] for letter in "abcabcabcab"]
    assert torch.equal(kept, again.generate(prompt, max_new_tokens=6, use_cache=False, **options))
    written = [
        m.generate(ids[:, :61], attention_mask=mask[:, :61], max_new_tokens=6, **options) for m in (model, again)
    ]
    assert torch.equal(*written)


@pytest.mark.parametrize("kind", KINDS)
def test_swaps_and_deletion_in_a_host_of_the_same_rule(kind):
    """Behind letters, among tokens of the host, which they pass over."""
    build, answers = OWN[kind]
    grafted = graft(delta_host(kind), build())
    names = {place: letter for letter, place in grafted.ids.items()}
    rows = mixed(grafted, 0.3, length=140)
    with torch.no_grad():
        best = grafted.model(torch.from_numpy(rows)).logits.argmax(-1).numpy()
    asked = 0
    for row, found in zip(rows, best, strict=True):
        for wanted, token in zip(answers([names.get(int(t)) for t in row]), found, strict=True):
            asked += wanted is not None
            assert wanted is None or token == grafted.ids[wanted]
    assert asked > 200


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_that_is_not_scaled_changes_the_host(monkeypatch, kind):
    monkeypatch.setattr(DeltaHost, "scale", lambda *sizes: 1.0)
    model = delta_host(kind)
    assert not same_sums(model, graft(model, induction("abc")), host_text(2, 12))


def test_a_head_without_its_ballast_changes_the_circuit(monkeypatch):
    monkeypatch.setattr(emit, "BALLAST", 2.0**6)
    monkeypatch.setattr("compiler.targets.gated_deltanet.read.check_heads", lambda *told: None)
    grafted = graft(delta_host("qwen"), induction(LETTERS))
    assert not np.array_equal(*lanes_of(grafted, mixed(grafted, 0.3, count=3)))


def test_a_norm_of_qwen_multiplies_by_what_is_written_in_it():
    """1 + w is w for every weight that a circuit needs, in float32."""
    norm = graft(delta_host("qwen"), induction("abc")).model.model.norm.weight.detach()
    large = norm[norm.abs() > 2]
    assert len(large) and (large >= 2.0**25).all() and torch.equal(1.0 + large, large)
    assert qwen.QwenHost.unit == 1


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("olmo", {"linear_key_head_dim": 8}, "linear_key_head_dim is 8, and √8 is no power of two"),
        ("qwen", {"linear_key_head_dim": 32}, "linear_key_head_dim is 32, and √32"),
        ("qwen", {"linear_value_head_dim": 2}, "linear_value_head_dim is 2, over which no norm"),
        ("olmo", {"linear_value_head_dim": 41}, "linear_value_head_dim is 41, over which no norm"),
        ("olmo", {"linear_allow_neg_eigval": False}, "linear_allow_neg_eigval is false"),
        ("olmo", {"linear_key_head_dim": 4}, "keys of 16 numbers, and the host's linear_key_head_dim is 4"),
        ("qwen", {"hidden_act": "gelu"}, "its activation is gelu"),
    ],
)
def test_hosts_that_cannot_be_exact_are_refused(kind, options, words):
    with pytest.raises(GraftError, match=words):
        graft(delta_host(kind, **options), induction(LETTERS))


def test_what_would_round_is_refused():
    with pytest.raises(GraftError, match=r"width is 96, .* take 4\^k times the host's width"):
        graft(delta_host("olmo"), induction("abc"), width=96)
    with pytest.raises(GraftError, match="holds a circuit already"):
        graft(graft(delta_host("olmo"), induction("abc")).model, induction("abc"))
    model = delta_host("olmo")
    with torch.no_grad():
        model.model.layers[0].mlp.up_proj.weight[0, 0] = 2.0**-149
    with pytest.raises(GraftError, match="up_proj.weight has a number that times 0.5 leaves its format"):
        graft(model, induction("abc"))


def test_swaps_need_more_than_qwen_has():
    from compiler.errors import CompileError

    with pytest.raises(CompileError, match="permute"):
        graft(delta_host("qwen"), swaps())
    assert compile(swaps(), "gated-deltanet").blocks


def test_the_command(tmp_path, capsys):
    delta_host("olmo").save_pretrained(tmp_path / "host")
    (tmp_path / "own.py").write_text(CIRCUIT)
    command = ["graft", str(tmp_path / "host"), f"{tmp_path}/own.py:parity", "--out", str(tmp_path / "out")]
    assert run(*command, "--samples", "10", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["measured"]["host"]["same_sums"] and report["measured"]["answers"]["wrong"] == 0
    a, b = (report["letters"][letter] for letter in "ab")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    with torch.no_grad():
        assert model(torch.tensor([[b, 9, a, b, 3, b]])).logits.argmax(-1)[0, [0, 2, 3, 5]].tolist() == [b, b, a, b]
