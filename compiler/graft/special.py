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


def _known(host: Any, name: str) -> Iterator[int]:
    """The ids of that name: one or several, by the configuration and by the settings of generate()."""
    for settings in (host.config, host.generation_config):
        held = getattr(settings, name, None)
        yield from () if held is None else ids_of(held)
