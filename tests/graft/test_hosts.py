"""Which hosts a direct sum takes, and one sentence for each that it does not."""

import json
import re

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from compiler import Alphabet, CheckpointError, Circuit, InputLanguage, Tokens, readout_one_hot
from compiler.graft import GraftError, graft, save, sizes
from compiler.graft.hosts import read_host, tokenizer_of
from compiler.graft.measure import host_difference
from compiler.runtime import has_mamba_ssm
from tests.constructions.test_refusals import run
from tests.graft.hosts import VOCAB, delta_host, host, host_text, induction


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=VOCAB, num_hidden_layers=1, **sizes))


def present_only() -> Circuit:
    letters = Alphabet.of("a", "b")
    scores = readout_one_hot(Tokens(letters).one_hot(), letters)
    return Circuit("echo", scores, InputLanguage.everything(letters, 100))


def unfinished():
    with torch.device("meta"):
        return type(host())(host().config)


def broken(value: float):
    model = host()
    with torch.no_grad():
        model.backbone.norm_f.weight[0] = value
    return model


REFUSED = [
    (lambda: graft(broken(float("nan")), induction()), "norm_f.weight holds an infinity or a NaN"),
    (lambda: graft(broken(float("inf")), induction()), "norm_f.weight holds an infinity or a NaN;"),
    (lambda: graft(host("falcon", d_model=16, time_step_rank=41), induction()), "time_step_rank is 41"),
    (lambda: graft(llama(), induction()), "a direct sum is for MambaForCausalLM, Mamba2ForCausalLM, FalconMamba"),
    (lambda: graft(nn.Linear(3, 3), induction()), "a direct sum is for MambaForCausalLM"),
    (lambda: graft(17, induction()), "it is no module"),
    (lambda: graft("no/such/place", induction()), "there is no directory no/such/place"),
    (lambda: graft(host().half(), induction()), "its weights are float16"),
    (lambda: graft(host().double(), induction()), "its weights are float64"),
    (lambda: graft(unfinished(), induction()), "no values"),
    (lambda: graft(host(hidden_act="gelu"), induction()), "its activation is gelu"),
    (lambda: graft(host("mamba2", time_step_limit=(0.0, 0.1)), induction()), "time_step_limit"),
    (lambda: graft(host(), induction(), width=70), "the least width that holds them is"),
    (lambda: graft(host(), induction(), tokens={"x": 3}), "no letter of the circuit"),
    (lambda: graft(host(), induction(), tokens={"a": VOCAB}), f"ids 0 to {VOCAB - 1}"),
    (lambda: graft(host(), induction(), tokens={"a": 3, "b": 3}), "both to 3"),
    (lambda: graft(host(), present_only()), "the present token alone"),
]


