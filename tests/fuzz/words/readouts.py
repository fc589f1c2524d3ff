"""From streams to scores over the tokens, by the formulas that the readouts document."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.kinds import Draw, Kind, codewords
from tests.fuzz.words.word import Column, Params, Row, Word


def _scores(kinds: Sequence[Kind], params: Params) -> Kind:
    return Kind("logits", len(params["alphabet"]))


def _placed(params: Params, scores: dict[str, object]) -> Row:
    return tuple(scores.get(letter, 0) for letter in params["alphabet"])


def _dot(a: Row, b: Row):
    return sum(u * v for u, v in zip(a, b, strict=True))


def _one_hot(params: Params, letters: list[str], x: Column) -> Column:
    return [_placed(params, dict(zip(params["members"], row, strict=True))) for row in x]


def _integer(params: Params, letters: list[str], x: Column) -> Column:
    values, least = params["values"], min(params["values"].values())

    def score(letter: str, v):
        return 2 * values[letter] * v - values[letter] ** 2 if letter in values else 2 * least * v - least**2 - 1

    return [_placed(params, {letter: score(letter, row[0]) for letter in params["alphabet"]}) for row in x]


def _codewords(params: Params, letters: list[str], x: Column) -> Column:
    words = dict(zip(params["members"], codewords(params["book"]), strict=True))
    return [_placed(params, {letter: _dot(word, row) for letter, word in words.items()}) for row in x]


def _nearest(params: Params, letters: list[str], x: Column) -> Column:
    words = dict(zip(params["members"], codewords(params["book"]), strict=True))
    blank = {params["blank"]: 1}
    return [
        _placed(params, {letter: 2 * (2 * _dot(c, row) - _dot(c, c)) for letter, c in words.items()} | blank)
        for row in x
    ]


def _emitted(params: Params, letters: list[str], *flags: Column) -> Column:
    """Rule i of n weighs 2^(n − i + 1); what stands for `otherwise` has 1."""
    out = []
    for rows in zip(*flags, strict=True):
        scores = dict.fromkeys(params["alphabet"], 0)
        scores[params["otherwise"]] += 1
        for i, (row, letter) in enumerate(zip(rows, params["rules"], strict=True)):
            scores[letter] += row[0] * 2 ** (len(rows) - i)
        out.append(_placed(params, scores))
    return out


def _draw_members(draw: Draw, kinds: Sequence[Kind]) -> Params:
    return {"alphabet": draw.letters, "members": draw.random.sample(draw.letters, kinds[0].width)}


def _draw_integer(draw: Draw, kinds: Sequence[Kind]) -> Params:
    return {"alphabet": draw.letters, "values": {letter: draw.whole() for letter in draw.members()}}


def _book_for(draw: Draw, width: int, most: int) -> dict:
    while True:
        book = draw.book(length=width)
        size = len(codewords(book))
        if size <= most:
            return {"book": book, "members": draw.random.sample(draw.letters, size)}


def _draw_code(draw: Draw, kinds: Sequence[Kind]) -> Params:
    return {"alphabet": draw.letters} | _book_for(draw, kinds[0].width, len(draw.letters))


def _draw_nearest(draw: Draw, kinds: Sequence[Kind]) -> Params:
    params = _book_for(draw, kinds[0].width, len(draw.letters) - 1)
    free = [letter for letter in draw.letters if letter not in params["members"]]
    return {"alphabet": draw.letters, "blank": draw.one(free)} | params


def _draw_rules(draw: Draw, kinds: Sequence[Kind]) -> Params:
    rules = [draw.one(draw.letters) for _ in kinds]
    return {"alphabet": draw.letters, "rules": rules, "otherwise": draw.one(draw.letters)}


WORDS = {
    "readout_one_hot": Word("readout_one_hot({0}, letters, {members})", ("letters",), _scores, _one_hot, _draw_members),
    "readout_integer": Word("readout_integer({0}, letters, {values})", ("one",), _scores, _integer, _draw_integer),
    "readout": Word("readout({0}, {book}, letters, {members})", ("short",), _scores, _codewords, _draw_code),
    "readout_nearest": Word(
        "readout_nearest({0}, {book}, letters, {members}, {blank})", ("shorter",), _scores, _nearest, _draw_nearest
    ),
    "emit": Word(
        "emit(letters, ({0}, {rules}[0]), ({1}, {rules}[1]), otherwise={otherwise})",
        ("flag", "flag"),
        _scores,
        _emitted,
        _draw_rules,
    ),
}


# Rules over scores ------------------------------------------------------------------------------------

RULE = 10**60
"""More than any score: which weight a rule gets is the compiler's choice, so only the winner is compared."""


def _decided(params: Params, letters: list[str], first: Column, second: Column, scores: Column) -> Column:
    """The token of the first rule that holds, else the best score."""
    out = []
    for one, other, row in zip(first, second, scores, strict=True):
        weights = dict.fromkeys(params["alphabet"], 0)
        for flag, letter, weight in ((one[0], params["rules"][0], 2 * RULE), (other[0], params["rules"][1], RULE)):
            weights[letter] += flag * weight
        out.append(tuple(score + weights[letter] for letter, score in zip(params["alphabet"], row, strict=True)))
    return out


DECISIONS = {
    "decide": Word(
        "decide([({0}, {rules}[0]), ({1}, {rules}[1])], otherwise={2})",
        ("flag", "flag", "logits"),
        lambda kinds, params: Kind("decision", len(params["alphabet"])),
        _decided,
        lambda draw, kinds: {"alphabet": draw.letters, "rules": [draw.one(draw.letters) for _ in range(2)]},
    )
}
