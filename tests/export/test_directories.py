"""Directories for mamba_ssm, mlx-lm and mambapy, each read by the program itself."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import compiler
from compiler import (
    Alphabet,
    Bool,
    Circuit,
    InputLanguage,
    OneHot,
    Tokens,
    compile,
    memory,
    permute,
    readout_one_hot,
)
from compiler.export import ExportError, mamba_ssm, mlx, read
from compiler.runtime import has_mamba_ssm, mamba_classes
from constructions.selectivity.induction_heads import InductionHeads
from tests.export.cases import Case, ask
from tests.export.test_gguf import altered
from verify.tasks.task import IGNORED

LETTERS = Alphabet.of("a", "b", "c", "d")
DTYPES = ("float32", "bfloat16")


def exported(cases, write, place):
    for case in cases.values():
        write(read(case.directory), place / case.name, False)
    return [(case, place / case.name) for case in cases.values()]


@pytest.fixture(scope="module")
def by_mlx(cases, tmp_path_factory):
    """(name and version of mlx-lm, (case, directory) of all that is asked in this file, its answers): one process, of
    which most is its start.
    """
    place = tmp_path_factory.mktemp("mlx")
    pairs = exported(cases, mlx.write, place)
    pairs += [in_bfloat16(arch, place) for arch in ("mamba", "mamba2")]
    pairs += [pair for dtype in DTYPES for pair in with_deltas(dtype, place)]
    version, answers = ask("mlx_client", pairs, place)
    return version, {case.name: (case, path) for case, path in pairs}, answers


def test_mlx_lm_computes_every_bit_and_writes_chains(cases, by_mlx):
    version, _, answers = by_mlx
    assert version.startswith("mlx-lm")
    for name, case in cases.items():
        assert set(answers[name].logits) == {"whole", "pieces", "steps"} and not answers[name].wrong(case)
        assert answers[name].tokens and answers[name].written.keys() == case.written.keys()


def test_mamba_ssm_loads_its_own_format_and_computes_every_bit(cases, tmp_path):
    version, answers = ask("mamba_ssm_client", exported(cases, mamba_ssm.write, tmp_path), tmp_path)
    assert version.startswith("mamba_ssm")
    for name, case in cases.items():
        assert set(answers[name].logits) == {"whole", "steps"} and not answers[name].wrong(case)


def test_mambapy_computes_every_bit_of_the_checkpoint_itself(cases, tmp_path):
    pairs = [(case, case.directory) for case in cases.values() if case.name.endswith("-mamba")]
    version, answers = ask("mambapy_client", pairs, tmp_path)
    assert version.startswith("mambapy") and len(pairs) == 6
    for case, _ in pairs:
        assert set(answers[case.name].logits) == {"whole", "parallel", "steps"} and not answers[case.name].wrong(case)


def in_bfloat16(arch, place):
    compiled = compile(InductionHeads(vocab=4, arch=arch, max_length=60).circuit(), arch, "bfloat16")
    saved, path = place / f"{arch}-bfloat16-saved", place / f"{arch}-bfloat16"
    compiled.save(saved)
    mlx.write(read(saved), path, False)
    stack = compiler.load(saved).to(torch.bfloat16)
    ids = np.random.default_rng(0).integers(0, 4, (4, 60))
    with torch.no_grad():
        scores = stack(torch.from_numpy(ids)).float().numpy()
    return Case(path.name, saved, ids, np.full_like(ids, IGNORED), scores, stack.tokens), path


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_a_promise_in_bfloat16_reaches_mlx_in_bfloat16(arch, by_mlx):
    """mlx-lm does not read the config's dtype: the tensors say it."""
    _, pairs, answers = by_mlx
    case, path = pairs[f"{arch}-bfloat16"]
    stored = load_file(path / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.bfloat16}
    assert not answers[case.name].wrong(case)


@pytest.mark.skipif(not has_mamba_ssm(), reason="mamba_ssm is not installed")
@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_a_promise_in_bfloat16_is_kept_by_mamba_ssm_in_bfloat16(arch, tmp_path):
    """Its own loader, in this process: letters score what the circuit says, to the bit."""
    mamba_classes()
    from mamba_ssm.models.mixer_seq_simple import MambaLMHeadModel

    compiled = compile(InductionHeads(vocab=4, arch=arch, max_length=60).circuit(), arch, "bfloat16")
    compiled.save(tmp_path / "model", format="mamba-ssm")
    model = MambaLMHeadModel.from_pretrained(str(tmp_path / "model"), device="cpu", dtype=torch.bfloat16).eval()
    ids = np.random.default_rng(0).integers(0, 4, (4, 60))
    with torch.no_grad():
        logits = model(torch.from_numpy(ids)).logits
    expected = compiled.interpret(ids)
    assert logits.dtype == torch.bfloat16
    assert np.array_equal(logits.double().numpy()[..., : expected.shape[-1]], expected)


