"""Each step of the certificates on its own: what it accepts up to its limit, and what it refuses just beyond."""

import dataclasses

import numpy as np
import pytest
import torch

from compiler.artifact.model import Stack
from compiler.artifact.package import bare, language_model
from compiler.driver import compile
from compiler.language.input_language import InputLanguage
from constructions.selectivity.absolute_time import AbsoluteTime
from constructions.selectivity.keep_nth import KeepNth
from constructions.selectivity.mqar import MQAR
from verify.certificates import Refused, Violated, adjacent_pairs
from verify.certificates.counted import check_count, check_shape, counter, output_channels
from verify.certificates.finite import LOG_2, Range
from verify.certificates.hold import _answers, _from, certify_hold
from verify.certificates.inductive import _check_last_sums, certify_latches
from verify.certificates.kernel import certify_kernel
from verify.certificates.lattice import FLOAT32, FLOAT64, Lattice, exponent

# Sums that do not round ----------------------------------------------------------------------------------


def numbers(bound, power=0):
    return Lattice(np.array([float(bound)]), np.array([power]))


@pytest.mark.parametrize("bits", [FLOAT32, FLOAT64])
def test_a_sum_may_reach_as_many_steps_as_a_significand_has_and_no_more(bits):
    assert (FLOAT32, FLOAT64) == (24, 53)
    numbers(2**bits).exact("x", bits)
    numbers(2.0 ** (bits - 30), -30).exact("x", bits)
    for bound, power in [(2**bits + 2, 0), (2.0 ** (bits - 29), -30)]:
        with pytest.raises(Refused, match="lattice steps"):
            numbers(bound, power).exact("x", bits)


@pytest.mark.parametrize("bound", [np.nan, np.inf])
def test_a_bound_that_is_no_number_is_refused(bound):
    with pytest.raises(Refused):
        numbers(bound).exact("x")


def test_subnormal_units_are_refused():
    numbers(2.0**-120, -126).exact("x")
    with pytest.raises(Refused, match="flushes"):
        numbers(2.0**-120, -127).exact("x")
    numbers(0, -400).exact("x")


def test_the_exponent_of_a_number_is_that_of_its_last_bit():
    assert exponent(np.array([1.0, 3.0, 6.0, 0.75, -96.0, 2.0**-149])).tolist() == [0, 0, 1, -2, 5, -149]
    assert exponent(np.zeros(1))[0] > 1000


def test_sums_and_products_of_lattices():
    one, other = Lattice.of(np.array([[3.0, 0.5], [-4.0, 0.25]])), numbers(6, 1)
    assert one.bound.tolist() == [4, 0.5] and one.exponent.tolist() == [0, -2]
    assert (one.times(other).bound.tolist(), one.times(other).exponent.tolist()) == ([24, 3], [1, -1])
    assert (one.plus(other).bound.tolist(), one.plus(other).exponent.tolist()) == ([10, 6.5], [0, -2])
    through = one.through(np.array([[2.0, -4.0], [0.0, 0.0]]))
    assert through.bound.tolist() == [10, 0] and through.exponent[0] == 0


# Hold ------------------------------------------------------------------------------------------------------


@pytest.fixture
def kept():
    """A stack that keeps the 3rd of 3 tokens, and its second block."""
    construction = KeepNth(n=3, vocab=3)
    stack = bare(compile(construction.circuit(), construction.target))
    assert certify_hold(stack, 3, 3).holds
    return stack, stack.blocks[1]


def latches(block):
    return (block.dt_proj.weight.abs().sum(1) > 0) & (block.out_proj.weight.abs().sum(0) > 0)


def ramps(block):
    return block.x_proj.weight[: block.dt_rank].abs().sum(0).nonzero()[:, 0]


def test_the_step_of_a_latch_must_be_0_where_all_ramps_are_shut(kept):
    stack, block = kept
    block.dt_proj.bias.data[latches(block)] = -104.0
    assert certify_hold(stack, 3, 3).holds
    block.dt_proj.bias.data[latches(block)] = -103.99
    with pytest.raises(Violated, match="stays open"):
        certify_hold(stack, 3, 3)


