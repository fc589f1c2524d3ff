"""Paper B: Theorems 1, 2 and 3, Lemmas 1 and 5."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product, takewhile
from math import inf, log2

import numpy as np

from constructions.papers import FREE_LUNCH
from constructions.truths.truth import Finding, Kind, Truth
from verify.copy_bound import CopyReport, copy_report


def copied(
    decays: tuple[float, ...],
    scores: tuple[float, ...],
    pos: int,
    delta: float,
    window: int,
    least: float | None = None,
) -> CopyReport:
    """Theorem 1 at the last position, for one sequence with M = 1.

    Δ_j = ln a_j/ln a, so that a_j = exp(Δ_j·ln a) as in (1): a is `least`, or the least decay, and has the step 1.
    x_j is (−1, e_j) before pos(i) and (1, e_j) from there on, so that b_j = W_b x_j = e_j; ρ = c·b_pos(i).
    """
    length = len(decays)
    signs = np.where(np.arange(1, length + 1) < pos, -1.0, 1.0)
    x = np.column_stack([signs, np.eye(length)])[None]
    steps = np.log(decays) / np.log(min(decays) if least is None else least)
    sequence = (np.array([decays]), x[:, :, 1:], np.array([scores]), x, steps[None, :, None] * np.ones_like(x))
    return copy_report(*sequence, np.array([pos]), scores[pos - 1], delta, window)


def copy_index(
    decays: tuple[float, ...] = (0.01, 0.01, 0.9),
    mismatch: float = 0.0999,
    rho: float = 0.999,
    delta: float = 0.1,
    included: bool = True,
) -> Finding:
    """pos(i) = i and L = 1. The last position reads the earlier ones by `mismatch` as well, every other only itself.

    included: whether the maximum of the corrected bound takes in a_pos(i).
    """
    length = len(decays)
    seen = [0.0] * (length - 1) + [mismatch]
    scores = [((seen[i - 1],) * (i - 1)) + (rho,) for i in range(1, length + 1)]
    reports = [copied(decays[:i], scores[i - 1], i, delta, 1, min(decays)) for i in range(1, length + 1)]
    met, promised = all(report.holds[0] for report in reports), max(float(report.paper[0]) for report in reports)
    error = float(reports[-1].error[0])
    corrected = float((reports[-1].theorem if included else reports[-1].paper)[0])
    return Finding(
        {"|y − o| at the last position": error, "ε for which (7) is met at all": promised}
        | {"Assumption 1 holds at all (1: yes)": int(met)},
        met and error > promised,
        {"ε with a_pos(i) among the maximum": corrected},
        error <= corrected,
    )


def copy_clause(
    decay: float = 0.1, window: int = 5, delta: float = 0.15, epsilon: float = 0.2, reached: float = 0.9999
) -> Finding:
    """A copy from the far end of the window over equal decays; reached: α_pos·ρ, below 1 by Assumption 1.

    Instead, beside what (26) gives: one ρ = `reached` for all positions, each of which copies itself.
    """
    kept = decay ** (window - 1)  # α_pos(i)
    found = copied((decay,) * (window + 1), (0.0, reached / kept, *(0.0,) * (window - 1)), 2, delta, window)
    met = bool(found.holds[0]) and float(found.paper[0]) <= epsilon
    quotients = decay / (1 - decay) + (decay ** -(window - 1) - 1) / (1 - decay)
    below = (1 - epsilon / 2) / kept + delta / 2 * quotients
    sizes = range(1, window + 2)
    itself = [copied((decay,) * i, (*(0.0,) * (i - 1), reached), i, delta, window) for i in sizes]
    everywhere, alone = all(report.holds[0] for report in itself), max(float(report.paper[0]) for report in itself)
    before = decay / (1 - decay)  # the first quotient, and the only one where each copies itself
    return Finding(
        {"left side of (26)": 1 / kept, "right side of (26)": below, "ρ": reached / kept}
        | {"Assumption 1 and (7) hold at i (1: yes)": int(met)}
        | {"δ": delta, "right side of (27)": epsilon / quotients}
        | {"ε/((L − 1)M‖Δ‖), which (29) makes of it": epsilon / (window - 1)}
        | {"|y − o|": float(found.error[0])},
        met and 1 / kept >= below and delta > max(epsilon / quotients, epsilon / (window - 1)),
        {"right side of (27) with the factor 1/α_pos(i)": epsilon / (kept * quotients)}
        | {"one ρ, all pos(i) = i: ε for which (7) is met at all": alone}
        | {"right side of (27) at this ε": alone / before}
        | {"ε/((L − 1)M‖Δ‖) at this ε": alone / (window - 1)},
        met and delta <= epsilon / (kept * quotients) and everywhere and alone / (window - 1) < delta <= alone / before,
    )


def silu(x: np.ndarray, dtype: str) -> np.ndarray:
    """Rounded to the dtype from float64, so that no library's own exp decides the last digit."""
    wide = x.astype(np.float64)
    with np.errstate(over="ignore"):
        return (wide / (1 + np.exp(-wide))).astype(dtype)