@pytest.mark.parametrize(("build", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_one_sentence_for_what_cannot_be(build, words):
    with pytest.raises(GraftError, match=words.replace("(", r"\(")) as caught:
        build()
    assert "\n" not in str(caught.value) and str(caught.value).rstrip().endswith(".")


def test_a_side_branch_is_advised_of_language_models_alone(tmp_path):
    """A model over numbers and a module that is none of transformers' have no tokens that it could read."""
    (tmp_path / "config.json").write_text('{"model_type": "compiled-numbers"}')
    for given, advised in ((llama(), True), (nn.Linear(3, 3), False), (tmp_path, False)):
        with pytest.raises(GraftError, match="a direct sum is for") as caught:
            graft(given, induction())
        assert ("side branch" in str(caught.value)) == advised
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(GraftError, match="a direct sum is for .* graft it as a side branch"):
        graft(tmp_path, induction())


@pytest.mark.parametrize(("width", "words"), [(256.0, "an integer is needed"), (True, "an integer"), (0, "at least 1")])
def test_a_width_that_is_no_size(width, words):
    with pytest.raises((TypeError, ValueError), match=f"width is {width}.*{words}"):
        graft(host(), induction(), width=width)


@pytest.mark.parametrize(
    ("kind", "options", "width", "reason"),
    [
        ("mamba", {"d_model": 16}, 94, "over which no mean of equal numbers is exact"),
        ("mamba2", {}, 132, r"whose \d+ channels are no whole heads of \d+ in each group"),
        ("mamba2", {}, 188, "over which no mean of equal numbers is exact"),
        ("falcon", {"d_model": 16}, 94, "over which no mean of equal numbers is exact"),
        ("qwen", {}, 200, r"√\(200/32\), which must be a power of two"),
        ("mamba", {"d_model": 16}, 1 << 21, "beyond 1048576"),
    ],
)
def test_a_width_with_room_is_refused_by_its_own_reason_and_the_nearest_work(kind, options, width, reason, monkeypatch):
    monkeypatch.setattr(sizes, "free_bytes", lambda: None)  # as on a machine with all memory that there is
    model = delta_host(kind) if kind == "qwen" else host(kind, **options)
    with pytest.raises(GraftError, match=reason) as refused:
        graft(model, induction(), width=width)
    said = str(refused.value)
    assert "do not fit" not in said and "the least" not in said
    nearest = [int(n) for n in re.findall(r"\d+", said.split("will do")[1])]
    assert nearest[0] < width
    if len(nearest) == 1:
        assert nearest == [1 << 20]
        return
    assert width < nearest[1]
    for size in nearest:
        assert graft(model, induction(), width=size).model.config.hidden_size == size
    for size in range(nearest[0] + 1, nearest[1]):
        with pytest.raises(GraftError):
            graft(model, induction(), width=size)


@pytest.mark.parametrize("width", [10**9, 1 << 16])
def test_a_width_beyond_the_memory_is_refused_and_the_largest_works(width, monkeypatch):
    """1,048,576 was named as possible, which takes 32 TiB."""
    monkeypatch.setattr(sizes, "free_bytes", lambda: 1 << 26)
    model = host("mamba", d_model=16)
    with pytest.raises(GraftError, match=r"beyond \d+, for which there is memory; the largest width") as refused:
        graft(model, induction(), width=width)
    largest = int(re.findall(r"\d+", str(refused.value))[-1])
    built = graft(model, induction(), width=largest).model
    assert 1 << 23 < 8 * sum(p.numel() for p in built.parameters()) < 1 << 27


def test_a_host_whose_means_are_not_exact_at_any_multiple_is_told_of_a_width():
    """Not that the circuit is too large."""
    model = host(d_model=41)
    with pytest.raises(GraftError, match="host's 41 will do.*no mean of equal numbers is exact; .* side branch") as no:
        graft(model, induction())
    near = int(re.search(r"will do (?:is|are) (\d+)", str(no.value))[1])
    assert "smaller circuit" not in str(no.value) and near


def test_the_least_width_of_a_refusal_works():
    with pytest.raises(GraftError) as caught:
        graft(host(), induction(), width=70)
    least = int(str(caught.value).rstrip(".").split()[-1])
    assert graft(host(), induction(), width=least).model.config.hidden_size == least


@pytest.mark.parametrize("config", ["[]", "{", '{"model_type": "llama"}', '{"model_type": "falcon_mamba"}'])
def test_directories_that_are_no_host(tmp_path, config):
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(GraftError):
        read_host(tmp_path)


def mamba_ssm_model(layer: str):
    from compiler.runtime import mamba_classes

    mamba_classes()
    from mamba_ssm.models.config_mamba import MambaConfig
    from mamba_ssm.models.mixer_seq_simple import MambaLMHeadModel

    torch.manual_seed(0)
    options = {"layer": layer} | ({"headdim": 16, "d_state": 16} if layer == "Mamba2" else {})
    sizes = {"d_model": 64, "n_layer": 2, "vocab_size": VOCAB}
    return MambaLMHeadModel(MambaConfig(**sizes, ssm_cfg=options, fused_add_norm=False), device="cpu").eval()


@pytest.mark.skipif(not has_mamba_ssm(), reason="mamba_ssm is not installed")
@pytest.mark.parametrize("layer", ["Mamba1", "Mamba2"])
def test_a_model_of_mamba_ssm_is_a_host(layer, tmp_path):
    model = mamba_ssm_model(layer)
    renamed = read_host(model)
    grafted = graft(model, induction())
    ids = host_text()
    with torch.no_grad():
        theirs, ours = model(ids).logits, grafted.model(ids).logits
    assert host_difference(renamed, grafted, ids).equal
    assert (theirs - ours[..., : theirs.shape[-1]]).abs().max() < 1e-5

    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    (tmp_path / "config.json").write_text(json.dumps(dict(vars(model.config))))
    read = read_host(tmp_path)
    with torch.no_grad():
        assert torch.equal(read(ids).logits, renamed(ids).logits)


@pytest.mark.skipif(not has_mamba_ssm(), reason="mamba_ssm is not installed")
@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("attn_layer_idx", [1], "attention layers"),
        ("d_intermediate", 64, "MLPs"),
        ("rms_norm", False, "LayerNorm"),
    ],
)
def test_what_mamba_ssm_has_and_transformers_has_not(key, value, words):
    model = mamba_ssm_model("Mamba1")
    setattr(model.config, key, value)
    with pytest.raises(GraftError, match=words):
        read_host(model)


