"""Tokenizer files by hand: one word per token, words separated by white space.

A token's id is its place in the list. The special tokens are the last ids, so that the ids of a circuit's own
alphabet start at 0 and no circuit token can end a generation. Hugging Face's text-generation pipeline glues the
new words to the prompt as it was typed, so a prompt for it should end with a space.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from compiler.artifact.errors import CheckpointError

SPECIAL_TOKENS = ("<bos>", "<eos>", "<pad>", "<unk>")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


def with_special_tokens(names: Iterable[str]) -> list[str]:
    """The full token list of a circuit whose alphabet is `names`."""
    return [*names, *SPECIAL_TOKENS]


def special_ids(vocab: int) -> dict[str, int]:
    """Ids of bos, eos, pad and unk in a vocabulary of this size, special tokens included."""
    first = vocab - len(SPECIAL_TOKENS)
    if first < 1:
        raise CheckpointError(
            f"a vocabulary of {vocab} has no room for a token beside the {len(SPECIAL_TOKENS)} special ones."
        )
    return {name.strip("<>"): first + i for i, name in enumerate(SPECIAL_TOKENS)}


def check_tokens(tokens: Sequence[str]) -> None:
    """Raise CheckpointError unless every name is one unique word and the special tokens come last."""
    ordinary = tokens[: -len(SPECIAL_TOKENS)]
    if tuple(tokens[len(ordinary) :]) != SPECIAL_TOKENS:
        raise CheckpointError(f"the token list must end with {' '.join(SPECIAL_TOKENS)}.")
    for name in ordinary:
        if not isinstance(name, str) or name.split() != [name]:
            raise CheckpointError(f"the token name {name!r} is not one word without white space.")
        if any(special in name for special in SPECIAL_TOKENS):
            raise CheckpointError(f"the token name {name!r} contains a special token.")
    if len(set(ordinary)) < len(ordinary):
        ((most, times),) = Counter(ordinary).most_common(1)
        raise CheckpointError(f"the token name {most!r} occurs {times} times.")


def tokenizer_files(tokens: Sequence[str]) -> dict[str, dict]:
    """The contents of the tokenizer files, by file name; raises CheckpointError for an unusable token list."""
    check_tokens(tokens)
    return {"tokenizer.json": _tokenizer(tokens), "tokenizer_config.json": _tokenizer_config()}


def read_tokens(directory: Path) -> list[str]:
    """The token list that `tokenizer_files` was given, from its tokenizer.json."""
    vocab = json.loads((directory / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    return sorted(vocab, key=vocab.get)


def _tokenizer(tokens: Sequence[str]) -> dict:
    """The `tokenizers` library's own format; without a decoder it joins words with spaces."""
    ids = {name: i for i, name in enumerate(tokens)}
    added = [
        {
            "id": ids[name],
            "content": name,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for name in SPECIAL_TOKENS
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": ids, "unk_token": "<unk>"},
    }


def _tokenizer_config() -> dict:
    """The class name is the one that transformers 4 and 5 both read; left padding is the one generate() wants."""
    return {
        "bos_token": "<bos>",
        "clean_up_tokenization_spaces": False,
        "eos_token": "<eos>",
        "model_input_names": ["input_ids", "attention_mask"],
        "pad_token": "<pad>",
        "padding_side": "left",
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": "<unk>",
    }