def product_of_silus(a: np.ndarray, b: np.ndarray, scale: float, dtype: str) -> np.ndarray:
    """(30), each operation rounded to the dtype."""
    number = np.dtype(dtype).type
    a, b, scale = a.astype(dtype), b.astype(dtype), number(scale)
    total, apart = (a + b) / scale, (a - b) / scale
    terms = silu(total, dtype) + silu(-total, dtype) - silu(apart, dtype) - silu(-apart, dtype)
    return scale * scale / number(2) * terms


def product_scale(
    largest: float = 1.0, epsilon: float = 1e-3, dtype: str = "float32", better: float = 190.0, gate: float = 2.0**20
) -> Finding:
    """gate: what z is multiplied by before the two gates, and their difference divided by."""
    a, b = (side.ravel() for side in np.meshgrid(*[np.linspace(-largest, largest, 201)] * 2))

    def error(scale: float, kind: str) -> float:
        return float(np.abs(product_of_silus(a, b, scale, kind) - a * b).max())

    rule = lambda within: 216 * largest**3 / (2 * within)
    printed = rule(epsilon)
    at, near = error(printed, dtype), error(better * largest, dtype)
    tried = (largest**2 * 10 ** (-i / 16) for i in range(97))
    kept = list(takewhile(lambda within: error(rule(within), dtype) <= within, tried))
    z = (b * gate).astype(dtype)
    gated = float((np.abs(silu(z, dtype) - silu(-z, dtype) - z) / gate).max())
    return Finding(
        {f"λ = 216M³/(2ε), M = {largest:g}, ε = {epsilon:g}": printed}
        | {f"largest error of (30) on a grid of 201², in {dtype}": at, "in float64": error(printed, "float64")},
        at > epsilon,
        {f"least ε = M²·10^(−i/16) from which on the error is within ε, in {dtype}": min(kept, default=inf)}
        | {f"largest error there with λ = {better:g}M, in {dtype}": near}
        | {f"of silu(z) − silu(−z) = z, scaled by {gate:,.0f}, in {dtype}": gated},
        near <= epsilon and gated == 0,
    )


def step_of_two(difference: np.ndarray, scale: float) -> np.ndarray:
    """Lemma 2's network for 1[t > 0]: relu(λt) − relu(λt − 1) by SiLU.

    We take Lemma 4, and so Lemma 5, to use this one: the paper prints no network for them.
    """
    wide = scale * difference
    with np.errstate(over="ignore"):
        return wide / (1 + np.exp(-wide)) - (wide - 1) / (1 + np.exp(1 - wide))


def indicators_jump(
    scales: tuple[float, ...] = (1e2, 1e4, 1e6), nearest: float = 1e-12, gap: float = 1 / 64, epsilon: float = 0.01
) -> Finding:
    """1[a > b] for |a − b| from `nearest` to 1; gap: α, with the step at α/2. On integers α is 1."""
    away = np.geomspace(nearest, 1, 2001)
    errors = {}
    for scale in scales:
        off = np.concatenate([1 - step_of_two(away, scale), step_of_two(-away, scale)])
        errors[scale] = float(np.abs(off).max())

    def worst(apart: np.ndarray, least: float) -> float:
        both = np.concatenate([-apart, np.zeros(1), apart])
        return float(np.abs(step_of_two(both - least / 2, scales[-1]) - (both > 0)).max())

    beyond, integers = worst(np.geomspace(gap, 1, 2001), gap), worst(np.arange(1.0, 1000.0), 1.0)
    return Finding(
        {f"largest error for 1[a > b], λ = {scale:,.0f}": error for scale, error in errors.items()} | {"ε": epsilon},
        min(errors.values()) > epsilon,
        {f"for |a − b| ≥ {gap:g} or a = b, λ = {scales[-1]:,.0f}": beyond, "on integers up to 999 apart": integers},
        beyond <= epsilon and integers == 0,
    )


