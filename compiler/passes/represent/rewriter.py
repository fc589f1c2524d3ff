"""What every rule of represent works with: the domains, the flags' logic, the tables of tokens, the streams so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

import numpy as np

from compiler.analysis.affine_form import ONE
from compiler.analysis.domains import DomainsDraft
from compiler.language import operations as ops
from compiler.language.alphabet import Alphabet
from compiler.language.operations import LaneWise
from compiler.language.stream import Stream, constant, standing_for
from compiler.passes.fold_masks import MaskFolding
from compiler.passes.lane_by_lane import only_lanes
from compiler.passes.logic import Logic
from compiler.passes.represent.token_tables import TokenTables, shifted

Rule: TypeAlias = Callable[..., Stream]  # (rewriter, operation, *rewritten inputs) → core stream
Rules: TypeAlias = dict[type[ops.Operation], Rule]
_Rule = TypeVar("_Rule", bound=Rule)


def rule_of(rules: Rules, *kinds: type[ops.Operation]) -> Callable[[_Rule], _Rule]:
    """Enter a function into `rules` as the rule of exactly these operations."""

    def enter(rule: _Rule) -> _Rule:
        rules.update(dict.fromkeys(kinds, rule))
        return rule

    return enter


class Rewriter:
    """One rule per operation, from the operation and its rewritten inputs to a core stream."""

    def __init__(
        self,
        rules: Mapping[type[ops.Operation], Rule],
        domains: DomainsDraft,
        alphabet: Alphabet | None,
        fold: MaskFolding | None = None,
        apart: bool = False,
        decides: bool = False,
        ramps_apart: bool = False,
        overwrites: bool = False,
    ):
        self.apart = apart
        self.decides = decides
        self.ramps_apart = ramps_apart
        self.overwrites = overwrites
        self.rules = rules
        self.domains = domains
        self.tokens = TokenTables(domains, alphabet)
        self.logic = Logic(fold)
        self.core: dict[Stream, Stream] = {}
        self._dressed: set[Stream] = set()

    def rewrite(self, stream: Stream) -> None:
        inputs = tuple(self.core[s] for s in stream.inputs)
        with standing_for(stream):
            result = self.tokens.fold(stream, inputs)
            if result is None:
                result = self.ruled(stream.operation, *inputs)
            if self.decides:
                result = self._without_zeros(result)
        self._inherit(result, stream)
        self.domains.replaced(stream, result)
        self.core[stream] = result

    def _without_zeros(self, stream: Stream) -> Stream:
        """The stream, of which lanes that bounds say are 0 are not computed; a product by 0 reads no other operand."""
        bounds, one_by_one = self.domains.of(stream).bounds, stream.operation.lane_wise is LaneWise.EACH
        lanes = np.flatnonzero(bounds)
        if not stream.inputs or len(lanes) == len(bounds):
            return stream
        if not len(lanes):
            return constant(0, stream.width)
        return only_lanes(stream, stream.inputs, lanes) if one_by_one else stream

    def left(self, stream: Stream) -> None:
        """Take a stream that is refused for its own core, so that all reasons are found; it keeps its author's name."""
        self.core[stream] = stream
        self._dressed.add(stream)

    def ruled(self, operation: ops.Operation, *inputs: Stream) -> Stream:
        """The rule of exactly this operation: a subclass may mean something else than its parent."""
        rule = self.rules.get(type(operation))
        if rule is not None:
            return rule(self, operation, *inputs)
        if operation.core:
            return Stream(operation, inputs)
        raise NotImplementedError(f"there is no lowering of {operation.symbol} yet")

    def delayed(self, x: Stream, lag: int) -> Stream:
        """x(t − lag); zeros where no sequence is long enough."""
        return shifted(x, lag) if lag < self.domains.max_length else constant(0, x.width)

    def _inherit(self, result: Stream, source: Stream) -> None:
        """New streams carry the name of the operation that they stand for."""
        pending = [result]
        while pending:
            new = pending.pop()
            if new is not ONE and new not in self._dressed:
                self._dressed.add(new)
                new.name = new.name or source.label
                pending += new.inputs
