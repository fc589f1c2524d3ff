"""Paper A on single states: Theorem 1, Corollaries 1 and 2, Proposition 1, Lemmas 2 and 3, Appendix B."""

from __future__ import annotations

from cmath import exp, log
from collections.abc import Sequence
from fractions import Fraction
from math import exp as real_exp
from math import log as real_log
from math import pi, sqrt

import numpy as np

from constructions.papers import SELECTIVITY
from constructions.truths.truth import Finding, Kind, Truth


def softplus(x: complex) -> complex:
    """log(1 + e^x) without overflow."""
    return x + log(1 + exp(-x)) if x.real > 0 else log(1 + exp(x))


def scan(x: Sequence[complex], rate: float) -> list[complex]:
    """h_t = e^(−λΔ) h_{t−1} + Δ x_t with Δ = softplus(x_t) and B = 1."""
    states, state = [], 0j
    for value in x:
        step = softplus(value)
        state = exp(-rate * step) * state + step * value
        states.append(state)
    return states


def last_derivative(x: Sequence[float], j: int, rate: float) -> float:
    """|∂h_T/∂x_j| by a complex step of 1e-30, which has no rounding error worth the name."""
    moved = [complex(value, 1e-30 if i == j else 0.0) for i, value in enumerate(x)]
    return abs(scan(moved, rate)[-1].imag / 1e-30)


def lemma_2(x: Sequence[float], j: int, rate: float) -> float:
    """The right side of (13): e^(−c)·|∂(BΔx)/∂x_j| with c = λΣΔ over all positions."""
    steps = [softplus(value).real for value in x]
    return real_exp(-rate * sum(steps)) * abs(x[j] / (1 + real_exp(-x[j])) + steps[j])


def lemma_1(x: Sequence[float], j: int, rate: float, counted: float) -> float:
    """(37) times (38), whose second term, how Δ depends on x_j, is counted so many times."""
    steps = [softplus(value).real for value in x]
    before = scan(x, rate)[j - 1].real if j else 0.0
    slope = 1 / (1 + real_exp(-x[j]))
    taken = counted * rate * real_exp(-rate * steps[j]) * slope * before
    return real_exp(-rate * sum(steps[j + 1 :])) * abs(slope * x[j] + steps[j] - taken)


def sensitivity_bound(
    first: float = 1.573577, second: float = 0.0, tail: float = -200.0, rate: float = 1.0, counted: float = 1.0
) -> Finding:
    x = [first, second, *(tail - i for i in range(20))]
    measured, promised = last_derivative(x, 1, rate), lemma_2(x, 1, rate)
    rng, off = np.random.default_rng(0), 0.0
    for _ in range(200):
        y = rng.normal(0, 2, 12).tolist()
        true = last_derivative(y, 5, rate)
        off = max(off, abs(true - lemma_1(y, 5, rate, counted)) / max(true, 1e-12))
    return Finding(
        {"|∂h/∂x₂| at the end": measured, "promised at least": promised},
        measured < 0.99 * promised,
        {"largest relative error of (37) times (38), 200 random inputs": off},
        off < 1e-8,
    )


def attention_derivative(x: np.ndarray, j: int = 0) -> float:
    """|∂y_T/∂x_j| of one softmax head with W_Q = W_K = W_V = 1, by a complex step."""
    moved = x.astype(complex)
    moved[j] += 1e-30j
    weights = np.exp(moved[-1] * moved)
    return float(abs(((weights @ moved) / weights.sum()).imag) / 1e-30)


def attention_bound_45(x: np.ndarray, numerator: float) -> float:
    """C·e^(numerator·max s)/(t·min e^s) with C = 1 + 2·max x², which bounds the second factor of (44)."""
    scores, constant = x[-1] * x, 1 + 2 * float(np.abs(x).max()) ** 2
    return constant / len(x) * real_exp(numerator * float(scores.max()) - float(scores.min()))


def attention_bound(ends: float = 3.0, between: float = 0.0, length: int = 1000, numerator: float = 1.0) -> Finding:
    x = np.full(length, between)
    x[0] = x[-1] = ends
    measured, printed = attention_derivative(x), attention_bound_45(x, 0.0)
    rng, share = np.random.default_rng(0), measured / attention_bound_45(x, numerator)
    for _ in range(300):
        y = rng.normal(0, 1.5, 20)
        largest = max(attention_derivative(y, j) for j in range(len(y) - 1))
        share = max(share, largest / attention_bound_45(y, numerator))
    return Finding(
        {f"|∂y/∂x₁| at t = {length}": measured, "(45) with C = 1 + 2·max x²": printed},
        measured > printed,
        {"(45) with e^(max s) in the numerator": attention_bound_45(x, numerator)}
        | {"largest share of it, j < t, this input and 300 random ones": share},
        0 < share <= 1,
    )


