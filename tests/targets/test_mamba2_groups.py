"""Mamba-2 with several groups: the real module beside the interpreter, and groups that are no copies of each other."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from compiler import Alphabet, Circuit, CompileError, InputLanguage, Tokens, compile, memory, readout_integer
from compiler.artifact.model import Stack
from compiler.artifact.package import bare, bare_sizes, language_model
from compiler.exactness.compare import Miscompiled
from compiler.targets.family import mixer_prefix
from compiler.targets.mamba2 import family, groups
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.command.cli import app
from constructions.selectivity.mqar import MQAR
from tests.circuits import over_abc
from tests.graft.hosts import induction
from tests.targets.harness import STREAMS

TOKENS = np.random.default_rng(0).integers(0, 3, (4, 25))


def logits(stack, tokens: np.ndarray = TOKENS) -> np.ndarray:
    with torch.no_grad():
        return stack(torch.from_numpy(tokens)).double().numpy()


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("name", STREAMS)
def test_the_real_module_gives_the_circuits_scores(name: str, n_groups: int):
    compiled = compile(over_abc("alone", STREAMS[name]), "mamba2", n_groups=n_groups)
    stack = bare(compiled)
    assert np.array_equal(logits(stack), compiled.interpret(TOKENS))
    for block, part in zip(stack.blocks, compiled.blocks, strict=True):
        assert block.ngroups == n_groups and block.d_state == max(1, -(-part.d_state // n_groups))


def test_steps_give_what_the_whole_gives():
    compiled = compile(induction("abcdefg"), "mamba2", n_groups=4)
    tokens = np.random.default_rng(1).integers(0, 7, (2, 30))
    stack, expected = bare(compiled), compiled.interpret(tokens)
    assert np.array_equal(logits(stack, tokens), expected)
    with torch.no_grad():
        state, steps = stack.initial_state(2), []
        for token in torch.from_numpy(tokens).T:
            scores, state = stack.step(token, state)
            steps.append(scores.double().numpy())
        assert np.array_equal(np.stack(steps, axis=1), expected)


def test_every_group_has_a_job_of_its_own():
    compiled = compile(induction("abcdefgh"), "mamba2", n_groups=2)
    stack = bare(compiled)
    tokens = np.random.default_rng(2).integers(0, 8, (3, 40))
    block = stack.blocks[-1]
    with torch.no_grad():
        inner, n = block.d_inner, block.d_state
        for tensor, start in ((block.in_proj.weight, 2 * inner), (block.conv1d.bias, inner)):
            tensor[start : start + 2 * n] = tensor[start : start + 2 * n].roll(n, dims=0)
    assert not np.array_equal(logits(stack, tokens), compiled.interpret(tokens))


def test_columns_beyond_one_kernel_are_kept_where_the_groups_hold_them():
    letters = Alphabet(tuple(f"w{i}" for i in range(300)))
    token = Tokens(letters)
    seen = memory.write(key=token.one_hot().shift(1), value=token.is_in("w0")).read(token.one_hot())
    circuit = Circuit(
        "follows w0", readout_integer(seen, letters, {"w0": 0, "w1": 1}), InputLanguage.everything(letters, 50)
    )
    narrow, wide = (compile(circuit, "mamba2", n_groups=g) for g in (1, 2))
    assert max(size.d_state for size in bare_sizes(wide)) == 150
    assert max(block.d_state for block in narrow.blocks) < 300 == max(block.d_state for block in wide.blocks)


def test_a_group_that_was_printed_wrong_is_found(monkeypatch: pytest.MonkeyPatch):
    kept = groups.place
    monkeypatch.setattr(groups, "place", lambda parts, size: kept(parts[::-1], size))
    with pytest.raises(Miscompiled):
        bare(compile(induction("abcdefgh"), "mamba2", n_groups=2))


def test_what_has_no_groups_and_what_is_not_saved(tmp_path):
    circuit = induction("abc")
    for target in ("mamba", "s4d", "mamba-delta-t", "fnn+ssm"):
        with pytest.raises(ValueError, match="n_groups is 2.*mamba2"):
            compile(circuit, target, n_groups=2)
    with pytest.raises(ValueError, match="n_groups is 0, and it must be at least 1"):
        compile(circuit, "mamba2", n_groups=0)
    with pytest.raises(CompileError, match="n_groups is 3.*n_groups=4"):
        compile(circuit, "mamba2", n_groups=3).save(tmp_path / "model")


@pytest.mark.parametrize("n_groups", [2, 4])
def test_language_models_of_several_groups_are_saved_run_and_proved(tmp_path, n_groups):
    """By transformers, whose norm is over each group; `construct verify` and `prove` read the files alone."""
    built = build(MQAR(kappa=4, vocab=5, length=12, arch="mamba2", n_groups=n_groups))
    artifact.save(built, {}, tmp_path / "mqar")
    model = artifact.hugging_face(tmp_path / "mqar", "float32")
    tokens = np.random.default_rng(3).integers(0, 10, (3, 20))
    with torch.no_grad():
        scores = model(torch.from_numpy(tokens)).double().numpy()
    assert np.array_equal(scores, built.model.over_vocabulary(built.compiled.interpret(tokens)))
    assert built.model.config["n_groups"] == n_groups and built.model.config["state_size"] == 4 // n_groups
    assert CliRunner().invoke(app, ["verify", str(tmp_path / "mqar"), "--samples", "20"]).exit_code == 0
    assert CliRunner().invoke(app, ["prove", str(tmp_path / "mqar")]).exit_code == 0
    assert "up to 5.0" in (tmp_path / "mqar" / "README.md").read_text("utf-8")


def test_a_circuit_of_ones_own_keeps_its_groups(tmp_path):
    compile(induction("abcd", length=40), "mamba2", n_groups=2).save(tmp_path / "own")
    done = CliRunner().invoke(app, ["verify", str(tmp_path / "own"), "--samples", "20"])
    assert done.exit_code == 0, done.stderr
    assert json.loads((tmp_path / "own" / "construction.json").read_text("utf-8"))["n_groups"] == 2


def test_groups_that_are_exchanged_are_rejected(tmp_path):
    """The checker reads which heads belong to which group: with B of the groups exchanged nothing is proved."""
    built = build(MQAR(kappa=4, vocab=5, length=12, arch="mamba2", n_groups=2))
    name = f"{mixer_prefix(len(built.compiled.blocks) - 1)}in_proj.weight"
    inner, n = built.model.config["intermediate_size"], built.model.config["state_size"]
    weight = built.model.tensors[name]
    weight[2 * inner : 2 * inner + 2 * n] = weight[2 * inner : 2 * inner + 2 * n].roll(n, dims=0)
    artifact.save(built, {}, tmp_path / "mqar")
    assert CliRunner().invoke(app, ["prove", str(tmp_path / "mqar")]).exit_code == 1


def test_a_grouped_norm_without_its_own_ballast_is_not_exact(monkeypatch: pytest.MonkeyPatch):
    kept = family.with_norm_ballast
    monkeypatch.setattr(family, "with_norm_ballast", lambda blocks, *rest: (blocks, kept(blocks, *rest)[1]))
    compiled = compile(induction("abcdefg", length=40), "mamba2", n_groups=2)
    model = language_model(compiled)
    stack = Stack.from_language_model(model.config, model.tensors)
    tokens = np.random.default_rng(1).integers(0, 7, (2, 30))
    assert not np.array_equal(logits(stack, tokens)[..., :7], compiled.interpret(tokens))
