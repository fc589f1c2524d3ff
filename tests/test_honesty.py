"""Exact, or refused: circuits and checkpoints that an attack once got past the compiler or the verifier."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from compiler import (
    Alphabet,
    Circuit,
    Codebook,
    CompileError,
    InputLanguage,
    Stream,
    Tokens,
    bare,
    compile,
    concatenate,
    memory,
    present,
    readout_integer,
    readout_one_hot,
    select,
)
from compiler.artifact.json_files import canonical_json
from compiler.artifact.manifest import manifest_content, sealed
from tests.constructions.test_construct import checkpoint, made, run  # noqa: F401 (fixtures)

LETTERS = ("a", "b", "c", "d", "e")
ALPHABET = Alphabet.of(*LETTERS, *(str(i) for i in range(10)))
X = Tokens(ALPHABET)
LANGUAGE = InputLanguage.of(ALPHABET, "any", [("any", "any", LETTERS)], 7, "letters")


def scores(stream: Stream) -> Circuit:
    return Circuit("attack", readout_integer(stream, ALPHABET, {str(i): i for i in range(10)}), LANGUAGE)


def balance(amount: int) -> Stream:
    return X.number({"a": amount + 1, "b": -amount}).cumsum()


CANCELLING = {
    "clip": lambda n: n.clip(0, 9),
    "nine times a flag": lambda n: 9 * (n > 100),
    "look-up": lambda n: n.lookup([9, 3, 7, 5]),
    "one-hot": lambda n: 5 * n.one_hot(3)[1] + 7 * n.one_hot(3)[2],
    "select": lambda n: select(n > 100, 5, 2),
}


@pytest.mark.parametrize("target", ["mamba", "mamba2", "s4d"])
@pytest.mark.parametrize("amount", [3, 1_000, 300_000, 2_000_000])
@pytest.mark.parametrize("name", CANCELLING)
def test_terms_that_cancel_are_exact_or_refused(name: str, amount: int, target: str) -> None:
    """relu(n) − relu(n − 1) is a flag, but its terms are as large as n."""
    circuit = scores(CANCELLING[name](balance(amount)))
    try:
        compiled = compile(circuit, target)
    except CompileError as refusal:
        assert amount > 1_000 and "quanta" in str(refusal)
        return
    tokens = np.array(list(product(range(3), repeat=5)))
    with torch.no_grad():
        assert np.array_equal(bare(compiled)(torch.from_numpy(tokens)).numpy(), compiled.interpret(tokens))


def test_a_flag_among_several_is_no_one_hot() -> None:
    flags = concatenate(*(present(X.is_in(t)) for t in LETTERS)) & X.one_hot(("a",))
    compiled = compile(scores(select(present(X.is_in("c")).shift(1), flags.sum(), 0)))
    tokens = np.array(list(product(range(5), repeat=4)))
    with torch.no_grad():
        assert np.array_equal(bare(compiled)(torch.from_numpy(tokens)).numpy(), compiled.interpret(tokens))


@pytest.mark.parametrize(
    "stream",
    [
        lambda: X.number({"a": 1.5}),
        lambda: X.is_in("a").cumsum().clip(0, Fraction(1, 2)) > 0,
    ],
)
def test_a_type_that_does_not_hold_is_refused(stream) -> None:
    with pytest.raises((CompileError, TypeError), match="declared|clip|integer|compares"):
        compile(scores(stream()))


def test_half_of_a_query_is_compared_in_halves() -> None:
    letters = X.one_hot(LETTERS)
    half = memory.write(letters.shift(1), X.is_in("a"), policy="sum").read(letters * Fraction(1, 2))
    sequences = list(product(range(5), repeat=5))
    with torch.no_grad():
        answers = bare(compile(scores(half > 0)))(torch.tensor(sequences))[:, -1].argmax(-1).tolist()
    for tokens, answer in zip(sequences, answers, strict=True):
        written = {tokens[t - 1] for t in range(1, 5) if tokens[t] == 0}  # the last read comes with the last write
        assert ALPHABET.tokens[answer] == str(int(tokens[-1] in written)), tokens


@pytest.mark.parametrize("words", [[[1, 0, -1]], [[2, -1]], [[1, -1], [1, -1]], [[0, 0], [0, 1]]])
def test_a_codebook_is_checked(words: list) -> None:
    with pytest.raises(ValueError, match="codebook"):
        Codebook(np.array(words))


def test_a_language_whose_start_leads_nowhere_is_refused() -> None:
    language = InputLanguage.of(ALPHABET, "strat", [("any", "any", LETTERS)], 5, "a typo")
    with pytest.raises(CompileError, match="no edge leaves the start state 'strat'"):
        compile(Circuit("typo", readout_one_hot(X.one_hot(), ALPHABET), language))


def test_unknown_dtype_and_empty_input_get_a_sentence() -> None:
    with pytest.raises(ValueError, match="dtype 'fp16' is unknown"):
        compile(scores(X.is_in("a")), dtype="fp16")
    with pytest.raises(ValueError, match="hold no token"):
        bare(compile(scores(X.is_in("a").cumsum())))(torch.zeros(1, 0, dtype=torch.int64))


# Checkpoints whose manifest was written anew around other files --------------------------------------


def reseal(directory: Path, **changes) -> None:
    manifest = manifest_content(directory) | changes
    (directory / "construction.json").write_text(canonical_json(sealed(manifest, directory)))


def swap_two_tokens(directory: Path) -> None:
    path = directory / "tokenizer.json"
    text = json.loads(path.read_text())
    words = text["model"]["vocab"]
    words["v3"], words["v4"] = words["v4"], words["v3"]
    path.write_text(json.dumps(text))


def raise_the_end_token(directory: Path) -> None:
    tensors = load_file(directory / "model.safetensors")
    tensors["lm_head.weight"][-3] = 1000
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize("change", [swap_two_tokens, raise_the_end_token])
def test_a_resealed_checkpoint_that_is_another_model_fails(
    change,
    checkpoint: Path,  # noqa: F811
    capsys: pytest.CaptureFixture,
) -> None:
    change(checkpoint)
    reseal(checkpoint)
    capsys.readouterr()
    assert run("verify", str(checkpoint), "--samples", "5", "--json") == 1
    out, err = capsys.readouterr()
    assert "is not what its circuit compiles to" in err and json.loads(out)["complaints"]
    assert json.loads(out)["guarantee"] is None  # what is proved of the construction is not so of these files
    assert run("verify", str(checkpoint), "--samples", "5") == 1
    assert "promise and proof: not shown" in (told := capsys.readouterr().out) and "proved" not in told


def test_a_resealed_claim_fails(checkpoint: Path, capsys: pytest.CaptureFixture) -> None:  # noqa: F811
    reseal(checkpoint, guarantee=manifest_content(checkpoint)["guarantee"] | {"domain": "every input whatsoever"})
    assert run("verify", str(checkpoint), "--samples", "5", "--json") == 1
    assert "another guarantee.domain: 'every input whatsoever'" in capsys.readouterr().err


def test_a_resealed_description_fails(checkpoint: Path, capsys: pytest.CaptureFixture) -> None:  # noqa: F811
    """In the manifest, and in circuit.json too: the construction says its own."""
    promise = manifest_content(checkpoint)["promise"] | {"description": "every input whatsoever"}
    circuit = json.loads((checkpoint / "circuit.json").read_text())
    circuit["promise"]["description"] = promise["description"]
    reseal(checkpoint, promise=promise)
    assert run("verify", str(checkpoint), "--samples", "5", "--json") in (1, 2)
    (checkpoint / "circuit.json").write_text(canonical_json(circuit))
    reseal(checkpoint, promise=promise)
    capsys.readouterr()
    assert run("verify", str(checkpoint), "--samples", "5", "--json") == 1
    assert "another promise.description: 'every input whatsoever'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "changes", [{"construction": "unheard-of"}, {"params": {"kappa": 3, "colour": 1}}, {"params": None}]
)
def test_a_manifest_of_no_construction_is_refused(
    changes: dict,
    checkpoint: Path,  # noqa: F811
    capsys: pytest.CaptureFixture,
) -> None:
    reseal(checkpoint, **changes)
    assert run("verify", str(checkpoint), "--json") == 1
    errors = capsys.readouterr().err
    assert "the checkpoint's construction is" in errors or "construction.json: params" in errors


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors", "config.json"])
def test_a_missing_file_fails_in_one_sentence(name: str, checkpoint: Path, capsys: pytest.CaptureFixture) -> None:  # noqa: F811
    (checkpoint / name).unlink()
    assert run("verify", str(checkpoint), "--json") == 1
    assert f"{name} is missing" in capsys.readouterr().err


def test_sequences_beyond_the_promise_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Somewhere else than by default: there may be the checkpoint of `make demo`, which is refused first."""
    assert run("mqar", "--max-length", "50", "--out", str(tmp_path / "checkpoint")) == 2
    said = capsys.readouterr().err
    assert "max_length = 50 is too small" in said and "smallest max_length that works is 100" in said
    assert "because with length = 0 mqar is run on sequences of 100 tokens" in said, "what makes them so long"


def test_an_occupied_out_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert run("mqar", "--out", str(tmp_path)) == 2
    assert "is not a checkpoint of ours" in capsys.readouterr().err and (tmp_path / "notes.txt").exists()


def test_a_narrow_promise_is_loaded_in_its_dtype(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    from compiler.runtime import torch_only_transformers

    torch_only_transformers()
    assert (
        run(
            "mqar",
            "--kappa",
            "4",
            "--vocab",
            "8",
            "--dtype",
            "bfloat16",
            "--samples",
            "5",
            "--out",
            str(tmp_path / "c"),
            "--json",
        )
        == 0
    )
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "c").dtype == torch.bfloat16
