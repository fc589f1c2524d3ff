"""The index of lemmas in docs/proofs.md is that of the code."""

from __future__ import annotations

import re

import pytest

from tests.verify.checker.lemmas import index, said, stated, uses


def test_the_page_shows_where_each_lemma_stands():
    assert said() == index(), "python -m tests.verify.checker.lemmas writes the page anew"


def test_each_lemma_stands_somewhere_and_has_one_name():
    names = stated()
    assert all(re.search(r"`\w+(/\w+)?\.py", row) for row in index().split("\n")) and len(set(names)) == len(names) > 25
    assert all(len(name) > 3 for name in names)  # a word, and no letter


def test_names_may_be_listed_and_broken_over_lines():
    names = ["sums", "running sums", "writes that stop", "sums that decide"]
    text = "a\n(lemmas of running sums, of sums\nthat decide and of writes that\nstop).\nThe lemma of sums: b"
    assert uses(text, names) == [("running sums", 2), ("sums that decide", 2), ("writes that stop", 2), ("sums", 5)]


def test_other_names_are_refused():
    with pytest.raises(ValueError, match="line 2 names no lemma"):
        uses("a\nlemma of differences", ["sums"])
