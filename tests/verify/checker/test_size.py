"""The lines that docs/proofs.md counts are those of the folder."""

from __future__ import annotations

from tests.verify.checker.size import lines_of_code, paragraph, said


def test_the_page_counts_the_lines_that_there_are():
    assert said() == paragraph(), "python -m tests.verify.checker.size writes the page anew"


def test_what_is_no_code_is_not_counted():
    counted = ['X = """a', 'b"""  # two', "def f():", "    return (", "        X", "    )"]
    beside = ['"""A module', "", 'of two lines."""', "", "# a comment", '    """No."""']
    text = [*beside[:5], *counted[:2], "", "", counted[2], beside[5], *counted[3:], ""]
    assert lines_of_code("\n".join(text)) == len(counted)
