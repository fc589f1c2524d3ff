"""A circuit beside a host of any class: the host's logits before, and plain Python for the answers."""

import json

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    DynamicCache,
    FalconMambaConfig,
    FalconMambaForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
)

from compiler.graft import GraftError, branch, reader
from tests.constructions.test_refusals import run
from tests.fresh import fresh
from tests.graft.hosts import VOCAB, host, host_text, induction, induction_answers

LETTERS = "abcde"
TOKENS = {letter: 3 + 2 * i for i, letter in enumerate(LETTERS)}


def llama():
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    return LlamaForCausalLM(LlamaConfig(vocab_size=VOCAB, num_key_value_heads=2, **sizes)).eval()


def falcon():
    torch.manual_seed(0)
    return FalconMambaForCausalLM(FalconMambaConfig(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2)).eval()


HOSTS = {"mamba": host, "mamba2": lambda: host("mamba2"), "llama": llama, "falcon": falcon}


def trained(model):
    """The projections moved away from zero."""
    torch.manual_seed(1)
    with torch.no_grad():
        model.write.add_(torch.randn_like(model.write))
        model.say.add_(torch.randn_like(model.say))
    return model


def text(share: float = 0.5, count: int = 4, length: int = 40) -> torch.Tensor:
    rng = np.random.default_rng(7)
    letters = rng.choice(list(TOKENS.values()), (count, length))
    return torch.from_numpy(
        np.where(rng.random((count, length)) < share, rng.integers(0, VOCAB, letters.shape), letters)
    )


def expected(row: torch.Tensor) -> list[str | None]:
    names = {place: letter for letter, place in TOKENS.items()}
    return induction_answers([names.get(int(token), "-") for token in row], LETTERS)


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_the_reader_gives_the_answers_of_plain_python(target):
    ids = text()
    read = reader(induction(LETTERS), TOKENS, VOCAB, target)(ids)
    asked = 0
    for row, answers in zip(ids, read, strict=True):
        for wanted, found in zip(expected(row), answers, strict=True):
            assert found.sum() == (wanted is not None)
            if wanted is not None:
                asked += 1
                assert found[LETTERS.index(wanted)] == 1
    assert asked > 30


@pytest.mark.parametrize("name", HOSTS)
def test_nothing_changes_until_it_is_trained_and_then_only_where_there_is_an_answer(name):
    model, ids = HOSTS[name](), text()
    joined = branch(model, induction(LETTERS), TOKENS, where="logits")
    with torch.no_grad():
        before = model(ids).logits
        assert torch.equal(joined(ids).logits, before)
        after = trained(joined)(ids).logits
    answered = torch.tensor([[answer is not None for answer in expected(row)] for row in ids])
    assert torch.equal(after[~answered], before[~answered]) and not torch.equal(after[answered], before[answered])


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
@pytest.mark.parametrize("name", HOSTS)
def test_cache_pieces_padding_and_generation(name, target):
    joined = trained(branch(HOSTS[name](), induction(LETTERS), TOKENS, where="both", target=target))
    ids = text()
    pieces = (
        [7, 1, 1, 11, 20] if name not in ("mamba", "falcon") else [7] + [1] * 33
    )  # transformers' Mamba itself restarts on pieces
    cache, found = None, []
    with torch.no_grad():
        whole = joined(ids).logits
        for piece in ids.split(pieces, 1):
            output = joined(piece, past_key_values=cache, use_cache=True)
            cache = output.past_key_values
            found.append(output.logits)
        assert (torch.cat(found, 1) - whole).abs().max() < 1e-4
        padded = torch.cat([torch.full((len(ids), 5), 3), ids], 1)
        mask = torch.ones_like(padded)
        mask[:, :5] = 0
        assert (joined(padded, attention_mask=mask).logits[:, 5:] - whole).abs().max() < 1e-4
    options = {"max_new_tokens": 8, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    kept = joined.generate(ids[:, :9], **options)
    assert torch.equal(kept, joined.generate(ids[:, :9], use_cache=False, **options))
    assert torch.equal(kept, joined.generate(padded[:, :14], attention_mask=mask[:, :14], **options)[:, 5:])
    assert joined.generate(ids[:, :9], num_beams=3, **options).shape == kept.shape


@pytest.mark.parametrize("name", HOSTS)
def test_a_round_trip_keeps_weights_and_what_is_frozen(name, tmp_path):
    joined = trained(branch(HOSTS[name](), induction(LETTERS), TOKENS, where="both"))
    joined.save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path)
    ids = text()
    with torch.no_grad():
        assert torch.equal(again(ids).logits, joined(ids).logits)
    assert {n.split(".")[0] for n, p in again.named_parameters() if p.requires_grad} == {"host", "write", "say"}
    loss = again(ids, labels=ids).loss
    loss.backward()
    assert again.write.grad.abs().max() > 0 and not list(again.reader.parameters())