def copy_state(
    places: tuple[int, ...] = (8, 16, 32), arch: str = "mamba", other: str = "mamba2", vocab: int = 2
) -> Finding:
    """Numbers in the largest state of a block of `copy --form place`."""
    from compiler.artifact.package import bare_sizes
    from compiler.driver import compile
    from constructions.copy_dp.copy import Copy

    def held(mixer: str) -> list[int]:
        sizes = [bare_sizes(compile(Copy(form="place", n=n, vocab=vocab, arch=mixer).circuit(), mixer)) for n in places]
        return [max(size.d_inner * size.d_state for size in blocks) for blocks in sizes]

    def power(counts: list[int]) -> float:
        return log2(counts[-1] / counts[0]) / log2(places[-1] / places[0])

    first, second = held(arch), held(other)
    return Finding(
        {f"numbers in the state on {arch}, N = {n}": count for n, count in zip(places, first, strict=True)}
        | {"power of N": power(first)},
        power(first) > 1.5,
        {f"on {other}, N = {n}": count for n, count in zip(places, second, strict=True)} | {"its power": power(second)},
        power(second) < 1.1,
    )


def lis_reads(n: int) -> tuple[int, int]:
    """The most entries that one entry needs, and that the answer needs: dp(i) = 1 + max of dp(j), j < i, s_j < s_i."""
    needs = [sum(s[j] < s[i] for j in range(i)) for s in permutations(range(n)) for i in range(n)]
    return max(needs), n


def knapsack_reads(n: int) -> tuple[int, int]:
    """The same for n items and capacity n: (r, c) needs (r − 1, c) and (r − 1, c − w); an entry counts that some w
    makes needed, since I_dp sees n and the state and not w."""
    needs = [
        {(r - 1, c)} | {(r - 1, c - w) for w in range(1, c + 1)} for r, c in product(range(1, n + 1), range(n + 1))
    ]
    return max(map(len, needs)), 1


def edit_distance_reads(n: int) -> tuple[int, int]:
    """The same for two words of n letters."""
    needs = [{(r - 1, c), (r, c - 1), (r - 1, c - 1)} for r, c in product(range(1, n + 1), repeat=2)]
    return max(map(len, needs)), 1


READS: dict[str, Callable[[int], tuple[int, int]]] = {
    "LIS": lis_reads,
    "knapsack": knapsack_reads,
    "edit distance": edit_distance_reads,
}


def needed_entries(
    sizes: tuple[int, int] = (3, 6), outside: tuple[str, ...] = ("LIS", "knapsack"), within: str = "edit distance"
) -> Finding:
    """The largest of |V_dp(i)| and |A(n)| at two sizes of a problem."""
    counts = {name: [max(READS[name](n)) for n in sizes] for name in (*outside, within)}

    def rows(names: tuple[str, ...]) -> dict[str, float]:
        return {
            f"entries needed, {name} of size {n}": count
            for name in names
            for n, count in zip(sizes, counts[name], strict=True)
        }

    return Finding(
        rows(outside),
        all(counts[name][1] > counts[name][0] for name in outside),
        rows((within,)),
        counts[within][0] == counts[within][1],
    )


