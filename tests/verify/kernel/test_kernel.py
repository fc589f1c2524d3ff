"""The kernel on checkpoints of recall and keep-nth: proofs, their certificates, their tasks, and what is none."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

import pytest

from tests.verify.kernel.attack import accepted
from tests.verify.kernel.small import copied, only_new, searched
from verify.kernel import cases
from verify.kernel.certificate import claims_of, prove, replay, written
from verify.kernel.circuit import Circuit
from verify.kernel.claims import Ledger, Refused
from verify.kernel.files import read
from verify.kernel.floats import Unproved
from verify.kernel.tasks import check_task
from verify.kernel.terms import Terms, short
from verify.prover.prove import search


def test_recall_is_proved_whole_and_replayed_without_search(recall, tmp_path):
    proof, claims = searched(recall)
    assert proof.task is not None and proof.claims == len(claims)
    file = tmp_path / "certificate.json"
    file.write_text(written(claims))
    assert replay(recall, claims_of(file)) == proof
    run = subprocess.run([sys.executable, "-m", "verify.kernel", recall, file], capture_output=True, text=True)
    assert run.returncode == 0 and "every answer is right: at each of k0 … k3" in run.stdout, run.stderr


def test_an_older_certificate_is_told_to_be_one(tmp_path):
    file = tmp_path / "certificate.json"
    for version in (1, 2, 3, 5, True):
        file.write_text(json.dumps({"version": version, "claims": []}))
        with pytest.raises(Unproved, match="no certificate of version 4; construct prove DIR --certificate FILE"):
            claims_of(file)


def test_keep_nth_is_proved_up_to_2_to_the_40_tokens(keep):
    proof, claims = searched(keep)
    assert proof.length == 1 << 40 and proof.task == "from position 3 on: the letter that stood at it"
    assert len(written(claims)) < 1000


def test_a_replay_goes_through_fewer_cases_than_the_search(recall):
    counted = []
    made = cases.Grid.__init__
    with patch.object(cases.Grid, "__init__", lambda self, *a, **k: (counted.append(1), made(self, *a, **k))[1]):
        claims = search(recall)[1]
        tried = len(counted)
        replay(recall, claims)
    assert 0 < len(counted) - tried < tried


def test_induction_heads_on_mamba_2_are_proved_and_another_blank_is_not(heads, tmp_path):
    proof, claims = searched(heads)
    assert (
        proof.task is not None and "which of them stood right behind it the last time, × where none did" in proof.task
    )
    circuit = json.loads((heads / "circuit.json").read_text())
    for change in ({"×": "v1", "v1": "×"}, {"×": "y"}):
        names = [change.get(name, name) for name in circuit["alphabet"]]
        other = copied(heads, tmp_path / "copy", circuit=circuit | {"alphabet": names})
        with pytest.raises((Unproved, Refused), match="asks for a letter|needs letters|is refused"):
            replay(other, claims)


def test_the_wrong_position_is_not_the_task(keep, tmp_path):
    claims, (asks,) = searched(keep)[1], [c for c in searched(keep)[1] if c[0] == "asks"]
    for n in (2, 4):
        asks[1] = [[0, 0]] * n
        claims = [asks if c[0] == "asks" else c for c in claims]
        manifest = json.loads((keep / "construction.json").read_text()) | {"task": {"name": "keep-nth", "n": n}}
        other = copied(keep, tmp_path / "copy", construction=manifest)
        with pytest.raises(Unproved, match=f"exactly up to position {n}"):
            replay(other, claims)


def test_recall_with_two_names_changed_is_not_the_task(recall, tmp_path):
    circuit = json.loads((recall / "circuit.json").read_text())
    names = circuit["alphabet"]
    for a, b in (("k0", "v0"), ("k1", "_"), ("v2", "_")):
        swapped = [{a: b, b: a}.get(name, name) for name in names]
        other = copied(recall, tmp_path / "copy", circuit=circuit | {"alphabet": swapped})
        with pytest.raises((Unproved, Refused)):
            search(other)


FORGERIES = {
    "a lane named twice": lambda lanes: [lanes[1], lanes[1]],
    "a lane below 0": lambda lanes: [-1, lanes[1]],
    "a negative name of the same lane": lambda lanes: [lanes[1] - 16, lanes[1]],
    "a boolean": lambda lanes: [True, lanes[1]],
    "a float": lambda lanes: [float(lanes[0]), lanes[1]],
    "a huge one": lambda lanes: [lanes[0], 1 << 70],
    "none": lambda lanes: [],
    "all": lambda lanes: list(range(16)),
    "one": lambda lanes: [lanes[1]],
}


@pytest.mark.parametrize("how", FORGERIES)
def test_half_a_ballast_is_not_a_whole_one(recall, how):
    """One ballast lane is zeroed in the weights, and the claim names others in its place."""
    checkpoint, claims = read(recall), searched(recall)[1]
    first = next(claim for claim in claims if claim[0] == "ballast")
    tensors = dict(checkpoint.tensors)
    embedding = tensors["backbone.embeddings.weight"].copy()
    embedding[:, first[1][0]] = 0
    tensors["backbone.embeddings.weight"] = embedding
    bad = replace(checkpoint, tensors=tensors)
    forged = [["ballast", FORGERIES[how](claim[1])] if claim[0] == "ballast" else claim for claim in claims]
    assert not accepted(bad, claims) and not accepted(bad, forged)


def numbered(checkpoint, claims) -> str:
    with pytest.raises((Refused, Unproved)) as refused:
        prove(checkpoint, claims)
    return str(refused.value)


def test_claims_at_fault_are_named_by_number(recall):
    checkpoint, claims = read(recall), searched(recall)[1]
    place = next(i for i, claim in enumerate(claims) if claim[0] == "total")
    total = claims[place]
    change = lambda new: numbered(checkpoint, [*claims[:place], new, *claims[place + 1 :]])
    assert f"claim {place + 1} is refused" in change(["total", total[1]])
    assert "names no atom that was built before" in change(["total", "0" * 16, *total[2:]])
    assert "is no natural number" in change([*total[:2], [[total[2][0][0], -1, 1]], *total[3:]])
    assert "is no integer" in change([*total[:2], [[total[2][0][0], 1, 1.0]], *total[3:]])
    assert "less than what is summed" in change([*total[:2], [[total[2][0][0], 1, 1]], *total[3:]])
    for far in (1 << 13, 1 << 70):  # the cases of which would not fit the memory
        assert "no natural number, or too large" in change([*total[:2], [[total[2][0][0], far, 1]], *total[3:]])
    assert "no reduced fraction" in change([*total[:4], ["2/4", *total[4][1:]]])
    assert "adds more than the potential falls" in change([*total[:4], [0, total[4][1], []]])
    assert "is no rule that this place needs" in change(["trust me"])
    assert f"claim {place + 2} is refused: as much was claimed" in numbered(checkpoint, [*claims[: place + 1], total])
    assert f"claim {len(claims) + 1} is used nowhere" in numbered(checkpoint, [*claims, claims[-1]])


def test_rules_over_scores_are_part_of_the_task(recall):
    """A circuit whose rules answer otherwise has no task that its scores alone would answer."""
    checkpoint, claims = read(recall), searched(recall)[1]
    streams = checkpoint.circuit["streams"]
    last = len(streams) - 1
    flag = {"operation": "Constant", "attributes": {"values": [1]}, "inputs": []}
    rule = {"operation": "Decide", "attributes": {"tokens": [0]}, "inputs": [last, last + 1]}
    circuit = checkpoint.circuit | {"streams": [*streams, flag, rule], "output": last + 2}
    texts = iter([c for c in claims if c[0] == "asks"])
    ledger = Ledger(
        Terms(checkpoint.language),
        lambda place, subjects: next(texts) if place.startswith("a text") else only_new(place, subjects),
    )
    with pytest.raises(Unproved, match="decided by rules"):
        check_task(ledger, Circuit(ledger, circuit), checkpoint.task)
    assert not accepted(replace(checkpoint, circuit=circuit), claims)


def test_a_true_claim_that_nothing_reads_is_refused(recall):
    checkpoint, claims = read(recall), searched(recall)[1]
    terms = Terms(checkpoint.language)
    keys = terms.of_letter([Fraction(int(name[0] == "k")) for name in checkpoint.circuit["alphabet"]])
    idle = ["cut", short(terms.name(keys.primitive[1])), []]
    assert claims[-1][0] == "occurrences"
    assert f"claim {len(claims)} is used nowhere" in numbered(checkpoint, [*claims[:-1], idle, claims[-1]])


def test_a_memory_that_is_written_once_is_told_as_given(recall):
    """The circuit says nothing of a slot that is written twice."""
    checkpoint, claims = read(recall), searched(recall)[1]
    circuit = json.loads(json.dumps(checkpoint.circuit))
    memory = next(s for s in circuit["streams"] if s["operation"] == "MemoryRead")
    memory["attributes"]["policy"] = "once"
    proof = prove(
        replace(checkpoint, circuit=circuit, task=None), [c for c in claims if c[0] not in ("occurrences", "asks")]
    )
    assert any("no slot of stream" in line and "is written twice" in line for line in proof.lines())
