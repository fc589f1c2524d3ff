"""Lemmas 1 and 2 on random and on compiled layers: autograd against the closed form, the bound, and where the printed
one fails.
"""

import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from compiler.artifact.manifest import manifest_content
from compiler.artifact.package import bare
from compiler.driver import compile
from compiler.runtime import mamba_classes
from compiler.targets.gated_deltanet.mixer import GatedDeltaNet
from compiler.targets.mamba_delta_t.mixer import MambaDeltaT
from compiler.targets.s4d.mixer import S4DMixer
from constructions.command.sensitivity import _foreign
from constructions.selectivity.induction_heads import InductionHeads
from constructions.selectivity.keep_nth import KeepNth
from tests.constructions.test_construct import run
from tests.spread import some
from verify.attention_sensitivity import attention_sensitivity
from verify.sensitivity import Sensitivity, _scan_of, sensitivity, stack_sensitivity


def random_mamba(seed=0, d_model=6, **options):
    torch.manual_seed(seed)
    return mamba_classes().Mamba(d_model, d_state=3, expand=2, **options)


def random_mamba2(seed=0, **options):
    torch.manual_seed(seed)
    return mamba_classes().Mamba2(6, d_state=3, expand=2, headdim=4, **options)


def random_s4d(seed=0):
    torch.manual_seed(seed)
    layer = S4DMixer(6, 12, 3)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return layer


