"""A certificate that holds after one weight changed is still true; what it must see at least, by name."""

import numpy as np
import pytest
import torch

from compiler.artifact.package import bare
from compiler.driver import compile
from constructions.selectivity.absolute_time import AbsoluteTime
from constructions.selectivity.mqar import MQAR
from tests.verify.plants import CERTIFIED, Plant, Planted
from verify.certificates import Refused
from verify.certificates.finite import SATURATED, check_finite, lead


@pytest.fixture(scope="module")
def certified():
    return {name: Planted(build(), samples=8) for name, build in CERTIFIED.items()}


@pytest.mark.parametrize("name", CERTIFIED)
def test_a_certificate_that_holds_is_true(certified, name):
    planted = certified[name]
    assert planted.certificate() is not None and planted.answers()
    found = [(plant, planted.outcome(plant)) for plant in planted.plants(60, seed=1)]
    assert not [plant for plant, outcome in found if outcome == "false"]
    assert {outcome for _, outcome in found} >= {"rejected", "true"}


@pytest.mark.parametrize("change", ["nan", "inf", "-inf", "2^124"])
@pytest.mark.parametrize("name", CERTIFIED)
def test_every_tensor_is_looked_at(certified, name, change):
    """The first and the last number of every parameter, whether anything reads it or not."""
    planted = certified[name]
    for parameter in planted.names:
        for place in (0, planted.stack.get_parameter(parameter).numel() - 1):
            outcome = planted.outcome(Plant(parameter, place, change))
            assert outcome == "rejected" or (change == "2^124" and outcome == "true"), (parameter, place)


def default_mqar():
    construction = MQAR()
    compiled = compile(construction.circuit(), construction.target)
    return construction, compiled, bare(compiled)


@pytest.mark.parametrize(
    "name, place, value", [("A_log", 5, 200.0), ("D", 0, 2.0**124), ("in_proj.weight", 0, 2.0**100)]
)
def test_one_finite_weight_that_makes_every_score_nan(name, place, value):
    construction, compiled, stack = default_mqar()
    stack.blocks[0].get_parameter(name).data.view(-1)[place] = value
    with pytest.raises(Refused):
        construction.certificate(stack, compiled)


def test_channels_that_nothing_reads_are_bounded_too():
    """Δ = 0 and A = −∞ make 0 · ∞ in channels whose output is multiplied by 0."""
    construction, compiled, stack = default_mqar()
    unread = ~stack.blocks[0].out_proj.weight.any(dim=0)
    assert unread.sum() == 17
    stack.blocks[0].A_log.data[unread] = 100.0
    with torch.no_grad():
        assert stack(torch.tensor([[0, 1, 2]])).isnan().all()
    with pytest.raises(Refused, match="exp\\(A_log\\) of block 0 can reach"):
        construction.certificate(stack, compiled)


def test_a_clock_that_nothing_stops_is_refused():
    construction = AbsoluteTime(horizon=1, vocab=2)
    compiled = compile(construction.circuit(), construction.target)
    stack = bare(compiled)
    stack.blocks[0].out_proj.weight.data.zero_()
    with pytest.raises(Refused, match="nothing in block 2 sees the count"):
        construction.certificate(stack, compiled)


def test_a_score_that_is_no_number_has_no_lead():
    with pytest.raises(Refused, match="NaN"):
        lead(torch.tensor([[1.0, 0.0], [float("nan"), 0.0]]), torch.tensor([0, 0]))
    assert lead(torch.tensor([[1.0, 0.5], [3.0, 0.0]]), torch.tensor([0, 0])) == 0.5


@pytest.mark.parametrize("name", CERTIFIED)
def test_whatever_overflows_is_refused_first(certified, name):
    """Each tensor filled with ever larger numbers until the module's scores are no numbers."""
    planted = certified[name]
    check_finite(planted.stack)
    tokens = torch.from_numpy(planted.batches[0].tokens[:4])
    for parameter in planted.names:
        weights = planted.stack.get_parameter(parameter).data
        saved = weights.clone()
        for power in (8, 40, 80, 100, 120, 126):
            weights.copy_((saved + (saved == 0)).clamp(-1, 1) * 2.0**power)
            if "A_log" in parameter:
                weights.fill_(float(power))
            with torch.no_grad():
                broken = not planted.stack(tokens).isfinite().all()
            if broken:
                with pytest.raises(Refused):
                    check_finite(planted.stack)
        weights.copy_(saved)


def test_a_float32_sum_never_outgrows_its_step_by_more():
    """Adding w for ever stops at 2^25·w and below 2^26 times the bound: the state of any length."""
    for step in (1.0, 1.5, 1.999):
        w = np.float32(step)
        assert np.float32(2.0**26) + w == np.float32(2.0**26)
        assert np.float32(SATURATED) * w + w == np.float32(SATURATED) * w
