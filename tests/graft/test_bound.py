"""What is proved of the host's logits: equality where sums do not depend on the order, and the range of a host."""

import copy
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from compiler.graft import GraftError, direct_sum, graft
from compiler.graft.bound import SAME, loudest_host_score
from compiler.graft.faint import FAINTEST_SEEN, faint_level, heard
from compiler.graft.families.mamba import MambaHost
from compiler.graft.measure import host_difference, same_sums
from compiler.graft.orderless import orderless
from tests.graft.hosts import counter, host, host_text, induction

SMALL = {"chunk_size": 8}
OTHER_ORDER = [
    ("mamba", {"conv_kernel": 6, "state_size": 4, "time_step_rank": 2}),
    ("mamba", {"d_model": 40}),
    ("mamba2", {"n_groups": 2} | SMALL),
    ("mamba2", {"n_groups": 4, "use_bias": True, "tie_word_embeddings": True} | SMALL),
    ("falcon", {"mixer_rms_eps": 1e-3, "time_step_rank": 5}),
]


@pytest.mark.parametrize(("kind", "options"), OTHER_ORDER)
def test_with_sums_that_are_rounded_once_every_host_is_bit_equal(kind, options):
    model = host(kind, **options)
    grafted = graft(model, induction("abc"))
    promise = grafted.report["host_promise"]
    assert promise["level"] == SAME and promise["norm_change"] == 0
    assert same_sums(model, grafted, host_text(2, 12))


@pytest.mark.parametrize("kind", ["mamba", "mamba2"])
def test_rounded_weights_and_lanes_that_are_seen_are_found(monkeypatch, kind):
    """The comparison can fail: at another width, and where squares of the circuit's lanes do not vanish."""
    model = host(kind, **(SMALL if kind == "mamba2" else {}))
    rounded = graft(model, induction("abc"), width=128)
    assert 2**-25 < rounded.report["host_promise"]["norm_change"] < 2**-22
    assert not same_sums(model, rounded, host_text(2, 12))
    monkeypatch.setattr(direct_sum, "faint_level", lambda *told: 2.0**-8)
    monkeypatch.setattr(direct_sum, "MOST_HEARD", 1.0)
    assert not same_sums(model, graft(model, induction("abc")), host_text(2, 12))


@pytest.mark.parametrize(
    ("dtype", "told", "least"), [(torch.float32, "1.2e-7", 5e-8), (torch.bfloat16, "0.0039", 1e-3)]
)
def test_at_another_width_norms_change_by_what_the_page_says_of_the_dtype(dtype, told, least):
    grafted = graft(host("mamba", dtype=dtype), induction("abc"), width=160)
    change = grafted.report["host_promise"]["norm_change"]
    assert least < change < float(told) * 1.01
    page = " ".join((Path(__file__).parents[2] / "docs" / "graft.md").read_text().split())
    named = str(dtype).removeprefix("torch.")
    assert re.search(rf"In {named} (that|it) is up to {re.escape(told)}", page)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_squares_of_the_circuits_lanes_are_zeros(dtype):
    for circuit in (induction("abc"), counter(length=200)):
        grafted = graft(host(dtype=dtype), circuit)
        letters = torch.tensor([list(grafted.ids.values()) * 5])
        with torch.no_grad():
            streams = grafted.model(letters, output_hidden_states=True).hidden_states[1:-1]
        lanes = torch.stack(streams)[..., 64 : 64 + grafted.compiled.lanes.count].float()
        assert (lanes != 0).any() and (lanes.pow(2) == 0).all()


def test_a_level_that_cannot_be_read_is_not_taken():
    compiled = graft(host(), induction("abc")).compiled
    bounds = compiled.lane_bounds()
    level = faint_level(compiled, bounds, 2.0**16)
    assert np.float32(level * bounds.max()) ** 2 == 0 and heard(level, bounds) == 0
    seen = faint_level(compiled, bounds, 2.0**60)
    assert FAINTEST_SEEN >= seen > level and heard(seen, bounds) > 0
    with pytest.raises(GraftError, match="can be read"):
        faint_level(compiled, bounds, 2.0**80)


# The range of a host ----------------------------------------------------------------------------------


def touchy_host(token: int = 5):
    """A host whose layer sees what is left of sums that cancel at this token, times 2^26."""
    model = host(num_hidden_layers=1, tie_word_embeddings=False)
    inner = model.config.intermediate_size
    with torch.no_grad():
        layer = model.backbone.layers[0]
        seen = layer.norm(model.backbone.embeddings.weight[token]).double()
        seen = seen / seen.norm()
        rows = layer.mixer.in_proj.weight[:inner].double()
        layer.mixer.in_proj.weight[:inner] = (2.0**26 * (rows - (rows @ seen)[:, None] * seen)).float()
        layer.mixer.in_proj.weight[inner:] = 32 * seen.float()
        layer.mixer.out_proj.weight.mul_(2.0**10)
    return model


def reordered(model):
    """The same host with its lanes in another order: the same function over the reals."""
    other, order = copy.deepcopy(model), torch.randperm(64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for weight, axis in (
            (other.backbone.embeddings.weight, 1),
            (other.lm_head.weight, 1),
            (other.backbone.norm_f.weight, 0),
            (other.backbone.layers[0].norm.weight, 0),
            (other.backbone.layers[0].mixer.in_proj.weight, 1),
            (other.backbone.layers[0].mixer.out_proj.weight, 0),
        ):
            weight.copy_(weight.index_select(axis, order))
    return other


def test_no_bound_below_the_range_holds_for_all_hosts():
    """Norm weights that are rounded once more change all that this host says, as another order of its own lanes does;
    where its norms permit nothing is changed.
    """
    model, ids = touchy_host(), torch.full((1, 6), 5)
    rounded = graft(model, induction("abc"), width=128)
    bound = rounded.report["host_promise"]["logit_bound"]
    worst = host_difference(model, rounded, ids).worst
    assert bound / 8 < worst < bound
    with torch.no_grad():
        itself = (model(ids).logits - reordered(model)(ids).logits).abs().max()
    assert bound / 6 < itself < bound
    assert same_sums(model, graft(model, induction("abc")), ids)


def test_the_range_is_reached_and_never_left():
    model = host(num_hidden_layers=1, tie_word_embeddings=False)
    with torch.no_grad():
        model.backbone.layers[0].mixer.out_proj.weight.zero_()
        row = int((model.lm_head.weight * model.backbone.norm_f.weight).norm(dim=-1).argmax())
        model.backbone.embeddings.weight[3] = model.lm_head.weight[row] * model.backbone.norm_f.weight
        said = model(torch.arange(48)[None]).logits[0].abs()
    most = loudest_host_score(MambaHost(), model)
    assert 0.99 * most < said[3, row] <= said.max() <= most * (1 + 1e-5)


def test_sums_are_rounded_once():
    terms = torch.tensor([1.0, 2.0**-24, 2.0**-24, 2.0**-24] * 4)
    with orderless():
        assert terms.sum() == torch.tensor(terms.double().sum().item(), dtype=torch.float32)
        assert torch.equal(terms[None] @ terms[:, None], terms.flip(0)[None] @ terms.flip(0)[:, None])
        assert terms.mean().dtype == torch.float32 and terms.bfloat16().exp().dtype == torch.bfloat16
