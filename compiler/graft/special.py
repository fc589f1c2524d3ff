"""Tokens of a host that are no words: letters must not be led to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compiler.graft.arguments import ids_of
from compiler.graft.errors import GraftError
from compiler.language.circuit import Circuit

_SPECIAL = (
    ("eos_token_id", "so generate() would end wherever it is written"),
    ("pad_token_id", "so padding would be read as that letter"),
)

_OF_TOKENS = ("_token_id", "suppress_tokens", "_words_ids")  # how names of settings end that hold ids

_NEUTRAL: dict[str, Any] = {
    "do_sample": False,
    "num_beams": 1,
    "repetition_penalty": 1,
    "no_repeat_ngram_size": 0,
    "min_length": 0,
    "min_new_tokens": 0,
    "guidance_scale": 1,
    "suppress_tokens": [],
    "begin_suppress_tokens": [],
    "bad_words_ids": [],
    "force_words_ids": [],
    "sequence_bias": {},
    "forced_bos_token_id": None,
    "forced_eos_token_id": None,
    "exponential_decay_length_penalty": None,
    "penalty_alpha": None,
    "watermarking_config": None,
}
"""Settings of generate() by which it may write another token than the one that scores highest, as they do not."""


def check_special(host: Any, circuit: Circuit, tokens: Mapping[str, int | Sequence[int]]) -> None:
    """GraftError where a letter is led to a token that ends or pads the host's text; only the circuit's end may be its
    end.

    host: a model of transformers, whose config and generation settings are asked. tokens: a map whose ids exist.
    """
    ends = set(_known(host, "eos_token_id"))
    for letter, places in tokens.items():
        for name, consequence in _SPECIAL:
            for place in ids_of(places):
                if place in _known(host, name) and not (letter == circuit.end and place in ends):
                    raise GraftError(
                        f"the token map leads {letter!r} to {place}, which is the host's {name}, {consequence}; choose "
                        "another token, or take that id out of the host's settings."
                    )


def check_free(host: Any, first: int) -> None:
    """GraftError where the host's settings name an id that its embedding does not have: a letter would have it.

    first: how many rows the embedding has, and so the first id of a letter.
    """
    for settings in (host.config, host.generation_config):
        for name, held in settings.to_dict().items():
            named = _numbers(held) if name.endswith(_OF_TOKENS) else ()
            beyond = next((place for place in named if place >= first), None)
            if beyond is not None:
                raise GraftError(
                    f"the host's {name} is {beyond}, but its embedding has {first} rows, and a letter of the circuit "
                    "may get that id; take it out of the host's settings."
                )


def other_words(settings: Any) -> list[str]:
    """That generate() may write something else than the answers, where the host's settings ask for it."""
    held = {name: getattr(settings, name, None) for name in _NEUTRAL}
    changing = [name for name, value in held.items() if value is not None and value != _NEUTRAL[name]]
    if not changing:
        return []
    told = f"the host's settings of generate() have {', '.join(changing)}, by which it may write another token than "
    return [f"{told}the one that scores highest, and so another than the circuit's answer"]


def _numbers(held: Any) -> Iterator[int]:
    """Those of a number, a list, or lists of lists."""
    if isinstance(held, list | tuple):
        for each in held:
            yield from _numbers(each)
    elif type(held) is int:
        yield held


def _known(host: Any, name: str) -> Iterator[int]:
    """The ids of that name: one or several, by the configuration and by the settings of generate()."""
    for settings in (host.config, host.generation_config):
        held = getattr(settings, name, None)
        yield from () if held is None else ids_of(held)
