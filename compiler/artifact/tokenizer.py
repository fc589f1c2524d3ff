"""Tokenizer files by hand: one word per token, words separated by white space.

A token's id is its place in the list. The special tokens are the last ids, so that the ids of a circuit's own
alphabet start at 0. A letter of the circuit may end a generation (`end`); without one `<eos>` is appended, which
never wins. There is no token for the beginning of a text: a circuit counts positions and looks back, so a token
that tools put in front unasked would change its answers. Hugging Face's text-generation pipeline glues the new
words to the prompt as it was typed, so a prompt for it should end with a space.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from compiler.artifact.errors import CheckpointError
from compiler.artifact.json_files import read_json

EOS, PAD, UNK = "<eos>", "<pad>", "<unk>"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


def special_tokens(end: str | None = None) -> tuple[str, ...]:
    """What follows the alphabet: a token that ends a generation, where no letter (`end`) does, padding and unknown."""
    return (PAD, UNK) if end else (EOS, PAD, UNK)


def with_special_tokens(names: Iterable[str], end: str | None = None) -> list[str]:
    """The full token list of a circuit whose alphabet is `names` and whose generations end with the letter `end`."""
    return [*names, *special_tokens(end)]


def special_ids(vocab: int, end: int | None = None) -> dict[str, int]:
    """Ids of eos, pad and unk in a vocabulary of this size, special tokens included; `end`: the letter that is eos."""
    first = vocab - (3 if end is None else 2)
    if first < 1:
        raise CheckpointError(f"a vocabulary of {vocab} has no room for a token beside the special ones.")
    if end is not None and not 0 <= end < first:
        raise CheckpointError(f"eos_token_id is {end!r}, and it must be a letter's id, 0 to {first - 1}.")
    return {"eos": first if end is None else end, "pad": vocab - 2, "unk": vocab - 1}


def check_tokens(tokens: Sequence[str], end: str | None = None) -> None:
    """Raise CheckpointError unless every name is one unique word and the special tokens come last."""
    specials = special_tokens(end)
    ordinary = tokens[: -len(specials)]
    if tuple(tokens[len(ordinary) :]) != specials:
        raise CheckpointError(f"the token list must end with {' '.join(specials)}.")
    if end is not None and end not in ordinary:
        raise CheckpointError(f"the token {end!r}, which ends a generation, is not in the token list.")
    for name in ordinary:
        if not isinstance(name, str) or name.split() != [name]:
            raise CheckpointError(f"the token name {name!r} is not one word without white space.")
        if any(special in name for special in specials):
            kept = f"no name may hold {', '.join(specials)}, which tokenizers cut out of a text"
            raise CheckpointError(f"the token name {name!r} contains a special token; {kept}.")
        if end is not None and end in name and name != end:
            reason = f"contains {end!r}, which ends a generation and which tokenizers therefore cut out of words"
            raise CheckpointError(f"the token name {name!r} {reason}.")
    if len(set(ordinary)) < len(ordinary):
        ((most, times),) = Counter(ordinary).most_common(1)
        raise CheckpointError(f"the token name {most!r} occurs {times} times.")


def tokenizer_files(tokens: Sequence[str], end: str | None = None) -> dict[str, dict]:
    """The contents of the tokenizer files, by file name; raises CheckpointError for an unusable token list."""
    check_tokens(tokens, end)
    return {"tokenizer.json": _tokenizer(tokens, end), "tokenizer_config.json": _tokenizer_config(end or EOS)}


def read_tokens(directory: Path) -> list[str]:
    """The token list that `tokenizer_files` was given, from its tokenizer.json."""
    path, content = directory / TOKENIZER_FILES[0], read_json(directory / TOKENIZER_FILES[0])
    model = content.get("model") if isinstance(content, dict) else None
    vocab = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(vocab, dict) or not all(type(i) is int for i in vocab.values()):
        raise CheckpointError(f"{path} has no vocabulary, an object of ids by names under model and vocab.")
    if sorted(vocab.values()) != list(range(len(vocab))):
        raise CheckpointError(f"{path} has {len(vocab)} names whose ids are not 0 to {len(vocab) - 1}.")
    return sorted(vocab, key=vocab.__getitem__)


def _tokenizer(tokens: Sequence[str], end: str | None) -> dict:
    """The `tokenizers` library's own format; without a decoder it joins words with spaces."""
    marked = special_tokens(end) if end is None else (end, *special_tokens(end))
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
        for name in marked
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
        "model": {"type": "WordLevel", "vocab": ids, "unk_token": UNK},
    }


def _tokenizer_config(end: str) -> dict:
    """The class name is the one that transformers 4 and 5 both read; left padding is the one generate() wants."""
    return {
        "clean_up_tokenization_spaces": False,
        "eos_token": end,
        "model_input_names": ["input_ids", "attention_mask"],
        "pad_token": PAD,
        "padding_side": "left",
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": UNK,
    }
