"""Whether all scores that the weights compute are the circuit's, as functions of the sequence (part C)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from verify.checker.files import Matrix
from verify.checker.formats import EXACT, Rejected, array_exponent
from verify.checker.meaning.circuit import Reader
from verify.checker.meaning.conditions import ONE, Lanes, Unproved
from verify.checker.meaning.packed import first_left
from verify.checker.meaning.relations import deciding
from verify.checker.meaning.told import differing, unread
from verify.checker.unexpected import CIRCUIT, unexpected_told
from verify.checker.values.bounds import tight
from verify.checker.values.exact import held, is_float
from verify.checker.values.values import Value, World, combine, constant
from verify.checker.values.windows import TooLarge, exact_float, exact_product

_MOST_ENTRIES = 1 << 23
_MOST_WEIGHTS = 4  # powers of two that are tried


def scores_differ(reader: Reader, lanes: Lanes, head: Matrix, letters: int, met: int = 0) -> str | None:
    """None if every score of the weights is the circuit's, as a function of the sequence; else the first that is not
    shown. met: how many roots there were before the circuit was read.
    """
    place = reader.data["output"]
    weight = _rule_weight(reader, reader.data["streams"][place], lanes, head)
    parts = reader.output(place, weight)
    width = parts[0][0].shape[0]
    if width > letters:
        return f"the circuit gives {width} numbers, and there are {letters} letters"
    columns, shapes = _columns_of_the_difference([(head.part(0, letters), lanes)], parts, letters)
    found = deciding(columns)
    sums = {i: combine([(w, shapes[c]) for c, w in weights.items()]) for i, (_, weights) in enumerate(found)}
    left = first_left(reader, sums)
    return None if left is None else differing(reader, found[left][0], sums[left], met)


def _score(parts: list[tuple[Matrix, Lanes]], row: int) -> Value:
    return combine([(w, lanes[c]) for matrix, lanes in parts if row < matrix.shape[0] for c, w in matrix.row(row)])


def _rule_weight(reader: Reader, stream: dict, lanes: Lanes, head: Matrix) -> Fraction | None:
    """The W of rules: any above every lead of a score over that of a token with a rule will do (lemma of rules over
    scores). Tried are what the weights add to the first rule's token, and the least powers of two.
    """
    if stream["operation"] != "Decide":
        return None
    tokens, scores = stream["attributes"]["tokens"], reader.output(stream["inputs"][0])
    if scores[0][0].shape[0] != reader.world.language.tokens:
        raise Unproved("rules decide over scores of which some letters have none")
    found = [tight(reader.world, _score(scores, row)) for row in range(scores[0][0].shape[0])]
    lead = max(hi for _, hi in found) - min(found[t][0] for t in tokens)
    least = ONE
    while least <= lead:
        least *= 2
    read = _score([(head, lanes)], tokens[0])
    added = tight(reader.world, combine([(ONE, read), (-ONE, _score(scores, tokens[0]))]))[1]
    shares = [2**i for i, token in enumerate(reversed(tokens)) if token == tokens[0]]  # of W, where all its rules hold
    tried = [max(added / n, least) for n in (shares[-1], sum(shares))] + [least * 2**i for i in range(_MOST_WEIGHTS)]
    for weight in dict.fromkeys(filter(is_float, tried)):
        asked = _score(reader.output(reader.data["output"], weight), tokens[0])
        if reader.zero(combine([(ONE, read), (-ONE, asked)])):
            return weight
    raise Unproved(f"no weight of the rules, {least} or more, is shown")


def _columns_of_the_difference(
    left: list[tuple[Matrix, Lanes]], right: list[tuple[Matrix, Lanes]], letters: int
) -> tuple[np.ndarray, list[Value]]:
    """Two sums of matrix · lanes, the second taken away, as one: a matrix (letters, lanes that do not cancel) and these
    lanes. Proportional lanes are taken together first.
    """
    basis: dict[str, int] = {}
    shapes: list[Value] = []
    rows, places, data = [], [], []
    for sign, side in ((1, left), (-1, right)):
        for matrix, lanes in side:
            place, scale = np.zeros(len(lanes), np.int64), np.zeros(len(lanes))
            for i in set(matrix.cols.tolist()):
                if not lanes[i].zero:
                    factor, shape = (lanes[i].const, constant(1)) if lanes[i].constant else lanes[i].normalised
                    if shape.key not in basis:
                        basis[shape.key] = len(shapes)
                        shapes.append(shape)
                    place[i], scale[i] = basis[shape.key], exact_float(factor * sign)
            rows.append(matrix.rows)
            places.append(place[matrix.cols])
            data.append(exact_product(matrix.data, scale[matrix.cols]))
    width, entry = max(len(basis), 1), np.concatenate(data)
    distinct, at = np.unique(np.concatenate(rows) * width + np.concatenate(places), return_inverse=True)
    total, size = (np.bincount(at.reshape(-1), weights=w) for w in (entry, np.abs(entry)))
    total = held(total, size, array_exponent(entry) or 0)
    kept = total != 0
    used, column = np.unique(distinct[kept] % width, return_inverse=True)
    if len(used) * letters > _MOST_ENTRIES:
        raise Unproved(f"{len(used)} lanes of the head are not the circuit's")
    columns = np.zeros((letters, len(used)))
    columns[distinct[kept] // width, column] = total[kept]
    return columns, [shapes[i] for i in used.tolist()]


def compare(world: World, data: dict, lanes: Lanes, head: Matrix) -> str | None:
    """Why the scores are not shown to be the circuit's, or None where they are.

    An `and` may be a bent sum or a product: both readings are tried, first without what paths leave, which costs more.
    """
    world.format = EXACT
    reasons: list[str | None] = []
    met = len(world.roots)
    for reader in (reader for paths in (False, True) for reader in _readings(world, data, paths)):
        reasons.append(_differ(reader, lanes, head, met))
        if reasons[-1] is None:
            return None
    return reasons[0]


def _readings(world: World, data: dict, paths: bool) -> Iterator[Reader]:
    """The circuit as written, and then with each `and` as a product where that is another reading."""
    first = Reader(world, data, paths=paths)
    yield first
    if first.chosen:
        yield Reader(world, data, bent=False, paths=paths)


def _differ(reader: Reader, lanes: Lanes, head: Matrix, met: int) -> str | None:
    try:
        with unexpected_told(CIRCUIT):
            return scores_differ(reader, lanes, head, reader.world.language.tokens, met)
    except Unproved as reason:
        return unread(reader, reason)
    except (Rejected, TooLarge) as reason:
        return str(reason)
