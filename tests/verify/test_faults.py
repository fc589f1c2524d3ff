"""A certificate that holds after one weight changed is still true; what it must see at least, by name."""

import numpy as np
import pytest
import torch

from tests.verify.faults import CERTIFIED, Fault, faulty
from verify.certificates import Refused
from verify.certificates.finite import SATURATED, check_finite, lead


@pytest.fixture(scope="module")
def certified():
    return {name: faulty(build(), samples=8) for name, build in CERTIFIED.items()}


@pytest.mark.parametrize("name", CERTIFIED)
def test_a_certificate_that_holds_is_true(certified, name):
    module = certified[name]
    assert module.certificate() is not None and module.answers()
    found = [(fault, module.outcome(fault)) for fault in module.faults(60, seed=1)]
    assert not [fault for fault, outcome in found if outcome == "false"]
    assert {outcome for _, outcome in found} >= {"rejected", "true"}


@pytest.mark.parametrize("change", ["nan", "inf", "-inf", "2^124"])
@pytest.mark.parametrize("name", CERTIFIED)
def test_every_tensor_is_looked_at(certified, name, change):
    """The first and the last number of every parameter, whether anything reads it or not."""
    module = certified[name]
    for parameter in module.names:
        for place in (0, module.stack.get_parameter(parameter).numel() - 1):
            outcome = module.outcome(Fault(parameter, place, change))
            assert outcome == "rejected" or (change == "2^124" and outcome == "true"), (parameter, place)


def test_a_score_that_is_no_number_has_no_lead():
    with pytest.raises(Refused, match="NaN"):
        lead(torch.tensor([[1.0, 0.0], [float("nan"), 0.0]]), torch.tensor([0, 0]))
    assert lead(torch.tensor([[1.0, 0.5], [3.0, 0.0]]), torch.tensor([0, 0])) == 0.5


def test_whatever_overflows_is_refused_first(certified):
    """Each tensor filled with ever larger numbers until the module's scores are no numbers."""
    module = certified["induction heads on mamba-delta-t"]
    check_finite(module.stack)
    tokens = torch.from_numpy(module.batches[0].tokens[:4])
    for parameter in module.names:
        weights = module.stack.get_parameter(parameter).data
        saved = weights.clone()
        for power in (8, 40, 80, 100, 120, 126):
            weights.copy_((saved + (saved == 0)).clamp(-1, 1) * 2.0**power)
            if "A_log" in parameter:
                weights.fill_(float(power))
            with torch.no_grad():
                broken = not module.stack(tokens).isfinite().all()
            if broken:
                with pytest.raises(Refused):
                    check_finite(module.stack)
        weights.copy_(saved)


def test_a_float32_sum_never_outgrows_its_step_by_more():
    """Adding w for ever stops at 2^25·w and below 2^26 times the bound: the state of any length."""
    for step in (1.0, 1.5, 1.999):
        w = np.float32(step)
        assert np.float32(2.0**26) + w == np.float32(2.0**26)
        assert np.float32(SATURATED) * w + w == np.float32(SATURATED) * w
