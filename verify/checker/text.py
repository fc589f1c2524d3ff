"""What stands between the scores and a reader: that words are the circuit's letters, and how a generation ends.

The scores are those of ids. A tokenizer that names the ids otherwise, or a generation_config.json that samples, bans
or ends elsewhere, makes another answer of right scores. So these files must be the plain ones: words between white
space, each an id by its place in the alphabet; the highest score is what comes next; the circuit's `end` ends it.
"""

from __future__ import annotations

import re
from pathlib import Path

from verify.checker.configs import same
from verify.checker.files import read_json
from verify.checker.formats import Rejected

# All that a program which loads the model may find: an adapter, other weights, code or a template would be read.
_READ = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
_UNREAD = {"construction.json", "circuit.json", "causal_graph.json", "proof.json", "answers.json", "LICENSE", "NOTICE"}
_UNREAD |= {"certificate.json", "LICENSE.txt", "CITATION.cff", "notes.txt", ".gitattributes", ".gitignore", ".git"}
_UNREAD_SUFFIXES = {".md", ".png", ".svg", ".pdf"}
_PLAIN: dict[str, object] = {"truncation": None, "padding": None, "normalizer": None, "decoder": None}
_PLAIN |= {"pre_tokenizer": {"type": "WhitespaceSplit"}}
MOST_ID = 1 << 31  # which no library holds
_ONE_TEXT = {"Sequence": {"id": "A", "type_id": 0}}
_ANOTHER = {"Sequence": {"id": "B", "type_id": 1}}
_AS_IT_IS = {"type": "TemplateProcessing", "single": [_ONE_TEXT], "pair": [_ONE_TEXT, _ANOTHER], "special_tokens": {}}
_MARKS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
_MARK = {"id", "content", "special", *_MARKS}  # each of which the library needs, to open the file
_CLASSES = ("PreTrainedTokenizerFast", "TokenizersBackend")
_SETTINGS: dict[str, type] = {"transformers_version": str, "backend": str, "is_local": bool, "local_files_only": bool}
_NAMES = ["input_ids", "attention_mask"]
_SPECIAL = re.compile("<[a-z]+[0-9]*>")  # holds no letter and no white space, which would cut letters out of the text
_GREEDY = {"do_sample": False, "bos_token_id": None}
_IDLE: dict[str, type] = {"transformers_version": str, "use_cache": bool, "_from_model_config": bool}
_TOKENIZER = ("tokenizer.json", "tokenizer_config.json")
BY_IDS = "by ids: no tokenizer is there, so nothing is said of text, and a library may build another one in its place"


def check_text(directory: Path, circuit: dict, config: dict, manifest: dict) -> bool:
    """Whether there is text at all: a tokenizer. Rejected, in one sentence, where text in or out is not the circuit's,
    or a tokenizer's file is gone; the other files have been checked.
    """
    promise = manifest["promise"]
    _check_folder(directory)
    letters, end = circuit["alphabet"], circuit["end"]
    for name in letters:
        if any("\ud800" <= c <= "\udfff" for c in name):
            raise Rejected(f"the letter {name!r} holds half a character, which no text does")
    if end is not None and end not in letters:
        raise Rejected(f"circuit.json ends with {end!r}, which is no letter of it")
    if promise.get("stop", end) != end:
        raise Rejected(f"the promise ends a generation with {promise['stop']!r}, and circuit.json with {end!r}")
    stop = None if end is None else letters.index(end)
    _check_config(config, len(letters), stop)
    if (directory / "generation_config.json").exists():
        _check_generation(read_json(directory / "generation_config.json"), config, len(letters), stop)
    if not _has_tokenizer(directory, manifest):
        return False
    vocab = _check_tokenizer(read_json(directory / "tokenizer.json"), letters, end)
    if len(vocab) > config["vocab_size"]:
        last = f"tokenizer.json has the word {list(vocab)[-1]!r} with id {len(vocab) - 1}"
        raise Rejected(f"{last}, and the embedding has {config['vocab_size']} rows")
    _check_settings(read_json(directory / "tokenizer_config.json"), vocab, len(letters), end)
    return True


def _has_tokenizer(directory: Path, manifest: dict) -> bool:
    """Rejected where a file of the tokenizer is missing beside the other, or construction.json lists one that is."""
    files = manifest.get("files")
    listed = [name for name in _TOKENIZER if isinstance(files, dict) and name in files]
    there = [name for name in _TOKENIZER if (directory / name).exists()]
    missing = [name for name in _TOKENIZER if name not in there]
    if missing and (listed or there):
        why = f"{there[0]} stands there" if there else "construction.json lists it"
        raise Rejected(f"{missing[0]} is missing, and {why}: a library would build another tokenizer in its place")
    return bool(there)


