"""The machine fnn+ssm: every circuit is computed or refused with a reason, filters are what they stand for, sizes."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from sympy import Poly, cyclotomic_poly, symbols

from compiler import Alphabet, Circuit, CompileError, InputLanguage, Tokens, bits, compile, memory, numbers
from compiler.language import output
from compiler.language.stream import constant
from compiler.language.types import Int, Real
from compiler.language.words import dot, fading_sum, scaled_sum, silu_product, sum_where
from compiler.machines.fnn_ssm import filters
from compiler.machines.fnn_ssm.layers import Convolution, Tap
from compiler.machines.fnn_ssm.module import ConvolutionSSM
from tests import random_circuits
from tests.circuits import CASES, mistakes, words
from tests.circuits.case import abc, is_a, is_b, over_abc, token

REFUSED = {
    "mqar_as_printed": "a rectifier for each of the",
    "mqar_as_printed_answers": "a rectifier for each of the",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_circuit_is_computed_or_refused_with_a_reason(case):
    """All short strings and random walks: the network is the interpreter's equal, and the oracle's."""
    circuit = case.build()
    if case.name in REFUSED:
        with pytest.raises(CompileError, match=REFUSED[case.name]):
            compile(circuit, "fnn+ssm")
        return
    compiled = compile(circuit, "fnn+ssm")
    for tokens in words(case, circuit):
        found = compiled.run(tokens, np.float64 if compiled.fits_float64 else object)
        assert (found == compiled.interpret(tokens)).all()
        assert not mistakes(case, circuit, tokens, found)


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5, 6, 8, 9])
def test_random_circuits_are_the_interpreters(seed):
    rng = np.random.default_rng(seed)
    compiled = compile(random_circuits.build(lambda n: int(rng.integers(n))), "fnn+ssm")
    tokens = random_circuits.random_tokens(rng, 6)
    assert (compiled.run(tokens) == compiled.interpret(tokens)).all()


OTHER_WORDS = {
    "dot": lambda: dot(abc.number({"a": 2, "b": -1}).cumsum(), abc.number({"b": 3}).shift(1)),
    "scaled sum": lambda: scaled_sum(
        abc.number({"a": 2, "c": -1}), abc.number({"a": 1, "b": 2, "c": 3}).shift(1), is_a.cumsum()
    ),
    "sum where": lambda: sum_where(abc.number({"a": 2, "b": -3}), token.shift(1)),
    "product by halves": lambda: (is_a.cumsum() / 2) * (is_b.cumsum() - 3),
    "memory under a number": lambda: memory.outer_sum(is_a.cumsum(), write=is_b.cumsum(), read=is_a),
    "square": lambda: (is_a.cumsum() - is_b.cumsum()).square(),
}


@pytest.mark.parametrize("name", OTHER_WORDS)
def test_words_that_no_shared_circuit_has(name):
    compiled = compile(over_abc("other", OTHER_WORDS[name](), 5), "fnn+ssm")
    tokens = np.random.default_rng(1).integers(0, 3, (20, 5))
    assert (compiled.run(tokens) == compiled.interpret(tokens)).all()


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (lambda: fading_sum(is_a, Fraction(1, 2)), "none of them fades"),
        (lambda: silu_product(is_a.cumsum(), is_b.cumsum()), "no SiLU"),
        (lambda: is_a.cumsum() ** 5, r"a rectifier for each of the \d+ steps of a square"),
    ],
)
def test_what_it_cannot_express_is_refused_in_one_sentence(stream, reason):
    with pytest.raises(CompileError, match=reason) as refused:
        compile(over_abc("refused", stream()), "fnn+ssm")
    assert len(refused.value.reasons) == 1


def test_long_promises_of_latches_and_numeric_inputs_are_refused():
    value = abc.number({"a": 2, "b": 5})
    circuit = over_abc("latch", memory.write(token.shift(1), value, policy="last").read(token), 10_000)
    with pytest.raises(CompileError, match="a promise of 5461 positions works"):
        compile(circuit, "fnn+ssm")
    with pytest.raises(CompileError, match="this circuit reads numbers"):
        compile(Circuit("numbers", numbers(Real(-1, 1)) + 1, length=4), "fnn+ssm")
    with pytest.raises(ValueError, match="dtype = 'float16' has no meaning"):
        compile(over_abc("copy", token), "fnn+ssm", "float16")


# Filters ------------------------------------------------------------------------------------------------

X = symbols("x")


def in_cyclotomic_field(terms: list[tuple[Fraction, int]], order: int) -> Poly:
    """Σ weight · ζ^power, ζ a primitive root of unity of this order, as a polynomial modulo the cyclotomic one."""
    total = sum(weight * X ** (power % order) for weight, power in terms)
    return Poly(total, X, domain="QQ").rem(Poly(cyclotomic_poly(order, X), X, domain="QQ"))


def wave(weight: Fraction, turn: Fraction, order: int) -> list[tuple[Fraction, int]]:
    """weight · cos(2π·turn) in powers of ζ."""
    power = turn * order
    assert power.denominator == 1
    return [(weight / 2, int(power)), (weight / 2, -int(power))]


def product(a: list, b: list) -> list:
    return [(v * w, p + q) for v, p in a for w, q in b]


@pytest.mark.parametrize(("places", "delays"), [(3, [2]), (4, [1, 3]), (5, [4]), (6, [1, 2, 5]), (9, [8]), (12, [5])])
def test_the_cosines_of_a_bank_are_delays_exactly(places, delays):
    """Over Q(ζ), not in floats: what the channels add up to is 1 at the delay and 0 elsewhere (Appendix A, II.2)."""
    convolution = Convolution(1, places - 1, tuple(Tap(0, k) for k in delays))
    bank, order = convolution.bank, 4 * places
    assert bank.channels == min(len(delays) * (places // 2 + 1), places)
    for i, k in enumerate(delays):
        for j in range(places):
            terms: list = []
            for tap, channel, mix in bank.mix:
                if tap == i:
                    f = bank.filters[channel]
                    cosine = product(wave(f.c1.weight, f.c1.turn, order), wave(Fraction(1), f.a1 * j / places, order))
                    quarter = f.a2 * j / places - Fraction(1, 4)
                    sine = product(wave(f.c2.weight, f.c2.turn, order), wave(Fraction(1), quarter, order))
                    terms += product(wave(mix.weight, mix.turn, order), cosine + sine)
            assert in_cyclotomic_field(terms, order) == Poly(int(j == k), X, domain="QQ")


def test_a_delay_of_one_over_two_places_is_one_channel_and_rational():
    bank = Convolution(1, 1, (Tap(0, 1),)).bank
    assert bank.channels == 1
    assert [bank.filters[0].at(j, 2) for j in range(2)] == [0, 1]


def test_cosines_are_exact_where_they_are_rational():
    for turn in (Fraction(k, 12) for k in range(-12, 25)):
        known = {0: 1, 1: None, 2: 0.5, 3: 0, 4: -0.5, 5: None, 6: -1}[min(int(turn * 12) % 12, -int(turn * 12) % 12)]
        assert known is None or filters.cosine(turn) == known
        assert abs(filters.cosine(turn) - np.cos(2 * np.pi * float(turn))) < 1e-15
        assert filters.sine(turn) == filters.cosine(turn - Fraction(1, 4))


def test_every_delay_needs_the_rank_of_its_hankel_matrix():
    """Any frequencies: a delay of i needs i numbers of state (II.2), and a channel has four."""
    for i in range(1, 9):
        kernel = np.eye(2 * i)[i]
        hankel = np.array([[kernel[r + c + 1] for c in range(i)] for r in range(i)])
        assert np.linalg.matrix_rank(hankel) == i
        assert 4 * Convolution(1, max(i, 2), (Tap(0, i),)).bank.channels >= i


@pytest.mark.parametrize("length", [3, 8, 21])
def test_the_three_forms_are_equal(length):
    """Appendices A and B: taps, Fourier transforms and the recurrence, inside the window and beyond it."""
    torch.manual_seed(length)
    layers = [ConvolutionSSM(3, 5, window=7, form=form, dtype=torch.float64) for form in ("shift", "fft", "recurrent")]
    for parameter in layers[0].parameters():
        torch.nn.init.uniform_(parameter, -2, 2)  # frequencies that are no integers too
    for layer in layers[1:]:
        layer.load_state_dict(layers[0].state_dict())
    x = torch.randn(2, length, 3, dtype=torch.float64)
    shift, fft, recurrent = (layer(x).detach() for layer in layers)
    taps = np.array([[f.item() for f in row] for row in layers[0].kernel(length)])
    u = layers[0].value(x).detach().numpy()
    direct = [sum(taps[j] * u[:, t - j] for j in range(min(t, 7) + 1)) for t in range(length)]
    assert np.allclose(shift.numpy(), np.stack(direct, 1) + layers[0].skip.detach().numpy() * u, atol=1e-12)
    assert torch.allclose(shift, fft, atol=1e-12) and torch.allclose(shift, recurrent, atol=1e-12)


def test_an_unknown_form_is_refused():
    with pytest.raises(ValueError, match="form is 'scan', and it must be one of shift, fft, recurrent"):
        ConvolutionSSM(1, 1, 1, form="scan")  # type: ignore[arg-type]


# Modules and sizes ---------------------------------------------------------------------------------------


def recall(keys: int, values: int, distinct: bool = True) -> Circuit:
    """Pairs and one query; values as bits."""
    alphabet = Alphabet.of("?", k=keys, v=values)
    x, book = Tokens(alphabet), bits(values)
    read = memory.write(x.one_hot("k").shift(1), x.code("v", book)).read(x.one_hot("k"))
    edges = [("pairs", "value", "k", distinct), ("value", "pairs", "v"), ("pairs", "asked", "k")]
    language = InputLanguage.of(alphabet, "pairs", edges, 2 * keys + 1, "pairs and a query")
    return Circuit("recall", output.readout_nearest(read, book, alphabet, "v", "?"), language)


def prompts(keys: int, values: int, count: int) -> np.ndarray:
    """Distinct keys in some order with random values, and one of them again; ids as in `recall`."""
    rng = np.random.default_rng(keys)
    rows = []
    for _ in range(count):
        order = 1 + rng.permutation(keys)
        pairs = np.stack([order, 1 + keys + rng.integers(0, values, keys)], axis=1)
        rows.append([*pairs.ravel(), rng.choice(order)])
    return np.array(rows)


def test_the_module_of_sums_and_delays_of_one_is_exact_to_the_bit():
    """Kernels of 0 and 1: in float32 and float64, tap by tap and by recurrence."""
    compiled = compile(recall(4, 5), "fnn+ssm")
    tokens = prompts(4, 5, 16)
    for dtype in (torch.float32, torch.float64):
        for form in ("shift", "recurrent"):
            found = compiled.module(dtype, form)(torch.from_numpy(tokens)).detach().double().numpy()
            assert (found == compiled.interpret(tokens)).all()


def test_the_module_of_cosines_is_near():
    """A layer with sums and delays at once, over a window as long as a sequence: real cosines, in every form."""
    compiled = compile(over_abc("mixed", (is_a.cumsum() - is_b.shift(2) - token[2].shift(3)).relu()), "fnn+ssm")
    assert compiled.sizes.M == 1 and compiled.sizes.U == 23
    tokens = np.random.default_rng(0).integers(0, 3, (4, 24))
    exact = compiled.run(tokens, np.float64)
    for form in ("shift", "fft", "recurrent"):
        found = compiled.module(form=form)(torch.from_numpy(tokens)).detach().numpy()
        assert np.abs(found - exact).max() < 1e-12


def test_a_module_is_saved_and_loaded(tmp_path):
    compiled = compile(recall(3, 3), "fnn+ssm")
    module = compiled.module()
    torch.save(module.state_dict(), tmp_path / "module.pt")
    other = compiled.module(form="fft")
    for parameter in other.parameters():
        torch.nn.init.zeros_(parameter)
    other.load_state_dict(torch.load(tmp_path / "module.pt"))
    tokens = torch.from_numpy(prompts(3, 3, 8))
    assert torch.allclose(module(tokens), other(tokens), atol=1e-12)


def test_recall_is_smaller_than_the_prototype_and_than_by_hand():
    """n keys and d bits. By hand (II.7) S = 9nd + 3n + d and D = n(d + 1), 316 and 40; a first prototype 452 and 72."""
    n, d = 8, 4
    sizes = compile(recall(n, 8), "fnn+ssm").sizes
    assert sizes.M == 2 and n * (d + 1) == sizes.D
    assert sizes.S == 8 * n * d + 2 * n + 1 < 9 * n * d + 3 * n + d < 452
    assert sizes.each == (4 * n * d + 2 * n, 4 * n * d + 1)


def test_sizes_do_not_depend_on_the_length():
    def longer(length: int):
        alphabet = Alphabet.of(k=3)
        x = Tokens(alphabet)
        stream = memory.write(x.one_hot("k").shift(1), x.one_hot("k")).read(x.one_hot("k"))
        return compile(Circuit("r", stream, InputLanguage.everything(alphabet, length)), "fnn+ssm").sizes

    short, long = longer(50), longer(5000)
    assert (short.M, short.D, short.L, short.W, short.S) == (long.M, long.D, long.L, long.W, long.S)
    assert (short.U, long.U) == (49, 4999)


def test_long_windows_hold_sums_or_delays():
    """Beyond 256 places a layer with both would take as many channels for each delay, so the two stand apart."""
    stream = (constant(1).cumsum() - is_a.shift(1)).retyped(Int(-1, None))
    short, long = (compile(over_abc("both", stream, n), "fnn+ssm").sizes for n in (256, 257))
    assert (short.M, long.M) == (1, 2)
    assert short.D > 100 > long.D
    tokens = np.random.default_rng(0).integers(0, 3, (3, 40))
    compiled = compile(over_abc("both", stream, 257), "fnn+ssm")
    assert (compiled.run(tokens) == compiled.interpret(tokens)).all()
