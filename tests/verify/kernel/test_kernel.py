"""The kernel on checkpoints of recall and keep-nth: proofs from the files, their certificates, and what it refuses."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.verify.kernel.attack import accepted
from tests.verify.kernel.small import searched
from verify.kernel import cases, exact
from verify.kernel.certificate import Unexpected, claims_of, prove, replay, written
from verify.kernel.circuit import Circuit, matrix
from verify.kernel.claims import Ledger, Refused
from verify.kernel.files import MOST_WEIGHTS, read, read_json, read_tensors
from verify.kernel.floats import Unproved, decay
from verify.kernel.language import Edge, Language, parse
from verify.kernel.meaning import check_meaning
from verify.kernel.mixers import Floats, Number
from verify.kernel.recall import on_letters
from verify.kernel.rules import ballast
from verify.kernel.tasks import check_task
from verify.kernel.terms import Poly, Terms, constant, short
from verify.prover.prove import search


def only_new(place, subjects):
    """Claims nothing, but that no atom of the circuit equals one of the weights."""
    return ["new"] if place.endswith("a new atom") else None


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
    for version, why in ((1, "has version 1, and the kernel reads version 2"), (3, "no certificate of version 2")):
        file.write_text(json.dumps({"version": version, "claims": []}))
        with pytest.raises(Unproved, match=why):
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
    assert proof.task == "at each letter, the letter that stood right after it the last time, × before that"
    shutil.copytree(heads, tmp_path / "copy")
    circuit = json.loads((heads / "circuit.json").read_text())
    for change in ({"×": "v1", "v1": "×"}, {"×": "y"}):
        names = [change.get(name, name) for name in circuit["alphabet"]]
        (tmp_path / "copy" / "circuit.json").write_text(json.dumps(circuit | {"alphabet": names}))
        with pytest.raises(Unproved, match="with × for none"):
            replay(tmp_path / "copy", claims)


def test_the_wrong_position_is_not_the_task(keep, tmp_path):
    shutil.copytree(keep, tmp_path / "copy")
    claims = searched(keep)[1]
    for n in (2, 4):
        manifest = json.loads((keep / "construction.json").read_text()) | {"task": {"name": "keep-nth", "n": n}}
        (tmp_path / "copy" / "construction.json").write_text(json.dumps(manifest))
        with pytest.raises(Unproved, match=f"exactly up to position {n}"):
            replay(tmp_path / "copy", claims)


def test_recall_with_two_names_changed_is_not_the_task(recall, tmp_path):
    shutil.copytree(recall, tmp_path / "copy")
    circuit = json.loads((recall / "circuit.json").read_text())
    names = circuit["alphabet"]
    for a, b in (("k0", "v0"), ("k1", "_"), ("v2", "_")):
        swapped = [{a: b, b: a}.get(name, name) for name in names]
        (tmp_path / "copy" / "circuit.json").write_text(json.dumps(circuit | {"alphabet": swapped}))
        with pytest.raises((Unproved, Refused)):
            search(tmp_path / "copy")


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
    bad = type(checkpoint)(checkpoint.config, tensors, checkpoint.language, checkpoint.circuit, checkpoint.task)
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
    assert "is no natural number" in change([*total[:2], [[total[2][0][0], 1, -1]], *total[3:]])
    assert "less than what is summed" in change([*total[:2], [[total[2][0][0], 1, 1]], *total[3:]])
    for far in (1 << 13, 1 << 70):  # the cases of which would not fit the memory
        assert "positions back is farther than 4096" in change([*total[:2], [[total[2][0][0], far, 1]], *total[3:]])
    assert "is not reduced" in change([*total[:4], ["2/4", *total[4][1:]]])
    assert "adds more than the potential falls" in change([*total[:4], [0, total[4][1], []]])
    assert "is no rule that this place needs" in change(["trust me"])
    assert f"claim {place + 2} is refused: as much was claimed" in numbered(checkpoint, [*claims[: place + 1], total])
    assert f"claim {len(claims) + 1} is used nowhere" in numbered(checkpoint, [*claims, claims[-1]])


def test_special_tokens_and_files_count(recall, tmp_path):
    claims, copy = searched(recall)[1], tmp_path / "copy"
    shutil.copytree(recall, copy)
    tensors = load_file(recall / "model.safetensors")
    for name, at, number in (("lm_head.weight", -1, 0.0), ("backbone.layers.0.mixer.A_log", -1, np.float32(100))):
        changed = {k: v.copy() for k, v in tensors.items()}
        changed[name][at] = number
        save_file(changed, copy / "model.safetensors")
        with pytest.raises((Unproved, Refused), match="special token|overflows"):
            replay(copy, claims)
    save_file(tensors, copy / "model.safetensors")
    assert replay(copy, claims).task
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"mystery": 1}))
    with pytest.raises(Unproved, match="mystery"):
        replay(copy, claims)


def test_bad_usage_and_files_that_are_none(tmp_path):
    run = lambda *names: subprocess.run([sys.executable, "-m", "verify.kernel", *map(str, names)], capture_output=True)
    assert run().returncode == run(tmp_path / "none").returncode == 2
    (tmp_path / "certificate.json").write_text("[]")
    found = run(tmp_path)
    assert found.returncode == 1 and not found.stderr and b"not proved: certificate.json" in found.stdout


def test_rules_over_scores_are_part_of_the_task(recall):
    """A circuit whose rules answer otherwise has no task that its scores alone would answer."""
    checkpoint, claims = read(recall), searched(recall)[1]
    streams = checkpoint.circuit["streams"]
    last = len(streams) - 1
    flag = {"operation": "Constant", "attributes": {"values": [1]}, "inputs": []}
    rule = {"operation": "Decide", "attributes": {"tokens": [0]}, "inputs": [last, last + 1]}
    circuit = checkpoint.circuit | {"streams": [*streams, flag, rule], "output": last + 2}
    ledger = Ledger(Terms(checkpoint.language), only_new)
    with pytest.raises(Unproved, match="decided by rules"):
        check_task(ledger, Circuit(ledger, circuit), checkpoint.task)
    assert not accepted(replace(checkpoint, circuit=circuit), claims)


def test_numbers_that_are_not_whole_are_not_cut_off(recall):
    terms = Terms(read(recall).language)
    half = Poly({((0, 0),): Fraction(1, 2)})
    with pytest.raises(Unproved, match="whole"):
        cases.Grid(terms, [half]).cells(half)
    with pytest.raises(Unproved, match="whole"):
        on_letters(terms, half, np.array([0]), np.array([0]))


def test_only_constants_are_ballast(recall):
    terms = Terms(read(recall).language)
    level = constant(1 << 40)
    varied = terms.add([(Fraction(1), level), (Fraction(1), terms.of_letter([Fraction(i) for i in range(13)]))])
    sizes = [Fraction(1 << 40)] * 2
    assert ballast(1, [level, level], [0, 1], sizes, 1e-5, "here").divisor == 1 << 40
    for lanes in ([level, varied], [varied, level], [level, constant(3 << 39)]):
        with pytest.raises(Unproved, match="no constant power of two"):
            ballast(1, lanes, [0, 1], sizes, 1e-5, "here")


def test_a_true_claim_that_nothing_reads_is_refused(recall):
    checkpoint, claims = read(recall), searched(recall)[1]
    terms = Terms(checkpoint.language)
    keys = terms.of_letter([Fraction(int(name[0] == "k")) for name in checkpoint.circuit["alphabet"]])
    idle = ["cut", short(terms.name(keys.primitive[1])), []]
    assert claims[-1][0] == "occurrences"
    assert f"claim {len(claims)} is used nowhere" in numbered(checkpoint, [*claims[:-1], idle, claims[-1]])


# What a reader of the kernel found --------------------------------------------------------------------------


def test_fractions_are_made_whole_by_one_number():
    """Cut off at the largest denominator 1/3 and 1/5 were equal, and a false task was proved."""
    assert exact.exact_array(np.array([Fraction(1, 3), Fraction(1, 5)], object)).tolist() == [5, 3]
    assert exact.exact_array(np.array([0.5, -0.75])).tolist() == [2, -3]


def test_two_atoms_of_one_name_are_refused(recall, monkeypatch):
    """Atoms are told apart by the whole digest, and claims that could mean two of them are no claims."""
    terms = Terms(read(recall).language)
    monkeypatch.setattr("verify.kernel.terms.short", lambda name: name[:1])
    with pytest.raises(Unproved, match="two atoms have one name"):
        for i in range(17):
            terms.of_letter([Fraction(j * i + j) for j in range(terms.language.tokens)])
            terms.of_letter([Fraction(j * j + i * (j == 2)) for j in range(terms.language.tokens)])
    assert len({len(atom.name) for atom in terms.atoms}) == 1 and len(terms.atoms[0].name) == 64


def _packed(values: list[int], exponent: int) -> dict:
    packed = lambda numbers: {"bytes": 8, "base64": base64.b64encode(np.array(numbers, "<i8").tobytes()).decode()}
    counts, columns = packed([1] * len(values)), packed([0] * len(values))
    rest = {"counts": counts, "columns": columns, "values": packed(values)}
    return {"shape": [len(values), 1], "exponent": exponent} | rest


def test_packed_matrices_are_read_exactly_or_not():
    assert matrix(_packed([3, -5], -2)).tolist() == [[0.75], [-1.25]]
    assert matrix(_packed([1 << 53, -(1 << 53)], 0)).tolist() == [[2.0**53], [-(2.0**53)]]
    for values, exponent in (([(1 << 53) + 1], 0), ([-(1 << 53) - 1], 0), ([1], -1100), ([3], -1075), ([1], 1000)):
        with pytest.raises(Unproved, match="53 bits|float64 rounds nothing"):
            matrix(_packed(values, exponent))


@pytest.mark.parametrize(
    "change, why",
    [
        (lambda c: c["streams"][c["output"]]["attributes"].update(bias=[0]), "an attribute that the kernel does not"),
        (lambda c: c["streams"][c["output"]].update(mask=1), "an entry or an attribute"),
        (lambda c: c["streams"][0].update(mask=1), "an entry or an attribute"),
        (lambda c: c.update(output=True), "no natural number"),
    ],
)
def test_what_a_circuit_says_beside_its_rules_is_refused(recall, change, why):
    checkpoint, claims = read(recall), searched(recall)[1]
    circuit = json.loads(json.dumps(checkpoint.circuit))
    change(circuit)
    with pytest.raises(Unproved, match=why):
        prove(replace(checkpoint, circuit=circuit), claims)


def test_a_clip_to_nothing_and_scores_of_two_heights_are_refused(recall):
    checkpoint = read(recall)
    ledger = Ledger(Terms(checkpoint.language), only_new)
    streams = [
        {"operation": "Constant", "attributes": {"values": [3]}, "inputs": []},
        {"operation": "Clip", "attributes": {"lo": 5, "hi": 1}, "inputs": [0]},
    ]
    with pytest.raises(Unproved, match="at least 5 and at most 1"):
        Circuit(ledger, {"streams": streams, "output": 1}).scores()
    rows = lambda count: {"shape": [count, 1], "rows": [[[0, 1]]] * count}
    linear = {"operation": "Linear", "attributes": {"matrices": [rows(1), rows(2)]}, "inputs": [0, 0]}
    circuit = Circuit(ledger, {"streams": [streams[0], linear], "output": 1})
    with pytest.raises(Unproved, match="different heights"):
        check_meaning(ledger, [], np.zeros((checkpoint.language.tokens, 0)), circuit)


def test_a_memory_that_is_written_once_is_told_as_given(recall):
    """The circuit says nothing of a slot that is written twice."""
    checkpoint, claims = read(recall), searched(recall)[1]
    circuit = json.loads(json.dumps(checkpoint.circuit))
    memory = next(s for s in circuit["streams"] if s["operation"] == "MemoryRead")
    memory["attributes"]["policy"] = "once"
    proof = prove(replace(checkpoint, circuit=circuit, task=None), [c for c in claims if c[0] != "occurrences"])
    assert any("no slot of stream" in line and "is written twice" in line for line in proof.lines())


def test_an_adapter_beside_the_weights_is_refused(recall, tmp_path):
    shutil.copytree(recall, tmp_path / "copy")
    (tmp_path / "copy" / "adapter_config.json").write_text("{}")
    with pytest.raises(Unproved, match="adapter_config.json"):
        read(tmp_path / "copy")


@pytest.mark.parametrize("content", ["sparse", "device", "pipe"])
def test_weights_without_an_end_are_refused_before_they_are_read(tmp_path, content):
    file = tmp_path / "model.safetensors"
    if content == "sparse":
        with file.open("wb") as empty:
            empty.truncate(MOST_WEIGHTS + 1)
    elif content == "device":
        file.symlink_to("/dev/zero")
    else:
        os.mkfifo(file)
    with patch.object(Path, "read_bytes", side_effect=AssertionError), pytest.raises(Unproved, match="no plain file"):
        read_tensors(file, {})


def test_files_that_name_more_than_the_kernel_reads_are_refused(recall, tmp_path):
    directory = shutil.copytree(recall, tmp_path / "deep")
    config = json.loads((directory / "config.json").read_text()) | {"num_hidden_layers": (1 << 24) - 1}
    (directory / "config.json").write_text(json.dumps(config))
    with pytest.raises(Unproved, match="16777215 layers, and the kernel reads 4096"):
        read(directory)
    edge = {"from": "s", "to": "s", "tokens": [[0, 0]], "distinct": False}
    language = {"tokens": 1 << 20, "start": "s", "edges": [edge] * 65}
    with pytest.raises(Unproved, match="65 edges × 1048576 letters"):
        parse({"language": language, "length": 4})
    assert len(parse({"language": language | {"tokens": 1 << 10}, "length": 4}).edges) == 65


def test_decimals_of_a_circuit_that_float64_rounds_are_refused(tmp_path):
    file = tmp_path / "circuit.json"
    for text, fine in (("9007199254740992.0", True), ("0.375", True), ("9007199254740993.0", False), ("0.1", False)):
        file.write_text(f'{{"x": {text}}}')
        assert read_json(file)
        if fine:
            assert read_json(file, exact=True) == {"x": float(text)}
            continue
        with pytest.raises(Unproved, match="float64 does not hold"):
            read_json(file, exact=True)


def test_a_line_over_what_outgrows_float32_is_bounded_however_it_cancels(recall):
    """A scan may take 2^30 for 9/8 of it: so 2^29 − that is up to 5/4 of 2^29 in size, and not 9/8."""
    language = replace(read(recall).language, length=1 << 30)
    floats = Floats(Ledger(Terms(language), only_new))
    steps = floats.running_sum("here", Number(constant(1)))
    assert steps.outgrown is not None
    line = floats.sum("here", [(Fraction(-1), steps), (Fraction(1), Number(constant(1 << 29)))])
    assert floats.size(line) == Fraction(5, 4) * (1 << 29)


def test_decays_that_float32_rounds_to_few_digits_are_bounded():
    """float32 takes exp(-103.5) for 2^-149, a quarter more than it is."""
    for a_log in (-103.9, -103.5, -100.0, -88.0, -87.5, -86.0, -3.0, 4.5):
        low, high = decay(a_log)
        assert low <= Fraction(float(np.exp(np.float32(a_log)))) <= high


def test_what_the_kernel_did_not_expect_is_told_with_its_place(recall, tmp_path):
    """A fault of the kernel is not taken for one of the files."""
    shutil.copytree(recall, tmp_path / "copy")
    circuit = json.loads((recall / "circuit.json").read_text())
    circuit["streams"][0]["attributes"] = {"table": 3}
    (tmp_path / "copy" / "circuit.json").write_text(json.dumps(circuit))
    with pytest.raises(Unexpected, match=r"TypeError.*in matrix \(circuit.py:\d+\)"):
        replay(tmp_path / "copy", searched(recall)[1])


@pytest.mark.parametrize(
    "damage",
    [
        lambda streams: streams.__setitem__(1, True),
        lambda streams: streams[1].update(inputs=3),
        lambda streams: streams[0]["attributes"]["table"].update(shape=[2**40, 2**40]),
        lambda streams: streams[0]["attributes"].update(table={"diagonal": 1, "size": 10**12}),
    ],
)
def test_a_damaged_circuit_is_told_by_the_kernel_and_by_the_search(damage, recall, tmp_path):
    shutil.copytree(recall, tmp_path / "copy")
    circuit = json.loads((recall / "circuit.json").read_text())
    damage(circuit["streams"])
    (tmp_path / "copy" / "circuit.json").write_text(json.dumps(circuit))
    for tried in (search, lambda directory: replay(directory, [])):
        with pytest.raises((Unproved, Refused)):
            tried(tmp_path / "copy")


def _position_less(number: int) -> list[dict]:
    """The streams of relu(position − number)."""
    one = {"operation": "Constant", "attributes": {"values": [1]}, "inputs": []}
    bent = {"operation": "Relu", "attributes": {}, "inputs": [2]}
    rows = [{"shape": [1, 1], "rows": [[[0, x]]]} for x in (1, -number)]
    line = {"operation": "Linear", "attributes": {"matrices": rows}, "inputs": [1, 0]}
    return [one, {"operation": "Cumsum", "attributes": {}, "inputs": [0]}, line, bent, bent]


def test_no_length_stands_for_every_length():
    """2^512 stands for it: relu(position − 2^600) was 0, and the circuit was said to score so at every length."""
    letters = Edge(0, 0, np.ones(2, bool), False)
    lanes = lambda number, length: Circuit(
        Ledger(Terms(Language(2, 1, (letters,), length)), only_new), {"streams": _position_less(number), "output": 4}
    ).scores()[0][1]
    assert not lanes(1 << 600, 1 << 52)[0].terms and lanes(1 << 199, 1 << 512)[0].terms
    for number in (1 << 600, 1 << 512, 1 << 200):
        with pytest.raises(Unproved, match="a promise without a length"):
            lanes(number, 1 << 512)


def test_bounds_between_numbers_and_the_length_are_refused():
    terms = Terms(Language(2, 1, (Edge(0, 0, np.ones(2, bool), False),), 1 << 512))
    position = terms.sum(constant(1))
    ((((place, _),), _),) = position.terms.items()
    held = terms.latch(terms.relu(terms.add([(Fraction(1 << 190), position), (Fraction(1), constant(1))])), constant(1))
    large = terms.latch(terms.of_letter([Fraction(0), Fraction(1)]), terms.of_letter([Fraction(1), Fraction(0)]))
    assert terms.range(held)[1] > 1 << 512 and terms.range(large) == (0, 1)
    state = terms.atoms[next(iter(large.terms))[0][0]]
    object.__setattr__(state, "range", (0, 1 << 150))
    square = terms.product(large, large)
    with pytest.raises(Unproved, match="a bound of 2\\^200"):
        terms.range(square)
    with pytest.raises(Unproved, match="a bound of 2\\^200"):
        cases.Grid(terms, [square]).cells(square)
    with pytest.raises(Unproved, match="a number of 2\\^200"):
        cases.Grid(terms, [position], [cases.Parts(place, 0, (1 << 300,))])


@pytest.mark.parametrize("length, fine", [(None, True), ((1 << 53) - 1, True), (1 << 53, False), (1 << 300, False)])
def test_a_length_that_is_said_is_below_2_to_the_53(length, fine):
    """A longer one was told as `of every length`."""
    edge = {"from": 0, "to": 0, "tokens": [[0, 1]], "distinct": False}
    promise = {"language": {"tokens": 2, "start": 0, "edges": [edge]}, "length": length}
    if fine:
        assert parse(promise).endless == (length is None)
        return
    with pytest.raises(Unproved, match="expected one below 2"):
        parse(promise)


def test_counts_that_outgrow_float32_end_where_the_bound_of_a_scan_does(recall):
    for length, fine in ((1 << 40, True), ((1 << 40) + 1, False)):
        floats = Floats(Ledger(Terms(replace(read(recall).language, length=length)), only_new))
        if fine:
            assert floats.running_sum("here", Number(constant(1))).outgrown is not None
            continue
        with pytest.raises(Unproved, match="of more than 2"):
            floats.running_sum("here", Number(constant(1)))


def test_a_position_too_far_to_go_through_is_refused(keep):
    """Before a list of as many positions is made."""
    checkpoint, claims = read(keep), searched(keep)[1]
    with pytest.raises(Unproved, match="keeps position"):
        prove(replace(checkpoint, task={"name": "keep-nth", "n": 1 << 39}), claims)
