"""GGUF files in llama.cpp itself, and what is refused because llama.cpp would not compute it exactly."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from gguf import GGUFReader

from compiler.artifact.model import Stack
from compiler.export import ExportError, gguf, read
from compiler.export.checkpoint import Checkpoint, SavedModel
from compiler.export.expand import expanded_by_two
from compiler.export.record import FORMAT
from tests.export.cases import ask


@pytest.fixture(scope="module")
def files(cases, large, tmp_path_factory):
    place = tmp_path_factory.mktemp("gguf")
    found = {case.name: (case, place / f"{case.name}.gguf") for case in (*cases.values(), large)}
    for case, path in found.values():
        gguf.write(read(case.directory), path, False)
    return found


def test_llama_cpp_computes_every_bit_reads_text_and_writes_chains(files, tmp_path):
    version, answers = ask("llama_cpp", files.values(), tmp_path)
    assert version.startswith("llama.cpp")
    for name, (case, _) in files.items():
        assert set(answers[name].logits) == {"whole", "pieces", "steps"} and not answers[name].wrong(case)
        assert answers[name].tokens and answers[name].written.keys() == case.written.keys()


def test_the_file_carries_the_promise_and_is_the_same_each_time(files, cases, tmp_path):
    case, path = files["copy-mamba"]
    fields = GGUFReader(path).fields
    told = fields[gguf.RECORD].contents()
    for part in (FORMAT, '"bit-exact"', '"float32"', '"checkpoint"', "Put no token in front"):
        assert part in told
    assert "every score equals the circuit's score bit for bit" in fields["general.description"].contents()
    gguf.write(read(case.directory), tmp_path / "again.gguf", False)
    assert (tmp_path / "again.gguf").read_bytes() == path.read_bytes()


def test_other_files_stay_and_earlier_exports_are_replaced_when_asked(cases, tmp_path):
    package, path = read(cases["keep-nth-mamba"].directory), tmp_path / "model.gguf"
    path.write_bytes(b"mine")
    for overwrite in (False, True):
        with pytest.raises(ExportError, match="left alone"):
            gguf.write(package, path, overwrite)
    assert path.read_bytes() == b"mine"
    path.unlink()
    gguf.write(package, path, False)
    with pytest.raises(ExportError, match="--force"):
        gguf.write(package, path, False)
    gguf.write(package, path, True)
    assert [p.name for p in tmp_path.iterdir()] == ["model.gguf"]


def test_a_failure_leaves_nothing(cases, tmp_path, monkeypatch):
    monkeypatch.setattr(gguf, "_tensors", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(ExportError, match="No space left"):
        gguf.write(read(cases["keep-nth-mamba"].directory), tmp_path / "new" / "model.gguf", False)
    assert not list(tmp_path.iterdir())


def altered(case, manifest=None, tokens=None, **config):
    """The checkpoint with other entries in its manifest, its config or its names."""
    package = read(case.directory)
    model = replace(package.model, config=dict(package.model.config) | config)
    if tokens:
        model = replace(model, tokens=[tokens.get(token, token) for token in model.tokens])
    return Checkpoint(case.directory, model, dict(package.manifest) | (manifest or {}))


@pytest.mark.quick
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"manifest": {"dtype": "bfloat16"}}, "promise is for bfloat16.*--dtype float32"),
        ({"use_bias": True}, "use_bias is True"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        ({"tokens": {"t1": "a\u2581b"}}, "stands for a space"),
    ],
)
def test_what_llama_cpp_cannot_keep_exact_is_refused(cases, tmp_path, change, reason):
    case = cases["induction-heads-mamba"]
    if "tokens" in change:
        change = {"tokens": {case.tokens[1]: "a\u2581b"}}
    with pytest.raises(ExportError, match=reason):
        gguf.write(altered(case, **change), tmp_path / "model.gguf", False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["induction-heads-mamba", "induction-heads-mamba2"])
def test_steps_where_softplus_differs_are_refused(cases, tmp_path, name):
    """A step of softplus(−12): torch has 6.144e-6, log(1 + exp(−12)) in float32 has 6.199e-6."""
    package = read(cases[name].directory)
    bias = next(key for key in package.model.tensors if key.endswith(("dt_proj.bias", "dt_bias")))
    tensors = dict(package.model.tensors)
    tensors[bias] = tensors[bias].clone()
    tensors[bias][-1] = -12.0  # of a channel that is not used
    changed = replace(package, model=SavedModel(package.model.config, tensors, package.model.tokens))
    with pytest.raises(ExportError, match=r"softplus\(-12\)"):
        gguf.write(changed, tmp_path / "model.gguf", False)


def with_expand(package, expand):
    """The same Mamba with dead channels more, or without those that it does not use."""
    config, inner = dict(package.model.config), package.model.config["intermediate_size"]
    new = expand * config["hidden_size"]

    def resized(tensor, axis):
        kept = tensor.narrow(axis, 0, min(new, inner))
        missing = [max(0, new - inner) if i == axis else n for i, n in enumerate(tensor.shape)]
        return torch.cat([kept, tensor.new_zeros(missing)], axis)

    tensors = {}
    for name, tensor in package.model.tensors.items():
        part = name.split(".mixer.")[-1]
        if part == "in_proj.weight":
            tensors[name] = torch.cat([resized(half, 0) for half in tensor.chunk(2)])
        elif ".mixer." in name:
            tensors[name] = resized(tensor, 1 if part in ("out_proj.weight", "x_proj.weight") else 0)
            if part == "dt_proj.bias":
                tensors[name][inner:] = -200.0
        else:
            tensors[name] = tensor
    config |= {"expand": expand, "intermediate_size": new}
    return replace(package, model=SavedModel(config, tensors, package.model.tokens))


@pytest.mark.parametrize("expand", [1, 3, 4])
def test_any_expand_is_padded_to_two_without_changing_a_bit(cases, tmp_path, expand):
    case = cases["keep-nth-mamba"]
    package = with_expand(read(case.directory), expand)
    stack = Stack.from_language_model(package.model.config, package.model.tensors)
    with torch.no_grad():
        scores = stack(torch.from_numpy(case.ids)).numpy()
    assert np.array_equal(scores, case.scores), "dead channels change nothing"
    config, tensors = expanded_by_two(package.model.config, package.model.tensors)
    assert config["expand"] == 2 and tensors["backbone.embeddings.weight"].shape[1] == config["hidden_size"]
    assert (config["hidden_size"] > case_width(package)) == (expand > 2)
    gguf.write(package, tmp_path / "model.gguf", False)
    _, answers = ask("llama_cpp", [(case, tmp_path / "model.gguf")], tmp_path)
    assert not answers[case.name].wrong(case)


def case_width(package):
    return package.model.config["hidden_size"]