def _check_folder(directory: Path) -> None:
    """Nothing stands beside the files that are read here but what no program reads that loads a model."""
    try:
        entries = sorted(directory.iterdir())
    except OSError as reason:
        raise Rejected(f"the files beside config.json cannot be listed: {reason.strerror}") from reason
    for entry in entries:
        if entry.name not in _READ | _UNREAD and entry.suffix not in _UNREAD_SUFFIXES:
            raise Rejected(f"{entry.name} is none of the files of a checkpoint, and may change what a program loads")


def _check_config(config: dict, letters: int, stop: int | None) -> None:
    """Of config.json each entry must be there: left out, it is the class's, such as 0, which is a letter."""
    for key in ("bos_token_id", "eos_token_id", "pad_token_id"):
        if key not in config:
            raise Rejected(f"config.json has no {key}, and the class of the model would choose one")
    _check_ending(config, "config.json", letters, stop)
    _check_row(config, "config.json", config["vocab_size"])


def _check_ending(content: dict, file: str, letters: int, stop: int | None) -> None:
    """A generation ends with the circuit's letter, or with an id that is none; padding is none."""
    found = content.get("eos_token_id")
    right = found == stop if stop is not None else _is_special(found, letters)
    if not right or type(found) in (bool, float):
        wanted = f"{letters} or more" if stop is None else stop
        raise Rejected(f"{file} has eos_token_id = {found!r}, expected {wanted}")
    if not _is_special(content.get("pad_token_id"), letters):
        raise Rejected(f"{file} has pad_token_id = {content['pad_token_id']!r}, expected {letters} or more")
    if content.get("bos_token_id") is not None:
        raise Rejected(f"{file} has a bos_token_id, which the circuit would read as a position")


def _check_row(content: dict, file: str, rows: int) -> None:
    """generate() fills up texts that have ended with the id of padding, and looks its row up."""
    pad = content.get("pad_token_id")
    if pad is not None and pad >= rows:
        raise Rejected(f"{file} has pad_token_id = {pad}, and the embedding has {rows} rows")


def _is_special(found: object, letters: int) -> bool:
    return found is None or type(found) is int and letters <= found < MOST_ID


def _check_generation(content: dict, config: dict, letters: int, stop: int | None) -> None:
    """Nothing but the highest score decides."""
    _check_ending(content, "generation_config.json", letters, stop)
    _check_row(content, "generation_config.json", config["vocab_size"])
    for key, value in content.items():
        if key in _GREEDY and value is not _GREEDY[key]:
            raise Rejected(f"generation_config.json has {key} = {value!r}, expected {_GREEDY[key]!r}")
        if key not in {*_GREEDY, *_IDLE, "eos_token_id", "pad_token_id"}:
            raise Rejected(f"generation_config.json has an entry {key!r} that the checker does not know")
        if key in _IDLE and type(value) is not _IDLE[key]:
            raise Rejected(
                f"generation_config.json has {key} = {value!r:.60}, expected a value of type {_IDLE[key].__name__}"
            )
    if content.get("eos_token_id") != config.get("eos_token_id"):
        raise Rejected("generation_config.json and config.json end with different tokens")


