"""The inductive certificate: latches proved for every length, against brute force, planted errors and refusals."""

import dataclasses
import json
from itertools import product

import numpy as np
import pytest
import torch

from compiler.artifact.model import Stack
from compiler.artifact.package import bare, language_model
from compiler.driver import compile
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout_one_hot
from compiler.language.source import Tokens
from compiler.language.words import latch
from constructions.selectivity.induction_heads import BLANK, InductionHeads
from constructions.selectivity.mqar import MQAR
from verify.certificates import Ask, Refused, Violated, adjacent_pairs
from verify.certificates.inductive import certify_latches
from verify.tasks.mqar.oracle import mqar_oracle


def built(construction):
    compiled = compile(construction.circuit(), construction.target)
    return bare(compiled), compiled


def recall(kappa=2, vocab=3, arch="mamba"):
    """MQAR that keeps the last value."""
    stack, compiled = built(MQAR(kappa=kappa, vocab=vocab, arch=arch, write="last"))
    alphabet = compiled.source.alphabet
    return stack, compiled, adjacent_pairs(alphabet.ids("k"), alphabet.ids("v"), "last")


def induction(vocab, **options):
    """Induction heads: the token after the last occurrence of the present one, or a blank."""
    stack, compiled = built(InductionHeads(vocab=vocab, **options))
    alphabet = compiled.source.alphabet
    return stack, compiled, adjacent_pairs(alphabet.ids("v"), alphabet.ids("v"), "last", alphabet.index(BLANK))


def lead(logits: np.ndarray, right: np.ndarray) -> float:
    """The least distance of the right logit (n,) to the best other one in (n, vocabulary)."""
    rows = np.arange(len(right))
    others = logits.copy()
    others[rows, right] = -np.inf
    return float((logits[rows, right] - others.max(axis=1)).min())


# What is proved -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("vocab", [5, 10, 20, 40])
def test_induction_heads_at_every_length(vocab):
    stack, compiled, ask = induction(vocab)
    certificate = certify_latches(stack, compiled, ask)
    assert certificate.holds and certificate.margin == 1 and certificate.values == 2
    assert certificate.steps == 2 * vocab * (vocab + 1)  # 3,280 at V = 40
    assert certificate.to_json()["level"] == "bit-exact" and "every length" in certificate.domain


@pytest.mark.parametrize("options", [{"codes": True}, {"arch": "mamba2"}], ids=["codes", "two blocks"])
def test_induction_heads_in_other_shapes(options):
    stack, compiled, ask = induction(6, **options)
    assert certify_latches(stack, compiled, ask).margin == 1
    assert InductionHeads(vocab=6, **options).certificate(stack, compiled).margin == 1


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_recall_of_the_last_value_against_every_sequence(arch):
    """The proof's margin is the least that any sequence shows, and the bits are the interpreter's."""
    stack, compiled, ask = recall(2, 2, arch)
    certificate = certify_latches(stack, compiled, ask)
    tokens = np.array(list(product(range(5), repeat=6)))
    with torch.no_grad():
        logits = stack(torch.from_numpy(tokens)).double().numpy()
    assert np.array_equal(logits, compiled.interpret(tokens))
    right = np.array([[-1 if a is None else a for a in mqar_oracle(row, 2, 2, "last")] for row in tokens.tolist()])
    assert certificate.margin == lead(logits[right >= 0], right[right >= 0])


def test_a_long_sequence_is_as_the_proof_says():
    stack, compiled, ask = recall(4, 8)
    assert certify_latches(stack, compiled, ask).margin > 0
    tokens = compiled.source.language.sample(2, 3000, seed=1)
    with torch.no_grad():
        assert np.array_equal(stack(torch.from_numpy(tokens)).numpy(), compiled.interpret(tokens))


def test_without_a_task_the_bits_alone_are_proved():
    stack, compiled, _ = recall()
    certificate = certify_latches(stack, compiled)
    assert certificate.holds and certificate.margin is None


@pytest.mark.slow
def test_full_size():
    construction = MQAR(kappa=16, vocab=512, write="last")
    certificate = construction.certificate(*built(construction))
    assert (
        json.loads(json.dumps(certificate.to_json()))["holds"]
        and certificate.margin == 4
        and certificate.windows == 529 * 530
        and certificate.channels == 16 * 12
    )


# Planted errors ---------------------------------------------------------------------------------------------


def places(stack: Stack, name: str) -> torch.Tensor:
    """The nonzero weights of a parameter, by flat index."""
    return stack.get_parameter(name).data.view(-1).nonzero()[:, 0]


WEIGHTS = ["embedding.weight", "head.weight"] + [
    f"blocks.0.{name}"
    for name in (
        "in_proj.weight",
        "conv1d.weight",
        "conv1d.bias",
        "x_proj.weight",
        "dt_proj.weight",
        "dt_proj.bias",
        "out_proj.weight",
    )
]


