"""What a side branch must not change: hosts that are called in other ways, other dtypes, padding that goes on."""

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    BertConfig,
    BertForMaskedLM,
    FalconH1Config,
    FalconH1ForCausalLM,
    Gemma3nForCausalLM,
    Gemma3nTextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    OlmoHybridConfig,
    OlmoHybridForCausalLM,
    Qwen3_5ForCausalLM,
    Qwen3_5TextConfig,
    RobertaConfig,
    RobertaForCausalLM,
    RwkvConfig,
    RwkvForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from compiler import Alphabet, Circuit, InputLanguage, Tokens, readout_integer
from compiler.graft import GraftError, branch, reader
from tests.graft.hosts import VOCAB, host, induction
from tests.graft.test_branch import LETTERS, TOKENS, llama, text, trained

SIZES = {"vocab_size": VOCAB, "num_attention_heads": 4, "intermediate_size": 64, "num_hidden_layers": 2}
DELTA = {"linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8}
ENCODER = SIZES | {"hidden_size": 32, "is_decoder": True, "max_position_embeddings": 64}


def gemma3n():
    own = {
        "hidden_size_per_layer_input": 8,
        "vocab_size_per_layer_input": VOCAB,
        "laurel_rank": 4,
        "altup_num_inputs": 2,
    }
    kinds = {
        "layer_types": ["full_attention"] * 2,
        "activation_sparsity_pattern": [0.0, 0.0],
        "num_kv_shared_layers": 0,
    }
    sizes = SIZES | {"hidden_size": 32, "num_key_value_heads": 2, "head_dim": 8}
    return Gemma3nForCausalLM(Gemma3nTextConfig(**sizes, **own, **kinds))


def falcon_h1():
    own = {"mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 8, "ssm_multipliers": [0.5] * 5}
    return FalconH1ForCausalLM(FalconH1Config(**SIZES, **own, hidden_size=32, num_key_value_heads=2))


def olmo_hybrid():
    sizes = SIZES | {"hidden_size": 32, "num_key_value_heads": 4, "layer_types": ["linear_attention", "full_attention"]}
    return OlmoHybridForCausalLM(OlmoHybridConfig(**sizes, **DELTA, pad_token_id=0, eos_token_id=2, bos_token_id=None))


def qwen():
    own = {"head_dim": 8, "layer_types": ["linear_attention", "full_attention"], "num_key_value_heads": 2}
    return Qwen3_5ForCausalLM(Qwen3_5TextConfig(**SIZES, **own, **DELTA, hidden_size=32))


HOSTS = {
    "gpt2: sizes by other names": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, n_embd=32, n_layer=2, n_head=4)),
    "gemma3n: token ids in every layer": gemma3n,
    "roberta: positions from token ids": lambda: RobertaForCausalLM(RobertaConfig(**ENCODER, pad_token_id=1)),
    "falcon-h1: a buffer that is not saved": falcon_h1,
    "olmo-hybrid: a gated delta rule": olmo_hybrid,
    "qwen3.5: a gated delta rule": qwen,
}


class Renamed(LlamaForCausalLM):
    """A class that the directory of a side branch does not name."""


def made(name):
    torch.manual_seed(0)
    model = HOSTS[name]().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize("name", HOSTS)
def test_the_host_is_called_as_it_would_be_without_the_circuit(name, tmp_path):
    model, ids = made(name), text(length=20)
    mask = torch.ones_like(ids)
    mask[0, :4] = 0
    ids[0, :4] = 1
    joined = branch(model, induction(LETTERS), TOKENS, where="both")
    options = {"max_new_tokens": 4, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    with torch.no_grad():
        assert torch.equal(joined(ids, attention_mask=mask).logits, model(ids, attention_mask=mask).logits)
        assert torch.equal(
            joined.generate(ids, attention_mask=mask, **options), model.generate(ids, attention_mask=mask, **options)
        )
        whole = trained(joined)(ids, attention_mask=mask).logits
        joined.save_pretrained(tmp_path)
        again = AutoModelForCausalLM.from_pretrained(tmp_path)
        assert torch.equal(again(ids, attention_mask=mask).logits, whole)


@pytest.mark.parametrize("name", [name for name in HOSTS if "delta rule" in name])
def test_a_circuit_answers_beside_a_gated_deltanet(name):
    """Recall over its letters leads every token of the host, in one pass and by cached steps."""
    joined = branch(made(name), induction(LETTERS), TOKENS, where="logits", strength=1000.0)
    a, b, c = (TOKENS[letter] for letter in LETTERS[:3])
    ids = torch.tensor([[a, b, c, 4, 6, a, b]])
    with torch.no_grad():
        assert joined(ids).logits[0, -2:].argmax(-1).tolist() == [b, c]
        cache = joined(ids[:, :3], use_cache=True).past_key_values
        assert joined(ids[:, 3:], past_key_values=cache).logits[0, -2:].argmax(-1).tolist() == [b, c]


@pytest.mark.parametrize("target", ["mamba-delta-t", "s4d", "mamba3"])
def test_a_circuit_of_other_mixers_is_refused(target):
    with pytest.raises(GraftError, match=f"target is '{target}', and a side branch has mixers of mamba or mamba2 or"):
        branch(llama(), induction(LETTERS), TOKENS, target=target)


def test_arguments_of_the_host_reach_it():
    model, ids = llama(), text(length=20)
    joined = branch(model, induction(LETTERS), TOKENS)
    places = 3 * torch.arange(20)[None]
    assert torch.equal(joined(ids, position_ids=places).logits, model(ids, position_ids=places).logits)
    assert len(joined(ids, output_hidden_states=True).hidden_states) == 3
    wanted = model(ids, labels=ids, num_items_in_batch=7).loss
    assert torch.equal(joined(ids, labels=ids, num_items_in_batch=7).loss, wanted)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: RwkvForCausalLM(RwkvConfig(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2)), "no DynamicCache"),
        (lambda: T5ForConditionalGeneration(T5Config(vocab_size=VOCAB, d_model=32, num_layers=1)), "has an encoder"),
        (lambda: BertForMaskedLM(BertConfig(**ENCODER)), "needs a causal language model"),
        (lambda: Renamed(LlamaConfig(**SIZES, hidden_size=32)), "opened beside a LlamaForCausalLM"),
    ],
)
def test_hosts_that_would_be_wrong_are_refused(build, words):
    with pytest.raises(GraftError, match=words):
        branch(build(), induction(LETTERS), TOKENS)