def haar_neighbourhood(
    j: int = 2,
    k: int = 1,
    near: float = 1.0,
    epsilon: float = 1e-3,
    width: float = 2.0,
    slopes: tuple[float, ...] = (1e3, 1e4, 1e5, 1e6),
) -> Finding:
    from constructions.selectivity.haar_bases import approximation, basis, jumps, wavelet

    start, middle, _ = jumps(j, k)
    worst = [
        float(abs(approximation(s, j, k, a) - wavelet(s, j, k))[0])
        for a in slopes
        for s in [np.array([start - near / sqrt(a)])]
    ]
    outside = max(
        float(basis(np.linspace(0, middle - sqrt(width * real_log(1 / epsilon) / a), 4001), middle, a).max())
        for a in slopes
    )
    right = [float(1 - basis(np.array([middle]), middle, a)[0]) / (pi**2 / (12 * a)) for a in slopes]
    return Finding(
        {f"error of ψ({j},{k}) at {near:g}/√|w| before its first jump, largest |w|": worst[-1]}
        | {"the same, smallest |w|": worst[0], "ε": epsilon},
        min(worst) > epsilon,
        {f"largest error of a basis beyond √({width:g} ln(1/ε)/|w|) before its step": outside}
        | {"1 less the basis at its step, over π²/(12|w|), from": min(right), "to": max(right)},
        outside <= epsilon and all(0.99 < r < 1.01 for r in right),
    )


def haar_discrete_step(
    length: int = 64, middle: float = 0.5, slope: float = 208.0, in_front: bool = True, orthonormal: bool = False
) -> Finding:
    """in_front: whether Δ stands in front of B, as in (14f), or not, as in (8); orthonormal: with factors √2."""
    from constructions.selectivity.haar import build_haar, haar_matrix

    centres = (np.arange(length) + 0.5) / length
    state = 0.0
    for step in np.logaddexp(0, -slope * length * (centres - middle)):
        state = np.exp(-step) * state + (step if in_front else 1.0)
    promised = float((centres > middle).sum())
    layer, matrix = build_haar(2, orthonormal=orthonormal), haar_matrix(2).astype(float)
    if orthonormal:
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    samples = np.random.default_rng(0).integers(-1000, 1000, (64, 4))
    wrong = layer(samples) != samples @ matrix.T
    return Finding(
        {f"h for x = 1 on {length} bins": float(state), "the inner product with the step, ± one bin": promised},
        bool(abs(state - promised) > 1 + 1e-9),
        {f"wrong coefficients of {wrong.size} with A = 0 and Δ in {{0, 32}}": int(wrong.sum())},
        not wrong.any(),
    )


def rate_squared(
    jump: str = "1/3",
    wavelets: int = 12,
    slopes: tuple[float, ...] = (1e3, 1e4, 1e5, 1e6, 1e7),
    frequencies: int = 1000,
) -> Finding:
    """ρ has one jump of 1 and mean 0, as (29), which has no constant function among its bases, takes it to be."""
    from constructions.selectivity.approximation_rate import PiecewiseConstant, fourier_errors, haar_energies

    at = Fraction(jump)
    function = PiecewiseConstant.of([jump], [at - 1, at])
    energies = haar_energies(function)
    squares = [float(sum(energies[n:], Fraction(0))) for n in (wavelets, wavelets + 8)]
    norms = [sqrt(square) for square in squares]
    halving = real_log(norms[0] / norms[1], 2) / 8 if norms[1] else 0.0
    waves = {count: sqrt(fourier_errors(function, count)[-1]) for count in (frequencies, 4 * frequencies)}
    steps = [_heaviside_error(float(at), slope) for slope in slopes]
    told = {f"two Heaviside bases, |w| = {a:,.0f}": error for a, error in zip(slopes, steps, strict=True)}
    return Finding(
        {f"‖ρ − proj(ρ)‖ for the best {wavelets} wavelets": norms[0], "right side of (28)": squares[0]}
        | {"halvings of the norm by each wavelet": halving}
        | {f"‖ρ − proj(ρ)‖ for the best {count:,} Fourier bases": norm for count, norm in waves.items()},
        abs(norms[0] - squares[0]) > 1e-9,
        told,
        all(later < earlier for earlier, later in zip(steps, steps[1:], strict=False)),
    )


