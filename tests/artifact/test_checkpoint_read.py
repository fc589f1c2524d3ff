"""Checkpoints as stock transformers reads them, alone in its process: whole, and with the logits of our stack."""

import json

import pytest
import torch

from compiler import load
from compiler.artifact.save import write
from compiler.artifact.tokenizer import special_ids
from tests.artifact.tiny import CARD_TEXT, CLAIM, KINDS, TOKENS, random_tensors, tiny_config
from tests.fresh import fresh

PROMPT = [1, 3, 0, 2, 4, 1]
PROMPT_TEXT = "k0 v3 _ k1 v17 k0"
NEW_TOKENS = 9

# Runs where neither our code nor mamba_ssm exists: whatever it prints, stock transformers computed.
READ_WITH_HUGGING_FACE = """
import json, sys
for name in ("compiler", "constructions", "verify", "mamba_ssm", "causal_conv1d"):
    sys.modules[name] = None
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline
torch.set_num_threads(1)
prompt, text, new, directories = json.loads(sys.argv[1])
report = {}
for directory in directories:
    model, loading = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32, output_loading_info=True)
    tokenizer = AutoTokenizer.from_pretrained(directory)
    ids = torch.tensor([prompt])
    with torch.no_grad():
        logits = model(ids).logits[0]
    generated = model.generate(ids, max_new_tokens=new, do_sample=False)[0, len(prompt):]
    write = pipeline("text-generation", model=directory)
    report[directory] = {
        "class": type(model).__name__,
        "loading": {key: sorted(map(str, value)) for key, value in loading.items()},
        "logits": logits.tolist(),
        "generated": generated.tolist(),
        "encoded": tokenizer.encode(text),
        "called": sorted(tokenizer(text)),
        "unknown": tokenizer.encode("k0  nonsense\\n<eos>"),
        "decoded": tokenizer.decode(prompt),
        "special": [tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id, tokenizer.unk_token_id],
        "pipeline": write(text + " ", max_new_tokens=new, do_sample=False)[0]["generated_text"],
    }
print(json.dumps(report))
"""


def always_token_zero(config):
    """Weights whose largest logit is token 0 everywhere: lane 0 is a constant that only token 0 reads."""
    tensors = random_tensors(config)
    for name, tensor in tensors.items():
        if name.endswith("out_proj.weight"):
            tensor[0] = 0
    tensors["backbone.embeddings.weight"][:, 0] = 10
    tensors["lm_head.weight"].zero_()[0, 0] = 1
    return tensors


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """Directories by (kind, weights)."""
    root = tmp_path_factory.mktemp("checkpoints")
    for kind in KINDS:
        config = tiny_config(kind)
        write(root / f"{kind}-random", config, random_tensors(config), TOKENS, CLAIM, {}, CARD_TEXT)
        write(root / f"{kind}-zero", config, always_token_zero(config), TOKENS, CLAIM, {}, CARD_TEXT)
    return {(kind, weights): root / f"{kind}-{weights}" for kind in KINDS for weights in ("random", "zero")}


@pytest.fixture(scope="module")
def hugging_face(checkpoints, tmp_path_factory):
    """What stock transformers, alone in its process, says about each of them."""
    job = json.dumps([PROMPT, PROMPT_TEXT, NEW_TOKENS, [str(path) for path in checkpoints.values()]])
    run = fresh("-c", READ_WITH_HUGGING_FACE, job, cwd=tmp_path_factory.mktemp("elsewhere"))
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout.splitlines()[-1])
    return {key: report[str(path)] for key, path in checkpoints.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_hugging_face_loads_every_tensor_and_invents_none(hugging_face, kind):
    answer = hugging_face[kind, "random"]
    assert answer["class"] == {"mamba": "MambaForCausalLM", "mamba2": "Mamba2ForCausalLM"}[kind]
    assert not any(answer["loading"].values())


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_our_stack(checkpoints, hugging_face, kind):
    stack = load(checkpoints[kind, "random"])
    with torch.no_grad():
        ours = stack(torch.tensor([PROMPT]))[0]
    theirs = torch.tensor(hugging_face[kind, "random"]["logits"])
    assert (ours - theirs).abs().max() <= 1e-4 * theirs.abs().max()


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_generation_is_that_of_our_stack(checkpoints, hugging_face, kind):
    stack = load(checkpoints[kind, "random"])
    state, generated = stack.initial_state(1), []
    for token in PROMPT:
        logits, state = stack.step(torch.tensor([token]), state)
    for _ in range(NEW_TOKENS):
        generated.append(int(logits.argmax()))
        logits, state = stack.step(torch.tensor(generated[-1:]), state)
    assert hugging_face[kind, "random"]["generated"] == generated


@pytest.mark.parametrize("kind", KINDS)
def test_generation_does_not_stop_at_token_zero(hugging_face, kind):
    answer = hugging_face[kind, "zero"]
    assert answer["generated"] == [0] * NEW_TOKENS
    assert answer["pipeline"] == PROMPT_TEXT + " _" * NEW_TOKENS


@pytest.mark.parametrize("kind", KINDS)
def test_tokenizer_speaks_our_names(hugging_face, kind):
    answer = hugging_face[kind, "random"]
    assert answer["encoded"] == PROMPT
    assert answer["decoded"] == PROMPT_TEXT
    assert answer["called"] == ["attention_mask", "input_ids"]
    ids = special_ids(len(TOKENS))
    assert answer["unknown"] == [1, ids["unk"], ids["eos"]]
    assert answer["special"] == [None, *(ids[name] for name in ("eos", "pad", "unk"))]
