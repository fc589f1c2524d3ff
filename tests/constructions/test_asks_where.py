"""Of which inputs a model over numbers says that its answers are right, and that it says so wherever it says that."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.artifact.artifact import Artifact
from compiler.artifact.card import model_card
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.command.display import _promise_lines
from constructions.construction import NumericConstruction
from constructions.copy_dp.copy_vectors import CopyVectors
from constructions.polynomials.linear_attention import LinearAttention
from constructions.polynomials.polynomial_mamba import PolynomialCircuit
from constructions.registry import families
from constructions.selectivity.haar import Haar
from constructions.selectivity.with_position import AbsoluteTimePosition, KeepNthPosition

SMALL: dict[str, NumericConstruction] = {
    "copy-vectors": CopyVectors(n=3, width=1),
    "haar": Haar(levels=2),
    "keep-nth-position": KeepNthPosition(2, 3),
    "absolute-time-position": AbsoluteTimePosition(3),
    "polynomial": PolynomialCircuit("x1*x2 - x3"),
    "linear-attention": LinearAttention(),
}


def test_every_construction_over_numbers_is_here() -> None:
    assert SMALL.keys() == {name for name, one in families().items() if issubclass(one, NumericConstruction)}


@pytest.mark.parametrize("name", SMALL)
def test_what_is_asked_is_said_with_the_answers(name: str) -> None:
    built = build(SMALL[name])
    told = artifact.report(built, {}, None)
    where = built.construction.asks_where()
    assert bool(where) == (name != "linear-attention"), "which answers every sequence of its numbers"
    assert told["guarantee"].get("asks_where", "") == where
    said = f"nswers right: not tested{where and f', {where}'}"
    assert any(line.endswith(said) for line in _promise_lines(told))
    made = Artifact(built.compiled, built.model, artifact.claims(told))
    assert f"{said}. Proof:" in model_card(made.manifest, built.model.config, (), *made.example)


@pytest.mark.parametrize("name", ["haar", "keep-nth-position", "absolute-time-position", "polynomial"])
def test_positions_in_another_order_have_other_answers(name: str) -> None:
    """So the condition is none that could be left out."""
    built = build(SMALL[name])
    stack = built.stack()
    task = built.construction.tasks()[1]
    batch = task.batch(np.random.default_rng(0), 1.0)
    right = stack.run(batch.inputs)
    places = batch.inputs.get("position", np.eye(task.length)[None].repeat(len(batch), axis=0))
    other = stack.run({**batch.inputs, "position": places[:, ::-1]})
    asked = ~np.isnan(batch.expected)
    assert np.abs(right - batch.expected)[asked].max() < 1e-4 < np.abs(other - batch.expected)[asked].max()