def _heaviside_error(at: float, slope: float) -> float:
    """The L² distance on [0, 1] of the basis with its step at `at` and the Heaviside function: the trapezoid rule."""
    from constructions.selectivity.haar_bases import basis

    s = np.clip(at + np.linspace(-12, 12, 48001) / sqrt(slope), 0, 1)
    off = np.where(s > at, 1 - basis(s, at, slope), basis(s, at, slope)) ** 2
    return sqrt(float((np.diff(s) * (off[1:] + off[:-1]) / 2).sum()))


def count_stops(stop: int = 2**24, dtype: str = "float32", longest: int = 2**40, length: int = 2**25) -> Finding:
    from compiler.driver import compile
    from compiler.errors import CompileError
    from constructions.selectivity.absolute_time import AbsoluteTime

    number = np.dtype(dtype).type
    later = number(number(stop) + number(1))
    promised = compile(AbsoluteTime(horizon=4, vocab=1, max_length=longest).circuit()).source.max_length
    try:
        compile(_count_as_it_is(length))
        refused = 0
    except CompileError:
        refused = 1
    return Finding(
        {f"h after {stop} steps": int(number(stop)), "h one step later": int(later)},
        int(later) != stop + 1,
        {"tokens for which min(t, 4) is promised": promised}
        | {f"t itself is refused for {length} tokens (1: yes)": refused},
        promised > stop and refused == 1,
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


def keep_sign(n: int = 3, x: tuple[int, ...] = (5, -2, 7, 4), order: tuple[int, int] = (0, 1)) -> Finding:
    """order: h₁ and h₂ are H(s − (n − order)); (0, 1) is the paper's."""

    def inner(at: int) -> int:
        """<x, H(s − at)>: x is x_i on [i − 1, i)."""
        return sum(x[at:])

    first, second = (inner(n - behind) for behind in order)
    return Finding(
        {"⟨x, h₁ − h₂⟩": first - second, "x_n": x[n - 1]},
        first - second != x[n - 1],
        {"<x, h₂ − h₁>": second - first},
        second - first == x[n - 1],
    )


def step_needs_a_shift(weight: float = 256.0, shift: float = 0.5, tokens: int = 20, absent: float = 0.0) -> Finding:
    """absent: the entry of [I|0]x̂ at a key that is not written."""

    def step(present: float, shifted: float) -> np.float32:
        """In float32, whose least number is 2^−149: 0 from about −104 down."""
        return np.float32(np.logaddexp(0.0, weight * present - weight * shifted))

    def left(shifted: float) -> float:
        kept = np.float32(1)
        for _ in range(tokens):
            kept = np.float32(kept * np.float32(real_exp(-step(absent, shifted))))
        return float(kept)

    return Finding(
        {"Δ of the key that is written": float(step(1, 0)), "Δ of another key": float(step(absent, 0))}
        | {f"left of 1 under another key after {tokens} tokens": left(0)},
        left(0) < 1,
        {f"Δ of another key with Δ = softplus(w·1[key] − {shift:g}w)": float(step(absent, shift))}
        | {"left of 1 under it": left(shift), "Δ of the written key": float(step(1, shift))},
        step(absent, shift) == 0 and left(shift) == 1,
    )


TRUTHS = (
    Truth(
        "sensitivity-bound",
        Kind.FAILS,
        SELECTIVITY,
        "Lemma 2, (13)",
        "If the limit of λΣΔ(x_r) is at most c (12), that of |∂h_t/∂x_j| is at least "
        "e^(−c)·|∂(B(x_s)Δ(x_s)x_s)/∂x_j| (s read as j).",
        "Δ depends on x_j as well: the second term of (38), what that takes from the state before j, can cancel the "
        "first. So it does for Δ = softplus(x), B = 1 and x = (first, second, tail, tail − 1, tail − 2, …); ΣΔ "
        "converges.",
        "Lemma 1 with both terms of (38) is an equality.",
        sensitivity_bound,
    ),
    Truth(
        "attention-bound",
        Kind.UNSAID,
        SELECTIVITY,
        "Appendix B, (45)",
        "“the second term can be bound by a constant C in terms of ‖W_Q‖, ‖W_K‖, ‖W_V‖ and ‖x‖”, and |∂h_t/∂x_j| ≤ "
        "C·(t·min_r e^(s_r))^(−1).",
        "The first factor of (44) has the numerator e^(s_j), and (45) has none. So a C that bounds the second factor "
        "alone is too small, as for x₁ and x_t far from 0 and all between them near 0.",
        "With C·e^(max s) in place of C, which the same norms bound, (45) holds for j < t. The sensitivity "
        "analysis above, of which this is “a similar” one, has “j fixed and t → ∞”.",
        attention_bound,
    ),
    Truth(
        "haar-neighbourhood",
        Kind.FAILS,
        SELECTIVITY,
        "Theorem 1, (23)",
        "For any ε > 0 three Mamba bases come within ε of a Haar wavelet, for all s in [0, 1].",
        "The bases are continuous and the wavelet jumps. At a distance of near/√|w| before a jump a steeper slope does "
        "not make the error smaller.",
        "Before its step a basis (B = 1) is below ε, except in the last √(2 ln(1/ε)/|w|); from the step on it is "
        "within π²/(12|w|) of 1.",
        haar_neighbourhood,
    ),
    Truth(
        "haar-discrete-step",
        Kind.UNSAID,
        SELECTIVITY,
        "Abstract and contributions, which leave it unsaid; Section 4.1, (8), which says it",
        "“the S6 layer of Mamba can represent projections onto Haar wavelets”, with no condition. Section 4.1 proves "
        "it, with the state <g, x> and g = e^(−λ∫Δ)·B (8), for “a simplified version of S6 where the input-dependence "
        "only affects the state matrix via ∆(x)”.",
        "The layer itself has Δ in front of B too, and writes Δ·B·x (14f). With the Δ of (20) that is 0 where the "
        "step is 1, and nothing of x is added there: what stands in the state is the last Δ before the step.",
        "A = 0 and Δ in {0, 32} give the inner products exactly (`construct haar`).",
        haar_discrete_step,
    ),
    Truth(
        "rate-squared",
        Kind.FAILS,
        SELECTIVITY,
        "Proof of Corollary 1, (27)–(31)",
        "Of N Fourier bases, by (27): “yields an approximation error O(N^(−1))”. Of wavelets: ‖ρ − proj(ρ)‖ in L² "
        "is Σ<ρ, ψ_{j,k}>² less the sum over the N wavelets that are taken, which is O(2^(−N)).",
        "Both are its square, as the text below (31) says of wavelets. Coefficients of n^(−1) leave a norm of "
        "N^(−1/2), which four times as many bases halve. By wavelets the norm is halved by every second one, so for "
        "one jump (m = 1) by every sixth basis and not, as Corollary 1 has it, by every third.",
        "Of Mamba, Corollary 1 only says that bases exist, and Heaviside bases do better: one for each jump and one "
        "for the mean come as near as one likes, by their slope. Here ρ has one jump of 1.",
        rate_squared,
    ),
    Truth(
        "count-stops",
        Kind.FLOATS,
        SELECTIVITY,
        "Proposition 1, (24)",
        "h_t = Σx(s) = t for an input of ones.",
        "A float32 sum of ones stops at 2^24.",
        "Where all that reads the count are falling ramps relu(H − t) and what is made of them, such as t ≤ H, it is "
        "right at every length (as a language model on Mamba-2, up to 5,931,641 tokens, or 11,863,283 by its width); "
        "other uses are refused for more than 2^24 tokens.",
        count_stops,
    ),
    Truth(
        "keep-sign",
        Kind.FAILS,
        SELECTIVITY,
        "Proof of Corollary 2, Appendix A.3",
        "h₁ = H(s − n), h₂ = H(s − (n − 1)), H(s − n) = 1[s > n]; “h₁ − h₂ is one at the interval [n − 1, n) and zero "
        "elsewhere, we have ⟨x, h₁ − h₂⟩ = x_n”.",
        "h₁ − h₂ is −1 on (n − 1, n]: the sign is wrong.",
        "<x, h₂ − h₁> = x_n, and the corollary with it.",
        keep_sign,
    ),
    Truth(
        "step-needs-a-shift",
        Kind.FAILS,
        SELECTIVITY,
        "Proof of Lemma 3, (109)",
        "Δ = SoftPlus(w·[I|0]x̂) = w·e_j: 0 for all keys but the one that is written, so their columns stay (110).",
        "softplus(0) = ln 2, whatever w is: they are halved at every token.",
        "With a shift of −w/2 and w = 256 their Δ is exactly 0 in float32; any w from about 208 on will do.",
        step_needs_a_shift,
    ),
)
