"""The page says what the kernel proves today, and how large it is."""

from tests.verify.kernel.small import QUICK, SIZES, TABLE, said, sizes, table


def test_the_page_has_the_gate_as_it_runs():
    """Of the circuits that are proved whole; the search for the others takes minutes (tests.verify.kernel.small)."""
    assert said(*TABLE).startswith(table(QUICK) + "\n")


def test_the_page_has_the_sizes():
    assert said(*SIZES) == sizes()
