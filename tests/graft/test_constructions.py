"""Constructions of the papers in a host: which go in and answer among its tokens, and what refuses the others."""

import pytest

from compiler import CompileError
from compiler.graft import graft
from compiler.graft.measure import answers, host_difference, mixed_text
from constructions.registry import CONSTRUCTIONS
from tests.graft.hosts import VOCAB, host, host_text

TAKEN = [
    ("mqar", {"kappa": 4, "vocab": 8}, "mamba"),
    ("keep-nth", {"n": 3, "vocab": 6}, "mamba"),
    ("absolute-time", {}, "mamba"),
    ("selective-copy", {"n": 2, "vocab": 3, "length": 8}, "mamba"),
    ("edit-distance", {"length": 2, "distinct_letters": 2}, "mamba"),
    ("phonebook", {"names": 3, "entries": 2, "digits": 2}, "mamba"),
    ("mqar", {"kappa": 4, "vocab": 8}, "mamba2"),
    ("induction-heads", {"vocab": 6}, "mamba2"),
]
REFUSED = [
    ("copy", {"n": 4, "vocab": 3}, "mamba", "which need not rise"),
    ("count-in-row", {}, "mamba", "would fit"),
    ("keep-nth", {"n": 3, "vocab": 6}, "mamba2", "times shorter fits"),
]


@pytest.mark.parametrize(("name", "options", "kind"), TAKEN)
def test_constructions_that_go_into_a_host(name, options, kind):
    model = host(kind)
    grafted = graft(model, CONSTRUCTIONS[name](**options).circuit())
    assert host_difference(model, grafted, host_text()).equal
    found = answers(grafted, mixed_text(grafted, VOCAB, 8, 40, seed=0))
    assert found.asked > 20 and not found.wrong and not found.intruding


@pytest.mark.parametrize(("name", "options", "kind", "words"), REFUSED)
def test_constructions_that_do_not(name, options, kind, words):
    with pytest.raises(CompileError, match=words):
        graft(host(kind), CONSTRUCTIONS[name](**options).circuit())