TRUTHS = (
    Truth(
        "copy-index",
        Kind.FAILS,
        FREE_LUNCH,
        "Theorem 1, (7)",
        "‖y_i − o_i‖ ≤ ε if ρ ≥ (1 − ε/(2M‖Δ‖))/α_pos(i) + (δ/2)·(a_max/(1 − a_max) + …), where a_max is the maximum "
        "of a_j over 1 ≤ j < pos(i).",
        "By (14) the weight of each earlier token holds a_pos(i), which that maximum leaves out; a_1, which it takes "
        "in, no weight holds. L = 1 and pos(i) = i (a quotient with nothing in its range is 0); x_j = (±1, e_j), so "
        "that b_j = W_b x_j can be e_j; Δ_j is ln a_j over the least of them, so that one a gives every ã_j = exp(Δ_j "
        "a), and M‖Δ‖ = 1; the last position reads the earlier ones by less than δ.",
        "The maximum over 2 ≤ j ≤ pos(i) gives a bound.",
        copy_index,
    ),
    Truth(
        "copy-clause",
        Kind.FAILS,
        FREE_LUNCH,
        "Proof of Theorem 1, (26)–(29), and the theorem's last sentence",
        "“Moreover, in such cases, there exists δ ≤ ε/((L−1)M‖Δ‖∞) when L ≥ 2.” “By reformulating” (26), 1/α_pos(i) ≥ "
        "(1 − ε/(2M‖Δ‖))/α_pos(i) + (δ/2)·(…), “we can get that” δ ≤ ε/(M‖Δ‖)·(…)^(−1) (27), and (29) bounds that. "
        "Appendix A.1 states the theorem again (Theorem 5), with δ where (7) has δ/2, and δ ≤ ε/(2(L−1)M‖Δ‖∞).",
        "(26) does not give (27): a factor 1/α_pos(i) is lost. At one position i that copies from the far end of its "
        "window over equal decays, all other scores 0, M‖Δ‖ = 1, (26) holds, and neither (27) nor the theorem's "
        "clause does. Assumption 1 for all i, with one ρ, excludes this case, but the step does not use that.",
        "(26) gives δ ≤ ε/(α_pos(i)·M‖Δ‖)·(…)^(−1). With one ρ for all positions ρ < 1, since the first can only copy "
        "itself and Assumption 1 says “< 1”; with that (7) gives (27), for ε ≤ 2M‖Δ‖, and the last sentence if some "
        "position copies an earlier one, pos(i) < i. If each copies itself, the quotient in (28) has nothing in its "
        "range, and δ may be larger.",
        copy_clause,
    ),
    Truth(
        "product-scale",
        Kind.FLOATS,
        FREE_LUNCH,
        "Lemma 1, (30)",
        "“if we set λ ≥ 216M³/(2ε) we will have |g(a, b) − ab| ≤ … ≤ ε”, for |a|, |b| ≤ M.",
        "In float32 the four values of silu cancel, and what rounding leaves grows with λ, which grows as ε falls. So "
        "the error is above ε for every small ε, though not for larger ones.",
        "The error on paper is at most M⁴/(3λ²), so a small λ is enough: between about 150M and 250M the error in "
        "float32 is least, near 2e-5·M². A gate multiplies on paper without an error, silu(z) − silu(−z) = z, and in "
        "floats too where z is scaled up: silu is 0 or the number itself there.",
        product_scale,
    ),
    Truth(
        "indicators-jump",
        Kind.FAILS,
        FREE_LUNCH,
        "Lemma 5",
        "For any ε > 0 there are parameters with |f(a, b) − 𝕀(a, b, ∘)| ≤ ε for all a, b in [−M, M] and ∘ in {≠, >, "
        "<}.",
        "The indicator jumps at a = b and a block is continuous in a and b, so the error comes to 1/2 or more near "
        "it. Lemma 4, which the proof uses, asks for |t| ≥ α.",
        "For |a − b| ≥ α or a = b it holds, with the step at α/2, and on integers in floats, for a large λ, without an "
        "error.",
        indicators_jump,
    ),
    Truth(
        "copy-state",
        Kind.UNSAID,
        FREE_LUNCH,
        "Theorem 2, proof",
        "A Mamba block of size O(N): x̃_i = [x_i, e_i, e_pos(i)] has d + 2N entries, b_i and c_i are W_b x̃_i and W_c "
        "x̃_i, and the state is [v_1, …, v_N], d × N: “the model size we need is O(Nd)”.",
        "By (1) and (3) b, c and the state come from one input, and every channel of it has a row of N columns in the "
        "state. The 2N that hold e_i and e_pos(i) make it (d + 2N)·N. A real Mamba block has these channels and two "
        "more. The proof's argument for O(N), that “we only need to use two indices p_i = i and p_pos(i) = pos(i) to "
        "store them” and that “W_b, W_c are also sparse”, saves storage, not state.",
        "Where b and c have lanes of their own, as in Mamba-2, the state is d·N. On Mamba places of two digits keep "
        "O(N) (`--max-d-state`).",
        copy_state,
    ),
    Truth(
        "needed-entries",
        Kind.UNSAID,
        FREE_LUNCH,
        "Text below Theorem 3, and Table 1",
        "Theorem 3 names Assumption 2, by which |D_i| ≤ N_s, |V_dp(i)| ≤ N_dp and |A(n)| ≤ N_A; the text below it and "
        "Table 1 say “any DP problem”.",
        "Assumption 2 leaves out the longest increasing subsequence as it is usually written, whose entries and whose "
        "answer need as many entries as there are. It leaves out the knapsack too, if needed places are functions of n "
        "and the state alone, as block 2 of the proof takes them: c − w depends on the input, so every w counts. With "
        "places that depend on the input two are enough.",
        "Edit distance is within. The other two compile because a query may depend on data (`construct dp lis`).",
        needed_entries,
    ),
)
