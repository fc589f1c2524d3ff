"""Where streams come from: the token, the position, constants."""

from __future__ import annotations

from tests.fuzz.kinds import FLAG, INT, Draw, Kind, codewords, exact
from tests.fuzz.words.word import Column, Params, Word, fixed


def _one_hot(params: Params, letters: list[str]) -> Column:
    return [tuple(int(letter == member) for member in params["members"]) for letter in letters]


def _is_in(params: Params, letters: list[str]) -> Column:
    return [(int(letter in params["members"]),) for letter in letters]


def _ranked(members: list[str], rows: list[tuple], letters: list[str]) -> Column:
    blank = (0,) * len(rows[0])
    return [rows[members.index(letter)] if letter in members else blank for letter in letters]


def _code(params: Params, letters: list[str]) -> Column:
    return _ranked(params["members"], codewords(params["book"]), letters)


def _draw_code(draw: Draw, kinds: list[Kind]) -> Params:
    members = draw.members()
    return {"members": members, "book": draw.book(size=len(members))}


def _rows(params: Params, letters: list[str]) -> Column:
    rows = [tuple(map(exact, row)) for row in params["matrix"]]
    return _ranked(params["members"], rows, letters)


def _draw_rows(draw: Draw, kinds: list[Kind]) -> Params:
    members = draw.members()
    return {"members": members, "matrix": draw.matrix(len(members), 1 + draw.below(5))}


WORDS = {
    "one_hot": Word(
        "x.one_hot({members})",
        (),
        lambda kinds, params: Kind("symbol", len(params["members"])),
        _one_hot,
        lambda draw, kinds: {"members": list(draw.letters) if draw.chance(0.7) else draw.members()},
    ),
    "is_in": Word("x.is_in({members})", (), fixed(FLAG), _is_in, lambda draw, kinds: {"members": draw.members()}),
    "code": Word(
        "x.code({members}, {book})",
        (),
        lambda kinds, params: Kind("code", len(codewords(params["book"])[0])),
        _code,
        _draw_code,
    ),
    "number": Word(
        "x.number({values})",
        (),
        fixed(INT),
        lambda params, letters: [(params["values"].get(letter, 0),) for letter in letters],
        lambda draw, kinds: {"values": {letter: draw.whole() for letter in draw.members()}},
    ),
    "rows": Word(
        "x.rows({members}, {matrix}, 'rows')",
        (),
        lambda kinds, params: Kind("real", len(params["matrix"][0])),
        _rows,
        _draw_rows,
    ),
    "position": Word("position()", (), fixed(INT), lambda params, letters: [(t,) for t in range(1, len(letters) + 1)]),
    "constant": Word(
        "constant({value}, {width})",
        (),
        lambda kinds, params: Kind("int" if exact(params["value"]).denominator == 1 else "real", params["width"]),
        lambda params, letters: [(exact(params["value"]),) * params["width"]] * len(letters),
        lambda draw, kinds: {"value": draw.part(), "width": draw.one((1, 1, 1, 3))},
    ),
}
