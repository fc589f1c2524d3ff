"""Paper A on single states: Theorem 1, Corollary 1, Proposition 1, Corollary 2, Lemmas 1 to 3, Appendix B."""

from __future__ import annotations

from cmath import exp, log
from collections.abc import Sequence
from math import exp as real_exp
from math import log as real_log
from math import pi, sqrt

import numpy as np

from constructions.papers import SELECTIVITY
from constructions.truths.truth import Finding, Truth


def softplus(x: complex) -> complex:
    """log(1 + e^x) without overflow."""
    return x + log(1 + exp(-x)) if x.real > 0 else log(1 + exp(x))


def scan(x: Sequence[complex]) -> list[complex]:
    """h_t = e^(−Δ) h_{t−1} + Δ x_t with Δ = softplus(x_t): λ = 1, B = 1."""
    states, state = [], 0j
    for value in x:
        step = softplus(value)
        state = exp(-step) * state + step * value
        states.append(state)
    return states


def last_derivative(x: Sequence[float], j: int) -> float:
    """|∂h_T/∂x_j| by a complex step of 1e-30, which has no rounding error worth the name."""
    moved = [complex(value, 1e-30 if i == j else 0.0) for i, value in enumerate(x)]
    return abs(scan(moved)[-1].imag / 1e-30)


def lemma_1(x: Sequence[float], j: int) -> tuple[float, float]:
    """(e^(−c)·|∂(BΔx)/∂x_j| with c = ΣΔ over all positions, the closed form with the whole prefactor)."""
    steps = [softplus(value).real for value in x]
    before = scan(x)[j - 1].real if j else 0.0
    slope = 1 / (1 + real_exp(-x[j]))
    printed = abs(slope * x[j] + steps[j])
    whole = abs(slope * x[j] + steps[j] - real_exp(-steps[j]) * slope * before)
    return real_exp(-sum(steps)) * printed, real_exp(-sum(steps[j + 1 :])) * whole


def equation_13() -> Finding:
    x = [1.573577, 0.0, *([-200.0] * 20)]
    measured, (promised, _) = last_derivative(x, 1), lemma_1(x, 1)
    rng, off = np.random.default_rng(0), 0.0
    for _ in range(200):
        y = rng.normal(0, 2, 12).tolist()
        true, (_, closed) = last_derivative(y, 5), lemma_1(y, 5)
        off = max(off, abs(true - closed) / max(true, 1e-12))
    return Finding(
        {"|∂h/∂x₂| at the end": measured, "promised at least": promised},
        measured < promised / 1e5,
        {"largest relative error of the whole prefactor, 200 random inputs": off},
        off < 1e-8,
    )


def attention_derivative(x: np.ndarray) -> float:
    """|∂y_T/∂x_1| of one softmax head with q·k = v = 1, by a complex step."""
    moved = x.astype(complex)
    moved[0] += 1e-30j
    weights = np.exp(moved[-1] * moved)
    return float(abs(((weights @ moved) / weights.sum()).imag) / 1e-30)


def equation_45() -> Finding:
    x = np.zeros(1000)
    x[0] = x[-1] = 3.0
    measured, printed, bound = attention_derivative(x), *_attention_bounds(x)
    rng, share = np.random.default_rng(0), 0.0
    for _ in range(300):
        y = rng.normal(0, 1.5, 20)
        share = max(share, attention_derivative(y) / _attention_bounds(y)[1])
    return Finding(
        {"|∂y/∂x₁| at t = 1000": measured, "promised at most": printed},
        measured > 10 * printed,
        {"bound with e^(max − min)": bound, "largest share of it, 300 random inputs": share},
        0 < share <= 1,
    )


def _attention_bounds(x: np.ndarray) -> tuple[float, float]:
    """C/(t·min e^s) as printed and C/t·e^(max s − min s), with C = 1 + 2·max x²."""
    scores, constant = x[-1] * x, 1 + 2 * float(np.abs(x).max()) ** 2
    least, most = float(scores.min()), float(scores.max())
    return constant / (len(x) * real_exp(least)), constant / len(x) * real_exp(most - least)


