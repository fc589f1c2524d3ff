"""The tokenizer of a grafted model: the host's, with a token for each letter of the circuit that is none of the host's.

Such a token is called `<circuit:letter>`, a name that text does not hold by accident. Each is tried: its text must be
read as its id, and every token of the host must keep its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compiler.artifact.tokenizer import TOKENIZER_FILES
from compiler.graft.errors import GraftError
from compiler.graft.grafted import Grafted
from compiler.graft.hosts import tokenizer_of

_WITHOUT = "a copy of the host without its tokenizer's files can be grafted: graft.json has the id of every letter"


def has_tokenizer(host: Path) -> bool:
    """Whether a directory has a tokenizer of its own."""
    return any((host / name).is_file() for name in TOKENIZER_FILES)


def letter_name(circuit: str, letter: str) -> str:
    """What a letter is called in the host's tokenizer."""
    return f"<{circuit}:{letter}>"


def tokenizer_with_letters(host: Path, grafted: Grafted) -> Any | None:
    """The host's tokenizer with the letters that come after its vocabulary; None where the host has none.

    GraftError where a name is a token of the host already, where the ids of the host's tokens are not the first ones or
    are more than it has embeddings, or where a letter is not read as its id.
    """
    if not has_tokenizer(host):
        return None
    from transformers import AddedToken

    tokenizer = tokenizer_of(host)
    first, circuit = grafted.report["host"]["vocab"], grafted.report["circuit"]
    known = tokenizer.get_vocab()
    _check_ids(known, first)
    behind = sorted((place, letter) for letter, place in grafted.ids.items() if place >= first)
    new = [f"<unused:{i}>" for i in range(len(known), first)] + [letter_name(circuit, letter) for _, letter in behind]
    clash = next((name for name in new if name in known), None)
    if clash is not None:
        raise GraftError(f"{clash!r} is a token of the host already; give the circuit another name.")
    # normalized: whether the host's tokenizer may change the name, such as to lower case, before it looks for it
    tokenizer.add_tokens([AddedToken(name, normalized=False) for name in new])
    _check_read(tokenizer, known, new)
    start = letter_name(circuit, "").removesuffix(">")
    double = next((name for name in new if start in name[1:]), None)
    if double is not None:
        raise GraftError(f"the name {double!r} may be read for two letters in a row; call the letter something else.")
    return tokenizer


def save_tokenizer(tokenizer: Any, place: Path) -> None:
    """Its files, in no folder of their own: several chat templates go into tokenizer_config.json."""
    several = isinstance(getattr(tokenizer, "chat_template", None), dict)
    tokenizer.save_pretrained(place, **({"save_jinja_files": False} if several else {}))


def _check_ids(known: Mapping[str, int], first: int) -> None:
    """known: the host's tokens and their ids; first: the first id that is free for a letter."""
    most = max(len(known), 1 + max(known.values(), default=-1))
    if most > first:
        raise GraftError(f"the host's tokenizer has {most} tokens, and its embedding has {first} rows.")
    if sorted(known.values()) != list(range(len(known))):
        lost = f"the ids of the host's {len(known)} tokens are not 0 to {len(known) - 1}, each once"
        raise GraftError(f"{lost}, so new tokens cannot be put behind them; {_WITHOUT}.")


def _check_read(tokenizer: Any, known: Mapping[str, int], new: Sequence[str]) -> None:
    """New names are read as the ids behind those that are known."""
    ids = range(len(known), len(known) + len(new))
    if tokenizer.get_vocab() != {**known, **dict(zip(new, ids, strict=True))}:
        raise GraftError(f"the host's tokenizer gives its tokens other ids when new ones are added; {_WITHOUT}.")
    read = lambda texts: tokenizer(texts, add_special_tokens=False)["input_ids"] if texts else []
    for name, place, found in zip(new, ids, read(list(new)), strict=True):
        if found != [place]:
            raise GraftError(f"the host's tokenizer reads the text {name!r} as {found}, not [{place}]; {_WITHOUT}.")
