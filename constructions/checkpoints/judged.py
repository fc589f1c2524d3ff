"""Whether wrong answers contradict a promise of most answers: of those that are proved none may be wrong, and of all no
more than the rate allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log
from typing import TYPE_CHECKING

from compiler.artifact.records import tested_word
from compiler.digits import at_most
from verify.check import Verification
from verify.rare_swaps import LEAST_ROWS

if TYPE_CHECKING:
    from constructions.checkpoints.built import Built
    from constructions.checkpoints.guarantee import Proof
    from constructions.construction import CircuitFamily

CHANCE = 1e-6  # a measured rate that is less likely than this, if the promised one holds, contradicts it


def judged(built: Built, total: Verification, proof: Proof) -> tuple[bool, str]:
    """(whether what is measured may be so, a sentence; "" where every answer is right or every one is promised).

    A proof under a condition (`asks_where`) speaks of the answers inside of it; those outside have the rate alone.
    """
    wrong = total.queries - total.correct
    if built.construction.promise() != "random" or not wrong:
        return True, ""
    measured = f"{wrong:,} of {total.queries:,} answers are wrong"
    where = built.construction.asks_where()
    if proof[0] is not None and proof[0].get("holds"):
        if total.wrong_inside and where:
            return False, f"{measured}, {total.wrong_inside:,} of them {where}, and every answer is proved right there"
        if total.wrong_inside:
            return False, f"{measured}, and every answer is proved right on the promise's inputs"
        measured = f"{measured}, none of them {where}"
    rate = promised_rate(built)
    chance = chance_of(wrong / total.queries, rate, total.sequences)
    told = f"{measured}, and at most {at_most(rate)} of all are expected"
    drawn = f"of {total.sequences:,} sequences drawn at random"
    if chance < CHANCE:
        return False, f"{told}: the chance of so many {drawn} is below {CHANCE:g}, so this contradicts the promise"
    return True, f"{told}: the rate allows that {drawn} (a chance of up to {at_most(chance)}; below {CHANCE:g} fails)"


def right_of(construction: CircuitFamily, proof: Proof, *forms: Mapping[str, Verification]) -> str:
    """Which answers are right: what is promised, or, where all are and that was found to be false, how many.

    "all" is only what is proved, of every answer that is promised or that an author gave. Else all that were asked are
    right, "tested", or nothing was: "not asked", or "not tested" where nothing was run.
    """
    found = [sum(results.values(), start=Verification()) for results in forms]
    wrong = next((total for total in found if total.correct < total.queries), None)
    promised = construction.promise()
    if promised != "all":
        return promised
    if wrong is not None:
        return f"{wrong.correct:,} of {wrong.queries:,}"
    if proof[0] is not None and proof[0].get("holds") and not construction.unstated_answers():
        return promised
    return tested_word(sum(total.queries for total in found), sum(total.sequences for total in found))


def promised_rate(built: Built) -> float:
    """The rate of wrong answers that is expected at most: of the code at hand, with 2.5 times half its 95 % interval
    (4.9 standard deviations), and no less than what its draws could have missed with a chance of `CHANCE`; without a
    code that of the construction.
    """
    codes = built.construction.drawn_codes()
    if codes is None:
        return built.construction.expected_failure()
    unseen = -log(CHANCE) / max(LEAST_ROWS, codes["sets"])
    return min(1.0, max(codes["expected_failure"] + 2.5 * (codes.get("error") or 0.0), unseen))


def chance_of(share: float, rate: float, sequences: int) -> float:
    """Chernoff's bound of the binomial tail, exp(−n·KL(share, rate)): the chance at most of a mean share so large.

    sequences: drawn independently, with as many queries each; queries of one hang together, and its share of wrong
    ones, a number between 0 and 1 of this mean, varies at most as a coin does.
    """
    if share <= rate:
        return 1.0
    if rate <= 0:
        return 0.0
    rest = (1 - share) * log((1 - share) / (1 - rate)) if share < 1 else 0.0
    return exp(-sequences * (share * log(share / rate) + rest))
