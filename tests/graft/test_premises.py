"""The premises of what is proved of a host's logits: each is checked from numbers, or less is promised."""

import re

import numpy as np
import pytest
import torch

from compiler import Alphabet, Circuit, CompileError, InputLanguage, Tokens, emit, latch
from compiler.graft import GraftError, direct_sum, graft
from compiler.graft.bound import SAME
from compiler.graft.faint import FAINTEST_SEEN, MOST_HEARD, norm_shrinks
from compiler.graft.measure import answers, host_difference, mixed_text, same_sums
from tests.graft.hosts import VOCAB, counter, delta_host, host, host_text, induction

MAP = {"a": 17, "b": 18, "c": 19}


def loud(largest: int) -> Circuit:
    """A circuit with lanes as large as this."""
    letters = Alphabet.of("a", "b", "c", "yes", "no")
    x = Tokens(letters)
    last = latch(x.number({"a": largest, "b": 1, "c": 0}), x.is_in("a", "b", "c"))
    language = InputLanguage.of(letters, "any", [("any", "any", ("a", "b", "c"))], 1000, "strings of a, b, c")
    return Circuit("loud", emit(letters, (last >= 2, "yes"), otherwise="no"), language)


def quiet_host(kind: str = "mamba", embedding: float = 1e-6, epsilon: float = 1e-12, **options):
    """A host with a short stream beside a small ε, d_model 16."""
    model = host(kind, d_model=16, layer_norm_epsilon=epsilon, **options)
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(embedding)
    return model


def text_with_letters() -> torch.Tensor:
    """Each letter before text of the host."""
    return torch.cat([torch.tensor([[17], [18], [19]]), host_text(3, 12) % 17], 1)


# Lanes too large to vanish ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["mamba", "falcon"])
@pytest.mark.parametrize(("embedding", "epsilon"), [(1e-6, 1e-12), (1e-3, 1e-5)])
def test_large_lanes_leave_a_quiet_host_alone_and_are_called_heard(kind, embedding, epsilon):
    model, ids = quiet_host(kind, embedding, epsilon), text_with_letters()
    grafted = graft(model, loud(2**22), tokens=MAP)
    promise = grafted.report["host_promise"]
    assert promise["level"] == "lanes that are heard" and 0 < promise["norm_change"] < 2**-60
    assert "bit for bit" not in promise["proved"] and "zeros" not in promise["text"]
    assert host_difference(model, grafted, ids).worst < 1e-6 < host_difference(model, grafted, ids).size
    found = answers(grafted, mixed_text(grafted, VOCAB, 6, 30, seed=1))
    assert found.asked > 40 and not found.wrong


def test_lanes_that_would_change_the_host_are_refused(monkeypatch):
    """At a level of 2^-40 they change its logits by much, within what is said of its norms. Nothing is called equal."""
    monkeypatch.setattr(direct_sum, "faint_level", lambda *told: FAINTEST_SEEN)
    with pytest.raises(GraftError, match=r"hold up to 4.2e\+06.* could change by 0\.\d+ of itself.*scale the circuit"):
        graft(quiet_host(), loud(2**22), tokens=MAP)
    monkeypatch.setattr(direct_sum, "MOST_HEARD", 1.0)
    model = quiet_host()
    grafted = graft(model, loud(2**22), tokens=MAP)
    difference = host_difference(model, grafted, text_with_letters())
    assert difference.worst > 0.05 * difference.size
    promise = grafted.report["host_promise"]
    assert promise["level"] != SAME and MOST_HEARD < first_factor_change(model, grafted) <= promise["norm_change"]


def first_factor_change(model, grafted) -> float:
    """By how much the factor of the host's first norm changes, over all tokens: computed from the two streams."""
    ids = torch.arange(VOCAB)[:, None]
    layers = len(grafted.compiled.blocks)
    with torch.no_grad():
        before = model.get_input_embeddings().weight[:, None].double()
        after = grafted.model(ids, output_hidden_states=True).hidden_states[layers - 1].double()
    assert torch.equal(before, after[..., :16])
    epsilons = [m.config.layer_norm_epsilon for m in (model, grafted.model)]
    means = [s.square().mean(-1) + e for s, e in zip((before, after), epsilons, strict=True)]
    ratio = (means[0] / means[1] / (grafted.model.config.hidden_size / 16)).sqrt()
    return float((ratio - 1).abs().max())


def test_what_a_norm_loses_is_what_its_formula_says():
    rng = np.random.default_rng(0)
    for heard, epsilon in zip(2.0 ** rng.uniform(-40, 10, 50), 2.0 ** rng.uniform(-40, 0, 50), strict=True):
        for mean in (0.0, epsilon, 1.0):
            lost = 1 - ((mean + epsilon) / (mean + epsilon + heard / 64)) ** 0.5
            assert lost <= norm_shrinks(heard, 64, epsilon) + 1e-15
    assert norm_shrinks(2.0**-160, 64, 2.0**-40) == pytest.approx(2.0**-127)


# Numbers that are too small ---------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "name"), [("mamba", "layers.0.norm"), ("mamba", "norm_f"), ("mamba2", "mixer.norm")])
def test_norm_weights_that_cannot_be_halved_are_no_equal_operands(kind, name):
    model = host(kind)
    with torch.no_grad():
        for key, weight in model.named_parameters():
            if name in key:
                weight.mul_(1e-42)
    promise = graft(model, induction("abc")).report["host_promise"]
    assert promise["level"] == "rounded norm weights" and 1e-4 < promise["norm_change"] < 1
    assert "so small" in promise["text"] and "bit for bit" not in promise["proved"]