def random_input(length=24, seed=1):
    return torch.randn(length, 6, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("channel, column", [(0, 0), (5, 2), (11, 1)])
@pytest.mark.parametrize("make", [random_mamba, random_s4d, lambda: random_mamba2()])
def test_the_closed_form_is_the_derivative(make, channel, column):
    result = sensitivity(make(), random_input(), channel, column)
    assert result.disagreement() < 1e-12 and result.measured.max() > 0


def test_by_finite_differences():
    """The derivative of the real recurrence, once more, without autograd: perturb x̂_j and run mamba_ssm's formula."""
    layer = random_mamba().double()
    x = torch.rand(10, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(3))

    def last_state(x):
        parts = layer.x_proj(x)
        dt, b, _ = parts.split([layer.dt_rank, 3, 3], dim=-1)
        delta = F.softplus(layer.dt_proj(dt))
        h = torch.zeros(12, 3, dtype=torch.float64)
        for t in range(len(x)):
            h = torch.exp(-delta[t, :, None] * layer.A_log.exp()) * h + (delta[t] * x[t])[:, None] * b[t]
        return h[4, 1]

    from verify import sensitivity as module

    weights = {name: p.detach() for name, p in layer.named_parameters()}
    delta, write = module._selective(weights, layer.dt_rank, 4, 1)
    scan = module._Scan(x, 4, weights["A_log"][4, 1].exp(), delta, write)
    steps = torch.stack([delta(row) for row in x])
    states = [torch.zeros((), dtype=torch.float64)]
    for t in range(len(x)):
        states.append(torch.exp(-scan.rate * steps[t]) * states[-1] + steps[t] * write(x[t]) * x[t, 4])
    predicted = module._beside(scan, torch.ones(10, 10), torch.stack(states[1:])).predicted[-1]
    for j in (0, 4, 9):
        slopes = []
        for e in range(12):
            moved = torch.zeros_like(x)
            moved[j, e] = 1e-6
            with torch.no_grad():
                slopes.append((last_state(x + moved) - last_state(x - moved)) / 2e-6)
        assert torch.stack(slopes).norm() == pytest.approx(float(predicted[j]), rel=1e-6, abs=1e-12)


def test_s4d_fades_at_a_fixed_rate():
    result = sensitivity(random_s4d(), random_input(), 3, 1)
    distance = torch.arange(24)
    step = result.exponent[-1, 0] / 23
    torch.testing.assert_close(result.exponent[-1].flip(0), step * distance)


def test_lemma_2():
    """With small steps λΣΔ stays below c, and no sensitivity falls below e^(−c)|c̃_j|."""
    layer = random_mamba(dt_min=1e-4, dt_max=1e-3)
    layer.dt_proj.weight.data *= 0.01
    result = sensitivity(layer, random_input(40), 2, 0)
    c = float(result.total.max())
    assert c < 0.2
    kept = result.measured[-1]
    assert (kept >= result.lower_bound * (1 - 1e-12)).all() and (result.lower_bound > 0).all()


def test_the_printed_bound_forgets_how_the_step_depends_on_the_input():
    """Where Δ depends strongly on x̂_j the second term of c̃_j cancels the first: (13) as printed then promises too
    much.
    """
    worst = 1.0
    for seed in some(range(20), 0.05):
        layer = random_mamba(seed)
        layer.dt_proj.weight.data *= 4
        result = sensitivity(layer, 3 * random_input(40, seed), 2, 0)
        assert (result.measured[-1] >= result.lower_bound * (1 - 1e-9)).all()
        worst = min(worst, float((result.prefactor / result.printed.clamp_min(1e-30)).min()))
    assert worst < 0.9


@pytest.mark.parametrize("construction", [InductionHeads(vocab=3), KeepNth(n=3, vocab=4)])
def test_compiled_layers(construction):
    """The built latches: a step of 0 keeps the sensitivity for ever, a write ends it."""
    compiled = compile(construction.circuit())
    stack = bare(compiled)
    first = compiled.source.alphabet.size - construction.vocab
    tokens = torch.from_numpy(np.random.default_rng(0).integers(first, first + construction.vocab, (1, 16)))
    with torch.no_grad():
        _, streams = stack(tokens, return_stream=True)
    layer = stack.blocks[-1]
    channels = (layer.out_proj.weight.abs().sum(0) > 0).nonzero()[:3, 0].tolist()
    for channel in channels:
        result = sensitivity(layer, streams[-2][0], channel)
        assert result.disagreement() < 1e-12


def test_a_latch_never_forgets_what_it_kept():
    compiled = compile(KeepNth(n=3, vocab=4).circuit())
    stack = bare(compiled)
    tokens = torch.from_numpy(np.random.default_rng(0).integers(0, 4, (1, 50)))
    kept = next(c for c, name in enumerate(compiled.blocks[-1].channels.names) if name.startswith("kept"))
    result = stack_sensitivity(stack, tokens[0], 1, kept)
    assert (
        (result.exponent[2:, 2] == 0).all()
        and (result.measured[2:, 2] == result.measured[2, 2]).all()
        and result.measured[2, 2] > 0
    )
    assert (result.measured[2:, :2] < 1e-50).all()  # e^(-128) in float64


def test_other_layers_are_refused():
    with pytest.raises(ValueError, match="no Mamba, Mamba-2 or S4D"):
        sensitivity(torch.nn.Linear(6, 6), random_input())
    for layer in (GatedDeltaNet(6, 2, 4, 4), MambaDeltaT(6, 12, 3)):  # Δ of a head, and of a column
        with pytest.raises(ValueError, match=f"{type(layer).__name__} is no Mamba, Mamba-2 or S4D"):
            sensitivity(layer, random_input())
    with pytest.raises(ValueError, match="no state"):
        sensitivity(random_mamba2(), random_input(), 0, 3)
    with pytest.raises(ValueError, match="no state"):
        sensitivity(random_mamba(), random_input(), 12)


@pytest.mark.parametrize("query_key, value", [(0.0, 1.0), (0.7, -2.0), (-1.5, 0.3)])
def test_attention(query_key, value):
    x = torch.randn(40, generator=torch.Generator().manual_seed(2))
    result = attention_sensitivity(x, query_key, value)
    torch.testing.assert_close(result.measured, result.predicted, rtol=1e-9, atol=1e-12)
    assert (result.measured <= result.bound * (1 + 1e-12)).all()


def test_attention_fades_like_one_over_t():
    result = attention_sensitivity(torch.ones(100), 0.5, 1.0)
    torch.testing.assert_close(result.measured[1:, 0], 1.0 / torch.arange(2, 101, dtype=torch.float64))


def test_the_report_is_plain():
    report = sensitivity(random_mamba(), random_input(), 1, 1).to_json()
    assert len(report["measured"]) == len(report["predicted"]) == 24 and report["disagreement"] < 1e-12


def told(measured=((2.0, 0.0), (1.0, 4.0)), predicted=((2.0, 0.0), (1.5, 4.0))):
    rows = [torch.tensor(rows, dtype=torch.float64) for rows in (measured, predicted)]
    exponent = torch.zeros(len(rows[0]), 2, dtype=torch.float64)
    vectors = [torch.tensor(v, dtype=torch.float64) for v in ((0.25, 0.5), (3.0, 5.0), (1.0, 2.0))]
    return Sensitivity(*rows, exponent, *vectors)


def test_what_the_report_says_by_hand():
    """c is the largest total, .5; the bounds are e^(−c) times the prefactors.

    Curves go from the last position backwards.
    """
    result = told()
    factor = float(np.exp(-0.5))
    assert result.lower_bound.tolist() == pytest.approx([3 * factor, 5 * factor])
    assert result.printed_bound.tolist() == pytest.approx([factor, 2 * factor])
    assert result.disagreement() == 0.5 / 4
    assert [curve.tolist() for curve in result.by_distance()] == [[4.0, 1.0], [4.0, 1.5]]
    report = result.to_json()
    assert report["c"] == 0.5 and report["measured"] == [4.0, 1.0] and report["predicted"] == [4.0, 1.5]
    assert report["lower_bound"] == result.lower_bound.tolist()
    assert report["lower_bound_as_printed"] == result.printed_bound.tolist()


def test_curves_end_at_the_last_position():
    result = told(((1.0, 2.0), (3.0, 4.0), (5.0, 6.0)), ((1.0, 2.0), (3.0, 4.0), (7.0, 8.0)))
    assert [curve.tolist() for curve in result.by_distance()] == [[6.0, 5.0], [8.0, 7.0]]


def test_the_first_state_is_the_default():
    layer, u = random_mamba(), random_input(5)
    assert torch.equal(sensitivity(layer, u).measured, sensitivity(layer, u, 0, 0).measured)
    assert not torch.equal(sensitivity(layer, u).measured, sensitivity(layer, u, 1, 0).measured)
    assert not torch.equal(sensitivity(layer, u).measured, sensitivity(layer, u, 0, 1).measured)


def test_no_agreement_is_claimed_beside_a_sensitivity_of_0():
    nothing = ((0.0, 0.0), (0.0, 0.0))
    assert told(nothing, nothing).disagreement() == 0
    assert told(nothing, ((1.0, 0.0), (0.0, 0.0))).disagreement() > 1e200
    assert told(((1e-250, 0.0), (0.0, 0.0)), ((2e-250, 0.0), (0.0, 0.0))).disagreement() == pytest.approx(1)


def test_states_at_both_ends_of_a_layer():
    layer, u = random_mamba(), random_input(4)
    for channel, column in ((0, 0), (11, 2)):
        assert sensitivity(layer, u, channel, column).disagreement() < 1e-12
    for channel, column in ((-1, 0), (12, 0), (0, -1), (0, 3)):
        with pytest.raises(ValueError, match="no state"):
            sensitivity(layer, u, channel, column)


def test_the_inputs_of_the_scan_are_the_modules():
    """x̂ by mamba_ssm's own convolution, and Δ, B by its own projections."""
    layer, u = random_mamba().double(), random_input(7).double()
    from verify import sensitivity as module

    scan = module._scan_of(layer, u, 4, 1)
    with torch.no_grad():
        x = layer.in_proj(u)[:, :12].T[None]
        x = F.silu(layer.conv1d(x)[..., :7])[0].T
        dt, b, _ = layer.x_proj(x).split([layer.dt_rank, 3, 3], dim=-1)
        torch.testing.assert_close(scan.x, x)
        torch.testing.assert_close(torch.stack([scan.delta(row) for row in x]), F.softplus(layer.dt_proj(dt))[:, 4])
        torch.testing.assert_close(torch.stack([scan.write(row) for row in x]), b[:, 1])


@pytest.mark.parametrize("options", [{}, {"ngroups": 3, "rmsnorm": False}])
def test_mamba2_by_its_own_equations(options):
    """Remark 1: the state whose derivatives are taken is the layer's, for every group and head."""
    layer, u = random_mamba2(2, **options).double(), random_input(8).double()
    from verify import sensitivity as module

    for channel, column in ((0, 0), (5, 2), (11, 1)):
        scan = module._scan_of(layer, u, channel, column)
        h = torch.zeros((), dtype=torch.float64)
        for x in scan.x:
            step = scan.delta(x)
            h = torch.exp(-scan.rate * step) * h + step * scan.write(x) * x[channel]
        assert h == pytest.approx(float(states_of(layer, u)[channel // 4, channel % 4, column]), rel=1e-9)


def states_of(layer, u):
    """The state behind the last position, (heads, headdim, d_state), by Mamba-2's equations."""
    z = layer.in_proj(u).detach()
    groups, n = layer.ngroups, layer.d_state
    conv = F.silu(layer.conv1d(z[:, 12 : 24 + 2 * groups * n].T[None])[..., : len(u)])[0].T.detach()
    dt = F.softplus(z[:, 24 + 2 * groups * n :] + layer.dt_bias).detach()
    x = conv[:, :12].reshape(len(u), 3, 4)
    b = conv[:, 12 : 12 + groups * n].reshape(len(u), groups, n).repeat_interleave(3 // groups, dim=1)
    state = torch.zeros(3, 4, n, dtype=torch.float64)
    for t in range(len(u)):
        keep = torch.exp(-layer.A_log.detach().exp() * dt[t])
        state = keep[:, None, None] * state + dt[t][:, None, None] * x[t][:, :, None] * b[t][:, None, :]
    return state


def test_lemma_2_on_mamba2():
    layer = random_mamba2(dt_min=1e-4, dt_max=1e-3)
    layer.in_proj.weight.data[-layer.nheads :] *= 0.01
    layer.dt_bias.data -= 4
    result = sensitivity(layer, random_input(40), 2, 0)
    assert float(result.total.max()) < 0.5 and (result.measured[-1] >= result.lower_bound * (1 - 1e-12)).all()


def test_a_latch_on_mamba2_never_forgets():
    compiled = compile(KeepNth(n=3, vocab=4, arch="mamba2").circuit(), "mamba2")
    block = len(compiled.blocks) - 1
    kept = next(c for c, name in enumerate(compiled.blocks[-1].channels.names) if name.startswith("kept"))
    tokens = torch.from_numpy(np.random.default_rng(0).integers(0, 4, (1, 30)))
    result = stack_sensitivity(bare(compiled), tokens[0], block, kept)
    assert result.disagreement() < 1e-12 and (result.exponent[2:, 2] == 0).all() and result.measured[-1, 2] > 0


@pytest.mark.parametrize("kind", ["mamba", "mamba2"])
def test_layers_of_models_that_transformers_saved(kind, tmp_path, capsys):
    """A random language model of transformers, two groups on Mamba-2: the scan is the model's own, to rounding."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4, "expand": 2}
    if kind == "mamba":
        model = transformers.MambaForCausalLM(transformers.MambaConfig(**sizes))
    else:
        heads = {"num_heads": 8, "head_dim": 4, "n_groups": 2}
        model = transformers.Mamba2ForCausalLM(transformers.Mamba2Config(**sizes, **heads))
    model.eval().save_pretrained(tmp_path)
    ids, channel, column = [3, 1, 4, 1, 5, 9, 2], 21, 2
    layer, u, number = _foreign(tmp_path, " ".join(map(str, ids)), None)
    assert number == 2
    scan, state = _scan_of(layer, u, channel, column), torch.zeros((), dtype=torch.float64)
    for x in scan.x:
        state = torch.exp(-scan.rate * scan.delta(x)) * state + scan.delta(x) * scan.write(x) * x[channel]
    with torch.no_grad():
        cache = model(torch.tensor([ids]), use_cache=True).cache_params
    held = next(iter(cache.layers[1].recurrent_states.values())).reshape(32, 4)
    assert float(held[channel, column]) == pytest.approx(float(state), rel=1e-4) and abs(state) > 1e-9
    arguments = ["--input", "3 1 4 1", "--channel", str(channel), "--column", str(column), "--json"]
    assert run("sensitivity", str(tmp_path), *arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["measured"]) == 4 and told["disagreement"] < 1e-12


@pytest.mark.parametrize("kind", ["mamba", "mamba2", "s4d"])
def test_random_layers_by_command(kind, capsys):
    assert run("sensitivity", "--random", kind, "--length", "9", "--d-model", "6", "--channel", "11", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["measured"]) == 9 and told["disagreement"] < 1e-12 and max(told["measured"]) > 0
    steps = np.diff(np.log(told["measured"]))
    assert (np.ptp(steps) < 1e-9) == (kind == "s4d")  # a fixed rate, where the input does not select


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "one of DIR and --random"),
        (("there", "--random", "mamba"), "one of DIR and --random"),
        (("there",), "--input holds no token"),
        (("there", "--input", "1 2"), "no config.json"),
        (("--random", "mamba2", "--channel", "32"), "there is no state (32, 0)"),
        (("--random", "mamba2", "--channel", "x"), "must be a number"),
        (("--random", "mamba", "--seed", str(2**64)), "less than or equal to 18446744073709551615"),
        (("--random", "mamba", "--input", "3"), "--input 3 is of a checkpoint, and --random draws one layer"),
        (("--random", "mamba", "--block", "1"), "--block 1 is of a checkpoint"),
        (("there", "--input", "3", "--length", "24"), "--length 24 is of a random layer, and --random is not given"),
        (("there", "--input", "3", "--seed", "0"), "--seed 0 is of a random layer"),
    ],
)
def test_what_is_no_layer_is_told(arguments, message, capsys):
    assert run("sensitivity", *arguments) == 2
    said = capsys.readouterr().err.strip()
    assert message in said and "\n" not in said


def test_a_name_of_several_channels_is_refused(tmp_path, capsys):
    """In block 2 the letters before stand in two channels each, one behind a gate."""
    assert run("copy", "--n", "3", "--vocab", "2", "--samples", "1", "--no-certify", "--out", str(tmp_path / "c")) == 0
    names = [block["channels"] for block in manifest_content(tmp_path / "c")["blocks"]]
    twice = next(name for name in names[1] if names[1].count(name) == 2)
    once = next(name for name in names[1] if names[1].count(name) == 1 and name not in names[0])
    asked = ["sensitivity", str(tmp_path / "c"), "--input", "x0", "--channel"]
    places = ", ".join(str(i) for i, name in enumerate(names[1]) if name == twice)
    said = {}
    for name, block in ((twice, "2"), (once, "1"), ("nope", "1"), (once, "2")):
        capsys.readouterr()
        said[name, block] = run(*asked, name, "--block", block), capsys.readouterr().err
    assert said[twice, "2"] == (
        2,
        f"--channel {twice!r}: block 2 has 2 channels of this name, {places}; give the number.\n",
    )
    assert said[once, "1"][0] == 2 and "; --block 2 has one." in said[once, "1"][1]
    told = said["nope", "1"][1].partition("its channels are ")[2].rstrip(".\n").split(", ")
    assert said["nope", "1"][0] == 2 and len(set(told)) == len(told) > 1
    assert said[once, "2"][0] == 0