def test_a_directory_in_use_is_kept(tmp_path):
    grafted = graft(host(), induction())
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(GraftError, match="no grafted model"):
        save(grafted, tmp_path, overwrite=True)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    save(grafted, tmp_path / "out")
    with pytest.raises(GraftError, match="already"):
        save(grafted, tmp_path / "out")
    save(grafted, tmp_path / "out", overwrite=True)
    told, out = json.loads((tmp_path / "out" / "graft.json").read_text())["files"], tmp_path / "out"
    for name in ("notes.txt", "README.md"):
        (out / name).write_text("mine")
    for _ in range(2):
        save(grafted, out, overwrite=True)
    assert (out / "notes.txt").read_text() == (out / "README.md").read_text() == "mine"
    assert json.loads((out / "graft.json").read_text())["files"].keys() == told.keys() - {"README.md"}


def test_a_file_of_the_user_is_not_taken_for_one_of_the_tokenizer(tmp_path):
    grafted, out = graft(host(), induction()), tmp_path / "out"
    save(grafted, out)
    (out / "tokenizer.json").write_text("mine")
    names = type("Names", (), {"save_pretrained": lambda self, place: (place / "tokenizer.json").write_text("{}")})()
    with pytest.raises(CheckpointError, match="tokenizer.json was not written by us and would be lost: move it away"):
        save(grafted, out, tokenizer=names, overwrite=True)
    assert (out / "tokenizer.json").read_text() == "mine" and (out / "model.safetensors").is_file()


# Directories that are damaged -------------------------------------------------------------------------


def without_a_weight(place):
    tensors = load_file(place / "model.safetensors")
    del tensors["backbone.layers.1.mixer.D"]
    save_file(tensors, place / "model.safetensors", metadata={"format": "pt"})


def cut_off(place):
    content = (place / "model.safetensors").read_bytes()
    (place / "model.safetensors").write_bytes(content[:1000])


def a_pickle_that_runs(place):
    (place / "model.safetensors").unlink()
    (place / "pytorch_model.bin").write_bytes(b"\x80\x04cos\nsystem\n(S'touch ran'\ntR.")


def config_with(**entries):
    def damage(place):
        config = json.loads((place / "config.json").read_text())
        (place / "config.json").write_text(json.dumps(config | entries))

    return damage