@pytest.mark.parametrize("name", WEIGHTS)
def test_every_single_weight_matters(name):
    """Each nonzero weight of the recall circuit in turn becomes 0: either a step is wrong, or the module is the same
    function.
    """
    stack, compiled, ask = recall(2, 2)
    tokens = torch.tensor(list(product(range(5), repeat=4)))
    with torch.no_grad():
        right = stack(tokens)
    for place in places(stack, name)[:40]:
        weights = stack.get_parameter(name).data.view(-1)
        saved, weights[place] = float(weights[place]), 0
        try:
            certify_latches(stack, compiled, ask)
        except (Violated, Refused):
            pass
        else:
            with torch.no_grad():
                assert torch.equal(stack(tokens), right)
        weights[place] = saved
    assert certify_latches(stack, compiled, ask).holds


@pytest.mark.parametrize(
    "name, place, value, message",
    [
        ("blocks.0.dt_proj.bias", 3, 0.0, "state of channel .*recalled.* after the window '.*' from the state"),
        ("blocks.0.A_log", 3, -8.0, "state of channel .*recalled.* after the window '.*' from the state"),
        ("blocks.0.conv1d.bias", 0, -512.0, "state of channel .*recalled.* after the window '.*' from the state"),
        ("blocks.0.x_proj.weight", -1, 2.0, "gated output of channel .*recalled.* after the window"),
        ("blocks.0.out_proj.weight", 0, 2.0, "channel .*recalled.* counts .* in the logit of token"),
        ("head.weight", -1, 3.0, "channel .*recalled.* counts .* in the logit of token"),
    ],
)
def test_planted_errors_are_named(name, place, value, message):
    """One weight changes: the nth nonzero one of a matrix, the nth of a vector or of A_log."""
    stack, compiled, ask = recall()
    weights = stack.get_parameter(name).data.view(-1)
    weights[places(stack, name)[place] if name.endswith("weight") else place] = value
    with pytest.raises(Violated, match=message):
        certify_latches(stack, compiled, ask)


def test_the_gate_is_checked_at_every_window():
    stack, compiled, ask = recall()
    inner = stack.blocks[0].D.shape[0]
    stack.blocks[0].in_proj.weight.data[inner] += 1
    with pytest.raises(Violated, match="gated output of channel .*recalled.*, and must be"):
        certify_latches(stack, compiled, ask)


def test_a_wrong_task_is_not_proved():
    stack, compiled, ask = recall()
    first = dataclasses.replace(ask, stores=lambda windows: (ask.stores(windows)[0], np.full(len(windows), 3)))
    with pytest.raises(Violated, match="written otherwise than elsewhere"):
        certify_latches(stack, compiled, first)
    never = dataclasses.replace(ask, stores=lambda windows: (np.full(len(windows), -1), windows[:, 0]))
    with pytest.raises(Violated, match="is written at the window '.*', which stores nothing in slot"):
        certify_latches(stack, compiled, never)
    swapped = dataclasses.replace(ask, asks=lambda windows: np.where(ask.asks(windows) >= 0, 1 - ask.asks(windows), -1))
    with pytest.raises(Violated):
        certify_latches(stack, compiled, swapped)
    blank = dataclasses.replace(ask, otherwise=3)
    with pytest.raises(Violated, match="the right token is v0"):
        certify_latches(stack, compiled, blank)


# Refusals -----------------------------------------------------------------------------------------------------


def test_a_counter_is_refused():
    alphabet = Alphabet.of(a=2)
    count = Tokens(alphabet).one_hot("a", name="token").cumsum()
    compiled = compile(Circuit("count", readout_one_hot(count, alphabet, "a"), InputLanguage.everything(alphabet, 100)))
    with pytest.raises(Refused, match="adds to its state at the window"):
        certify_latches(bare(compiled), compiled)


def test_several_columns_norms_and_earlier_states_are_refused():
    stack, compiled = built(MQAR(kappa=2, vocab=3))
    with pytest.raises(Refused, match="2 state columns"):
        certify_latches(stack, compiled)
    stack, compiled, ask = recall()
    model = language_model(compiled)
    with pytest.raises(Refused, match="without norms"):
        certify_latches(Stack.from_language_model(model.config, model.tensors), compiled, ask)
    two_latches, deep = two_blocks_of_latches()
    with pytest.raises(Refused, match="block 0 of 2 keeps a state"):
        certify_latches(two_latches, deep)


def two_blocks_of_latches():
    """A latch of a latch."""
    alphabet = Alphabet.of("go", a=2)
    x = Tokens(alphabet)
    seen = latch(x.one_hot("a", name="token"), x.is_in("a"))
    compiled = compile(
        Circuit(
            "twice", readout_one_hot(latch(seen, x.is_in("go")), alphabet, "a"), InputLanguage.everything(alphabet, 100)
        )
    )
    return bare(compiled), compiled


def test_a_task_that_asks_nothing_is_refused():
    stack, compiled, ask = recall()
    silent = Ask(2, ask.stores, lambda windows: np.full(len(windows), -1), "last")
    with pytest.raises(Refused, match="nothing to prove"):
        certify_latches(stack, compiled, silent)