def test_a_ramp_that_sees_the_tokens_is_refused(kept):
    stack, block = kept
    lanes = (stack.embedding.weight[:3] != stack.embedding.weight[0]).any(0).nonzero()[0, 0]
    block.in_proj.weight.data[ramps(block)[0], lanes] = 2.0**-30
    with pytest.raises(Refused, match="sees the tokens"):
        certify_hold(stack, 3, 3)


@pytest.mark.parametrize("part", ["out_proj", "gate", "C"])
def test_a_count_that_block_2_sees_falling_is_refused(kept, part):
    """The ramps of the positions that were run are as they were; those of later positions would not be."""
    stack, _ = kept
    block = stack.blocks[0]
    if part == "out_proj":
        block.out_proj.weight.data[0, 0] = -(2.0**-40)
    elif part == "gate":
        block.in_proj.weight.data[block.d_inner :] *= -1
    else:
        block.x_proj.weight.data[-1] *= -1
    with pytest.raises((Refused, Violated)):
        certify_hold(stack, 3, 3)


def test_a_latch_that_opens_after_n_is_seen_by_running_it(kept):
    """From the count at n − 1 the next token is still stored."""
    stack, _ = kept
    tokens, count = torch.arange(3), counter(stack.initial_state(3))
    for _ in range(2):
        held, state = _from(stack, count, tokens, 0.0)
        count = counter(state)
    with pytest.raises(Violated, match="changes a latch after position n"):
        _answers(stack, count, held, tokens)


def test_a_count_must_not_fall_nor_tell_tokens_apart():
    low, high = torch.zeros(2, 1, 1), torch.ones(2, 1, 1)
    check_count(low, high, 1)
    check_count(high, high, 1)
    with pytest.raises(Violated, match="falls"):
        check_count(high, low, 1)
    with pytest.raises(Violated, match="depends on the tokens"):
        check_count(low, torch.tensor([[[1.0]], [[2.0]]]), 1)


def test_a_latch_that_is_not_overwritten_remembers(kept):
    stack, block = kept
    block.A_log.data[latches(block)] = -200.0
    with pytest.raises(Violated, match="remembers"):
        certify_hold(stack, 3, 3)


# Latches ---------------------------------------------------------------------------------------------------


def recall():
    construction = MQAR(kappa=2, vocab=3, write="last")
    compiled = compile(construction.circuit(), construction.target)
    alphabet = compiled.source.alphabet
    return bare(compiled), compiled, adjacent_pairs(alphabet.ids("k"), alphabet.ids("v"), "last")


def test_a_store_that_keeps_the_latches_is_seen():
    """A task in which noise stores as well: the module leaves the latches alone there."""
    stack, compiled, ask = recall()

    def stores(windows):
        slot, answer = ask.stores(windows)
        noise = windows[:, 0] == 0
        return np.where(noise, 0, slot), np.where(noise, 3, answer)

    with pytest.raises(Violated, match="is kept at the window '.*', which stores in slot 0"):
        certify_latches(stack, compiled, dataclasses.replace(ask, stores=stores))


def test_a_last_map_that_could_round_is_refused():
    stack, _, _ = recall()
    inner, width = stack.blocks[-1].out_proj.weight.shape[1], stack.embedding.embedding_dim
    nothing = Lattice.of(np.zeros((1, width)))
    _check_last_sums(stack, Lattice.of(np.ones((1, inner))), nothing)
    with pytest.raises(Refused, match="out_proj row"):
        _check_last_sums(stack, Lattice.of(np.full((1, inner), 2.0**24) + 1), nothing)
    with pytest.raises(Refused, match="out_proj row|logit"):
        _check_last_sums(stack, Lattice.of(np.ones((1, inner))), Lattice.of(np.full((1, width), 2.0**25)))


# Kernels ---------------------------------------------------------------------------------------------------


def test_a_state_that_could_round_is_refused():
    """The neighbour is written without end: no read of the other key sees it, and its own sum leaves float32."""
    construction = MQAR(kappa=2, vocab=2, arch="mamba2")
    compiled = compile(construction.circuit(), construction.target)
    stack, alphabet = bare(compiled), compiled.source.alphabet
    edges = [("0", "1", "k0"), ("1", "2", "v"), ("2", "3", "k1"), ("3", "2", "v"), ("2", "4", "_"), ("4", "5", "k0")]
    ask = adjacent_pairs(alphabet.ids("k"), alphabet.ids("v"))
    short = InputLanguage.of(alphabet, "0", edges, 1000, "one key rebound")
    assert certify_kernel(stack, short, ask).holds
    with pytest.raises(Refused, match=r"the state of \(channel, column\)"):
        certify_kernel(stack, short.with_length(2**30), ask)


