"""Verdicts that share what stands before a change are those of the command."""

import json
import random

import pytest
from safetensors.numpy import load_file, save_file

from tests.circuits import CASES
from tests.spread import some
from tests.verify.checker.checkpoints import write
from tests.verify.checker.faults import Scores, commanded, inject
from tests.verify.checker.forks import judged
from tests.verify.checker.fuzz import mutated
from verify.checker.check import check, prove
from verify.checker.formats import Rejected
from verify.checker.text import BY_IDS


def _files(directory):
    config, circuit, manifest = (json.loads((directory / f"{n}.json").read_text()) for n in _READ)
    return config, circuit, manifest["promise"], load_file(directory / "model.safetensors")


_READ = ("config", "circuit", "construction")


@pytest.mark.parametrize("name, target", [("mqar_sum", "mamba"), ("count_since", "mamba2")])
def test_each_change_has_the_verdict_that_it_has_alone(name, target, tmp_path):
    """Of every tensor, in the order of their places and out of it, alone and two at a time."""
    directory = write(tmp_path / "c", next(c for c in CASES if c.name == name).build(), target)
    config, circuit, promise, tensors = _files(directory)
    rng, changes = random.Random(7), []
    for tensor in some(sorted(tensors, key=lambda t: rng.random()), 0.1, least=6):
        changes.append({tensor: mutated(tensors[tensor], rng)[0]})
        other = rng.choice(list(tensors))
        changes.append({other: mutated(tensors[other], rng)[0]} | changes[-1])
    found = judged(config, tensors, promise, changes, lambda c: prove(c, circuit, None).to_json())
    told = set()
    for change, verdict in zip(changes, found, strict=True):
        save_file(tensors | change, directory / "model.safetensors")
        alone = check(directory)
        if isinstance(verdict, Rejected):
            assert alone.domain == "none" and alone.arithmetic == str(verdict)
        else:
            by_ids = verdict if alone.domain == "none" else {**verdict, "domain": f"{verdict['domain']}, {BY_IDS}"}
            assert alone.to_json() == by_ids
        told.add(alone.reason)
    assert None in told and len(told) > 5


def test_the_command_is_asked_about_the_change(tmp_path):
    directory = write(tmp_path / "c", next(c for c in CASES if c.name == "mqar_sum").build(), "mamba")
    tensors = _files(directory)[3]
    assert commanded(directory, tensors)["accepted"]
    assert not commanded(directory, tensors | {"lm_head.weight": 2 * tensors["lm_head.weight"]})["accepted"]


@pytest.mark.quick
def test_what_changes_no_score_is_not_asked(tmp_path, monkeypatch):
    """And what changes one is: where the checker accepts everything, each is missed."""
    import tests.verify.checker.faults as faults

    directory = write(tmp_path / "c", next(c for c in CASES if c.name == "mqar_sum").build(), "mamba")
    config, circuit, promise, tensors = _files(directory)
    accepted = check(directory)
    monkeypatch.setattr(faults, "judged", lambda config, tensors, promise, changes, judge: [accepted] * len(changes))
    tally, wrong = inject(directory, 15, random.Random(5), command=True)
    assert tally["missed"] == 15 and tally[faults.UNCHANGED] and not tally["rejected"]
    assert len(wrong) == tally["missed"] + 1 and "the command says something else" in wrong[-1]
    scores = Scores(config, promise, tensors, 8, random.Random(5))
    assert not scores.changed(dict(tensors))
    assert scores.changed(tensors | {"lm_head.weight": 2 * tensors["lm_head.weight"]})
