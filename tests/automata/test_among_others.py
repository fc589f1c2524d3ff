"""An automaton among tokens that are none of its letters, as in a host's text: they leave its state as it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from compiler.automata.regex import regex_table
from compiler.graft.union import union
from compiler.interpreter import interpret
from compiler.language.circuit import Circuit
from constructions.automata.automaton import Automaton, table_json
from constructions.automata.languages import NAMED

ARCHES = ("mamba", "mamba2", "gated-deltanet")
GUEST = "‹host›"
EXPRESSIONS = ("(a|b){,3}", "(ab)*", "(a|b)*abb", "a*b*c*", "(a|b){2,}", "a(b|c)*d", "(aaa)*b?")
LANGUAGES = ("tomita-4", "tomita-7", "dyck-1-2", "dyck-2-2", "flip-flop", "subsequence-abc", "parity", "modulo-3")
CASES = [(name, arch) for name in (*EXPRESSIONS, *LANGUAGES) for arch in ARCHES]


def automaton(name: str, arch: str) -> Automaton:
    """Of a bounded length, so that groups are counted where no state turns."""
    table = NAMED[name].make() if name in NAMED else regex_table(name)
    return Automaton(table=table_json(table), arch=arch, max_length=40)


def wrong(built: Automaton, circuit: Circuit, rows: int = 12, length: int = 40) -> int:
    """Answers that are not the automaton's over its letters alone, on random texts with the guest between them."""
    whole, given = union(circuit, guest=GUEST), built.given
    alphabet = whole.token_alphabet
    rng = np.random.default_rng(0)
    texts = rng.choice([*given.letters, GUEST, GUEST], size=(rows, length))
    ids = np.array([[alphabet.index(str(token)) for token in text] for text in texts])
    scores = interpret(whole, ids)[whole.output]
    found = 0
    for text, row in zip(texts, scores, strict=True):
        state = given.start
        for token, score in zip(text, row, strict=True):
            if token == GUEST:
                continue
            state = given.following[state][given.letters.index(str(token))]
            best = np.flatnonzero(score == score.max())
            found += [alphabet.tokens[i] for i in best] != [given.outputs[state]]
    return found


@pytest.mark.parametrize(("name", "arch"), CASES)
def test_tokens_of_others_leave_the_state(name: str, arch: str) -> None:
    built = automaton(name, arch)
    assert wrong(built, built.among_others()) == 0


@pytest.mark.parametrize("name", ["(a|b){,3}", "(aaa)*b?"])
def test_the_circuit_of_its_letters_alone_is_moved_by_them(name: str) -> None:
    """So the test above can fail: smaller tables hold anything where no letter of its own stands."""
    built = automaton(name, "mamba")
    assert wrong(built, built.circuit()) > 0


@pytest.mark.parametrize("arch", ARCHES)
def test_on_its_letters_alone_both_are_the_same(arch: str) -> None:
    built = automaton("a*b*c*", arch)
    one, two = built.circuit(), built.among_others()
    words = np.random.default_rng(1).integers(len(built.given.letters), size=(20, 40))
    assert (interpret(one, words)[one.output].argmax(-1) == interpret(two, words)[two.output].argmax(-1)).all()
    assert replace(built, max_length=7).among_others().language.max_length == 7