def _check_tokenizer(content: dict, letters: list[str], end: str | None) -> dict[str, int]:
    """Words between white space, each its place in the alphabet; what is not one of them is no letter."""
    for key, value in _PLAIN.items():
        if not same(content.get(key), value):
            raise Rejected(f"tokenizer.json has another {key} than {value!r}")
    if not any(same(content.get("post_processor"), plain) for plain in (None, _AS_IT_IS)):
        raise Rejected("tokenizer.json has a post_processor, which may add tokens, or put one text before another")
    if content.get("version") != "1.0":
        raise Rejected(f'tokenizer.json is of version {content.get("version")!r:.40}, and "1.0" is the one there is')
    unknown = set(content) - {*_PLAIN, "post_processor", "version", "added_tokens", "model"}
    model = content.get("model")
    if unknown or not isinstance(model, dict) or set(model) != {"type", "vocab", "unk_token"}:
        raise Rejected("tokenizer.json holds something else than a list of words")
    words = model["vocab"]
    if model["type"] != "WordLevel" or not isinstance(words, dict) or not set(letters) <= set(words):
        raise Rejected("the words of tokenizer.json are not the letters of circuit.json")
    ids = list(words.values())
    if any(type(i) is not int for i in ids) or sorted(ids) != list(range(len(ids))):
        raise Rejected("the words of tokenizer.json have other ids than 0, 1, 2, …, each once")
    vocab = dict(sorted(words.items(), key=lambda word: word[1]))  # by ids: in which order they stand says nothing
    if list(vocab)[: len(letters)] != letters:
        raise Rejected("the words of tokenizer.json have other ids than the letters of circuit.json")
    if not isinstance(model["unk_token"], str) or vocab.get(model["unk_token"], 0) < len(letters):
        raise Rejected("a word that tokenizer.json does not know is read as a letter")
    for name in list(vocab)[len(letters) :]:
        if not _SPECIAL.fullmatch(name):
            raise Rejected(f"tokenizer.json has a special token {name!r}, and such are written <name>")
    for name in letters:
        if not name or name.split() != [name]:
            raise Rejected(f"the letter {name!r} is no word between white space")
        _check_whole(name, vocab, len(letters), end)
    added = content.get("added_tokens")
    for mark in added if isinstance(added, list) else [None]:
        _check_mark(mark, vocab, letters, end)
    return vocab


def _check_mark(mark: object, vocab: dict[str, int], letters: list[str], end: str | None) -> None:
    """A token that is cut out of the text before it is split into words: the end, or none of the letters."""
    if not isinstance(mark, dict) or any(mark.get(key) is not value for key, value in _MARKS.items()):
        raise Rejected("tokenizer.json has an added token that is no plain word")
    if mark.keys() != _MARK:
        odd = min(map(str, mark.keys() ^ _MARK))
        raise Rejected(f"tokenizer.json has an added token whose entry `{odd:.60}` is missing, or is none of its own")
    name = mark["content"]
    if type(mark["special"]) is not bool:
        raise Rejected("tokenizer.json has an added token whose entry `special` is neither true nor false")
    if not isinstance(name, str) or vocab.get(name) != mark.get("id") or type(mark["id"]) is not int:
        raise Rejected(f"tokenizer.json adds {name!r} under another id")
    if vocab[name] < len(letters) and name != end:
        raise Rejected(f"tokenizer.json cuts {name!r} out of words")


def _check_whole(letter: str, vocab: dict[str, int], letters: int, end: str | None) -> None:
    """No letter holds a special token, which is matched before the text is split into words.

    Whether tokenizer.json adds it does not matter: transformers also adds those that tokenizer_config.json names.
    """
    held = [name for name in _SPECIAL.findall(letter) if vocab.get(name, -1) >= letters]
    held += [end] * (end is not None and end in letter and end != letter)
    if held:
        raise Rejected(f"the special token {held[0]!r} is cut out of words, such as the letter {letter!r}")


def _check_settings(content: dict, vocab: dict[str, int], letters: int, end: str | None) -> None:
    """tokenizer_config.json: the class that reads tokenizer.json as it is, and pads in front, where a mask says so."""
    expected: dict[str, tuple] = {"tokenizer_class": _CLASSES, "clean_up_tokenization_spaces": (False, None)}
    expected |= {"padding_side": ("left",)}
    expected |= {"extra_special_tokens": ({}, [], None)}
    for key, value in content.items():
        if key in ("eos_token", "pad_token", "unk_token"):
            known = isinstance(value, str) and vocab.get(value, -1) >= letters or key == "eos_token" and value == end
        elif key == "model_max_length":
            none = type(value) in (int, float) and value > 10**20  # to transformers; to others the tokenizer truncates
            known = none or type(value) is int and 1 << 40 <= value < 1 << 64
        elif key == "model_input_names":
            known = any(
                same(value, names) for names in (_NAMES, _NAMES[::-1])
            )  # of others a tokenizer makes what the model does not take
        else:
            known = type(value) is _SETTINGS.get(key) or any(same(value, plain) for plain in expected.get(key, ()))
        if not known:
            raise Rejected(f"tokenizer_config.json has {key} = {value!r}, which may change how text is read")
    if content.get("tokenizer_class") not in _CLASSES:
        raise Rejected("tokenizer_config.json names no class that reads tokenizer.json as it is")
    if "pad_token" not in content:
        raise Rejected("tokenizer_config.json has no pad_token, without which texts of two lengths are no batch")
    if "padding_side" not in content:
        raise Rejected("tokenizer_config.json has no padding_side, which is then the right one")
