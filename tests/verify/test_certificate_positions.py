"""The positions certificate proves both models on both mixers and sees every error that is planted by hand."""

import numpy as np
import pytest
import torch

from compiler.artifact.numeric import numeric_stack
from compiler.driver import compile
from constructions.selectivity.with_position import AbsoluteTimePosition, KeepNthPosition
from verify.certificates import Refused, Violated
from verify.certificates import positions as certificate
from verify.tasks.positions import kept_scores

MIXERS = ["mamba", "mamba2"]


def certified(construction, change=lambda stack: None):
    compiled = compile(construction.circuit(), construction.target)
    model = numeric_stack(compiled)
    change(model.stack)
    return construction.certificate(model, compiled)


@pytest.mark.parametrize("arch", MIXERS)
@pytest.mark.parametrize("n, vocab, margin", [(1, 1, None), (4, 1, None), (1, 2, 2), (2, 7, 1), (40, 20, 1)])
def test_keep_nth_at_every_position(arch, n, vocab, margin):
    found = certified(KeepNthPosition(n=n, vocab=vocab, arch=arch))
    assert found.holds and found.margin == margin and found.places in (n + 1, n + 2)
    assert found.steps >= 3 * n * vocab and "up to 1099511627776" in found.domain


@pytest.mark.parametrize("arch", MIXERS)
@pytest.mark.parametrize("horizon", [1, 2, 64])
def test_absolute_time_at_every_position(arch, horizon):
    found = certified(AbsoluteTimePosition(horizon=horizon, arch=arch))
    assert found.holds and found.margin == (1 if horizon > 1 else None) and found.places == horizon + 1


@pytest.mark.parametrize("arch", MIXERS)
def test_places_and_steps_are_what_is_said(arch):
    """Every token at every place from three states, then once for each number a channel can hold, then each content."""
    found = certified(KeepNthPosition(n=3, vocab=4, arch=arch))
    held = 2  # 0 and a bit
    assert found.steps == 3 * 3 * 4 + held * (found.places - 3) * 4 + 4


def row_of_position(stack, block=0):
    """The rows of in_proj that read the position, which is the last lane that the inputs take."""
    return stack.blocks[block].in_proj.weight.data[:, 6].nonzero()[:, 0]


def rising(stack):
    weight = stack.blocks[0].in_proj.weight.data
    weight[row_of_position(stack)] *= -1


def slow(stack):
    """Falls by 2^−30 a step: silu would only be shut after billions of positions."""
    weight = stack.blocks[0].in_proj.weight.data
    weight[row_of_position(stack), 6] *= 2.0**-37


def lagged(stack):
    stack.blocks[0].conv1d.weight.data[0, 0, -2] = 2.0**-30


def forgetful(stack):
    """Δ is as large as ever, but exp(ΔA) is no longer 0: what was held shines through."""
    stack.blocks[-1].A_log.data -= 8


def skipping(stack):
    """D of a latch: its answer sees the present token."""
    stack.blocks[-1].D.data[:3] += 2.0**-20


def swapped(stack):
    stack.head.weight.data[[1, 2]] = stack.head.weight.data[[2, 1]]


def one_ulp(stack):
    weight = stack.head.weight.data.view(-1)
    at = weight.nonzero()[0, 0]
    weight[at] = torch.nextafter(weight[at], torch.tensor(torch.inf))


def not_finite(stack):
    stack.blocks[0].D.data[-1] = float("nan")


@pytest.mark.parametrize("arch", MIXERS)
@pytest.mark.parametrize(
    "change, said",
    [
        (rising, "rises with the position"),
        (slow, "would be run"),
        (lagged, "earlier position"),
        (forgetful, "remembers what it held"),
        (skipping, "scores at position 1 are others|see the present token"),
        (swapped, "scores at position 1 are others"),
        (one_ulp, "scores at position 1 are others"),
        (not_finite, "not finite"),
    ],
)
def test_what_is_planted_is_told(arch, change, said):
    with pytest.raises((Refused, Violated), match=said):
        certified(KeepNthPosition(n=3, vocab=5, arch=arch), change)


def test_what_is_held_fades():
    """Δ past n is log 2 rather than 0; B is halved, so that what is written up to n is the same."""

    def fade(stack):
        block = stack.blocks[0]
        block.dt_proj.bias.data[:3] += 128
        block.x_proj.weight.data[block.dt_rank : block.dt_rank + block.d_state] /= 2

    with pytest.raises(Violated, match="state at position 4 is not what it was"):
        certified(KeepNthPosition(n=3, vocab=5), fade)


def test_a_first_block_that_remembers():
    def remember(stack):
        stack.blocks[0].dt_bias.data[:] = 1.0
        stack.blocks[0].conv1d.bias.data[:] = 32.0

    with pytest.raises(Violated, match="block 1 remembers"):
        certified(KeepNthPosition(n=3, vocab=5, arch="mamba2"), remember)


@pytest.mark.parametrize("where, said", [("head", "the head reads"), ("out_proj", "writes to the lane")])
def test_the_position_has_no_other_way(where, said):
    def leak(stack):
        if where == "head":
            stack.head.weight.data[0, 6] = 2.0**-100
        else:
            stack.blocks[0].out_proj.weight.data[6, 0] = 2.0**-100

    with pytest.raises(Refused, match=said):
        certified(KeepNthPosition(n=3, vocab=5, arch="mamba2"), leak)


def test_a_head_that_reads_the_present_token_past_n():
    """Beside the last block: it is seen at every place, up to n as well; here only the check past n is asked."""
    construction = KeepNthPosition(n=2, vocab=3, arch="mamba2")
    model = numeric_stack(compile(construction.circuit(), "mamba2"))
    model.stack.head.weight.data[:, 2] += 1
    table = torch.tensor([kept_scores([token], 1, 3)[0] for token in range(3)]).float()
    steps = certificate._Steps(model)
    held = steps.every(range(2, 3))[2].states
    with pytest.raises(Violated, match="see the present token"):
        certificate._check_stays(steps, range(3, 5), held, table)


def test_the_least_room_for_rounding_is_taken():
    """−104 in exact numbers is not −104 after rounding: the place comes later."""
    construction = AbsoluteTimePosition(horizon=8)
    model = numeric_stack(compile(construction.circuit(), "mamba"))
    block, lane = model.blocks[0], certificate._lane(model)
    stream = model.pack({"position": np.array([[[9.0]]])})[:, 0]
    assert certificate._shut(block, stream, lane, 2**40)
    row = int(block.in_proj.weight[:, lane].nonzero()[0, 0])
    block.conv1d.bias.data[row] = 0
    tap = float(block.conv1d.weight[row, 0, -1].detach())
    seen = tap * float(block.in_proj.weight[row].detach().double() @ stream[0].double())
    block.conv1d.bias.data[row] = -104 - seen
    assert not certificate._shut(block, stream, lane, 2**40)
