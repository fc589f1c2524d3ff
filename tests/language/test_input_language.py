"""Input languages: the strings they spell, the samples they draw, and the bounds they promise."""

from __future__ import annotations

from collections import Counter
from itertools import product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.language.alphabet import Alphabet
from compiler.language.input_language import Edge, InputLanguage

ABC = Alphabet.of("a", "b", "c")
STATES = ("p", "q", "r")
edges = st.lists(
    st.builds(
        Edge,
        st.sampled_from(STATES),
        st.sampled_from(STATES),
        st.frozensets(st.integers(0, 2), min_size=1),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)
languages = st.builds(lambda edges: InputLanguage(ABC, "p", tuple(edges), 5, "random"), edges)


@settings(max_examples=150, deadline=None)
@given(languages)
def test_strings_are_what_is_accepted(language: InputLanguage):
    for length in range(5):
        spelled = list(language.strings(length))
        assert len(set(spelled)) == len(spelled)
        assert set(spelled) == {word for word in product(range(3), repeat=length) if language.accepts(word)}


@settings(max_examples=150, deadline=None)
@given(languages)
def test_bounds_hold_for_every_string(language: InputLanguage):
    groups = [np.array(g) for g in ([0], [1, 2], [0, 1, 2])]
    for length in range(1, language.max_length + 1):
        for word in language.strings(length):
            held = Counter(word)
            assert all(held[i] <= language.occurrences[i] for i in range(3))
            assert all(sum(held[int(i)] for i in group) <= language.max_count(group) for group in groups)


@settings(max_examples=60, deadline=None)
@given(languages, st.integers(1, 5))
def test_samples_are_strings_of_the_language_where_it_has_any(language: InputLanguage, length: int):
    if not any(language.strings(length)):
        with pytest.raises(ValueError, match=f"no sequence of length {length} is in the input language"):
            language.sample(5, length, seed=1)
        return
    sample = language.sample(5, length, seed=1)
    assert sample.shape == (5, length)
    assert all(language.accepts(word) for word in sample)
    assert np.array_equal(sample, language.sample(5, length, seed=1))


def _loops(*edges: tuple[str, str, range, bool]) -> InputLanguage:
    letters = Alphabet.of(*(f"t{i}" for i in range(1200)))
    return InputLanguage(
        letters, "A", tuple(Edge(a, b, frozenset(ids), once) for a, b, ids, once in edges), 1 << 16, ""
    )


TWO_LOOPS = (("A", "A", range(600), True), ("A", "A", range(600, 1200), True))


@pytest.mark.parametrize(
    ("language", "length", "there"),
    [
        (_loops(*TWO_LOOPS), 1200, True),
        (_loops(*TWO_LOOPS), 1201, False),  # 361,201 ways to spend them
        (_loops(("A", "B", range(3), True), ("B", "A", range(3), False)), 60_000, False),
        (_loops(("A", "A", range(3), False), ("A", "B", range(3), False), ("B", "B", range(9), True)), 60_000, True),
        (_loops(("A", "B", range(1), False), ("B", "A", range(1), False), ("B", "C", range(1), False)), 65_535, True),
    ],
)
def test_long_samples_are_drawn_where_few_paths_reach_the_length(language: InputLanguage, length: int, there: bool):
    if there:
        assert all(map(language.accepts, language.sample(2, length, seed=0)))
    else:
        with pytest.raises(ValueError, match="is in the input language"):
            language.sample(2, length, seed=0)


def test_where_the_search_ends_nothing_is_said_of_the_language():
    few = [(f"{'ABCDEFGHIJKLMNOP'[i]}", i) for i in range(16)]
    edges = [Edge(a, f"{a}'", frozenset({i}), True) for a, i in few]
    edges += [Edge(f"{a}'", b, frozenset({20})) for a, i in few for b, j in few if (j - i) % 2 or {i, j} <= {0, 2, 4}]
    language = InputLanguage(_loops().alphabet, "A", (*edges, Edge("P'", "A", frozenset({21}))), 99, "each state once")
    with pytest.raises(ValueError, match="whether the input language has one is not known"):
        language.sample(1, 33, seed=0)


def test_edges_are_drawn_evenly_among_those_that_go_on():
    ends = [Edge("A", "end", frozenset({i})) for i in range(2)]
    language = InputLanguage(ABC, "A", (*ends, Edge("A", "A", frozenset({1})), Edge("A", "A", frozenset({2}))), 9, "")
    drawn = Counter(language.sample(4000, 2, seed=0)[:, 0].tolist())
    assert set(drawn) == {1, 2} and abs(drawn[1] - 2000) < 200


def test_everything():
    language = InputLanguage.everything(ABC, 4)
    assert len(list(language.strings(4))) == 81
    assert language.accepts([0, 1, 2, 0]) and not language.accepts([0] * 5) and language.accepts([])
    assert language.occurrences.tolist() == [4, 4, 4]


def test_a_distinct_edge_uses_its_tokens_up():
    language = InputLanguage.of(ABC, "s", [("s", "s", ["a", "b"], True), ("s", "s", ["c"])], 6, "a and b once")
    assert language.occurrences.tolist() == [1, 1, 6]
    assert language.max_count(np.array([0, 1])) == 2
    assert language.accepts([0, 2, 1]) and not language.accepts([0, 2, 0])


def test_a_shorter_promise():
    language = InputLanguage.everything(ABC, 9).with_length(2)
    assert language.max_length == 2 and not language.accepts([0, 0, 0])


def test_unknown_tokens_are_named():
    with pytest.raises(ValueError, match="token 'z' is not in the alphabet"):
        InputLanguage.of(ABC, "s", [("s", "s", ["z"])], 3, "none")


def test_lengths_beyond_exact_positions_are_refused() -> None:
    with pytest.raises(ValueError, match="max_length is 9007199254740993, and it must be at most 9007199254740992"):
        InputLanguage.everything(Alphabet.of("a"), 2**53 + 1)
    edges = [("s", "s", "a")] * 3000
    assert InputLanguage.of(Alphabet.of("a"), "s", edges, 2**53, "many").occurrences.tolist() == [2**53]


@settings(max_examples=150, deadline=None)
@given(languages)
def test_an_edge_is_repeatable_where_a_path_leads_back_to_its_start(language: InputLanguage):
    graph = nx.MultiDiGraph((edge.source, edge.target) for edge in language.edges)
    found = [language.is_repeatable(i) for i in range(len(language.edges))]
    assert found == [nx.has_path(graph, edge.target, edge.source) for edge in language.edges]
