"""The page says what the kernel proves today, and how large it is."""

from tests.verify.kernel.small import SIZES, TABLE, said, sizes, table


def test_the_page_has_the_gate_as_it_runs():
    assert said(*TABLE) == table()


def test_the_page_has_the_sizes():
    assert said(*SIZES) == sizes()
