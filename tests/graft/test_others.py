"""Tokens of others between a circuit's letters: what they change is told, and an automaton is not moved by them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.graft.hosts import VOCAB, host
from tests.graft.test_commands import invoke

FEW = ("--regex", "(a|b){,3}")


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A host, texts of up to three letters, and a program of a circuit that echoes, and of one of the letters alone."""
    place = tmp_path_factory.mktemp("others")
    host().save_pretrained(place / "host")
    assert invoke("automaton", *FEW, "--length", "forever", "--samples", 4, "--out", place / "few").exit_code == 0
    (place / "own.py").write_text(
        "from compiler import Alphabet, Circuit, InputLanguage, Tokens, readout_one_hot\n"
        "from compiler.automata.regex import regex_table\n"
        "from constructions.automata.automaton import Automaton, table_json\n"
        "letters = Alphabet.of('p', 'q')\n"
        "echo = Circuit('echo', readout_one_hot(Tokens(letters).one_hot(), letters), "
        "InputLanguage.everything(letters, 100))\n"
        "alone = Automaton(table=table_json(regex_table('(a|b){,3}'))).circuit()\n"
    )
    return place


def right(letters: str) -> list[str]:
    """What is right behind each letter: yes up to the third."""
    return ["yes" if i < 3 else "no" for i in range(len(letters))]


def wrong(model, ids: dict[str, int], others: range | list[int]) -> int:
    """Answers of a model that are wrong, on random texts of a, b and ids of others."""
    rng, found = random.Random(0), 0
    for _ in range(40):
        text = [rng.choice(["a", "b", None]) for _ in range(10)]
        row = [rng.choice(list(others)) if letter is None else ids[letter] for letter in text]
        with torch.no_grad():
            said = model(torch.tensor([row])).logits[0].argmax(-1).tolist()
        letters = [letter for letter in text if letter]
        answers = [answer for letter, answer in zip(text, said, strict=True) if letter]
        found += sum(a != ids[r] for a, r in zip(answers, right("".join(letters)), strict=True))
    return found


def test_text_of_a_host_leaves_an_automaton_where_it_is(place):
    out = place / "grafted"
    done = invoke("graft", place / "host", place / "few", "--out", out, "--samples", 20)
    assert done.exit_code == 0, done.stderr
    assert "0 change if tokens of others between its letters are left out" in " ".join(done.stdout.split())
    kept = json.loads((out / "graft.json").read_text())
    assert kept["measured"]["others"]["changed"] == 0 < kept["measured"]["others"]["answers"]
    assert "0 change if tokens of others" in (out / "README.md").read_text()
    assert wrong(AutoModelForCausalLM.from_pretrained(out), kept["letters"], range(VOCAB)) == 0


def test_a_side_branch_tells_what_its_hosts_text_changes(place):
    """Nothing of an automaton, and where an n-th position is counted, much."""
    for circuit, letters in ((place / "few", ("a", "b")), ("keep-nth", ("v0", "v1"))):
        (place / "map.json").write_text(json.dumps({letter: i for i, letter in enumerate(letters, 3)}))
        given = ("--mode", "branch", "--tokens", place / "map.json", "--out", place / "beside", "--force")
        done = invoke("graft", place / "host", circuit, *given)
        assert done.exit_code == 0, done.stderr
        found = json.loads((place / "beside" / "graft.json").read_text())["measured"]["others"]
        assert found["answers"] > 0 and (found["changed"] > 0) == (circuit == "keep-nth")
        told = f"of {found['answers']} answers {found['changed']} change if tokens of others"
        assert told in " ".join(done.stdout.split())


def test_another_circuits_tokens_leave_an_automaton_where_it_is(place):
    out = place / "both"
    done = invoke("compose", f"{place}/own.py:echo", place / "few", "--out", out, "--samples", 20, "--json")
    assert done.exit_code == 0, done.stderr
    told = {each["circuit"]: each for each in json.loads(done.stdout)["among_others"]}
    assert told["automaton"]["changed"] == told["echo"]["changed"] == 0 < told["automaton"]["answers"]
    names = AutoTokenizer.from_pretrained(out).get_vocab()
    assert wrong(AutoModelForCausalLM.from_pretrained(out), names, [names["p"], names["q"]]) == 0


@pytest.mark.parametrize("circuit", ["own.py:alone", "keep-nth"])
def test_answers_that_others_change_are_told(circuit, place):
    """The circuit of letters alone holds anything elsewhere, and KEEP n-th counts positions, whoever stands there."""
    own = circuit if circuit == "keep-nth" else f"{place}/{circuit}"
    done = invoke("compose", f"{place}/own.py:echo", own, "--out", place / circuit[-5:], "--samples", 20, "--json")
    assert done.exit_code == 0, done.stderr
    _, told = json.loads(done.stdout)["among_others"]
    assert 0 < told["changed"] <= told["answers"]
    said = invoke("compose", f"{place}/own.py:echo", own, "--out", place / circuit[-5:], "--samples", 20, "--force")
    assert f"of {told['answers']} answers {told['changed']} change if tokens of others" in " ".join(said.stdout.split())