# The shape that hold and clock are for ------------------------------------------------------------------------


def test_stacks_of_another_shape_are_refused(kept):
    """One block, a second block that is no Mamba, norms: each alone."""
    stack, _ = kept
    construction = KeepNth(n=3, vocab=3)
    model = language_model(compile(construction.circuit(), construction.target))
    one = MQAR(kappa=2, vocab=3)
    mixed = bare(compile(construction.circuit(), construction.target))
    mixed.blocks[1] = torch.nn.Identity()
    for other in (
        bare(compile(one.circuit(), one.target)),
        mixed,
        Stack.from_language_model(model.config, model.tensors),
    ):
        with pytest.raises(Refused, match="two Mamba blocks without norms"):
            check_shape(other)
    check_shape(stack)


@pytest.mark.parametrize("block", [0, 1])
def test_blocks_that_read_earlier_positions_are_refused(kept, block):
    stack, _ = kept
    taps = stack.blocks[block].conv1d.weight.data
    for lag in range(taps.shape[-1] - 1):
        taps[0, 0, lag] = 1
        with pytest.raises(Refused, match="present position only"):
            check_shape(stack)
        taps[0, 0, lag] = 0
    check_shape(stack)


def test_every_counter_must_be_kept(kept):
    """A = 0 in the channels of block 1 that are read, and in no others."""
    stack, _ = kept
    decay, read = stack.blocks[0].A_log.data, output_channels(stack, 0)
    assert 0 < read.sum() < len(read)
    for channel in range(len(read)):
        saved = decay[channel].clone()
        decay[channel] = -20.0
        if read[channel]:
            with pytest.raises(Refused, match="forgets"):
                check_shape(stack)
        else:
            check_shape(stack)
        decay[channel] = saved


def test_blocks_of_several_columns_are_refused(kept):
    stack, _ = kept
    for block in stack.blocks:
        block.d_state = 2
        with pytest.raises(Refused, match="N = 1"):
            check_shape(stack)
        block.d_state = 1


def test_the_certificate_counts_the_steps_that_it_ran(kept):
    """Every token at each position up to n, from two states; then every token beside every held one."""
    assert certify_hold(kept[0], 3, 3).steps == 3 * 2 * 3 + 3 * 3


def test_a_clock_whose_second_block_has_a_state_is_refused():
    construction = AbsoluteTime(horizon=3, vocab=2)
    compiled = compile(construction.circuit(), construction.target)
    stack = bare(compiled)
    read = output_channels(stack, 1).nonzero()[:, 0]
    stack.blocks[1].dt_proj.bias.data[read[0]] = 1.0
    with pytest.raises(Refused, match="block 2 has a state"):
        construction.certificate(stack, compiled)


# Bounds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "low, high", [(-200.0, -50.0), (-3.0, -0.5), (-1.3, 0.0), (-2.0, 5.0), (0.0, 0.5), (20.0, 300.0)]
)
def test_intervals_hold_every_value(low, high):
    """silu, products, sums and maps of intervals against the functions on a grid."""
    ends = np.array([low]), np.array([high])
    x = torch.linspace(low, high, 4001, dtype=torch.float64)
    y = torch.nn.functional.silu(x)
    silu = Range(*ends).silu()
    assert silu.low[0] <= y.min() and y.max() <= silu.high[0]
    assert LOG_2 + max(high, 0) >= torch.nn.functional.softplus(x).max()
    for factor in (-3.0, 0.0, 2.0):
        scaled = Range(*ends).times(np.array([factor]))
        assert sorted((factor * low, factor * high)) == [scaled.low[0], scaled.high[0]]
    moved = Range(*ends).through(np.array([[1.0], [-2.0]])).plus(np.array([1.0, 0.0]))
    assert moved.low.tolist() == [low + 1, -2 * high] and moved.high.tolist() == [high + 1, -2 * low]
    assert moved.size.tolist() == [max(abs(low + 1), abs(high + 1)), 2 * max(abs(low), abs(high))]
