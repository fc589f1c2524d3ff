"""What a DPProblem of one's own must be, each in one sentence: which entry, its value, and what is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from compiler.language.arguments import instance, integer, shown
from verify.arguments import at_least, one_of, run_own

if TYPE_CHECKING:
    from constructions.copy_dp.problem import DPProblem

ANSWERS = ("last", "max", "min")
_NUMBERS = 1 << 12
_ENTRIES = 1 << 11


def check(problem: DPProblem) -> None:
    """Raises ValueError or TypeError for a problem that is none, and for one that is too large."""
    instance(problem.name, str, "name", "a text")
    if not problem.name.isprintable() or not problem.name.strip():
        raise ValueError(f"name is {problem.name!r}, and one line of text is needed")
    if not instance(problem.said, str, "said", "a text").isprintable():
        raise ValueError(f"said is {problem.said!r}, and one line of text is needed")
    _entries(problem.letters, "letters", "a text, or a list of texts,")
    at_least("letters", len(problem.letters), 1, "inputs consist of them")
    for length in _entries(problem.inputs, "inputs", "a tuple of lengths"):
        at_least("inputs", integer(length, "a length of inputs"), 1, "each input has a letter")
    at_least("inputs", len(problem.inputs), 1, "there must be something to read")
    at_least("largest", integer(problem.largest, "largest"), 1, "a value can be 0 or 1")
    for what in ("missing", "blank"):
        integer(getattr(problem, what), what)
    one_of("answer", problem.answer, ANSWERS)
    _check_cells(problem)
    _check_reads(problem)
    _check_needs(problem)


def _entries(given: Any, what: str, needed: str) -> Sequence:
    return instance(given, Sequence, what, needed)


def _check_cells(problem: DPProblem) -> None:
    _entries(problem.cells, "cells", "a list of tuples")
    for what, given, most in (
        ("largest", problem.largest, _NUMBERS),
        ("the number of cells", len(problem.cells), _ENTRIES),
    ):
        if given > most:
            raise ValueError(f"{problem.name}: {what} is {given}, and at most {most} works")
    for cell in problem.cells:
        if not isinstance(cell, tuple):
            raise ValueError(f"{problem.name}: the cell {cell!r} is no tuple; write ({cell!r},)")
        _hashed(problem, cell, f"the cell {cell!r}")
    if not problem.cells or len(set(problem.cells)) < len(problem.cells):
        raise ValueError(f"{problem.name}: its cells must be distinct, and at least one is needed")


def _check_reads(problem: DPProblem) -> None:
    last = len(problem.inputs) - 1
    for cell, pairs in _lists(problem, "reads"):
        for pair in pairs:
            if not (isinstance(pair, tuple | list) and len(pair) == 2):
                raise ValueError(
                    f"{problem.name}: cell {cell} reads {shown(pair)}, and a pair (input, index) is needed"
                )
            part, _ = (integer(number, f"{problem.name}: what cell {cell} reads") for number in pair)
            if part not in range(len(problem.inputs)):
                raise ValueError(f"{problem.name}: cell {cell} reads input {part}, and the last one is {last}")


def _check_needs(problem: DPProblem) -> None:
    order = {cell: i for i, cell in enumerate(problem.cells)}
    for cell, others in _lists(problem, "needs"):
        for other in others:
            if other is not None and not isinstance(other, tuple):
                raise ValueError(
                    f"{problem.name}: cell {cell} needs {shown(other)}, and a cell, a tuple, or None is meant"
                )
            _hashed(problem, other, f"what cell {cell} needs")
            if order.get(other, -1) >= order[cell]:
                raise ValueError(
                    f"{problem.name}: cell {cell} needs {other}, which is written no earlier; change the order of cells"
                )


def _lists(problem: DPProblem, what: str) -> list[tuple[tuple, Sequence]]:
    """(cell, what `reads` or `needs` gives for it), of one length for all."""
    found = []
    for cell in problem.cells:
        given = run_own(f"{problem.name}: {what} of cell {cell}", getattr(problem, what), *cell)
        found.append((cell, _entries(given, f"{problem.name}: {what} of cell {cell}", "a list")))
    lengths = {len(given) for _, given in found}
    if len(lengths) > 1:
        raise ValueError(f"{problem.name}: {what} gives {sorted(lengths)} entries, and every cell must have as many")
    return found


def _hashed(problem: DPProblem, cell: object, what: str) -> None:
    try:
        hash(cell)
    except TypeError as reason:
        raise ValueError(f"{problem.name}: {what} is no key of a table: {reason}") from None
