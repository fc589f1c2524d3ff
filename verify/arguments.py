"""Argument checks that answer with one sentence: the argument, its value, the limit, and the nearest value that
works. And what runs code of the user's own.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
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


class Beyond(IndexError, ValueError):
    """An index that a list has not, in a sentence: for code that expects an IndexError, and for who reads it."""


class Given(list):
    """What a function of the user's own is given, as a list that tells what there is where more is read."""

    def __init__(self, items: Iterable[Any], name: str, because: str):
        """name: what the function calls it; because: why there are no more, such as "reach = 2"."""
        super().__init__(items)
        self._name, self._because = name, because

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)
        except IndexError:
            last = f"{self._name}[0] to {self._name}[{len(self) - 1}]" if len(self) > 1 else f"{self._name}[0]"
            there = last if len(self) else "none"
            raise Beyond(f"it reads {self._name}[{key}], and with {self._because} there is {there} only") from None


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