def mamba_ssm_without_weights(place):
    (place / "config.json").write_text(json.dumps({"d_model": 8, "n_layer": 1, "vocab_size": 8, "ssm_cfg": {}}))
    torch.save({"backbone.embedding.weight": torch.zeros(8, 8)}, place / "pytorch_model.bin")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (without_a_weight, "lack backbone.layers.1.mixer.D"),
        (cut_off, "cannot be read as a model"),
        (a_pickle_that_runs, "cannot be read as a model"),
        (config_with(layer_norm_epsilon="x"), "cannot be read as a model"),
        (mamba_ssm_without_weights, "holds no MambaLMHeadModel"),
    ],
)
def test_a_damaged_directory_is_refused_in_a_sentence(tmp_path, monkeypatch, damage, words):
    """Also a missing weight, for which transformers draws random numbers; and nothing from there is run."""
    monkeypatch.chdir(tmp_path)
    host().save_pretrained(tmp_path / "host")
    damage(tmp_path / "host")
    with pytest.raises(GraftError, match=words):
        graft(tmp_path / "host", induction("ab"))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("kind", "entries", "words"),
    [
        ("mamba", {"layer_norm_epsilon": 0.0}, "its layer_norm_epsilon is 0.0, and a number from"),
        ("mamba", {"layer_norm_epsilon": float("nan")}, "its layer_norm_epsilon is nan, and a number from"),
        ("mamba", {"expand": 7}, "its expand is 7, and its 128 channels are not that times its width"),
        ("falcon", {"expand": 10**12}, "its expand is 1000000000000, and its 128 channels"),
        ("falcon", {"mixer_rms_eps": -1e-3}, "its mixer_rms_eps is -0.001, and a number from"),
        ("mamba2", {"chunk_size": 0}, "it cannot be run"),
        ("mamba2", {"chunk_size": -1}, "it cannot be run"),
        ("mamba2", {"chunk_size": 10**15}, "it cannot be run"),
        ("mamba2", {"time_step_limit": []}, "its time_step_limit is"),
        ("mamba2", {"time_step_limit": [float("nan")] * 2}, "its time_step_limit is .nan, nan., which would clamp"),
        ("olmo", {"rms_norm_eps": 1e300}, "its rms_norm_eps is 1e.300, and a number from"),
    ],
)
def test_sizes_and_numbers_of_a_configuration_that_cannot_be(tmp_path, capsys, kind, entries, words):
    """Also by the command: exit code 2, one sentence, and nothing is written."""
    model = delta_host(kind) if kind == "olmo" else host(kind)
    model.save_pretrained(tmp_path / "host")
    config_with(**entries)(tmp_path / "host")
    with pytest.raises(GraftError, match=words) as caught:
        graft(tmp_path / "host", induction("ab"))
    assert "\n" not in str(caught.value)
    command = ["graft", str(tmp_path / "host"), "induction-heads", "--out", str(tmp_path / "o")]
    if "chunk_size" in entries:
        (tmp_path / "map.json").write_text(json.dumps({f"v{i}": 3 + i for i in range(16)}))
        command += ["--mode", "branch", "--tokens", str(tmp_path / "map.json")]
    assert run(*command) == 2
    assert "Traceback" not in capsys.readouterr().err and not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"num_hidden_layers": 10**9}, "'num_hidden_layers' = 1000000000, far more than its weight files have"),
        ({"num_hidden_layers": 900}, r"asks for [\d,]+ numbers or more, in [\d,]+ tensors or more, and its weight"),
        ({"vocab_size": 10**6}, "asks for 64,000,000 numbers or more, in 1 tensor or more"),
        ({"hidden_size": 10**9}, "asks for .* numbers or more"),
        ({"text_config": {"num_layers": 10**400}}, "'num_layers' = an integer beyond 2.64, far more"),
    ],
)
@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin", "shards"])
def test_a_configuration_beyond_its_weights_is_refused_before_any_of_it_is_made(
    tmp_path, capsys, entries, words, weights
):
    """By both modes of the graft and by `construct sensitivity`: the headers of the files set the limit."""
    place = tmp_path / "host"
    host().save_pretrained(place, **({"max_shard_size": "50KB"} if weights == "shards" else {}))
    if weights == "pytorch_model.bin":
        torch.save(load_file(place / "model.safetensors"), place / weights)
        (place / "model.safetensors").unlink()
    assert read_host(place) is not None
    config_with(**entries)(place)
    (tmp_path / "map.json").write_text(json.dumps({f"v{i}": 3 + i for i in range(16)}))
    branch = ["--mode", "branch", "--tokens", str(tmp_path / "map.json")]
    with pytest.raises(GraftError, match=words):
        read_host(place)
    for command in (["graft", str(place), "induction-heads", *branch], ["sensitivity", str(place), "--input", "1 2"]):
        out = ["--out", str(tmp_path / "o")] if command[0] == "graft" else []
        assert run(*command, *out) == 2
        assert re.search(words, capsys.readouterr().err) and not (tmp_path / "o").exists()


@pytest.mark.parametrize("content", ["{", "[1]"])
def test_a_damaged_tokenizer_is_refused_in_a_sentence(tmp_path, content):
    (tmp_path / "config.json").write_text('{"model_type": "mamba"}')
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(GraftError, match="holds a tokenizer that cannot be read"):
        tokenizer_of(tmp_path)
