"""What a DPProblem of one's own must be, each in one sentence: which entry, its value, and what is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compiler.analysis.paths import MOST_STEPS
from compiler.language.arguments import instance, integer, shown
from constructions.copy_dp.problem_data import Aggregation, ProblemData, Size
from constructions.copy_dp.problem_letters import NEEDED, check_letters
from constructions.copy_dp.problem_plan import before, cells_of, gathered, sizes_of
from verify.arguments import at_least, one_of, run_own

ANSWERS = ("last", "max", "min")
_MARKS = ("|", ";", ".", "!")  # of every chain
_NUMBERS = 1 << 12
_ENTRIES = 1 << 11


def check(problem: ProblemData) -> None:
    """Raises ValueError or TypeError for a problem that is none, and for one that is too large."""
    instance(problem.name, str, "name", "a text")
    if not problem.name.isprintable() or not problem.name.strip():
        raise ValueError(f"name is {problem.name!r}, and one line of text is needed")
    if not instance(problem.said, str, "said", "a text").isprintable():
        raise ValueError(f"said is {problem.said!r}, and one line of text is needed")
    at_least("letters", len(_entries(problem.letters, "letters", NEEDED)), 1, "inputs consist of them")
    _check_inputs(problem)
    at_least("largest", integer(problem.largest, "largest"), 1, "a value can be 0 or 1")
    if problem.largest > _NUMBERS:
        raise ValueError(f"{problem.name}: largest is {problem.largest}, and at most {_NUMBERS} works")
    check_letters(problem.letters, _MARKS, problem.largest)
    for what in ("missing", "blank"):
        integer(getattr(problem, what), what)
    if not isinstance(problem.answer, Aggregation):
        one_of("answer", problem.answer, ANSWERS)
    sizes, cells = sizes_of(problem), 0
    for size in sizes:
        cells += _check_cells(problem, size)
        if cells > _ENTRIES:
            raise ValueError(
                f"{problem.name}: the number of cells{_of_all(problem)} is over {_ENTRIES}, the most that works"
            )
    _check_reads(problem, sizes)
    _check_needs(problem, sizes)
    _check_answer(problem, sizes)


def _check_inputs(problem: ProblemData) -> None:
    given = _entries(problem.inputs, "inputs", "a tuple of lengths")
    if not given:
        raise ValueError(f"inputs is {shown(given)}, and there must be something to read")
    letters, combinations = 0, 1
    for lengths in given:
        longest = _longest(lengths)
        letters += longest
        if letters > MOST_STEPS:
            raise ValueError(
                f"{problem.name}: inputs is {shown(given)}, with more than {MOST_STEPS} letters in all, and no "
                "memory of more is followed"
            )
        combinations *= longest + 1 if isinstance(lengths, range) else 1
    if combinations > _ENTRIES:
        raise ValueError(f"{problem.name}: its lengths have {combinations} combinations, and at most {_ENTRIES} work")
    if problem.varies != callable(problem.cells):
        raise ValueError(
            f"{problem.name}: cells is {'a function of n' if callable(problem.cells) else 'a list'}, and "
            f"{'an input' if problem.varies else 'no input'} has a range of lengths; give both or neither"
        )


def _longest(lengths: int | range) -> int:
    """The most letters that an input of these lengths has. A range is never gone through: it may have 10^9 entries."""
    if not isinstance(lengths, range):
        at_least("inputs", integer(lengths, "a length of inputs"), 1, "each input has a letter")
        return lengths
    if not lengths or min(lengths[0], lengths[-1]) < 0:
        raise ValueError(f"inputs has {shown(lengths)}, and a range of lengths holds some, none of them below 0")
    longest = max(lengths[0], lengths[-1])
    if longest < 1:
        raise ValueError(f"inputs has {shown(lengths)}, and some input of it has a letter")
    return longest


def _of_all(problem: ProblemData) -> str:
    return " of all sizes together" if problem.varies else ""


def _called(problem: ProblemData, what: str, size: Size, function: Any, *operands: Any) -> Any:
    """What a function of the problem gives, as a list."""
    where = f"{problem.name}: {what}" + (f" of size {size}" if problem.varies else "")
    return _entries(run_own(where, function, *operands), where, "a list")


def _entries(given: Any, what: str, needed: str) -> Sequence:
    found = instance(given, Sequence, what, needed)
    try:
        len(found)
    except OverflowError:  # of a range
        raise ValueError(f"{what} is {shown(given)}, and no list is as long") from None
    return found


def _check_cells(problem: ProblemData, size: Size) -> int:
    if callable(problem.cells):
        cells = _called(problem, "cells", size, problem.cells, size)
    else:
        cells = _entries(problem.cells, "cells", "a list of tuples")
    for cell in cells:
        if not isinstance(cell, tuple):
            raise ValueError(f"{problem.name}: the cell {cell!r} is no tuple; write ({cell!r},)")
        _hashed(problem, cell, f"the cell {cell!r}")
    if not cells or len(set(cells)) < len(cells):
        raise ValueError(f"{problem.name}: its cells must be distinct, and at least one is needed")
    return len(cells)


def _check_reads(problem: ProblemData, sizes: Sequence[Size]) -> None:
    last = len(problem.inputs) - 1
    for _, cell, pairs in _lists(problem, "reads", sizes):
        for pair in pairs:
            if not (isinstance(pair, tuple | list) and len(pair) == 2):
                raise ValueError(
                    f"{problem.name}: cell {cell} reads {shown(pair)}, and a pair (input, index) is needed"
                )
            part, _ = (integer(number, f"{problem.name}: what cell {cell} reads") for number in pair)
            if part not in range(len(problem.inputs)):
                raise ValueError(f"{problem.name}: cell {cell} reads input {part}, and the last one is {last}")


def _check_needs(problem: ProblemData, sizes: Sequence[Size]) -> None:
    orders = {size: {cell: i for i, cell in enumerate(cells_of(problem, size))} for size in sizes}
    for size, cell, others in _lists(problem, "needs", sizes):
        order = orders[size]
        for other in others:
            _check_cell(problem, other, f"cell {cell} needs")
            if order.get(other, -1) >= order[cell]:
                raise ValueError(
                    f"{problem.name}: cell {cell} needs {other}, which is written no earlier; change the order of cells"
                )


def _check_answer(problem: ProblemData, sizes: Sequence[Size]) -> None:
    if not isinstance(problem.answer, Aggregation):
        return
    if callable(problem.answer.cells) != problem.varies:
        raise ValueError(
            f"{problem.name}: the answer's cells are a function of n where lengths vary, and a list elsewhere"
        )
    widths = set()
    for size in sizes:
        needed = _called(problem, "the answer's cells", size, gathered, problem, size)
        for other in needed:
            _check_cell(problem, other, "its answer needs")
            if other is not None and other not in cells_of(problem, size):
                raise ValueError(f"{problem.name}: its answer needs {other}, which is no cell of size {size}")
        widths.add(len(needed))
    if len(widths) > 1 or not min(widths):
        raise ValueError(
            f"{problem.name}: its answer gathers {sorted(widths)} cells; every size must have as many, "
            "and at least one: None stands for `missing`"
        )


def _check_cell(problem: ProblemData, other: Any, what: str) -> None:
    if other is not None and not isinstance(other, tuple):
        raise ValueError(f"{problem.name}: {what} {shown(other)}, and a cell, a tuple, or None is meant")
    _hashed(problem, other, f"what {what.removesuffix(' needs')} needs")


def _lists(problem: ProblemData, what: str, sizes: Sequence[Size]) -> list[tuple[Size, tuple, Sequence]]:
    """(size, cell, what `reads` or `needs` gives for it), of one length for all."""
    found = []
    for size in sizes:
        for cell in cells_of(problem, size):
            operands = (*before(problem, size), *cell)
            given = _called(problem, f"{what} of cell {cell}", size, getattr(problem, what), *operands)
            found.append((size, cell, given))
    lengths = {len(given) for _, _, given in found}
    if len(lengths) > 1:
        raise ValueError(f"{problem.name}: {what} gives {sorted(lengths)} entries, and every cell must have as many")
    return found


def _hashed(problem: ProblemData, cell: object, what: str) -> None:
    try:
        hash(cell)
    except TypeError as reason:
        raise ValueError(f"{problem.name}: {what} is no key of a table: {reason}") from None