def neighbourhood() -> Finding:
    from constructions.selectivity.haar_bases import approximation, basis, wavelet

    slopes = (1e3, 1e4, 1e5, 1e6)
    near = [np.array([0.25 - 1 / a]) for a in slopes]
    worst = min(float(abs(approximation(s, 2, 1, a) - wavelet(s, 2, 1))[0]) for s, a in zip(near, slopes, strict=True))
    epsilon = 1e-3
    outside = max(
        float(basis(np.linspace(0, 0.5 - sqrt(2 * real_log(1 / epsilon) / a), 4001), 0.5, a).max()) for a in slopes
    )
    right = [float(1 - basis(np.array([0.5]), 0.5, a)[0]) / (pi**2 / (12 * a)) for a in slopes]
    return Finding(
        {"smallest error at 1/|w| before a jump, |w| = 10³ … 10⁶": worst},
        worst > 1,
        {"largest error beyond √(2 ln(1/ε)/|w|) before it, ε = 0.001": outside}
        | {"error just right of it over π²/(12|w|), from": min(right), "to": max(right)},
        outside <= epsilon and all(0.99 < r < 1.01 for r in right),
    )


def discrete_step() -> Finding:
    from constructions.selectivity.haar import build_haar, haar_matrix

    length, middle = 64, 0.5
    centres = (np.arange(length) + 0.5) / length
    steps = np.logaddexp(0, -208.0 * length * (centres - middle))
    state = 0.0
    for step in steps:
        state = np.exp(-step) * state + step
    layer = build_haar(3, orthonormal=False)
    samples = np.random.default_rng(0).integers(-1000, 1000, (64, 8))
    wrong = int((layer(samples) != samples @ haar_matrix(3).T).sum())
    return Finding(
        {"h for x = 1 on 64 bins, step at the middle": float(state), "the theorem's sum over the right half": 32.0},
        abs(state - 32) > 1,
        {"wrong coefficients of 512 with A = 0 and Δ in {0, 32}": wrong},
        wrong == 0,
    )


def square() -> Finding:
    from constructions.selectivity.approximation_rate import rate_report

    report = rate_report(["1/3"], ["0", "1"])
    squared = report["slopes"]["mamba"]
    return Finding(
        {"log₂ of the L² error per base, one jump": squared / 2, "−1/(3m)": -1 / 3},
        squared / 2 > -1 / 3 * 0.75,
        {"log₂ of its square per base": squared},
        abs(squared + 1 / 3) < 0.01,
    )


def count_stops() -> Finding:
    from compiler.driver import compile
    from compiler.errors import CompileError
    from constructions.selectivity.absolute_time import AbsoluteTime

    largest = np.float32(2**24)
    promised = compile(AbsoluteTime(horizon=4, vocab=1).circuit()).source.max_length
    try:
        compile(_count_as_it_is(2**25))
        refused = 0
    except CompileError:
        refused = 1
    return Finding(
        {"h after 2^24 steps": int(largest), "h one step later": int(largest + np.float32(1))},
        largest + np.float32(1) == largest,
        {"tokens for which min(t, 4) is promised": promised, "refused beyond 2^24 if read otherwise (1: yes)": refused},
        promised == 2**40 and refused == 1,
    )


def _count_as_it_is(length: int):
    """A circuit that shows the count itself."""
    from compiler.language.alphabet import Alphabet
    from compiler.language.circuit import Circuit
    from compiler.language.input_language import InputLanguage
    from compiler.language.output import readout_integer
    from compiler.language.stream import constant

    alphabet = Alphabet.of("a", "b")
    logits = readout_integer(constant(1).cumsum(), alphabet, {"a": 0, "b": 1})
    return Circuit("count", logits, InputLanguage.everything(alphabet, length))


