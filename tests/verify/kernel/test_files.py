"""What the kernel refuses of the files that it reads, before and while it reads them."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from transformers import Mamba2Config

from tests.verify.kernel.small import copied, only_new, searched
from verify.checker.check import check
from verify.kernel.__main__ import main
from verify.kernel.certificate import prove, replay
from verify.kernel.circuit import Circuit, matrix
from verify.kernel.claims import Ledger, Refused
from verify.kernel.files import MOST_WEIGHTS, read, read_json, read_tensors
from verify.kernel.floats import Unproved
from verify.kernel.language import parse
from verify.kernel.meaning import check_meaning
from verify.kernel.terms import Terms
from verify.prover.prove import search


def test_special_tokens_and_files_count(recall, tmp_path):
    claims, copy = searched(recall)[1], copied(recall, tmp_path / "copy")
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
    with pytest.raises(Unproved, match="mystery"):
        replay(copied(recall, copy, config=config | {"mystery": 1}), claims)


def test_bad_usage_and_files_that_are_none(tmp_path):
    run = lambda *names: subprocess.run([sys.executable, "-m", "verify.kernel", *map(str, names)], capture_output=True)
    assert run().returncode == run(tmp_path / "none").returncode == 2
    (tmp_path / "certificate.json").write_text("[]")
    found = run(tmp_path)
    assert found.returncode == 1 and not found.stderr and b"not proved: certificate.json" in found.stdout


def test_files_that_the_system_does_not_open_are_one_sentence(recall, tmp_path, monkeypatch, capsys):
    """The certificate was read outside of what tells such a fault."""
    assert main([str(recall), "x" * 5000]) == 1
    assert capsys.readouterr().out.startswith(f"not proved: {'x' * 200} cannot be read: File name too long")
    assert main(["x" * 5000]) == 2
    assert "is not a directory" in capsys.readouterr().err

    def denied(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "is_file", denied)
    assert main([str(recall)]) == 1
    found = capsys.readouterr()
    assert found.out == "not proved: certificate.json cannot be read: Permission denied\n" and not found.err


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
        assert not Circuit(ledger, {"streams": streams, "output": 1}).scores
    rows = lambda count: {"shape": [count, 1], "rows": [[[0, 1]]] * count}
    linear = {"operation": "Linear", "attributes": {"matrices": [rows(1), rows(2)]}, "inputs": [0, 0]}
    circuit = Circuit(ledger, {"streams": [streams[0], linear], "output": 1})
    with pytest.raises(Unproved, match="different sizes"):
        check_meaning(ledger, [], np.zeros((checkpoint.language.tokens, 0)), circuit)


def test_an_adapter_beside_the_weights_is_refused(recall, tmp_path):
    with pytest.raises(Unproved, match="adapter_config.json"):
        read(copied(recall, tmp_path / "copy", adapter_config={}))


@pytest.mark.parametrize(
    "content, why",
    [
        ("sparse", f"has {MOST_WEIGHTS + 1} bytes, and the kernel reads at most {MOST_WEIGHTS}"),
        ("device", "is no plain file"),
        ("pipe", "is no plain file"),
        ("none", "is missing"),
    ],
)
def test_weights_without_an_end_are_refused_before_they_are_read(tmp_path, content, why):
    file = tmp_path / "model.safetensors"
    if content == "sparse":
        with file.open("wb") as empty:
            empty.truncate(MOST_WEIGHTS + 1)
    elif content == "device":
        file.symlink_to("/dev/zero")
    elif content == "pipe":
        os.mkfifo(file)
    with patch.object(Path, "read_bytes", side_effect=AssertionError), pytest.raises(Unproved, match=f"{why}$"):
        read_tensors(file, {})


def test_files_that_name_more_than_the_kernel_reads_are_refused(recall, tmp_path):
    config = json.loads((recall / "config.json").read_text()) | {"num_hidden_layers": (1 << 24) - 1}
    with pytest.raises(Unproved, match="num_hidden_layers = 16777215, and 4096 is the most"):
        read(copied(recall, tmp_path / "deep", config=config))
    edge = {"from": "s", "to": "s", "tokens": [[0, 0]], "distinct": False}
    language = {"tokens": 1 << 20, "start": "s", "edges": [edge] * 65}
    with pytest.raises(Unproved, match="65 edges × 1048576 letters"):
        parse({"language": language, "length": 4})
    assert len(parse({"language": language | {"tokens": 1 << 10}, "length": 4}).edges) == 65


@pytest.mark.parametrize("limit", [None, [0, 1], [0.0], [0.0, "inf"], {"__float__": "Infinity"}])
def test_a_limit_of_steps_of_another_kind_is_told_as_that(heads, tmp_path, limit):
    config = json.loads((heads / "config.json").read_text()) | {"time_step_limit": limit}
    other = copied(heads, tmp_path / "copy", config=config)
    for said in (check(other).reason, str(pytest.raises(Unproved, replay, other, searched(heads)[1]).value)):
        assert "expected two floats" in said or "time_step_limit" in said and "Δ can reach" not in said, said


def test_an_infinite_limit_of_steps_is_read_as_transformers_writes_it(heads, tmp_path):
    config = json.loads((heads / "config.json").read_text()) | {"time_step_limit": [0.0, {"__float__": "Infinity"}]}
    other = copied(heads, tmp_path / "copy", config=config)
    assert Mamba2Config.from_pretrained(other).time_step_limit == [0.0, float("inf")]
    assert check(other).accepted
    replay(other, searched(heads)[1])


@pytest.mark.parametrize("most", [1e300, 0.5])
def test_a_limit_of_steps_that_is_no_float32_or_too_low_is_refused(heads, tmp_path, most):
    config = json.loads((heads / "config.json").read_text()) | {"time_step_limit": [0.0, most]}
    with pytest.raises(Unproved, match="time_step_limit is"):
        replay(copied(heads, tmp_path / "copy", config=config), searched(heads)[1])


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


def test_what_the_kernel_did_not_expect_is_told_with_its_place(recall, tmp_path):
    """A fault of the kernel is not taken for one of the files."""
    circuit = json.loads((recall / "circuit.json").read_text())
    circuit["streams"][0]["attributes"] = {"table": 3}
    with pytest.raises(Unproved, match=r"the kernel is at fault: TypeError.*in _size \(circuit.py:\d+\)"):
        replay(copied(recall, tmp_path / "copy", circuit=circuit), searched(recall)[1])


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
    circuit = json.loads((recall / "circuit.json").read_text())
    damage(circuit["streams"])
    other = copied(recall, tmp_path / "copy", circuit=circuit)
    for tried in (search, lambda directory: replay(directory, [])):
        with pytest.raises((Unproved, Refused)):
            tried(other)


def _one_state_by_number(circuit: dict, config: dict) -> None:
    """Two states of the file, 1 and "1": no edge leaves the second, so no key is ever asked."""
    for edge in circuit["promise"]["language"]["edges"]:
        queries = [end for end in ("from", "to") if edge[end] == "queries"]
        edge.update(dict.fromkeys(queries, 1 if edge["from"] == "queries" else "1"))


def _alphabet_with_ids(circuit: dict, config: dict) -> None:
    names = circuit["alphabet"]
    circuit["alphabet"] = dict(zip(names, [1, 0, *range(2, len(names))], strict=True))


@pytest.mark.parametrize(
    "change, why",
    [
        (_one_state_by_number, "a state 1, whose name is no text"),
        (_alphabet_with_ids, "the alphabet of circuit.json is no list of names"),
        (lambda circuit, config: circuit["alphabet"].__setitem__(0, 0), "the alphabet of circuit.json is no list"),
        (lambda circuit, config: circuit.update(version=True), "has a version that the kernel does not read"),
        (lambda circuit, config: config.update(pad_token_id=1), "pads with 1, which is a letter"),
        (lambda circuit, config: config.update(pad_token_id=-1), "pads with -1, which is a letter"),
    ],
)
def test_entries_that_another_reader_takes_otherwise_are_refused(recall, tmp_path, change, why):
    files = {name: json.loads((recall / f"{name}.json").read_text()) for name in ("circuit", "config", "construction")}
    change(files["circuit"], files["config"])
    files["construction"]["promise"]["language"] = files["circuit"]["promise"]["language"]
    with pytest.raises(Unproved, match=why):
        read(copied(recall, tmp_path / "copy", **files))


def test_texts_in_place_of_lists_of_numbers_are_refused(recall):
    ledger = Ledger(Terms(read(recall).language), only_new)
    constant = {"operation": "Constant", "attributes": {"values": "01"}, "inputs": []}
    two = constant | {"attributes": {"values": [0, 1]}}
    look = lambda table, symbols: {
        "operation": "Lookup",
        "attributes": {"table": table, "symbols": symbols},
        "inputs": [0],
    }
    for streams, why in (
        ([constant, two], "'01' is no list"),
        ([two, look("01", True), two], "'01' is no list"),
        ([two, look([0, 1], "no"), two], "symbols is 'no'"),
    ):
        with pytest.raises(Unproved, match=why):
            Circuit(ledger, {"streams": streams, "output": len(streams) - 1})


def test_a_header_that_safetensors_does_not_open_is_refused(recall, tmp_path):
    raw = (recall / "model.safetensors").read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    for told, why in (
        ({"format": 1}, "no texts by name"),
        (["format"], "no texts by name"),
        ({"format": "\ud800"}, "is not JSON"),
        ({"format": "pt"}, "-0 is no whole number"),
    ):
        changed = json.dumps(header | {"__metadata__": told}).encode()
        if told == {"format": "pt"}:  # Python reads -0 as 0, and others as a decimal
            changed = changed.replace(b'"data_offsets": [0,', b'"data_offsets": [-0,')
        place = copied(recall, tmp_path / "copy")
        (place / "model.safetensors").write_bytes(len(changed).to_bytes(8, "little") + changed + raw[8 + length :])
        with pytest.raises(SafetensorError):
            load_file(place / "model.safetensors")
        with pytest.raises(Unproved, match=why):
            read(place)
