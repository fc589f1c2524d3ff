"""`construct trace`: the patches that it takes as text, and what it shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compiler.artifact.errors import DisguisedError
from compiler.artifact.load import load_over_tokens
from compiler.artifact.manifest import is_disguised
from compiler.disguise.traced import load_disguised
from compiler.language.arguments import shown as quoted
from compiler.language.types import Bool
from compiler.tracing.decoding import Decoder
from compiler.tracing.trace import Trace
from compiler.tracing.variables import Variable, Variables

_PLACE = re.compile(r"@(-?[0-9]{1,18})=")
_FLAGS = {"true": True, "false": False}
_ABSENT, _LETTER, _NO_LETTER = "none", "letter ", "no letter"  # no letter holds a space, so the last two are no letter


def traced(directory: Path, text: str, patches: list[str], key: Path | None = None) -> Trace:
    """The trace of an input under patches "NAME@POSITION=VALUE"; ValueError for one that is none, and for two that set
    one place. key: of a disguise."""
    if key is None and is_disguised(directory):
        raise DisguisedError(f"{directory} is disguised: give its key with --key FILE, by which its lanes are read.")
    model = load_over_tokens(directory) if key is None else load_disguised(directory, key)
    if not patches:
        return model.trace(text)
    truth = model.truth
    length = len(truth.ids(text))
    found: dict[str, dict[int, Any]] = {}
    seen: dict[tuple[Variable, int], str] = {}
    try:
        for patch in patches:
            name, position, value = _parts(patch, truth.variables)
            truth.carriers.of(truth.variables[name], name)  # whether it can be set, before what it can be set to
            place = truth.variables[name], position % length if -length <= position < length else position
            if place in seen:
                raise ValueError(
                    f"--patch {quoted(seen[place])} and --patch {quoted(patch)} set the same place: leave one out"
                )
            seen[place] = patch
            found.setdefault(name, {})[position] = _value(value, truth.decoder(name), patch)
        return model.patch(found).trace(text)
    except LookupError as reason:  # a name or a position that is not there
        raise ValueError(str(reason)) from reason


def _parts(patch: str, variables: Variables) -> tuple[str, int, str]:
    """Name, position and value of a patch; where "@3=" stands in it more than once, of the name that there is."""
    parts = [(patch[: at.start()], int(at[1]), patch[at.end() :]) for at in _PLACE.finditer(patch) if at.start()]
    if not parts:
        raise ValueError(f'--patch is {quoted(patch)}, and "NAME@POSITION=VALUE" is needed, such as "stack@3=("')
    known = {name for variable in variables for name in variable.names}
    there = [split for split in parts if split[0] in known]
    if len(there) > 1:
        raise ValueError(
            f"--patch {quoted(patch)} may set {quoted(there[0][0])} or {quoted(there[1][0])}: see model.patch"
        )
    return (there or parts)[0]


def _value(text: str, decoder: Decoder, patch: str) -> Any:
    """A letter of the variable as it stands; else none, true, false, a number, or numbers with commas between.

    "letter none" is a letter even where it is called none, and "no letter" is absent.
    """
    letters = () if decoder.words is None else [name for name in decoder.names if isinstance(name, str)]
    if text.lower() == _ABSENT or text == _NO_LETTER:
        return _absent(text, letters, decoder, patch)
    if text in letters:
        return text
    if decoder.words is not None and text.startswith(_LETTER):
        return text.removeprefix(_LETTER)
    if text.lower() in _FLAGS:
        return _FLAGS[text.lower()]
    try:
        plain = [_number(number) for number in text.split(",")]
    except ValueError:
        if decoder.words is not None:
            return text  # the variable says which letters it holds
        kind = "true or false" if isinstance(decoder.stream.type, Bool) else "a number"
        needed = kind if decoder.stream.width == 1 else f"{decoder.stream.width} numbers with commas between"
        raise ValueError(
            f"--patch {quoted(patch)}: {decoder.name!r} takes {needed}, and was given {quoted(text)}"
        ) from None
    whole = [int(number) if number.is_integer() else number for number in plain]
    return whole[0] if len(whole) == 1 else whole


def _number(text: str) -> float:
    """A number as it is printed; ValueError for 1_000 and for digits of other scripts, which float() takes as well."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return float(text)


def _absent(text: str, letters: Sequence[str], decoder: Decoder, patch: str) -> None:
    """None, where it is sure that absent is meant, and the variable can be."""
    if decoder.words is None:
        raise ValueError(f"--patch {quoted(patch)}: {decoder.name!r} holds numbers, which are never absent")
    called = next((letter for letter in letters if letter.lower() == _ABSENT), None)
    if text != _NO_LETTER and called is not None:
        raise ValueError(
            f'--patch {quoted(patch)}: {decoder.name!r} has a letter {called!r}: write "{_LETTER}{called}" for it, or '
            f'"{_NO_LETTER}" where it is absent'
        )


def shown(trace: Trace) -> str:
    """The table, and in what the run is outside the promise or differs from the circuit."""
    lines = [trace.table()]
    lines += [f"outside the promise: {sentence}" for sentence in trace.outside]
    if trace.overwritten:
        lines.append(f"not compared: {', '.join(map(repr, trace.overwritten))}, whose lanes the patch overwrote")
    if trace.agrees:
        lines.append(f"every {'other ' * bool(trace.overwritten)}variable and every score is that of circuit.json")
    lines += [f"not the circuit's: {sentence}" for sentence in trace.differences]
    return "\n".join(lines)
