"""Part A: what the compiler makes is accepted, what is bad is rejected, and what is accepted runs exactly."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from compiler.artifact.errors import CheckpointError
from compiler.artifact.weights_file import read_shapes
from compiler.errors import CompileError
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout_integer
from compiler.language.source import Tokens
from constructions.registry import CONSTRUCTIONS
from tests.circuits import ABC, CASES, over_abc
from tests.verify.checker.checkpoints import write
from tests.verify.checker.fuzz import fuzz
from verify.checker.check import check
from verify.kernel.files import read as read_of_kernel
from verify.kernel.floats import Unproved

SMALL = [
    ("mqar", {"kappa": 3, "vocab": 6}),
    ("mqar", {"kappa": 3, "vocab": 6, "write": "last"}),
    ("mqar", {"kappa": 4, "vocab": 6, "arch": "mamba2", "guarantee": "random", "max_length": 64}),
    ("induction-heads", {"vocab": 5, "codes": True}),
    ("keep-nth", {"n": 3, "vocab": 8}),
    ("absolute-time", {"horizon": 6, "arch": "mamba2"}),
    ("count-in-row", {"largest": 5}),
]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name, params", SMALL, ids=str)
def test_accepts_every_construction(name, params, dtype, tmp_path):
    construction = CONSTRUCTIONS[name](**params, dtype=dtype)
    try:
        directory = write(tmp_path / "c", construction.circuit(), construction.target, dtype)
    except CompileError:
        pytest.skip("the compiler refuses it")
    verdict = check(directory)
    assert verdict.arithmetic is None, verdict.arithmetic
    assert verdict.specials is None


def counter(tmp_path, length=24):
    """A count of a's, read as a number."""
    scores = readout_integer(Tokens(ABC).is_in(["a"]).cumsum(), ABC, {"a": 0, "b": 1, "c": 2})
    return write(tmp_path / "c", Circuit("counter", scores, InputLanguage.everything(ABC, length)), "mamba")


def changed(directory, name, index, value):
    tensors = load_file(directory / "model.safetensors")
    tensors[name] = tensors[name].copy()
    tensors[name][index] = value
    save_file(tensors, directory / "model.safetensors")
    return check(directory)


MIXER = "backbone.layers.0.mixer."


@pytest.mark.parametrize(
    "name, index, value, words",
    [
        # a channel that nothing reads: exp(100) = inf, and inf · 0 is NaN
        (MIXER + "A_log", (-1, 0), 100.0, "overflows"),
        ("lm_head.weight", (-1, 0), np.nan, "finite"),
        ("lm_head.weight", (1, 1), 0.1, "logit"),
        ("backbone.embeddings.weight", (1, -1), 2.0, "absorb"),  # one token without ballast
        (MIXER + "in_proj.weight", (0, 0), 2.0**100, "reach|absorb"),
        (MIXER + "conv1d.bias", (0,), 1.0, "can be 1"),
        (MIXER + "dt_proj.bias", (0,), 5.0, "can be 5"),
        (MIXER + "D", (-1,), 2.0**-140, "denormal"),
    ],
)
def test_rejects_a_bad_weight(name, index, value, words, tmp_path):
    directory = counter(tmp_path)
    assert check(directory).arithmetic is None
    verdict = changed(directory, name, index, value)
    assert verdict.arithmetic
    assert any(word in verdict.arithmetic for word in words.split("|")), verdict.arithmetic


def test_a_sum_in_steps_that_are_no_power_of_two_ends_where_float32_does(tmp_path):
    """Multiples of 1000 = 8 · 125: 2^24 units of 8 are 26,843 times 1000 · 5."""
    total = Tokens(ABC).number({"a": 1000, "c": 5000}).cumsum()
    directory = write(tmp_path / "c", over_abc("sum", total, 26843), "mamba")
    assert check(directory).arithmetic is None
    manifest = json.loads((directory / "construction.json").read_text())
    manifest["promise"]["length"] += 1
    (directory / "construction.json").write_text(json.dumps(manifest))
    assert "units" in check(directory).arithmetic


@pytest.mark.parametrize("name", ["mqar_sum", "count_since", "first_and_last_latch"])
def test_what_it_accepts_of_mutants_is_exact(name, tmp_path):
    case = next(c for c in CASES if c.name == name)
    tally, found = fuzz(write(tmp_path / "c", case.build(), "mamba"), 25, random.Random(1), sequences=8)
    assert not found, found[0]
    assert tally["accepted"] and tally["rejected"]


@pytest.mark.parametrize("damage", ["overlap", "more"])
def test_what_the_format_forbids_is_rejected(damage, tmp_path):
    """Two norms that share their bytes, and bytes that no tensor holds: the library of the format reads neither."""
    directory = counter(tmp_path)
    path = directory / "model.safetensors"
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header, body = json.loads(content[8 : 8 + size]), content[8 + size :]
    if damage == "more":
        body += bytes(8)
    else:
        first, second = [name for name in header if "norm" in name][:2]
        header[second]["data_offsets"] = header[first]["data_offsets"]
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
    assert "overlap, or leave bytes" in check(directory).reason


@pytest.mark.parametrize(
    "metadata, opens",
    [
        (None, True),
        ({"format": "pt"}, True),
        ({"format": 1}, False),
        ([], False),
        ("pt", False),
        ({"x": "\ud800"}, False),
    ],
    ids=str,
)
def test_metadata_are_texts_as_the_library_of_the_format_takes_them(metadata, opens, tmp_path):
    directory = counter(tmp_path)
    path = directory / "model.safetensors"
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    text = json.dumps(json.loads(content[8 : 8 + size]) | {"__metadata__": metadata}).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])
    if opens:
        load_file(path)
        assert check(directory).reason is None
    else:
        with pytest.raises(SafetensorError):
            load_file(path)
        assert "__metadata__ of model.safetensors" in check(directory).reason


def test_a_tensor_that_the_loader_does_not_open_is_rejected(tmp_path):
    """It is stored in half the bytes, each number as it was."""
    directory = counter(tmp_path)
    path = directory / "model.safetensors"
    tensors = load_file(path)
    name = next(name for name in tensors if "in_proj" in name)
    half = tensors[name].astype(np.float16)
    assert check(directory).reason is None and (half == tensors[name]).all()
    save_file(tensors | {name: half}, path, {"format": "pt"})
    with pytest.raises(CheckpointError, match="F16, expected F32"):
        read_shapes(path)
    assert f"{name} is stored as 'F16', expected F32" in check(directory).reason
    with pytest.raises(Unproved, match="is 'F16' of .*, expected 'F32'"):
        read_of_kernel(directory)


def test_imports_neither_the_compiler_nor_torch():
    code = "import sys, verify.checker.check; print(sorted({m.split('.')[0] for m in sys.modules}))"
    names = eval(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert not {"compiler", "constructions", "torch", "scipy", "networkx", "safetensors"} & set(names)
