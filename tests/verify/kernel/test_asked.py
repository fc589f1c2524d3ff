"""A task that no text asks is not proved: a claim names a text for each of its questions."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest

from tests.verify.kernel.small import searched
from verify.kernel.certificate import prove
from verify.kernel.claims import Refused
from verify.kernel.files import read
from verify.kernel.floats import Unproved
from verify.kernel.language import parse
from verify.kernel.tasks import read_task
from verify.prover.prove import search_of
from verify.prover.questions import text_that_asks

SHORTEST = {"recall": 3, "keep": 3, "words": 2}
"""Letters of the shortest text that asks: a key, a value and the key; three letters; two words of no letter."""


@pytest.mark.parametrize("name", SHORTEST)
def test_a_promise_that_ends_before_the_first_question_is_not_proved(name, request):
    checkpoint, claims = read(request.getfixturevalue(name)), searched(request.getfixturevalue(name))[1]
    texts = [claim[1] for claim in claims if claim[0] == "asks"]
    assert texts and {len(text) for text in texts} == {SHORTEST[name]}
    for length in (SHORTEST[name] - 1, SHORTEST[name]):
        short = replace(checkpoint, language=replace(checkpoint.language, length=length))
        if length < SHORTEST[name]:
            with pytest.raises(Unproved, match="no claim of the kind 'asks'"):
                search_of(short)
            with pytest.raises(Refused):
                prove(short, claims)
        elif name != "keep":  # of which one letter more is needed by the rule that proves it
            assert search_of(short)[0].task is not None


@pytest.mark.parametrize("distinct", [True, False])
def test_no_key_stands_twice_on_an_edge_of_distinct_letters(recall, distinct):
    """With one such edge nothing is asked. A text that would ask without it is no text."""
    checkpoint = read(recall)
    edge = {"from": "s", "to": "s", "tokens": [[0, checkpoint.language.tokens - 1]], "distinct": distinct}
    language = {"tokens": checkpoint.language.tokens, "start": "s", "edges": [edge]}
    alone = parse({"language": language, "length": 99})
    key, value = (checkpoint.circuit["alphabet"].index(name) for name in ("k0", "v0"))
    if distinct:
        with pytest.raises(Unproved, match="has a letter twice on an edge of distinct ones"):
            alone.spelled([(0, key), (0, value), (0, key)])
        assert alone.spelled([(0, key), (0, value)]) == [key, value]
    machine = read_task(checkpoint.circuit["alphabet"], checkpoint.task)[1][0]
    assert (text_that_asks(alone, machine) is None) == distinct


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda path: [], "empty"),
        (lambda path: path[:-1], "nothing is asked"),
        (lambda path: [[99, path[0][1]], *path[1:]], "does not lead on"),
        (lambda path: [[path[0][0], 10**9], *path[1:]], "does not lead on"),
        (lambda path: [*path[1:], path[0]], "does not lead on|nothing is asked"),
        (lambda path: [[*path[0], 0], *path[1:]], "is no list of 2"),
        (lambda path: [[True, path[0][1]], *path[1:]], "is no natural number"),
        (lambda path: 10**5 * path, "does not lead on|too long"),
    ],
)
def test_a_text_that_is_none_or_asks_nothing_is_refused(recall, change, told):
    claims = deepcopy(searched(recall)[1])
    claim = next(claim for claim in claims if claim[0] == "asks")
    claim[1] = change(claim[1])
    with pytest.raises(Refused, match=told):
        prove(read(recall), claims)
