"""The page says what the kernel proves today, and how large it is."""

import inspect
import re

from compiler.language import operations
from tests.verify.kernel.page import PAGE, said
from tests.verify.kernel.size import SIZES, WHERE, sizes, where
from tests.verify.kernel.small import GATE, QUICK, TABLE, TARGETS, make, table
from verify.kernel.circuit import RULES


def test_the_page_has_the_gate_as_it_runs(recall, keep, heads, copies):
    """Of the circuits that are proved whole; the search for the others takes minutes (tests.verify.kernel.small)."""
    here = {("mqar", "mamba"): recall, ("keep-nth", "mamba"): keep}
    here |= {("induction-heads", "mamba2"): heads, ("selective-copy", "mamba2"): copies}
    made = lambda directory, name, target: here.get((name, target)) or make(directory, name, target)
    assert said(*TABLE).startswith(table(QUICK, made) + "\n")


def test_the_page_has_the_sizes():
    assert said(*SIZES) == sizes() and said(*WHERE) == where()


def test_the_page_names_the_operations_without_a_rule():
    """`Decide` is none of these: its rules over scores are read together (`meaning`). Others stand in no circuit.json
    of letters: passes alone make them, or they read numbers.
    """
    others = {"Decide", "Half", "Moved", "Numbers", "Settled"}
    kinds = (operations.Operation, operations.LaneWise)
    known = {
        x.__name__ for x in vars(operations).values() if inspect.isclass(x) and issubclass(x, kinds) and x not in kinds
    }
    (told,) = re.findall(r"nor have the operations ([^.]*)\.", PAGE.read_text("utf-8"))
    assert set(told.split(", ")) == known - set(RULES) - others and known > set(RULES) | others


def test_the_page_has_a_row_of_each_circuit():
    """Of those whose search takes minutes too: what it says of them was measured, or that it was not."""
    rows = [row.split(" | ") for row in said(*TABLE).splitlines()[2:]]
    assert [row[0].split("`")[1] for row in rows] == list(GATE)
    said_of = ("all: ", "arithmetic and meaning", "stops: ", "not run")
    for row, sizes_of in zip(rows, GATE.values(), strict=True):
        assert len(row) == 1 + len(TARGETS) and all(f"{key} = {value}" in row[0] for key, value in sizes_of.items())
        assert all(cell.strip(" |").startswith(said_of) for cell in row[1:])
