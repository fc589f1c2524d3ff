"""The tokenizer of a grafted model reads each letter as its id and keeps the host's tokens, or the graft is refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast
from typer.testing import CliRunner

from compiler.graft.errors import GraftError
from compiler.graft.tokenizer import letter_name, tokenizer_with_letters
from constructions.command.cli import app
from tests.graft.hosts import host

ROWS = 40
WORDS = {"<eos>": 0, "<unk>": 1, "the": 2, "cat": 3, "sat": 4}
CASES = ["a", "A", "b", "B", "\u00b2", "2", "\uff21"]


def _host(place: Path, words: dict[str, int], normalizer: normalizers.Normalizer | None = None) -> Path:
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="<eos>").save_pretrained(place)
    return place


def _grafted(letters: list[str], circuit: str = "ind") -> SimpleNamespace:
    ids = {letter: ROWS + i for i, letter in enumerate(letters)}
    return SimpleNamespace(report={"host": {"vocab": ROWS}, "circuit": circuit}, ids=ids)


@pytest.mark.parametrize("normalizer", [normalizers.Lowercase(), normalizers.NFKC(), None])
def test_a_normaliser_of_the_host_leaves_letters_as_they_are(tmp_path, normalizer):
    place = _host(tmp_path, WORDS, normalizer)
    made = tokenizer_with_letters(place, _grafted(CASES))
    made.save_pretrained(tmp_path / "out")
    read = AutoTokenizer.from_pretrained(tmp_path / "out")
    names = [letter_name("ind", letter) for letter in CASES]
    assert read(" ".join(names), add_special_tokens=False).input_ids == [ROWS + i for i in range(len(CASES))]
    assert read("".join(reversed(names))).input_ids == [ROWS + i for i in reversed(range(len(CASES)))]
    before = AutoTokenizer.from_pretrained(place)
    assert read("the cat sat").input_ids == before("the cat sat").input_ids == [2, 3, 4]
    assert [read.decode([i]) for i in WORDS.values()] == [before.decode([i]) for i in WORDS.values()]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({**WORDS, "cat": 30, "sat": 39}, "the host's 5 tokens are not 0 to 4, each once"),
        ({**WORDS, "sat": ROWS}, f"has {ROWS + 1} tokens, and its embedding has {ROWS} rows"),
        ({**WORDS, "<ind:b>": 5}, "'<ind:b>' is a token of the host already"),
    ],
)
def test_a_host_whose_tokens_would_be_lost_is_refused(tmp_path, words, said):
    with pytest.raises(GraftError, match=said):
        tokenizer_with_letters(_host(tmp_path, words), _grafted(["a", "b"]))


def test_a_letter_that_may_be_two_is_refused(tmp_path):
    """The text of x and y in a row would be read as the letter x><ind:y."""
    with pytest.raises(GraftError, match="may be read for two letters in a row"):
        tokenizer_with_letters(_host(tmp_path, WORDS), _grafted(["x", "y", "x><ind:y"]))


def test_a_name_that_is_not_read_as_its_id_is_refused(tmp_path, monkeypatch):
    """What this guards: the host's tokenizer may read a new name as something else."""
    place = _host(tmp_path, WORDS, normalizers.Lowercase())
    monkeypatch.setattr("transformers.AddedToken", lambda name, normalized: name)
    with pytest.raises(GraftError, match="reads the text"):
        tokenizer_with_letters(place, _grafted(["a", "A"]))


@pytest.mark.parametrize(
    "template", ["{{ messages }}", {"default": "{{ messages }}", "tool_use": "{{ tools }}"}], ids=["one", "two"]
)
def test_a_host_with_chat_templates_keeps_them(tmp_path, template):
    """transformers saves several ones in a folder."""
    place = tmp_path / "host"
    host().save_pretrained(place)
    tokenizer = AutoTokenizer.from_pretrained(_host(tmp_path / "words", WORDS))
    tokenizer.chat_template = template
    tokenizer.save_pretrained(place)
    command = ["graft", str(place), "induction-heads", "--out", str(tmp_path / "out"), "--samples", "4"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.stderr
    assert AutoTokenizer.from_pretrained(tmp_path / "out").chat_template == template
    assert CliRunner().invoke(app, [*command, "--force"]).exit_code == 0


def test_a_host_with_free_ids_is_grafted_without_its_tokenizer(tmp_path):
    place = tmp_path / "host"
    host().save_pretrained(place)
    _host(place, {**WORDS, "cat": 30})
    command = ["graft", str(place), "induction-heads", "--out", str(tmp_path / "out"), "--samples", "4"]
    refused = CliRunner().invoke(app, command)
    assert isinstance(refused.exception, GraftError)
    assert "a copy of the host without its tokenizer's files" in str(refused.exception)
    assert not (tmp_path / "out").exists()
    for name in place.glob("tokenizer*"):
        name.unlink()
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.stderr
    assert not [*(tmp_path / "out").glob("tokenizer*")]
