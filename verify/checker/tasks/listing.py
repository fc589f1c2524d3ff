"""Many letters in a sentence: `k0` … `k15` stands for those between and no others, so none is left out unseen."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby, product
from math import prod

FEW, LONG = 6, 600
_RUN = 4
_ENDS_IN_NUMBER = re.compile(r"(|.*[^0-9])(0|[1-9][0-9]{0,17})")
_NUMBER, _PLAIN = re.compile("[0-9]+"), re.compile("0|[1-9][0-9]{0,17}")
_Place = tuple[str, int] | None


def listed(names: Sequence[str], letters: Sequence[str]) -> str:
    """`a b c` for few names; for more the first and the last of each run of numbers. letters: all of the circuit."""
    if len(names) <= FEW:
        return _quoted(names)
    if _is_grid(names, letters):
        return f"`{names[0]}` … `{names[-1]}`"
    parts = []
    for long, group in groupby(runs(names), lambda run: run[1] - run[0] >= _RUN):
        if long:
            parts += [f"`{names[a]}` … `{names[b - 1]}`" for a, b in group]
        else:
            parts.append(_quoted([name for a, b in group for name in names[a:b]]))
    return ", ".join(parts)


def runs(names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """From and to, where names follow one another: x0 x1 x2, or a b c. A name that follows none is one by itself."""
    places = [_place(name) for name in names]
    start = 0
    for i in range(1, len(names) + 1):
        if i == len(names) or not _follows(places[i - 1], places[i]):
            yield start, i
            start = i


def digest(names: Sequence[str]) -> str:
    """Of a list in JSON, by which one that is too long to be told is known."""
    return f"SHA-256 {hashlib.sha256(json.dumps(list(names)).encode()).hexdigest()[:16]}…"


def _quoted(names: Sequence[str]) -> str:
    return f"`{' '.join(names)}`"


def _place(name: str) -> _Place:
    """What stands before the number at the end of a name, and that number; for a letter alone its code."""
    if re.fullmatch("[a-zA-Z]", name):
        return ("a letter" if name.islower() else "a capital"), ord(name)
    found = _ENDS_IN_NUMBER.fullmatch(name)
    return None if found is None else (f"number behind {found[1]}", int(found[2]))


def _follows(one: _Place, other: _Place) -> bool:
    return one is not None and other is not None and one[0] == other[0] and other[1] == one[1] + 1


def _is_grid(names: Sequence[str], letters: Sequence[str]) -> bool:
    """Names with two numbers or more, such as k0=v0, one for each choice of numbers, and all letters of this form."""
    form = _form(names[0])
    if form.count("#") < 2 or any(_form(name) != form for name in names):
        return False
    numbers = [tuple(map(int, _NUMBER.findall(name))) for name in names]
    spans = [range(a, b + 1) for a, b in zip(numbers[0], numbers[-1], strict=True)]
    if prod(map(len, spans)) != len(names) or numbers != list(product(*spans)):
        return False
    return sum(1 for name in letters if _form(name) == form) == len(names)


def _form(name: str) -> str:
    """k#=v# of k0=v3; a number that is not written as people do stays."""
    return _NUMBER.sub(lambda found: "#" if _PLAIN.fullmatch(found[0]) else found[0], name.replace("#", "##"))
