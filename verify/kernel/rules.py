"""The rules: each makes one fact of a claim, or refuses it. Nothing here searches, and no other module makes a fact."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from verify.kernel.cases import Apart, Cases, Grid, Parts
from verify.kernel.exact import add, fold, integers, multiply
from verify.kernel.facts import Cell, Known, Ranged, Same
from verify.kernel.floats import FLOAT32, Format, Unproved, is_power
from verify.kernel.language import Language
from verify.kernel.situations import Situations
from verify.kernel.terms import ZERO, Poly, Terms


def ranged(claim: int, p: Poly, cases: Callable[[Poly], Cases | Apart]) -> Ranged:
    """A primitive polynomial is, at every position, a number of one of these cells.

    cases: of a polynomial, as a claim names them: a `Grid`, whose parts cover the proved range of each state, or the
    `Situations` that sequences lead to, with the numbers of some states and intervals of others. Check: in every case
    the polynomial that is left gives the least and the largest value, and what its values have in common modulo the
    divisor of its coefficients. Sound: every position of every sequence is one of the cases (of situations by induction
    over positions), and in each the substituted values are the true ones. A product is at most one factor's number in
    the case times the range of the other. Lemmas of joint values, of the start, of edges, of known letters and of
    memories.
    """
    return Ranged(claim, cases(p).cells(p))


def same(
    terms: Terms, claim: int, atom: int, other: int | None, sign: int, cases: Callable[[Poly], Cases | Apart]
) -> Same:
    """A relu or a state equals one that was built before it (None: equals 0), at every position; a state may also be
    minus one (sign −1).

    cases: of a primitive polynomial, as a claim names them. Check: both are of one kind; of what both bend or store,
    times the sign, and of their flags, the difference is 0 in every case; what a relu that equals 0 bends is never
    above 0. What is known to be equal is put in first. Sound: relu is a function of what it bends, and a state, by
    induction over positions, of what it stores and of its flag, linear in what it stores (States.states_are_linear).
    What they bend or store was built before them.
    """
    one, two = terms.atoms[atom], None if other is None else terms.atoms[other]
    if one.kind == "table" or other is not None and (other >= atom or terms.atoms[other].kind != one.kind):
        raise Unproved("two atoms are not of one kind, or the one was not built before the other")
    if sign < 0 and one.kind == "relu":
        raise Unproved("a relu that is minus another one")
    pairs = [(one.of, ZERO, 1)] if two is None else [(one.of, two.of, sign), (one.flag, two.flag, 1)]
    for p, q, s in pairs:
        left = terms.add([(Fraction(1), terms.replaced(p)), (Fraction(-s), terms.replaced(q))])
        c, primitive = left.primitive
        ends = [c * end for cell in (cases(primitive).cells(primitive) if left.terms else ()) for end in cell[:2]]
        if any(end > 0 or end < 0 and (two is not None or one.kind != "relu") for end in ends):
            raise Unproved("what two atoms bend or store is not shown to be the same")
    return Same(claim, other, sign)


def total(
    terms: Terms,
    claim: int,
    atom: int,
    majorant: Sequence[tuple[int, int, int]],
    parts: Sequence[Parts],
    potential: tuple[Fraction, Sequence[Fraction], Sequence[int]],
) -> Ranged:
    """A running sum Σ_t m(t) is within [-T, T], and [0, T] where m >= 0, and so is every partial sum of its terms.

    majorant: (table, lag, weight), of a table's numbers above 0, or below 0 where the weight is. Check: |m| <= g =
    Σ max(weight · table(letter `lag` back), 0) in every case; the potential bounds Σ_t g by T, letter by letter
    (`Language.bound_total`). Sound: a function >= 0 of the letter `lag` back adds up to no more than that of the letter
    itself, so Σ_t |m(t)| <= T. Lemma of totals (Potential.potential, Potential.seen_earlier,
    Potential.total_by_a_majorant).
    """
    m = terms.atoms[atom].of
    if terms.atoms[atom].kind not in ("sum", "count"):
        raise Unproved("a total of what is no running sum")
    if not majorant or len({(a, lag) for a, lag, _ in majorant}) < len(majorant):
        raise Unproved("a majorant that is empty, or names a table twice")
    if any(terms.atoms[table].kind != "table" for table, _, _ in majorant):
        raise Unproved("a majorant of what is no table")
    g = terms.add([(Fraction(1), _seen(terms, *row)) for row in majorant])
    grid = Grid(terms, [g, m], parts)
    left, right = ({k: v * s for k, v in grid.spread(m).items()} for s in (1, -1))
    bound, rising = grid.spread(g), bool((grid.range(left)[0] >= 0).all())
    for signed in (right,) if rising else (left, right):
        if (grid.range(grid.sum(bound, signed))[0] < 0).any():
            raise Unproved("the majorant is less than what is summed, in some case")
    top = _most(terms, tuple(majorant), potential)
    return Ranged(claim, (Cell(0 if rising else -top, top, 0, 1),))


def stopping(terms: Terms, claim: int, atom: int, counter: int, stop: int) -> Ranged:
    """A running sum Σ_t m(t) of what stops itself, like the first writes of a key, is within [-T, T], or [0, T].

    counter: the sum of some b >= 0. Check, in every case: m is 0 where b is, and where the counter is `stop` or more;
    T adds up the most that |m| is at each smaller count, which is 1 at least where b is. Sound: where b is not 0 the
    counter rises, so each count stands at one such position at most. Lemma of totals (Totals.stopped_by_a_count).
    """
    m, b = terms.atoms[atom].of, terms.atoms[counter].of
    if {terms.atoms[atom].kind, terms.atoms[counter].kind} != {"sum"}:
        raise Unproved("a sum that stops is no running sum, or is not counted by one")
    grid = Grid(terms, [b, m, Poly({((counter, 0),): Fraction(1)})], [Parts(counter, 0, tuple(range(1, stop + 1)))])
    (least, _), ends = grid.range(grid.spread(b)), grid.range(grid.spread(m))
    least, lo, hi, count = np.broadcast_arrays(least, *ends, grid.ends[counter, 0][0])
    size = np.where((count == 0) & (least > 0), 0, fold(np.maximum, (np.abs(lo), np.abs(hi))))
    if (least < 0).any() or size[(least == 0) | (count >= stop)].any():
        raise Unproved("what is summed does not stop")
    top = sum(int(size[count == n].max()) for n in range(1, stop))
    return Ranged(claim, (Cell(0 if (lo >= 0).all() else -top, top, 0, 1),))


def _seen(terms: Terms, table: int, lag: int, weight: int) -> Poly:
    """max(weight · table(letter `lag` back), 0)."""
    if min(weight * end for end in terms.atoms[table].range) >= 0:
        return Poly({((table, lag),): Fraction(weight)})
    return terms.earlier(terms.of_letter(_above(terms, table, weight)), lag)


def _above(terms: Terms, table: int, weight: int) -> np.ndarray:
    """max(weight · table, 0), by letter."""
    return np.maximum(multiply(integers([weight]), terms.atoms[table].table), 0)


def _most(terms: Terms, majorant: tuple[tuple[int, int, int], ...], potential: tuple) -> int:
    """The largest whole number that what a majorant adds up to can be; found once, as many sums have the same."""
    cost, heights, charged = potential
    asked = majorant, cost, tuple(heights), tuple(charged)
    if asked not in terms.bounds:
        amounts = np.zeros(terms.language.tokens, np.int64)
        for table, _, weight in majorant:
            amounts = add(amounts, _above(terms, table, weight))
        terms.bounds[asked] = terms.language.bound_total(amounts, *potential)
    return math.floor(terms.bounds[asked])


def answered(
    terms: Terms,
    claim: int,
    leads: Mapping[tuple[int, int], Poly],
    language: Language,
    right: Sequence[int | None],
    followed: Sequence[int],
    bounded: Sequence[int],
) -> Known:
    """Wherever a state of the language says a right letter v, score(v) − score(u) > 0 for every other letter u.

    leads: that difference, of all such v and u. language: the sequences of `terms.language`, through states of which
    `right` says the right letter, None where nothing is asked. Check: in every situation (`Situations`) the lead is
    positive. Sound: every position is at one of the situations, whose state is the one that its letters lead to. Lemma
    of known letters.
    """
    cases = Situations(terms, list(leads.values()), followed, bounded, language=language)
    asked = np.array([-1 if v is None else v for v in right])[cases.state]
    for (v, u), lead in leads.items():
        c, q = lead.primitive
        lo, hi = (np.broadcast_to(end, asked.shape) for end in cases.range(cases.spread(q)))
        if ((lo if c > 0 else -hi)[asked == v] <= 0).any():
            raise Unproved(f"letter {u} may score as high as letter {v} where that is right")
    return Known(claim, None)


def ballast(
    claim: int, lanes: Sequence[Poly], chosen: Sequence[int], sizes: Sequence[Fraction], epsilon: float, form: Format
) -> Known:
    """The norm of these lanes divides by K, its value, for mean(x²) + ε is K² as far as the format can see.

    chosen: at most four different lanes that are constants, powers of two. Check: their squares are K²·d in sum, for
    K and d = the number of lanes powers of two; the squares of all other lanes, at their sizes, with what adding them
    up may round, are less than half a step of each of these squares, and so of every partial sum of them; ε is less
    than half a step of K². Sound: the rounded sum of squares is K²·d in any order, the mean K², and rsqrt of it 1/K.
    Four, because up to four powers of two that add up to one have none below an eighth of it: so each sum of some of
    them has three bits at most, and is a float. In formats of p < 24 bits x / K is rounded once more: the squares of
    all other lanes, ε and what float32 may round leave it off by less than a part of 2^-(p+1), so it becomes x / K. Of
    the d + 12 parts of 2^-24, d are for squares and their sum (a root halves them), 8 for rsqrt, and one each for the
    mean, + ε, x · rsqrt, and the weight where the library multiplies by it before it rounds to the format. Lemma of
    norms (Norms.norms, Norms.absorbed, Ballast.parts_are_floats, Ballast.slack, Norms.undone).
    """
    if not 1 <= len(chosen) <= 4 or list(chosen) != sorted(set(chosen)) or chosen[-1] >= len(lanes):
        raise Unproved("the lanes of a ballast are not different ones, in their order")
    if any(not lanes[i].constant or not is_power(lanes[i].const) for i in chosen):
        raise Unproved("a lane of the ballast is no constant power of two")
    squares = [lanes[i].const ** 2 for i in chosen]
    level = sum(squares, Fraction(0)) / len(lanes)
    if not is_power(Fraction(len(lanes))) or not is_power(level) or level.numerator.bit_length() % 2 == 0:
        raise Unproved("the squares of the ballast do not add up to a power of four times the width")
    if level < 1 or min(squares) < 1 or 2 * sum(squares, Fraction(0)) > Fraction(1 << 127):
        raise Unproved("the squares of the ballast are too small or too large")
    rest = sum((size**2 for i, size in enumerate(sizes) if i not in chosen), Fraction(0))
    slack = 1 + Fraction(len(lanes), 1 << 20)
    off = (rest * slack / len(lanes) + Fraction(epsilon)) / level / 2 + Fraction(len(lanes) + 12, 1 << 24)
    hidden = rest * slack < min(squares) / form.units and Fraction(epsilon) * slack < level / form.units
    if not (hidden if form is FLOAT32 else off < Fraction(1, 2 * form.units)):
        raise Unproved(f"the ballast does not hide squares of {float(rest):.4g} beside {float(min(squares)):.4g}")
    return Known(claim, Fraction(1 << (level.numerator.bit_length() // 2)))


def occurrences(
    terms: Terms, claim: int, letters: Sequence[int], potential: tuple[Fraction, Sequence[Fraction], Sequence[int]]
) -> Known:
    """How often each of these letters can stand in a sequence, a whole number: the total of its indicator (lemma of
    totals)."""
    one_of = lambda a: (np.arange(terms.language.tokens) == a).astype(np.int64)
    return Known(claim, [math.floor(terms.language.bound_total(one_of(a), *potential)) for a in letters])


def asked(terms: Terms, claim: int, path: Sequence[tuple[int, int]], right: Callable[[Sequence[int]], Any]) -> Known:
    """Some sequence of the language asks something at its end: "every answer is right" speaks of one answer at least.
    The fact's value is that sequence. right: the letter that a task says is right behind these, None where it asks
    nothing."""
    letters = terms.language.spelled(path)
    if right(letters) is None:
        raise Unproved("nothing is asked at the end of this text")
    return Known(claim, letters)


def weighed(claim: int, weight: Fraction) -> Known:
    """The last rule over scores may add any number that exceeds every lead, which is checked where it is used."""
    return Known(claim, weight)
