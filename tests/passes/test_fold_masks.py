"""Conditions folded into ramps: the same flags, a block earlier, and only where that saves a block."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import compiler
from compiler import driver
from compiler.artifact.package import bare
from compiler.context import Choices, Context
from compiler.exactness.compare import Miscompiled
from compiler.interpreter import interpret
from compiler.language import memory
from compiler.language.circuit import Circuit
from compiler.language.stream import Stream
from compiler.language.types import Bool
from compiler.language.words import concatenate, count, latch, present
from compiler.passes import fold_masks
from compiler.passes.common_subexpressions import common_subexpressions
from compiler.passes.fold_masks import MaskFolding
from compiler.passes.represent import represent
from compiler.pipeline import Lowered
from compiler.run import Run
from compiler.targets import target_of
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.local import Fibonacci
from constructions.copy_dp.selective_copy import SelectiveCopy
from constructions.copy_dp.words import EditDistance, LongestCommonSubsequence
from tests.circuits import abc, is_a, is_b, is_c, over_abc

LENGTH = 12
FOLDED = Choices(folds_masks=True, apart=True)  # "apart", so that a circuit with nothing to fold is not refused
n_a, n_b = is_a.cumsum(), is_b.cumsum()
since = count(is_a, reset=is_c)
met = present(is_b)
latched = latch(abc.number({"a": 0, "b": 1, "c": 2}), when=~is_c) > 0

FLAGS = {
    "one_hot & flag": since.one_hot(4) & met,
    "flag & one_hot": met & since.one_hot(4),
    "one_hot & token": n_a.one_hot(3) & is_b,
    "comparison & two flags": (n_a == n_b) & met & is_c,
    "negated comparison & flag": (n_a != n_b) & met,
    "at most & late flag": (n_a <= 2) & latched,
    "one_hot & flags lane by lane": n_a.one_hot(2) & concatenate(met, is_c),
    "comparisons lane by lane & flags": (concatenate(n_a, n_b) >= 2) & concatenate(is_c, met),
    "two comparisons": (n_a > n_b) & (n_b > 1) & is_c,
    "a delayed condition": since.one_hot(3) & is_c.shift(1),
    "a delayed flag": since.one_hot(3).shift(2) & met,
}


def _strings(length: int = LENGTH, many: int = 200) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 3, (many, length))


def _represented(flag: Stream, masks: bool) -> tuple[Circuit, Context]:
    circuit = over_abc("flag", flag, LENGTH)
    context = Context.of(circuit, target_of("mamba"), choices=FOLDED if masks else Choices())
    return represent(*common_subexpressions(circuit, context))


@pytest.mark.parametrize("name", FLAGS)
def test_a_folded_conjunction_is_the_conjunction(name: str):
    folded, _ = _represented(FLAGS[name], True)
    plain, _ = _represented(FLAGS[name], False)
    tokens = _strings()
    assert np.array_equal(
        interpret(folded, tokens)[folded.output].astype(float), interpret(plain, tokens)[plain.output].astype(float)
    )


@pytest.mark.parametrize("target", ["mamba", "mamba2", "mamba-delta-t"])
@pytest.mark.parametrize("name", FLAGS)
def test_the_real_blocks_compute_it_too(name: str, target: str, monkeypatch: pytest.MonkeyPatch):
    """Folded wherever that can be, whether or not it saves a block."""
    monkeypatch.setattr(driver._Compilation, "_fewest_blocks", _always_saving)
    key = FLAGS[name] if FLAGS[name].width > 1 else concatenate(FLAGS[name], ~FLAGS[name])
    read = memory.write(key, is_a, name="seen").read(key)
    compiled = compiler.compile(over_abc("flag", concatenate(FLAGS[name], read), LENGTH), target)
    tokens = _strings(many=20)
    with torch.no_grad():
        assert np.array_equal(bare(compiled)(torch.from_numpy(tokens)).numpy(), compiled.interpret(tokens))


def _always_saving(run: Run, core: Circuit, context: Context) -> tuple[Lowered, Context]:
    return _lowered(run, core, replace(context, choices=FOLDED))


def _lowered(run: Run, core: Circuit, context: Context) -> tuple[Lowered, Context]:
    form: Any = core
    for stage in ("fitted", "plan", "blocks"):
        form, context = run.through(stage, form, context)
    return form, context


BLOCKS = {
    Copy(n=8): 2,
    EditDistance(length=4): 5,
    LongestCommonSubsequence(length=4): 5,
    Fibonacci(): 2,
    SelectiveCopy(): 2,
}


@pytest.mark.parametrize("construction", BLOCKS, ids=lambda c: c.name)
def test_blocks_of_the_dynamic_programs_on_mamba(construction):
    assert len(compiler.compile(construction.circuit(), "mamba").blocks) == BLOCKS[construction]


def test_nothing_is_folded_where_that_saves_no_block():
    """The flag is ready a block later than what it masks."""
    flag = over_abc("late", since.one_hot(4) & (n_a > n_b), LENGTH)
    compiled = compiler.compile(flag)
    plain, _ = _lowered(Run(), flag, Context.of(flag, compiled.context.target))
    assert len(compiled.blocks) == len(plain.blocks) and compiled.lanes.count == plain.lanes.count


def test_a_mask_smaller_than_the_ramp_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fold_masks, "power_of_two", lambda bound: bound / 4)
    monkeypatch.setattr(driver._Compilation, "_fewest_blocks", _always_saving)
    with pytest.raises(Miscompiled):
        compiler.compile(over_abc("flag", since.one_hot(8) & met, LENGTH))


def test_what_may_be_negative_is_no_ramp():
    """c·a for a < 0 is not c·relu(a)."""
    _, context = _represented(met, True)
    fold = MaskFolding(context, context.domains.draft())
    step = (n_a - 1).relu() - (n_a - 2).relu()

    def folded(number: dict[str, int]) -> Stream | None:
        flag = (step + abc.number(number)).retyped(Bool())
        return fold.folded((flag, is_b), (flag + is_b - 1).relu())

    assert folded({"a": 1}) is not None
    assert folded({"a": 1, "b": -1}) is None


def test_a_plan_that_leaves_the_exact_range_is_not_taken():
    """Twice 2^23 does not fit float32, so the ramps of so large a count carry no mask."""
    wide = abc.number({"a": 2**20}).cumsum()
    compiled = compiler.compile(over_abc("wide", (wide == 2**20) & met, LENGTH))
    tokens = _strings(many=20)
    with torch.no_grad():
        assert np.array_equal(bare(compiled)(torch.from_numpy(tokens)).numpy(), compiled.interpret(tokens))
