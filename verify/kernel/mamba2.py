"""One block of `Mamba2ForCausalLM`, operation by operation as its class computes it.

    (z, xBC, δ) = in_proj(u)    (x̂, B, C) = silu(conv(xBC))    Δ = softplus(δ + dt_bias), one per head
    h ← exp(ΔA) h + Δ B x̂      y = C h + D x̂                  out = out_proj(norm(y · silu(z)))

The heads stand in n_groups groups, each with B, C and a norm of its own. A prefill scans chunks; a step with a cache
goes on from a state. All that either forms, read or not (0 · ∞ is NaN), for positions s ≤ t of a chunk that begins
behind r:

    of      what is formed                          in        bounded by
    both    rows of in_proj; conv, bias, silu       dtype     `project`, `convolved` (lags of the cache are lags here)
    both    δ + dt_bias, softplus                   dtype     `Floats.step`
    both    −exp(A_log)                             float32   `floats.decay`
    chunk   clamp(Δ)                                float32   `_step`: it changes nothing; a step has no clamp
    chunk   Δ x̂                                     float32   `check_factors`
    chunk   Δ A, its sums over (s, t] and (r, t],   float32   `_step`: all are whole units, so exact, and their
            differences of two such sums                      differences too; no infinity is subtracted from another
    chunk   sums of Δ A over several chunks         float32   of terms ≤ 0: exp of them is 0 if one is, else 1
    chunk   exp of all these                        float32   at most 1; 0 or 1 where it meets a state: `Floats.state`
    chunk   Σ_n C_n(t) B_n(s), for any s, t         float32   `_check_scores`
    chunk   that · exp · (Δ x̂)(s), summed over s    float32   a part of C·h(t), of terms ≥ 0: `state_output`
    chunk   B · exp, times Δ x̂, summed over s       float32   a part of h(t), of terms ≥ 0: `Floats.state`
    chunk   Σ_n C_n(t) h_n(r), times exp            float32   `state_output`: C and h of different positions
    chunk   D x̂, and C·h + D x̂                      float32   `Floats.sum` here, in the dtype
    step    exp(Δ A)                                float32   as in a chunk of one position
    step    Δ B, times x̂                            dtype     `check_factors`, `Floats.state`
    step    h exp(Δ A) + Δ B x̂, cast                float32   `Floats.state`: it is of the dtype
    step    C·h, D x̂, their sum                     dtype     `state_output`, `Floats.sum` here
    both    y · silu(z), squares, mean, rsqrt       float32   `Floats.product`, `Floats.norm`
    both    times the weight (a step: cast before)  either    `Floats.norm`
    both    out_proj                                dtype     `project`

The kernels of mamba_ssm also round (Δ B)(s) · exp and Δ(s) Σ C·B · exp to the dtype: `check_factors`, `_check_scores`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from verify.kernel.floats import FLOAT32, Unproved, decay, dyadic, exponent
from verify.kernel.mamba import check_factors, convolved, extent, project, state_output
from verify.kernel.mixers import ONE, Floats, Number


def mamba2_block(
    f: Floats, what: str, u: Sequence[Number], w: Mapping[str, np.ndarray], config: dict[str, Any]
) -> list:
    """What the mixer adds to every lane."""
    inner, p, groups, n = (config[k] for k in ("intermediate_size", "head_dim", "n_groups", "state_size"))
    in_proj, wide = w["in_proj.weight"], 2 * inner + 2 * groups * n
    held = convolved(f, what, in_proj[inner:wide], w["conv1d.weight"], w["conv1d.bias"], u)
    x, write, read = held[:inner], held[inner : inner + groups * n], held[inner + groups * n :]
    steps = [
        _step(f, f"{what}: head {h}", project(f, f"{what}: head {h}", in_proj[wide + h], u), w, config, h)
        for h in range(config["num_heads"])
    ]
    outputs, norms, checked = [], w["norm.weight"].reshape(groups, -1), set()
    of_b = [extent(f, write[g * n : (g + 1) * n]) for g in range(groups)]
    for c in range(inner):
        place, g = f"{what}: channel {c}", c * groups // inner
        own = slice(g * n, (g + 1) * n)
        gate = f.activation(f"{place}: gate", project(f, f"{place}: gate", in_proj[c], u))
        step, rate = steps[c // p]
        if (g, step, x[c]) not in checked:  # equal rows have one number
            check_factors(f.form, f, place, step, x[c], of_b[g])
            _check_scores(f, place, step, x[c], write[own], read[own])
            checked.add((g, step, x[c]))
        y = state_output(f, place, step, x[c], [(b, q, rate) for b, q in zip(write[own], read[own], strict=True)])
        y = f.sum(f"{place}: C·h + D·x̂", [(ONE, y), (dyadic(w["D"][c // p]), x[c])])
        outputs.append(f.product(f"{place}: y·silu(z)", y, gate))
    normal, each = [], inner // groups
    for g in range(groups):
        mine = outputs[g * each : (g + 1) * each]
        normal += f.norm(f"{what}: group {g}: gated norm", mine, norms[g], config["layer_norm_epsilon"])
    return [project(f, f"{what}: out_proj to lane {i}", w["out_proj.weight"][i], normal) for i in range(len(u))]


def _step(
    f: Floats, place: str, raw: Number, w: Mapping[str, np.ndarray], config: dict[str, Any], head: int
) -> tuple[Number, tuple[Fraction, Fraction]]:
    """Δ of a head, and its |A|: 0, or 1 where a whole chunk's sum of Δ is exact (Activations.decays_of_a_chunk)."""
    step, rate = f.step(f"{place}: Δ", raw, dyadic(w["dt_bias"][head])), decay(float(w["A_log"][head]))
    pad = f.pad_step(f"{place}: Δ", dyadic(w["dt_bias"][head])) if rate[1] else Fraction(0)
    limits, top = config.get("time_step_limit"), max(f.size(step), pad)
    if type(limits) is list and limits[1:] == [{"__float__": "Infinity"}]:  # so transformers writes no limit
        limits = [limits[0], float(f.form.largest)]
    if type(limits) is not list or list(map(type, limits)) != [float, float]:
        raise Unproved(f"time_step_limit is {limits!r:.60}, expected two floats, such as [0.0, 65504.0]")
    if not limits[0] == 0 <= top <= limits[1] <= f.form.largest:
        raise Unproved(f"{place}: Δ can reach {float(top):g}, and time_step_limit is {limits!r:.60}")
    if step.rounded or top and (rate[0] != rate[1] or rate[0] not in (0, 1)):
        raise Unproved(f"{place}: A is neither 0 nor -1, so sums over a chunk may round")
    if rate[1]:
        unit = min(step.poly.unit, exponent(pad)) if pad else step.poly.unit
        FLOAT32.exact(top * config["chunk_size"], unit, f"{place}: the sum of Δ over a chunk")
    return step, rate


def _check_scores(
    f: Floats, place: str, step: Number, x: Number, write: Sequence[Number], read: Sequence[Number]
) -> None:
    """Σ_n C_n B_n, for every channel, and Δ times that: all is positive, and each sum exact (lemma of every entry)."""
    live = [(b, c) for b, c in zip(write, read, strict=True) if not (b.zero or c.zero)]
    factors = [x.poly, *(v.poly for pair in live for v in pair)]

    def check() -> None:
        reach = sum((f.size(b) * f.size(c) for b, c in live), Fraction(0))
        f.form.in_range(reach * max(ONE, f.size(step)), f.form.least, f"{place}: Δ·Σ C·B")
        if live and not step.zero:
            if any(f.terms.range(p)[0] < 0 for p in factors):
                raise Unproved(f"{place}: a factor of the chunked scan is negative")
            f.form.exact(reach, min(b.poly.unit + c.poly.unit for b, c in live), f"{place}: Σ C·B")

    f.ledger.until(f"{place}: Σ C·B", factors, check)
