"""The kernel certificate: against every sequence of small languages, at Theorem 2's limit, against planted errors, and
at full size.
"""

import dataclasses
import json

import numpy as np
import pytest
import torch

from compiler.artifact.model import Stack
from compiler.artifact.package import bare, language_model
from compiler.driver import compile
from compiler.language.alphabet import Alphabet
from compiler.language.input_language import InputLanguage
from constructions.selectivity.mqar import MQAR
from verify.certificates import Ask, Refused, adjacent_pairs
from verify.certificates.kernel import certify_kernel
from verify.certificates.windows import histories, spelled
from verify.tasks.mqar.oracle import mqar_oracle

PRINTED = {"arch": "mamba"}
GENERIC = {"arch": "mamba", "dtype": "bfloat16"}
S4D = {"arch": "s4d"}
MAMBA2 = {"arch": "mamba2"}


def built(kappa=2, vocab=3, mixer=None, **options):
    construction = MQAR(kappa=kappa, vocab=vocab, **options)
    compiled = compile(construction.circuit(), construction.target)
    return bare(compiled, mixer), compiled.source.language


def ask(language: InputLanguage) -> Ask:
    return adjacent_pairs(language.alphabet.ids("k"), language.alphabet.ids("v"))


def every_string(language: InputLanguage) -> np.ndarray:
    """All sequences of the greatest length: no language here has one that cannot go on."""
    return np.array(list(language.strings(language.max_length)))


