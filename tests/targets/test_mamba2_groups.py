"""Mamba-2 with several groups: the real module beside the interpreter, and groups that are no copies of each other."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from compiler import Alphabet, Circuit, CompileError, InputLanguage, Tokens, compile, memory, readout_integer
from compiler.artifact.package import bare, bare_sizes
from compiler.exactness.compare import Miscompiled
from compiler.targets.mamba2 import groups
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
    with pytest.raises(CompileError, match="n_groups is 2.*n_groups=1 is saved"):
        compile(circuit, "mamba2", n_groups=2).save(tmp_path / "model")