def test_the_directory_opens_where_the_project_is_not_imported(tmp_path):
    joined = trained(branch(host(), induction(LETTERS), TOKENS, where="both"))
    joined.save_pretrained(tmp_path / "saved")
    torch.save({"ids": text(), "logits": joined(text()).logits}, tmp_path / "expected.pt")
    program = (
        "import sys, torch\nfrom transformers import AutoModelForCausalLM\n"
        "model = AutoModelForCausalLM.from_pretrained('saved', trust_remote_code=True)\n"
        "told = torch.load('expected.pt')\n"
        "assert (model(told['ids']).logits - told['logits']).abs().max() < 1e-5\n"
        "assert 'compiler' not in sys.modules\n"
    )
    done = fresh("-c", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_circuit_stays_in_float32_beside_a_bfloat16_host(tmp_path):
    joined = branch(host(dtype=torch.bfloat16), induction(LETTERS), TOKENS, where="logits", strength=40.0)
    joined.save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.bfloat16)
    assert next(again.reader.circuit.buffers()).dtype == torch.float32
    assert next(again.host.parameters()).dtype == torch.bfloat16
    ids = text()
    with torch.no_grad():
        best = again(ids).logits.argmax(-1)
    for row, found in zip(ids, best, strict=True):
        for wanted, token in zip(expected(row), found, strict=True):
            assert wanted is None or int(token) == TOKENS[wanted]


class Other(torch.nn.Module):
    """A module of nobody's library: an embedding, a Mamba mixer, a head, and the circuit's answers in its forward."""

    def __init__(self):
        super().__init__()
        from compiler.runtime import block_classes

        self.embedding = torch.nn.Embedding(VOCAB, 32)
        self.mixer = block_classes()["mamba"](32, d_state=4)
        self.head = torch.nn.Linear(32, VOCAB)
        self.reader = reader(induction(LETTERS), TOKENS, VOCAB)
        self.write = torch.nn.Linear(len(LETTERS), VOCAB, bias=False)

    def forward(self, ids, cache=None):
        x = self.embedding(ids)
        return self.head(x + self.mixer(x)), self.write(self.reader(ids, cache=cache))


def test_a_reader_in_a_module_of_any_kind_and_step_by_step(tmp_path):
    torch.manual_seed(0)
    model, ids = Other().eval(), text()
    cache = DynamicCache()
    cache.layers.extend(model.reader.new_layers())
    with torch.no_grad():
        _, whole = model(ids)
        pieces = torch.cat([model(piece, cache)[1] for piece in ids.split([3, 1, 20, 16], 1)], 1)
        assert torch.equal(pieces, whole)
        torch.save(model.state_dict(), tmp_path / "weights.pt")
        again = Other().eval()
        again.load_state_dict(torch.load(tmp_path / "weights.pt"))
        assert torch.equal(again(ids)[1], whole)
    assert not [name for name, _ in model.named_parameters() if name.startswith("reader")]


def test_several_tokens_are_one_letter():
    tokens = {"a": [3, 4], "b": 5}
    read = reader(induction("ab"), tokens, VOCAB)(torch.tensor([[3, 5, 9, 4]]))
    assert read[0, -1].tolist() == [0, 1]  # what followed a, by either name, is b


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: branch(torch.nn.Linear(2, 2), induction(), {"a": 1}), "use `reader"),
        (lambda: branch(host(), induction(), {}), "token map is empty"),
        (lambda: branch(host(), induction(), {"z": 1}), "no letter of the circuit"),
        (lambda: branch(host(), induction(), {"a": VOCAB}), f"ids 0 to {VOCAB - 1}"),
        (lambda: branch(host(), induction(), {"a": 1, "b": [2, 1]}), "both to 1"),
        (lambda: branch(host(), induction(), {"a": 1}, strength=2.0), "it is for logits"),
    ],
)
def test_one_sentence_for_what_cannot_be(build, words):
    with pytest.raises(GraftError, match=words):
        build()


def test_a_cache_without_the_circuits_state_is_refused():
    joined, ids = branch(llama(), induction(LETTERS), TOKENS), text()
    cache = joined.host(ids, use_cache=True).past_key_values
    with pytest.raises(ValueError, match="no state of the circuit"):
        joined(ids[:, :1], past_key_values=cache)
    assert joined(ids, past_key_values=DynamicCache(config=joined.host.config)).logits.shape[1] == ids.shape[1]


def test_the_command(tmp_path, capsys):
    place, out = tmp_path / "host", tmp_path / "out"
    llama().save_pretrained(place)
    (tmp_path / "map.json").write_text(json.dumps({"v0": 3, "v1": [4, 5]}))
    command = ["graft", str(place), "induction-heads", "--out", str(out), "--mode", "branch", "--json"]
    assert run(*command) == 2
    assert "--tokens" in capsys.readouterr().err
    assert run(*command, "--tokens", str(tmp_path / "map.json")) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["measured"]["host"]["worst"] == 0
    model = AutoModelForCausalLM.from_pretrained(out)
    assert model(host_text()).logits.shape[-1] == VOCAB
    assert run(*command, "--tokens", str(tmp_path / "map.json"), "--width", "64", "--force") == 2