def true_margin(stack: Stack, language: InputLanguage) -> float:
    """The least lead of a right answer over every query of every sequence, by running the real module on all of
    them.
    """
    alphabet, strings = language.alphabet, every_string(language)
    kappa, vocab = len(alphabet.ids("k")), len(alphabet.ids("v"))
    least = np.inf
    for chunk in np.array_split(strings, max(1, len(strings) // 20_000)):
        with torch.no_grad():
            logits = stack(torch.from_numpy(chunk)).double().numpy()
        answers = np.array(
            [[-1 if a is None else a for a in mqar_oracle(row, kappa, vocab, "sum")] for row in chunk.tolist()]
        )
        asked = answers >= 0
        if not asked.any():
            continue
        at_query, right = logits[asked], answers[asked]
        rows = np.arange(len(right))
        signal = at_query[rows, right].copy()
        at_query[rows, right] = -np.inf
        least = min(least, (signal - at_query.max(axis=1)).min())
    return float(least)


# Against brute force -------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [PRINTED, GENERIC, S4D, MAMBA2], ids=["printed", "generic", "s4d", "mamba2"])
@pytest.mark.parametrize("kappa, vocab, length", [(1, 2, 6), (1, 3, 6), (2, 2, 8), (2, 3, 7)])
def test_the_margin_is_attained_by_a_sequence(options, kappa, vocab, length):
    """With room for the worst sequence the bound is the least margin there is.

    (2, 3, 7) has none for Theorem 2's worst.
    """
    stack, language = built(kappa, vocab, **options)
    short = language.with_length(length)
    certificate = certify_kernel(stack, short, ask(short))
    worst = true_margin(stack, short)
    assert certificate.holds and certificate.margin <= worst
    if options != PRINTED or length == 8 or kappa == 1:
        assert certificate.margin == worst


def test_the_s4d_mixer_of_ours_has_the_margin_of_the_real_mamba():
    (ours, language), (real, _) = built(mixer="s4d", **S4D), built(**S4D)
    assert certify_kernel(ours, language, ask(language)) == certify_kernel(real, language, ask(language))


def test_adjacent_keys_cost_margin():
    """Theorem 2 as printed leaks h[k']/96 at adjacent keys, which two writes of k' at most can use.

    Noise between keys stops it.
    """
    stack, language = built(**PRINTED)
    noise = ("_", *(f"v{i}" for i in range(3)))
    edges = [
        ("pairs", "key", "k", True),
        ("key", "pairs", "v"),
        ("pairs", "quiet", noise),
        ("quiet", "quiet", noise),
        ("quiet", "asked", "k", True),
        ("asked", "quiet", noise),
    ]
    apart = InputLanguage.of(language.alphabet, "pairs", edges, language.max_length, "noise before every query")
    leaking, clean = (certify_kernel(stack, each, ask(each)).margin for each in (language, apart))
    assert leaking * 96 == clean * 95


# Theorem 2's limit ------------------------------------------------------------------------------------


def chain(writes: int) -> InputLanguage:
    """k0 v0, then `writes` pairs of k1, then k1 k0: the query of k0 right behind k1."""
    alphabet = Alphabet.of("_", k=2, v=2)
    word = ["k0", "v", *(["k1", "v"] * writes), "k1", "k0"]
    edges = [(str(i), str(i + 1), token) for i, token in enumerate(word)]
    return InputLanguage.of(alphabet, "0", edges, len(word), f"{writes} writes of the neighbour")


@pytest.mark.parametrize("writes, sign", [(1, 1), (94, 1), (95, 1), (96, 0), (97, -1)])
def test_ninety_six_writes_of_an_adjacent_key_break_the_printed_circuit(writes, sign):
    stack, _ = built(2, 2, **PRINTED)
    language = chain(writes)
    certificate = certify_kernel(stack, language, ask(language))
    tokens = [language.alphabet.encode(" ".join(["k0 v0", *["k1 v1"] * writes, "k1 k0"]))]
    assert language.accepts(tokens[0])
    with torch.no_grad():
        last = stack(torch.tensor(tokens))[0, -1]
    v0, v1 = language.alphabet.encode("v0 v1")
    assert np.sign(float(last[v0] - last[v1])) == sign
    assert certificate.margin == float(last[v0] - last[torch.arange(len(last)) != v0].max())
    assert certificate.holds == (sign > 0)
    assert certificate.worst["read"] == "k1 k0" and certificate.worst["stored"] == "k0 v0"


def test_separate_key_channels_do_not_leak():
    stack, _ = built(2, 2, **MAMBA2)
    assert (
        certify_kernel(stack, chain(100), ask(chain(100))).margin
        == certify_kernel(stack, chain(1), ask(chain(1))).margin
        == 2
    )


def test_unlimited_rebinding_cannot_be_proved():
    stack, language = built(**PRINTED)
    everything = InputLanguage.everything(language.alphabet, 1000)
    assert not certify_kernel(stack, everything, ask(everything)).holds


# Planted errors -----------------------------------------------------------------------------------------


def scaled(name, row, factor):
    def plant(stack):
        weight = stack.get_parameter(name).data
        weight.view(len(weight), -1)[row] *= factor

    return plant


def shifted(name, row, by):
    def plant(stack):
        weight = stack.get_parameter(name).data
        weight.view(len(weight), -1)[row] += by

    return plant


PLANTED = {
    "in_proj": scaled("blocks.0.in_proj.weight", 0, -1),
    "in_proj of a key": scaled("blocks.0.in_proj.weight", 4, 0.5),
    "conv1d": scaled("blocks.0.conv1d.weight", 1, 0.25),
    "conv1d bias": shifted("blocks.0.conv1d.bias", 2, -512),
    "x_proj": scaled("blocks.0.x_proj.weight", 1, 0),
    "dt_proj bias": shifted("blocks.0.dt_proj.bias", 0, -512),
    "A_log": shifted("blocks.0.A_log", 0, 200),
    "out_proj": scaled("blocks.0.out_proj.weight", 0, -1),
    "head": scaled("head.weight", -1, -1),
    "embedding": scaled("embedding.weight", 3, 0),
}


@pytest.mark.parametrize("name", PLANTED)
def test_no_planted_error_is_certified_beyond_the_truth(name):
    """Each error is refused or lowers the margin, and never is more proved than every sequence shows."""
    stack, language = built(2, 3, **PRINTED)
    short = language.with_length(6)
    healthy = certify_kernel(stack, short, ask(short)).margin
    PLANTED[name](stack)
    try:
        certificate = certify_kernel(stack, short, ask(short))
    except Refused:
        return
    assert certificate.margin < healthy and certificate.margin <= true_margin(stack, short)


@pytest.mark.parametrize("name", ["x_proj", "out_proj", "head", "embedding"])
def test_errors_that_break_answers_are_seen(name):
    stack, language = built(2, 3, **PRINTED)
    PLANTED[name](stack)
    assert true_margin(stack, language.with_length(6)) <= 0
    assert not certify_kernel(stack, language, ask(language)).holds


@pytest.mark.parametrize("seed", range(24))
def test_random_damage_is_never_certified_beyond_the_truth(seed):
    """Weights overwritten at random, and a residual that the circuit was not built for: whatever is proved holds on
    every sequence.
    """
    rng = np.random.default_rng(seed)
    stack, language = built(2, 2, **[PRINTED, GENERIC, S4D, MAMBA2][seed % 4])
    language = language.with_length(6) if seed % 3 else InputLanguage.everything(language.alphabet, 5)
    stack.residual = seed % 8 >= 4
    for parameter in stack.parameters():
        weights = parameter.data.view(-1)
        largest = float(weights.abs().max())
        for place in rng.integers(len(weights), size=rng.integers(2)):
            weights[place] = largest * rng.choice([-1, 0, 0.5, 1])
    try:
        certificate = certify_kernel(stack, language, ask(language))
    except Refused:
        return
    assert certificate.margin <= true_margin(stack, language)


def test_decay_is_refused_by_name():
    stack, language = built(**PRINTED)
    PLANTED["A_log"](stack)
    with pytest.raises(Refused, match=r"the state of channel 0, column 0 decays \(A = -1\)"):
        certify_kernel(stack, language, ask(language))


def test_a_soft_preactivation_is_refused():
    stack, language = built(**PRINTED)
    stack.blocks[0].conv1d.bias.data[0] += 120
    with pytest.raises(Refused, match="silu of convolved channel 0 is taken of"):
        certify_kernel(stack, language, ask(language))


def test_rounding_is_refused():
    stack, language = built(**PRINTED)
    stack.head.weight.data[3, 0] += 2.0**-20
    with pytest.raises(Refused, match="lattice steps"):
        certify_kernel(stack, language, ask(language))


# Refusals -------------------------------------------------------------------------------------------------


def test_latches_several_blocks_norms_and_other_tasks_are_refused():
    latches, language = built(write="last")
    with pytest.raises(Refused, match="decays"):
        certify_kernel(latches, language, ask(language))
    two_blocks, language = built(write="first")
    with pytest.raises(Refused, match="has 2 blocks"):
        certify_kernel(two_blocks, language, ask(language))
    construction = MQAR(kappa=2, vocab=3)
    model = language_model(compile(construction.circuit(), "mamba"))
    with_norms = Stack.from_language_model(model.config, model.tensors)
    with pytest.raises(Refused, match="norms"):
        certify_kernel(with_norms, language, ask(language))
    with pytest.raises(Refused, match="written once"):
        certify_kernel(built()[0], language, dataclasses.replace(ask(language), policy="last"))


def test_too_many_windows_are_refused_before_any_work():
    stack, language = built(16, 512, **PRINTED)
    stack.blocks[0].conv1d.weight.data[0, 0, 1] = 1
    with pytest.raises(Refused, match="the last 3 of 529 tokens, which makes 148,316,259 windows"):
        certify_kernel(stack, language, ask(language))


# Parts and full size ------------------------------------------------------------------------------------------


def test_spelled_windows_are_those_of_the_strings():
    _, language = built(2, 2)
    short = language.with_length(5)
    seen = {tuple(([-1] * 2 + list(s))[t : t + 3][::-1]) for s in every_string(short) for t in range(len(s))}
    tokens = range(language.alphabet.size)
    windows = np.array([(t, *past) for t in tokens for past in histories(tokens, 2)])
    assert {tuple(w) for w in windows[spelled(windows, short)].tolist()} >= seen
    with_pairs_only = InputLanguage.of(language.alphabet, "a", [("a", "b", "k"), ("b", "a", "v")], 6, "pairs")
    assert spelled(np.array([[3, 1, -1], [1, 3, 1], [3, 3, 1], [3, -1, -1]]), with_pairs_only).tolist() == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("arch", ["mamba", "s4d", "mamba2"])
def test_full_size(arch):
    construction = MQAR(kappa=16, vocab=512, arch=arch)
    compiled = compile(construction.circuit(), construction.target)
    certificate = construction.certificate(bare(compiled), compiled)
    assert certificate.holds and certificate.windows == 279_857 and certificate.writes == 16 * 512
    report = json.loads(json.dumps(certificate.to_json()))
    assert report["level"] == "margin-certified" and report["holds"] and report["worst"]["answer"] == "v0"


def test_no_certificate_is_claimed_where_none_can_be():
    for construction in (
        MQAR(kappa=2, vocab=3, write="first"),
        MQAR(kappa=2, vocab=3, arch="mamba2", guarantee="random"),
    ):
        assert construction.certificate(None, None) is None
