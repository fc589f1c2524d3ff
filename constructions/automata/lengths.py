"""Lengths that work, of an automaton whose groups are counted: each with the size of the model that it makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from compiler.driver import compiled_once
from compiler.errors import CompileError
from compiler.shorter import tries
from constructions.construction import Construction

MODEST = (500, 100, 20)  # letters, tried in this order
SMALL = 1 << 27  # parameters of a model that is soon made: half a gigabyte


def lengths_that_work(asked: Construction, longest: int) -> str:
    """Which --length works, as words: the longest, before it a modest one, each with the parameters that it takes.

    A remainder has a threshold for each of its multiples, so the model grows with the length. Each length that is named
    was compiled; of a circuit that takes long to compile none is, and no size is told.
    """
    if tries(replace(asked, max_length=longest).circuit()) <= len(MODEST):
        return f"the longer, the larger the model; begin with a --length such as {min(MODEST[-1], longest)}"
    sizes = _sizes(asked, longest)
    found = list(islice(sizes, 1))
    if found and found[0][1] > SMALL:
        found = [*islice((one for one in sizes if one[1] <= SMALL), 1), *found]
    words = [f"--length {length} makes a model of {parameters:,} parameters" for length, parameters in found]
    return ", ".join(words) or f"in {asked.dtype} a --length below {MODEST[-1]} may work"


def _sizes(asked: Construction, longest: int) -> Iterator[tuple[int, int]]:
    """(length, parameters of its language model) of lengths that compile, the longest first."""
    from compiler.artifact.package import parameters_of  # PyTorch, for which most refusals need not wait

    for length in (longest, *(modest for modest in MODEST if modest < longest)):
        one = replace(asked, max_length=length)
        try:
            yield length, parameters_of(compiled_once(one.circuit(), one.target, one.dtype))
        except CompileError:
            continue