def test_what_would_be_wrong_is_refused_when_it_is_called():
    joined, ids = branch(host(), induction(LETTERS), TOKENS), text(length=8)
    cache = joined(ids, use_cache=True).past_key_values
    with pytest.raises(ValueError, match="give it as past_key_values"):
        joined(ids, cache_params=cache)
    with pytest.raises(ValueError, match="no state of the circuit"):
        joined(ids, past_key_values=joined.host(ids, use_cache=True).cache_params)
    with pytest.raises(ValueError, match="no inputs_embeds"):
        joined(ids, inputs_embeds=torch.zeros(4, 8, 64))
    with pytest.raises(ValueError, match=f"the host's {VOCAB} tokens"):
        joined.resize_token_embeddings(VOCAB + 8)
    assert joined.resize_token_embeddings(VOCAB) is joined.host.get_input_embeddings()


def others(upto: int) -> Circuit:
    """How many positions there were that held no a, up to a bound: tokens of the host count, padding does not."""
    alphabet = Alphabet(tuple(LETTERS))
    count = (~Tokens(alphabet).is_in("a")).cumsum()
    found = (count - (upto - 2)).clip(0, 3)
    scores = readout_integer(found, alphabet, {letter: i for i, letter in enumerate("abcd")})
    return Circuit("others", scores, InputLanguage.everything(alphabet, 4000))


def others_answers(row: torch.Tensor, mask: torch.Tensor, upto: int) -> list[str | None]:
    """By plain Python; None at tokens that are no letter, and at padding."""
    names = {place: letter for letter, place in TOKENS.items()}
    count, answers = 0, []
    for token, read in zip(row.tolist(), mask.tolist(), strict=True):
        count += bool(read) and names.get(token) != "a"
        answers.append("abcd"[min(max(count - upto + 2, 0), 3)] if read and token in names else None)
    return answers


def named(answers: torch.Tensor) -> list[str | None]:
    return [LETTERS[int(answer.argmax())] if answer.sum() else None for answer in answers]


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
@pytest.mark.parametrize("piece", [1, 5, 20])
def test_padding_that_goes_on_into_later_pieces_is_not_read(target, piece):
    ids = text(length=20)
    mask = torch.stack([(torch.arange(20) >= start).long() for start in (12, 7, 3, 0)])
    read = reader(others(2), TOKENS, VOCAB, target)
    cache = branch(llama(), others(2), TOKENS).new_cache()
    cache.layers = list(read.new_layers())
    pieces = zip(ids.split(piece, 1), mask.split(piece, 1), strict=True)
    answers = torch.cat([read(part, told, cache) for part, told in pieces], 1)
    for row, told, found in zip(ids, mask, answers, strict=True):
        wanted = others_answers(row, told, 2)
        assert [f for f, m in zip(named(found), told, strict=True) if m] == [
            w for w, m in zip(wanted, told, strict=True) if m
        ]


@pytest.mark.parametrize("narrow", [torch.float16, torch.bfloat16, torch.float64])
def test_the_circuit_keeps_its_dtype_where_its_module_is_moved(narrow):
    upto = 300  # beyond the integers of bfloat16
    row = torch.full((1, 310), TOKENS["b"])
    joined = branch(host(), others(upto), TOKENS).to(narrow)
    assert joined.write.dtype == narrow and next(joined.host.parameters()).dtype == narrow
    wanted = others_answers(row[0], torch.ones(310), upto)
    assert named(joined.reader(row)[0]) == wanted and named(joined.half().reader(row)[0]) == wanted
    with torch.autocast("cpu", torch.bfloat16):
        assert named(joined.reader(row)[0]) == wanted


@pytest.mark.parametrize("place", [3.0, None, "3", torch.tensor(3)])
def test_a_token_that_is_no_id_is_refused(place):
    for build in (lambda: branch(host(), induction(), {"a": place}), lambda: reader(induction(), {"a": place}, VOCAB)):
        with pytest.raises(GraftError, match="leads 'a' to"):
            build()


@pytest.mark.parametrize(
    "told", [{"where": "somewhere"}, {"where": "both", "strength": float("nan")}, {"where": "both", "strength": "3"}]
)
def test_arguments_that_say_nothing_are_refused(told):
    with pytest.raises(GraftError, match="is needed|is one of"):
        branch(host(), induction(), {"a": 3}, **told)
