"""One word of the language: how it is written, what it takes and gives, what it means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.fuzz.kinds import Draw, Kind, Number

Row = tuple[Number, ...]
"""The lanes of a stream at one position."""
Column = list[Row]
"""A stream over one sequence."""
Params = dict


@dataclass(frozen=True)
class Word:
    """A word and its meaning.

    code:  how it is written, with {0}, {1} for its inputs and {name} for its parameters.
    takes: what each input must be: "flag", "flags" (of any width, or a symbol), "int", "ints" (of any width), "one"
           (one number), "any", "symbol", "code", "numbers" (integers that are no symbol), "letters" (no more lanes
           than letters), "short" and "shorter" (a code with enough words), "logits" (scores of a readout); after "="
           as wide as the first input, after "=1" as wide as the second.
    gives: the kind of what it gives, from those of its inputs and the parameters.
    means: (parameters, letters of the sequence, *columns of the inputs) to a column.
    draw:  random parameters for inputs of these kinds.
    """

    code: str
    takes: tuple[str, ...]
    gives: Callable[[Sequence[Kind], Params], Kind]
    means: Callable[..., Column]
    draw: Callable[[Draw, Sequence[Kind]], Params] = lambda draw, kinds: {}


def pointwise(meaning: Callable[..., Row]) -> Callable[..., Column]:
    """A meaning at every position from one of the values there: (parameters, *rows) to a row."""
    return lambda params, letters, *columns: [meaning(params, *rows) for rows in zip(*columns, strict=True)]


def lanewise(meaning: Callable[..., Number]) -> Callable[..., Column]:
    """A meaning at every position and lane; single lanes stand beside all lanes of the other inputs."""

    def of_rows(params: Params, *rows: Row) -> Row:
        width = max(map(len, rows))
        return tuple(meaning(params, *lanes) for lanes in zip(*(spread(row, width) for row in rows), strict=True))

    return pointwise(of_rows)


def spread(row: Row, width: int) -> Row:
    """A single lane on every lane."""
    return row * width if len(row) == 1 else row


def number(name: str) -> Callable[[Draw, Sequence[Kind]], Params]:
    """One number k, drawn by that method."""
    return lambda draw, kinds: {"k": getattr(draw, name)()}


def fixed(kind: Kind) -> Callable[[Sequence[Kind], Params], Kind]:
    return lambda kinds, params: kind


def like(kinds: Sequence[Kind], params: Params) -> Kind:
    """As the first input."""
    return kinds[0]


def flags(kinds: Sequence[Kind], params: Params) -> Kind:
    return Kind("flag", max(kind.width for kind in kinds))


def numbers(kinds: Sequence[Kind], params: Params) -> Kind:
    """Numbers as wide as the widest input; whole where every input and parameter is."""
    whole = all(kind.whole for kind in kinds) and all(_whole(value) for value in params.values())
    return Kind("int" if whole else "real", max(kind.width for kind in kinds))


def _whole(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_whole, value))
    return not hasattr(value, "__truediv__") or value % 1 == 0


def compared(wanted: str) -> int:
    """The input whose width this one must have."""
    return 1 if wanted.startswith("=1") else 0


def fits(kind: Kind, wanted: str, beside: Kind | None, letters: int) -> bool:
    """Whether a stream of this kind may stand where `wanted` does, beside an input of another kind."""
    if wanted == "logits" or kind.name in ("logits", "decision"):
        return wanted == kind.name
    name = wanted.lstrip("=1")
    wide = not wanted.startswith("=") or kind.width == beside.width
    return (
        wide
        and {
            "any": True,
            "one": kind.width == 1,
            "flag": kind == Kind("flag"),
            "flags": kind.name in ("flag", "symbol"),
            "int": kind.width == 1 and kind.name in ("int", "flag"),
            "ints": kind.whole,
            "numbers": kind.name in ("int", "flag", "code"),
            "symbol": kind.name == "symbol",
            "code": kind.name == "code",
            "letters": kind.width <= letters,
            "short": kind.width <= 5 and 2 ** (kind.width - 1) + 1 <= letters,
            "shorter": kind.width <= 5 and 2 ** (kind.width - 1) + 2 <= letters,
        }[name]
    )