def bump() -> Finding:
    import torch

    def first_wrong(dtype, places) -> int:
        t, relu = torch.tensor(places, dtype=torch.float64).to(dtype), torch.relu
        one = torch.ones((), dtype=dtype)
        value = relu(t - 4 * one) - 2 * relu(t - 5 * one) + relu(t - 6 * one)  # 1[t = 5]
        wrong = (value != (t == 5)).nonzero()
        return int(places[int(wrong[0])]) if len(wrong) else 0

    places = [*range(1, 2000), *range(2**24 - 64, 2**24 + 64)]
    ramps = torch.tensor(places, dtype=torch.float32)
    falling = torch.relu(6 - ramps) - torch.relu(5 - ramps)
    off = int((falling != (ramps <= 5)).sum())
    half, single = first_wrong(torch.bfloat16, places), first_wrong(torch.float32, places)
    return Finding(
        {"first position where 1[t = 5] is wrong, bfloat16": half, "float32": single},
        0 < half < 1000 < single,
        {"wrong values of 1[t ≤ 5] by falling ramps, float32": off},
        off == 0,
    )


def shift_of_the_step() -> Finding:
    kept = dict.fromkeys((0.0, -128.0), 1.0)
    for shift in kept:
        for _ in range(20):
            kept[shift] = float(np.float32(kept[shift]) * np.exp(-np.logaddexp(np.float32(0), np.float32(shift))))
    return Finding(
        {"left of 1 under another key after 20 tokens": kept[0.0]},
        kept[0.0] < 1e-5,
        {"left with Δ = softplus(w·1[key] − w/2), w = 256": kept[-128.0]},
        kept[-128.0] == 1,
    )


TRUTHS = (
    Truth(
        "sensitivity-bound",
        SELECTIVITY,
        "Lemma 1, equation (13)",
        "|∂h_t/∂x_j| never falls below e^(−c)·|∂(BΔx)/∂x_j|.",
        "Δ depends on x_j as well, and what it takes from the state before j can cancel the rest. λ = B = 1, "
        "Δ = softplus(x), x = (1.573577, 0, −200, …).",
        "With −λe^(−λΔ)h·∂Δ/∂x counted in the prefactor Lemma 1 is an equality.",
        equation_13,
    ),
    Truth(
        "attention-bound",
        SELECTIVITY,
        "Appendix B, equation (45)",
        "Softmax attention loses an early token like C/(t·min_r e^(s_r)).",
        "The numerator e^(s_j) is not bounded. x₁ = x_t = 3, 0 between them, t = 1000.",
        "C/t·e^(max s − min s) is a bound.",
        equation_45,
    ),
    Truth(
        "haar-neighbourhood",
        SELECTIVITY,
        "Theorem 1",
        "Three bases come within ε of a wavelet for all s.",
        "A continuous function is never near a jump: the error stays, whatever the slope.",
        "It is below ε but within √(2 ln(1/ε)/|w|), not 1/|w|, before a jump; just right of a jump it is π²/(12|w|).",
        neighbourhood,
    ),
    Truth(
        "haar-discrete-step",
        SELECTIVITY,
        "Theorem 1, equation (8)",
        "The basis without Δ in front of B is the S6 layer's.",
        "The discrete layer writes Δ·B·x, and Δ is 0 where the sum should be.",
        "A = 0 and Δ in {0, 32} give the sums exactly (`construct haar`).",
        discrete_step,
    ),
    Truth(
        "rate-squared",
        SELECTIVITY,
        "Corollary 1",
        "The L² error of N Mamba bases is O(2^(−N/(3m))).",
        "The L² error itself falls half as fast.",
        "Its square has that rate.",
        square,
    ),
    Truth(
        "count-stops",
        SELECTIVITY,
        "Proposition 1",
        "h_t = t for every t.",
        "A float32 sum of ones stops at 2^24.",
        "What is read through a falling ramp, min(t, H), is right at every length; other uses are refused.",
        count_stops,
    ),
    Truth(
        "keep-bump",
        SELECTIVITY,
        "Corollary 2",
        "A bump of three ramps in t opens the latch at n alone.",
        "Rounded ramps stop cancelling, and the latch opens again.",
        "Two falling ramps are exact up to n and 0 behind it, however t is rounded.",
        bump,
    ),
    Truth(
        "step-needs-a-shift",
        SELECTIVITY,
        "Lemma 3",
        "Δ = softplus(w·[I|0]x) leaves the keys alone that are not written.",
        "softplus(0) = ln 2 halves them at every token.",
        "With the shift −w/2 their Δ is exactly 0.",
        shift_of_the_step,
    ),
)
