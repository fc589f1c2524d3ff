"""Argument checks that answer with one sentence: the argument, its value, the limit, and the nearest value that
works. And what runs code of the user's own.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from numbers import Integral
from os.path import abspath
from typing import Any


def at_least(name: str, value: float, least: float, because: str) -> None:
    """Raise ValueError unless value >= least; `because` says where the limit comes from."""
    if not value >= least:
        raise ValueError(
            f"{name} = {value} is too small, because {because}; the smallest {name} that works is {least}."
        )


def at_most(name: str, value: float, most: float, because: str) -> None:
    """Raise ValueError unless value <= most; `because` says where the limit comes from."""
    if not value <= most:
        raise ValueError(f"{name} = {value} is too large, because {because}; the largest {name} that works is {most}.")


def one_of(name: str, value: str, options: tuple[str, ...]) -> None:
    """Raise ValueError unless value is one of the options."""
    if value not in options:
        raise ValueError(f"{name} = {value!r} is unknown; it must be one of {', '.join(map(repr, options))}.")


def whole(value: object) -> bool:
    """Whether a value is a whole number, NumPy's included; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def run_own(what: str, function: Callable, *arguments: Any, file: str = "") -> Any:
    """What a function of the user's own returns; ValueError in one sentence for whatever goes wrong in it.

    what: the function, for the message; file: where its code stands, so that the message can name the line.
    """
    try:
        return function(*arguments)
    except (Exception, SystemExit) as error:  # a file that ends the program is as wrong as one that fails
        file = file or getattr(getattr(function, "__code__", None), "co_filename", "")
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename in (file, abspath(file))
        ]
        at = f", line {lines[-1]}" if lines else ""
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ValueError(f"{what}{at}: {kind}{' '.join(str(error).split())}") from error
