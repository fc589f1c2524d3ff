"""The page says what the kernel proves today, and how large it is."""

from tests.verify.kernel.small import QUICK, SIZES, TABLE, make, said, sizes, table


def test_the_page_has_the_gate_as_it_runs(recall, keep, heads, copies):
    """Of the circuits that are proved whole; the search for the others takes minutes (tests.verify.kernel.small)."""
    here = {("mqar", "mamba"): recall, ("keep-nth", "mamba"): keep}
    here |= {("induction-heads", "mamba2"): heads, ("selective-copy", "mamba2"): copies}
    made = lambda directory, name, target: here.get((name, target)) or make(directory, name, target)
    assert said(*TABLE).startswith(table(QUICK, made) + "\n")


def test_the_page_has_the_sizes():
    assert said(*SIZES) == sizes()
