"""Conjunctions and disjunctions of any number of flags, by one rectifier each.

Of n flags, relu(Σ f_i − (n − 1)) is the conjunction and 1 − relu(1 − Σ f_i) the disjunction. A chain
a & b & c is one such sum, and so is what De Morgan makes of ~(a | b) & c, so a chain costs one block and
not one for each link. What is negated enters as 1 − f.
"""

from __future__ import annotations

from functools import reduce

from compiler.language import operations as ops
from compiler.language.stream import Stream
from compiler.language.types import Bool
from compiler.passes.fold_masks import MaskFolding

LONGEST_CHAIN = 64  # a longer one is nested, so that chains of chains stay linear in the graph


class Logic:
    """Which rewritten flags are conjunctions and disjunctions, and of what.

    fold: how a conjunction is had a block earlier; None where it takes one rectifier for each lane.
    """

    def __init__(self, fold: MaskFolding | None = None) -> None:
        self._fold = fold
        self._all_of: dict[Stream, tuple[Stream, ...]] = {}
        self._any_of: dict[Stream, tuple[Stream, ...]] = {}

    def conjuncts(self, flag: Stream) -> tuple[Stream, ...]:
        """The flags whose conjunction a flag is."""
        return self._all_of.get(flag, (flag,))

    def conjunction(self, *flags: Stream, rectified: bool = False) -> Stream:
        """All of these flags; single ones are shared by all lanes of the others.

        rectified: it must be one rectifier for each lane, as x̂ is.
        """
        parts = _flattened(flags, self._all_of)
        if len(parts) == 1:
            return parts[0]
        both = (_total(parts) - (len(parts) - 1)).relu()
        both = both.retyped(reduce(ops.And().result_type, (flag.type for flag in parts)))
        folded = None if rectified or self._fold is None else self._fold.folded(parts, both)
        result = both if folded is None else folded
        self._all_of[result] = parts
        return result

    def disjunction(self, *flags: Stream) -> Stream:
        """Any of these flags, lane by lane."""
        parts = _flattened(flags, self._any_of)
        if len(parts) == 1:
            return parts[0]
        total = _total(parts)
        either = (1 - (1 - total).relu()).retyped(Bool(total.width))
        self._any_of[either] = parts
        return either

    def negation(self, flag: Stream) -> Stream:
        """1 − flag."""
        result = _not(flag)
        if flag in self._any_of:
            self._all_of[result] = tuple(_not(part) for part in self._any_of[flag])
        if flag in self._all_of:
            self._any_of[result] = tuple(_not(part) for part in self._all_of[flag])
        return result


def _not(flag: Stream) -> Stream:
    return (1 - flag).retyped(Bool(flag.width))


def _flattened(flags: tuple[Stream, ...], known: dict[Stream, tuple[Stream, ...]]) -> tuple[Stream, ...]:
    """The parts of these flags, each once."""
    parts = tuple(dict.fromkeys(part for flag in flags for part in known.get(flag, (flag,))))
    return parts if len(parts) <= LONGEST_CHAIN else tuple(dict.fromkeys(flags))


def _total(flags: tuple[Stream, ...]) -> Stream:
    return sum(flags[1:], start=flags[0])
