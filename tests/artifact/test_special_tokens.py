"""Special tokens never win, nothing offers a beginning, a letter may end a generation, padding stays exact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

from compiler import Alphabet, Circuit, CompileError, InputLanguage, Tokens, compile, constant, language_model
from compiler.artifact import CheckpointError, package
from compiler.artifact.model import Stack
from compiler.artifact.tokenizer import check_tokens
from compiler.runtime import torch_only_transformers

LETTERS = Alphabet.of("a", "b", "c", ".")
X = Tokens(LETTERS)
EVERYTHING = InputLanguage.everything(LETTERS, 40)


def countdown(end: str | None = ".") -> Circuit:
    """Scores below zero everywhere: after n tokens "." wins from the sixth position on, "a" before."""
    time = constant(1).cumsum()
    scores = np.array([[0.0], [0], [0], [1]]) @ time + np.array([[-6.0], [-900], [-900], [-11]]) @ constant(1)
    return Circuit("countdown", scores, EVERYTHING, end=end)


def before() -> Circuit:
    """The letter before the present one, with scores below zero."""
    return Circuit("before", 2 * X.one_hot().shift(1) - 9, EVERYTHING)


def saved(circuit: Circuit, directory: Path, target: str = "mamba", dtype: str = "float32") -> Path:
    compile(circuit, target, dtype).save(directory)
    return directory


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("target", ["mamba", "mamba2", "s4d"])
def test_special_tokens_score_below_every_letter(target: str, dtype: str) -> None:
    circuit = countdown() if dtype == "float32" else before()
    compiled = compile(circuit, target, dtype)
    model = language_model(compiled)
    narrow = {k: v if k.endswith(("A_log", ".D")) else v.to(getattr(torch, dtype)) for k, v in model.tensors.items()}
    tokens = np.random.default_rng(0).integers(0, 4, (8, 20))
    with torch.no_grad():
        scores = Stack.from_language_model(model.config, narrow)(torch.from_numpy(tokens)).double().numpy()
    assert np.array_equal(scores[..., :4], compiled.interpret(tokens))
    assert (scores[..., 4:] == model.special_score).all()
    assert model.special_score < scores[..., :4].min() < 0


@pytest.fixture(scope="module")
def generating(tmp_path_factory: pytest.TempPathFactory):
    torch_only_transformers()
    directory = saved(countdown(), tmp_path_factory.mktemp("special") / "countdown")
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    return directory, model, AutoTokenizer.from_pretrained(directory)


def test_generation_ends_with_the_letter_that_ends_it(generating) -> None:
    directory, model, names = generating
    ids = names("b c", return_tensors="pt").input_ids
    assert names.decode(model.generate(ids, max_new_tokens=30)[0]) == "b c a a a a ."
    assert model.generation_config.eos_token_id == names.eos_token_id == LETTERS.index(".")
    assert names.pad_token_id not in range(LETTERS.size)
    write = pipeline("text-generation", model=model, tokenizer=names)
    text = write("b c ", max_new_tokens=30, do_sample=False)[0]["generated_text"]
    assert text.split() == ["b", "c", "a", "a", "a", "a"]  # pipelines leave the token out that ends a generation


def test_nothing_offers_a_beginning(generating) -> None:
    directory, model, names = generating
    assert model.config.bos_token_id is None and model.generation_config.bos_token_id is None
    assert names.bos_token is None and names.bos_token_id is None
    for special in (True, False):
        assert names("b c", add_special_tokens=special).input_ids == [1, 2]
    with pytest.raises(ValueError, match="bos_token_id"):
        model.generate(max_new_tokens=1)


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_left_padding_with_a_mask_is_exact(target: str, tmp_path: Path) -> None:
    """Rows of a batch score and go on as they do alone, although the circuit counts its positions."""
    torch_only_transformers()
    directory = saved(countdown(), tmp_path / target, target)
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    names = AutoTokenizer.from_pretrained(directory)
    texts = ["a", "b c a b", "c b"]
    batch = names(texts, return_tensors="pt", padding=True)
    with torch.no_grad():
        together = model(**batch).logits
        for row, text in enumerate(texts):
            alone = model(**names(text, return_tensors="pt")).logits[0]
            assert torch.equal(together[row, -len(alone) :], alone)
    written = model.generate(**batch, max_new_tokens=30)
    assert [names.decode(row, skip_special_tokens=True).split() for row in written] == [
        ["a"] * 6,
        ["b", "c", "a", "b", "a", "a"],
        ["c", "b", "a", "a", "a", "a"],
    ]


def test_without_a_letter_the_special_token_ends_nothing(tmp_path: Path) -> None:
    directory = saved(countdown(end=None), tmp_path / "on")
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    names = AutoTokenizer.from_pretrained(directory)
    assert names.eos_token == "<eos>" and model.config.eos_token_id == 4
    assert model.generate(torch.tensor([[1, 2]]), max_new_tokens=12).shape == (1, 14)


def test_mamba2_lives_through_float16(tmp_path: Path) -> None:
    """A limit of the steps beyond float16 made `clamp` raise an error."""
    torch_only_transformers()
    directory = saved(before(), tmp_path / "half", "mamba2", "float16")
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float16)
    with torch.no_grad():
        assert model(torch.tensor([[2, 1, 0]])).logits[0].argmax(-1).tolist() == [0, 2, 1]


def test_refusals() -> None:
    with pytest.raises(ValueError, match="end is '!', and it must be a token of the circuit's alphabet: a b c"):
        Circuit("c", X.one_hot(), EVERYTHING, end="!")
    with pytest.raises(CheckpointError, match="'v.1' contains '.', which ends a generation"):
        check_tokens(["v.1", ".", "<pad>", "<unk>"], ".")
    check_tokens(["a", "<eos>", "<pad>", "<unk>"], "<eos>")
    with pytest.raises(CompileError, match="it gives 6 numbers, and the alphabet has 4 tokens"):
        language_model(compile(Circuit("wide", np.ones((6, 1)) @ constant(1).cumsum(), EVERYTHING)))


def test_a_model_that_no_machine_holds_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "LARGEST_MODEL", 2_000)
    monkeypatch.setattr(package, "_embedding", None)  # the first tensor that would be made
    with pytest.raises(CompileError, match=r"would have 2,[0-9]{3} parameters .* and at most 2,000 are built"):
        language_model(compile(before()))


def test_letters_without_a_score_score_0(monkeypatch):
    """A circuit may give fewer numbers than there are letters; memory that was used before holds anything."""
    model = language_model(compile(Circuit("one", X.is_in(["a"]), EVERYTHING), "mamba"))
    monkeypatch.setattr(package.np, "empty", lambda shape: np.full(shape, 7.0))
    whole = model.over_vocabulary(np.ones((2, 3, 1)))
    assert (whole[..., 0] == 1).all() and (whole[..., 1 : model.letters] == 0).all()
    assert (whole[..., model.letters :] == model.special_score).all()
