"""Rules over scores: some flags name tokens that win whatever the scores say."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from compiler.language.kinds import is_flags
from compiler.language.operations.base import Operation
from compiler.language.operations.exact import Array
from compiler.language.operations.known import Known, Operand
from compiler.language.operations.traits import Sees
from compiler.language.operations.wording import needs
from compiler.language.types import Logits, Type
from compiler.lattice.domain import Domain, outward, up
from compiler.lattice.units import unit_of

_ZERO, _ONE = Fraction(0), Fraction(1)

MOST_RULES = 256  # the first weighs 2^(n − 1), and no float sums numbers beyond 2^256 exactly


@dataclass(frozen=True)
class Decide(Operation):
    """The scores, and 2^(n − 1 − i)·W on the token of rule i of n where its flag holds: the first rule that holds wins.

    inputs: scores (V lanes), n flags. tokens: the token of each rule. W exceeds every difference of two scores, so a
    rule beats all scores, and those behind it together: Σ_{j>i} 2^(n−1−j)·W = (2^(n−1−i) − 1)·W. At a position by
    itself W is 1 more than the largest difference there; a compiled circuit has one W for all, proved to be enough
    (`compiler.passes.rule_weights`).
    """

    ranks: ClassVar[bool] = True
    sees: ClassVar[Sees] = Sees.POINTWISE
    foldable: ClassVar[bool] = False

    tokens: tuple[int, ...]

    def result_type(self, scores: Type, *flags: Type) -> Type:
        return Logits(scores.width)

    def problems(self, scores: Type, *flags: Type) -> list[str]:
        found = needs(Logits, "the scores of a readout", scores=scores)
        found += [f"the flag of rule {i} is {f}, and a Bool is needed" for i, f in enumerate(flags) if not is_flags(f)]
        found += [f"rule {i} has {f.width} flags, and one is needed" for i, f in enumerate(flags) if f.width != 1]
        if len(self.tokens) > MOST_RULES:
            return [
                *found,
                f"it has {len(self.tokens)} rules, and of more than {MOST_RULES} the first weighs over 2^256",
            ]
        return found + [f"token {t} is none of its {scores.width}" for t in self.tokens if not 0 <= t < scores.width]

    def weight(self, rule: int) -> int:
        """2^(n − 1 − rule): what a rule weighs in multiples of W."""
        return 1 << (len(self.tokens) - 1 - rule)

    def domain(self, stream: Operand, known: Known) -> Domain:
        scores = known.of(stream.inputs[0])
        added = np.zeros(stream.width)
        added[list(self.tokens)] = up(self.most(scores.hi - scores.lo))
        unit = unit_of(scores.step, _ONE) if scores.step else _ZERO
        low, high = outward(scores.low, scores.high + added, scores.bounds + added, scores.grain, 1)
        return known.lanes(np.full(stream.width, float(unit)), low, high)

    def evaluate(self, scores: Array, *flags: Array) -> Array:
        spread = 1 + scores.max(axis=-1) - scores.min(axis=-1)
        out = scores.copy()
        for i, (token, flag) in enumerate(zip(self.tokens, flags, strict=True)):
            out[..., token] = out[..., token] + self.weight(i) * spread * flag[..., 0]
        return out

    def most(self, spread: Fraction) -> Fraction:
        """What the rules add to a score at most, where scores differ by no more than `spread`."""
        return (1 + spread) * ((1 << len(self.tokens)) - 1)


def rule_columns(operation: Decide, width: int, weight: float) -> list[np.ndarray]:
    """The (width × 1) matrix of each rule for W = weight."""
    columns = []
    for i, token in enumerate(operation.tokens):
        column = np.zeros((width, 1))
        column[token] = operation.weight(i) * weight
        columns.append(column)
    return columns
