"""States that cancel together, codewords, columns of several decays, and leads that only a long walk bounds: each is
proved, and not where a number is another one.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from constructions.registry import CONSTRUCTIONS
from tests.circuits import CASES
from tests.verify.checker.checkpoints import write
from tests.verify.checker.learned import LEARNED
from tests.verify.kernel.attack import Target, accepted
from tests.verify.kernel.small import copied, make, searched
from verify.kernel.certificate import replay
from verify.kernel.claims import Refused
from verify.kernel.files import read
from verify.kernel.floats import Unproved
from verify.prover.prove import search_of

BUILT = {
    "mass-of-sums": LEARNED["mass-of-sums"],
    "signed_keys": next(case.build for case in CASES if case.name == "signed_keys"),
    "first-writes": CONSTRUCTIONS["mqar"](kappa=2, vocab=4, write="first", length=64).circuit,
    "codewords": CONSTRUCTIONS["induction-heads"](vocab=3, codes=True).circuit,
}


@pytest.fixture(scope="module", params=BUILT)
def built(request, tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("built") / "checkpoint", BUILT[request.param](), "mamba")


def test_another_table_of_the_circuit_is_not_that_of_the_weights(built, tmp_path):
    """Each number of the first table, doubled."""
    _, claims = searched(built)
    table = json.loads((built / "circuit.json").read_text())["streams"][0]["attributes"]["table"]
    assert any(table["rows"])
    for r, row in enumerate(table["rows"]):
        for i in range(len(row)):
            circuit = json.loads((built / "circuit.json").read_text())
            entry = circuit["streams"][0]["attributes"]["table"]["rows"][r][i]
            entry[1] = 2 * int(entry[1])
            other = read(copied(built, tmp_path / "copy", circuit=circuit))
            assert not accepted(other, claims)
            with pytest.raises((Unproved, Refused)):
                search_of(other)


def test_columns_of_several_decays_are_each_a_state(tmp_path):
    """In shortest paths on Mamba some channels have columns that keep beside columns that a step erases. One column at
    a time gets the other decay: where that changes a score, nothing proves it.
    """
    target = Target(make(tmp_path / "own", "shortest-path", "mamba"), random.Random(1))
    wrong = 0
    for name, tensor in target.tensors.items():
        mixed = [c for c in range(len(tensor)) if name.endswith("A_log") and np.ptp(tensor[c])]
        for c, n in [(c, n) for c in mixed for n in range(tensor.shape[1])]:
            other = tensor.copy()
            other[c, n] = tensor[c].min() + tensor[c].max() - tensor[c, n]
            tensors = target.checkpoint.tensors | {name: other}
            if target.scores.changed(target.tensors | {name: other}):
                wrong += 1
                assert not accepted(replace(target.checkpoint, tensors=tensors), target.claims)
    assert wrong > 1


def test_a_lead_is_shown_to_be_less_than_what_a_rule_adds_by_a_long_walk(tmp_path):
    """Fewest coins up to 6: a lead reads letters at four lags and a count."""
    directory = make(tmp_path / "own", "coin-change", "mamba", amount=6)
    proof, claims = searched(directory)
    assert proof.task is not None
    place, (_, weight) = next((i, claim) for i, claim in enumerate(claims) if claim[0] == "weight")
    for other in (weight // 2, 2 * weight):
        with pytest.raises((Unproved, Refused)):
            replay(directory, [*claims[:place], ["weight", other], *claims[place + 1 :]])


def test_a_claim_that_says_no_more_without_another_one_goes_with_it(tmp_path):
    """Of three claims on one number the second is read nowhere, and the third is closer than the second alone."""
    circuit = next(case.build for case in CASES if case.name == "climbed")
    directory = write(tmp_path / "climbed", circuit(), "mamba2", "bfloat16")
    claims = search_of(read(directory))[1]
    assert replay(directory, claims).claims == len(claims)
