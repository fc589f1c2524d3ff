"""The bare stack as one file, built again from the file alone by the classes of mamba_ssm."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors import safe_open

from compiler import compile
from compiler.export import ExportError, bare, read
from compiler.export.checkpoint import SavedModel
from compiler.runtime import block_classes
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.checkpoints.saved import verify_checkpoint
from constructions.copy_dp.copy import Copy
from constructions.selectivity.mqar import MQAR
from tests.graft.hosts import counter, induction
from tests.spread import some


def rebuilt(path, ids, dtype=torch.float32):
    """Logits from the file alone, by what docs/export.md tells of it."""
    with safe_open(path, framework="pt") as file:
        told = json.loads(file.metadata()["construction.export"])["stack"]
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
    stream = F.embedding(ids, tensors["embedding.weight"]).to(dtype)
    for i, size in enumerate(told["blocks"]):
        arguments = {"d_model": size["d_model"], "d_state": size["d_state"], "d_conv": size["d_conv"]}
        if told["mixer"] == "mamba":
            arguments |= {"dt_rank": size["dt_rank"], "expand": (size["d_inner"] + 0.5) / size["d_model"]}
        else:
            arguments |= {"headdim": size["headdim"], "expand": size["d_inner"] // size["d_model"], "rmsnorm": False}
        block = block_classes()[told["mixer"]](**arguments)
        prefix = f"blocks.{i}."
        block.load_state_dict({n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)})
        stream = block.to(dtype)(stream) + (stream if told["residual"] else 0)
    return F.linear(stream, tensors["head.weight"].to(dtype)), told


def test_the_file_alone_gives_the_same_scores(cases, tmp_path):
    for case in map(cases.get, some(cases, 0.25)):
        path = tmp_path / f"{case.name}.safetensors"
        bare.write(read(case.directory), path, False)
        with torch.no_grad():
            scores, told = rebuilt(path, torch.from_numpy(case.ids))
        letters = len(told["tokens"])
        assert told["tokens"] == case.tokens[:letters] and scores.shape[-1] == letters, case.name
        assert torch.equal(scores, torch.from_numpy(case.scores[..., :letters])), case.name


@pytest.mark.parametrize(
    ("target", "dtype"), [("mamba", "bfloat16"), ("mamba2", "bfloat16"), ("s4d", "float32"), ("s4d", "bfloat16")]
)
def test_the_file_of_a_narrow_promise_and_of_an_s4d_gives_the_circuits_scores(target, dtype, tmp_path):
    """An S4D is written as a Mamba that holds it."""
    compiled = compile(counter(length=60) if target == "s4d" else induction("abcd", length=60), target, dtype)
    compiled.save(tmp_path / "model.safetensors", format="safetensors-bare")
    ids = torch.randint(0, 4, (3, 60), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        scores, told = rebuilt(tmp_path / "model.safetensors", ids, getattr(torch, dtype))
    assert told["mixer"] == ("mamba" if target == "s4d" else target)
    assert np.array_equal(scores.double().numpy(), compiled.interpret(ids.numpy()))


def test_the_file_is_the_same_each_time_and_replaced_when_asked(cases, tmp_path):
    package, path = read(cases["keep-nth-mamba2"].directory), tmp_path / "keep.safetensors"
    bare.write(package, path, False)
    first = path.read_bytes()
    with pytest.raises(ExportError, match="--force"):
        bare.write(package, path, False)
    bare.write(package, path, True)
    assert path.read_bytes() == first
    with safe_open(path, framework="pt") as file:
        assert json.loads(file.metadata()[bare.RECORD])["promise"]["level"] == "bit-exact"
    path.write_bytes(b"mine")
    with pytest.raises(ExportError, match="left alone"):
        bare.write(package, path, True)


@pytest.mark.quick
def test_weights_that_the_circuit_does_not_compile_to_are_refused(cases, tmp_path):
    package = read(cases["keep-nth-mamba"].directory)
    tensors = {name: tensor + 1 for name, tensor in package.model.tensors.items()}
    changed = replace(package, model=SavedModel(package.model.config, tensors, package.model.tokens))
    with pytest.raises(ExportError, match="does not compile to the weights beside it"):
        bare.write(changed, tmp_path / "keep.safetensors", False)


@pytest.mark.parametrize(
    ("construction", "columns"),
    [
        (Copy(form="string", n=6, vocab=2, max_d_state=4), 4),
        (MQAR(kappa=6, vocab=4, arch="mamba2", max_d_state=4), 4),
        (MQAR(kappa=300, vocab=2, arch="mamba2"), 300),
        (MQAR(kappa=5, vocab=4, arch="mamba2", n_groups=2), 8),
    ],
    ids=["copy", "recall", "recall of many keys", "recall in two groups"],
)
def test_a_construction_is_compiled_again_for_the_columns_that_it_asked_for(construction, columns, tmp_path):
    """The manifest says what was asked of the state, so that the circuit beside it gives the weights again."""
    artifact.save(build(construction), {}, tmp_path / "model")
    package = read(tmp_path / "model")
    assert max(block.d_state for block in package.compiled.blocks) <= columns
    bare.write(package, tmp_path / "bare.safetensors", False)
    assert not verify_checkpoint(tmp_path / "model", "none").complaints