@pytest.mark.parametrize(("kind", "small", "enough"), [("mamba", 1e-42, 1e-38), ("olmo", 1e-20, 2e-19)])
def test_an_embedding_that_underflows_in_a_norm_is_not_called_equal(kind, small, enough):
    model = delta_host(kind) if kind == "olmo" else host(kind)
    for value, level in ((small, "numbers that underflow"), (enough, SAME)):
        with torch.no_grad():
            model.get_input_embeddings().weight[5] = value
        promise = graft(model, induction("abc")).report["host_promise"]
        assert promise["level"] == level and (level == SAME) == ("bit for bit" in promise["proved"])


@pytest.mark.parametrize("name", ["model.norm.weight", "model.layers.1.post_attention_layernorm.weight"])
def test_norm_weights_whose_product_underflows_are_not_called_equal(name):
    model = delta_host("olmo")
    with torch.no_grad():
        model.get_parameter(name).mul_(2.0**-132)
    promise = graft(model, induction("abc")).report["host_promise"]
    assert promise["level"] == "numbers that underflow" and "bit for bit" not in promise["proved"]


def test_a_falcon_weight_that_would_be_lost_when_it_is_scaled_is_refused():
    model = host("falcon", d_model=16)
    with torch.no_grad():
        model.backbone.layers[1].mixer.out_proj.weight[0, 0] = 2.0**-149
    with pytest.raises(GraftError, match="out_proj.weight has a number that times .* leaves its format"):
        graft(model, induction("abc"))


# ε ----------------------------------------------------------------------------------------------------


EPSILONS = {
    "mamba": "layer_norm_epsilon",
    "mamba2": "layer_norm_epsilon",
    "falcon": "mixer_rms_eps",
    "qwen": "rms_norm_eps",
}


@pytest.mark.parametrize("value", [0.0, -1e-3, 1e-44, 1e-30, 1e300, float("nan"), float("inf"), "x", None])
@pytest.mark.parametrize(("kind", "name"), EPSILONS.items())
def test_an_epsilon_that_is_none_is_refused_in_a_sentence(kind, name, value):
    model = delta_host(kind) if kind == "qwen" else host(kind)
    object.__setattr__(model.config, name, value)
    with pytest.raises(GraftError, match=f"its {name} is {re.escape(repr(value))}, and a number from 8.27e-25 to 1"):
        graft(model, induction("abc"))


@pytest.mark.parametrize("kind", ["mamba", "falcon"])
def test_a_large_epsilon_is_absorbed_by_the_ballast(kind):
    """Beside an embedding that asks for little of it."""
    model = quiet_host(kind, 1e-4, 1.0, **({"mixer_rms_eps": 1.0} if kind == "falcon" else {}))
    grafted = graft(model, counter(length=200))
    assert grafted.report["host_promise"]["level"] == SAME and same_sums(model, grafted, host_text(2, 12))
    found = answers(grafted, mixed_text(grafted, VOCAB, 6, 30, seed=1))
    assert found.asked > 40 and not found.wrong
    from tests.graft.test_direct_sum import circuit_lanes, mixed

    assert np.array_equal(*circuit_lanes(grafted, mixed(grafted, 0.3, count=3)))


def fine(exponent: int) -> Circuit:
    """A circuit with a lane that holds multiples of 2^-exponent."""
    letters = Alphabet.of("a", "b", "yes", "no")
    x, unit = Tokens(letters), 2.0**-exponent
    before = x.rows(("a", "b"), np.array([[3 * unit], [unit]]), "fine").shift(1)
    language = InputLanguage.of(letters, "any", [("any", "any", ("a", "b"))], 1000, "strings of a, b")
    return Circuit("fine", emit(letters, (before >= 2 * unit, "yes"), otherwise="no"), language)


@pytest.mark.parametrize("kind", ["mamba", "mamba2", "falcon", "qwen"])
@pytest.mark.parametrize(("power", "circuit"), [(2.0**52, induction("abc", length=4)), (2.0**60, fine(20))])
def test_a_loud_embedding_is_named_and_scaled_as_told_leaves_room(kind, power, circuit):
    """A shorter max_length would not: the circuit of four tokens has the same refusal as one of 10,000."""
    model = delta_host(kind) if kind == "qwen" else host(kind)
    rows = model.get_input_embeddings().weight
    with torch.no_grad():
        rows.mul_(power)
    with pytest.raises(GraftError, match="the host's embedding has a row of length .* side branch") as refused:
        graft(model, circuit)
    assert "max_length" not in str(refused.value)
    factor = int(re.search(r"to 1/(\d+) of what it is", str(refused.value))[1])
    with torch.no_grad():
        rows.mul_(2 / factor)
    with pytest.raises(GraftError, match="to 1/2 of what it is"):
        graft(model, circuit)
    with torch.no_grad():
        rows.mul_(0.5)
    grafted = graft(model, circuit)
    assert same_sums(model, grafted, host_text(2, 12))
    found = answers(grafted, mixed_text(grafted, VOCAB, 6, 30, seed=1))
    assert found.asked and not found.wrong


def test_a_circuit_without_room_beside_any_host_is_refused_as_itself(monkeypatch):
    """Not for the embedding, which is loud as well."""
    model = host()
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(2.0**60)
    monkeypatch.setattr(direct_sum, "FAINTEST_SEEN", 2.0**80)
    with pytest.raises(CompileError, match="ballast would need .*(max_length|smaller bounds)"):
        graft(model, induction("abc"))


def test_an_epsilon_beside_the_inner_norm_of_mamba2_is_refused():
    with pytest.raises(GraftError, match="layer_norm_epsilon, 0.25 in the direct sum, is seen beside the ballast of"):
        graft(host("mamba2", layer_norm_epsilon=1.0, dtype=torch.bfloat16), induction("abc"))