@pytest.mark.parametrize("write", [mlx.write, mamba_ssm.write])
def test_what_is_written_is_the_same_each_time(cases, write, tmp_path):
    package = read(cases["copy-mamba2"].directory)
    for name in ("one", "other"):
        write(package, tmp_path / name, False)
    one, other = ({p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} for name in ("one", "other"))
    assert one == other
    record = json.loads(one["export.json"])
    assert record["promise"]["level"] == "bit-exact" and record["warnings"] and record["files"].keys() < one.keys()
    assert b"every score equals the circuit's score bit for bit" in one["README.md"]


@pytest.mark.quick
@pytest.mark.parametrize(
    ("write", "change", "reason"),
    [
        (mlx.write, {"n_groups": 2}, "n_groups is 2, and mlx-lm takes 1 only"),
        (mlx.write, {"layer_norm_epsilon": 1e-6}, "layer_norm_epsilon is 1e-06"),
        (mamba_ssm.write, {"layer_norm_epsilon": 1e-6}, "layer_norm_epsilon is 1e-06, and mamba_ssm takes 1e-05 only"),
    ],
)
def test_what_would_not_be_exact_is_refused(cases, tmp_path, write, change, reason):
    with pytest.raises(ExportError, match=reason):
        write(altered(cases["count-in-row-mamba2"], **change), tmp_path / "model", False)
    assert not list(tmp_path.iterdir())


def test_a_weight_that_the_promised_dtype_does_not_hold_is_refused(cases, tmp_path):
    package = altered(cases["keep-nth-mamba"], {"dtype": "bfloat16"})
    package.model.tensors["lm_head.weight"][0, 0] = 1 + 2.0**-12
    with pytest.raises(ExportError, match="lm_head.weight has a weight that bfloat16 does not hold"):
        mlx.write(package, tmp_path / "model", False)


def with_deltas(dtype, place):
    """Swaps, and a memory that is overwritten and deleted from."""
    token = Tokens(LETTERS).one_hot()
    held = memory.write(token.shift(1), token, policy="last").delete(token[1].retyped(Bool())).read(token)
    everything = InputLanguage.everything(LETTERS, 100)
    swaps = permute(1, token[:3].retyped(OneHot(3)))
    for arch, what, stream in (
        ("gated-deltanet", "swaps", swaps),
        ("gated-deltanet", "held", held),
        ("gated-deltanet-qwen", "qwen", held),
    ):
        name = f"{what}-{dtype}"
        compiled = compile(Circuit(name, readout_one_hot(stream, LETTERS), everything), arch, dtype)
        compiled.save(place / f"{name}-saved")
        mlx.write(read(place / f"{name}-saved"), place / name, False)
        ids = np.random.default_rng(0).integers(0, 4, (3, 70))
        stack = compiler.load(place / f"{name}-saved")
        with torch.no_grad():
            scores = stack(torch.from_numpy(ids)).float().numpy()
        assert np.array_equal(scores[..., :4], compiled.interpret(ids))
        yield Case(name, place / f"{name}-saved", ids, np.full_like(ids, IGNORED), scores, stack.tokens), place / name


@pytest.mark.parametrize("dtype", DTYPES)
def test_mlx_lm_computes_every_bit_of_a_gated_deltanet(dtype, by_mlx):
    """As a whole, in pieces and token by token."""
    _, pairs, answers = by_mlx
    made = [pairs[f"{what}-{dtype}"] for what in ("swaps", "held", "qwen")]
    said = [sentence for case, _ in made for sentence in answers[case.name].wrong(case)]
    _, path = made[-1]
    qwen = answers[path.name]
    joined = "".join(LETTERS.tokens[i] for i in qwen.tokens)  # as the export's warning says: without spaces
    assert "without spaces" in (path / "README.md").read_text("utf-8")
    assert qwen.text == joined and said == [f"{path.name}: the ids have the text {joined!r}"]


def test_a_qwen_of_one_tap_is_refused_by_mlx(tmp_path):
    letters = Alphabet.of("a", "b")
    shown = readout_one_hot(Tokens(letters).one_hot(), letters)
    compile(Circuit("id", shown, InputLanguage.everything(letters, 100)), "gated-deltanet-qwen").save(tmp_path / "id")
    package = read(tmp_path / "id")
    package.model.config["linear_conv_kernel_dim"] = 1
    with pytest.raises(ExportError, match="linear_conv_kernel_dim is 1, and mlx-lm then takes"):
        mlx.write(package, tmp_path / "out", False)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("format", ["gguf", "mamba-ssm", "mamba-ssm-mlp", "onnx"])
def test_a_format_of_mamba_refuses_a_gated_deltanet(format, tmp_path):
    letters = Alphabet.of("a", "b")
    state = permute(0, Tokens(letters).one_hot(["a"]))
    circuit = Circuit("parity", readout_one_hot(state, letters), InputLanguage.everything(letters, 100))
    with pytest.raises(ExportError, match="takes Mamba and Mamba-2 here"):
        compile(circuit, "gated-deltanet").save(tmp_path / "parity", format=format)
    assert not list(tmp_path.iterdir())
