"""One block of `MambaForCausalLM`, operation by operation as its class computes it.

(x, z) = in_proj(u)      x̂ = silu(conv(x))      (δ, B, C) = x_proj(x̂)      Δ = softplus(dt_proj(δ) + dt_bias)
h ← exp(ΔA) h + Δ B x̂    y = C h + D x̂          out = out_proj(y · silu(z)),  A = −exp(A_log)

All that it forms, read or not (0 · ∞ is NaN); a step with a cache and a prefill do the same but for one line:

    what is formed                          in        bounded by
    rows of in_proj; conv, bias, silu       dtype     `project`, `convolved` (lags of the cache are lags here)
    rows of x_proj and dt_proj              dtype     `project`
    that + dt_bias (behind it), softplus    dtype     `Floats.step`; a sum that begins with it rounds elsewhere
    A, Δ A, exp of it                       float32   `floats.decay`; Δ A may be −∞; exp is 0 or 1 where it meets a
                                                      state: `Floats.state`
    Δ B, times x̂                            float32   `check_factors`, `Floats.state`
    h exp(Δ A) + Δ B x̂, cast                float32   `Floats.state`: it is of the dtype
    Σ C h                                   dtype     `state_output`
    D x̂, C h + D x̂, times silu(z)           either    `Floats.sum`, `Floats.product`: a step in the dtype
    out_proj                                dtype     `project`
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from verify.kernel.floats import FLOAT32, Format, decay, dyadic
from verify.kernel.mixers import NOTHING, ONE, Floats, Number
from verify.kernel.terms import constant


def project(f: Floats, place: str, row: np.ndarray, values: Sequence[Number]) -> Number:
    """One row of a linear map."""
    return f.sum(place, [(dyadic(row[i]), values[i]) for i in np.flatnonzero(row).tolist()])


def convolved(f: Floats, what: str, rows: np.ndarray, taps: np.ndarray, bias: np.ndarray, u: Sequence[Number]) -> list:
    """silu(conv(rows · u)); lag j has the tap at d_conv − 1 − j, and before the start all is 0."""
    result, known = [], {}
    for c in range(len(rows)):
        key = (rows[c].tobytes(), taps[c].tobytes(), bias[c].tobytes())
        if key not in known:
            place, last = f"{what}: convolution {c}", taps.shape[2] - 1
            x = project(f, f"{what}: in_proj {c}", rows[c], u)
            used = np.flatnonzero(taps[c, 0]).tolist()
            parts = [(dyadic(taps[c, 0, at]), later(f, place, x, last - at)) for at in used]
            total = f.sum(place, [*parts, (ONE, Number(constant(dyadic(bias[c]))))])
            known[key] = f.activation(place, total)
        result.append(known[key])
    return result


def later(f: Floats, place: str, x: Number, k: int) -> Number:
    if k and x.outgrown is not None:
        return Number(f.terms.earlier(x.poly, k), outgrown=-1)  # refused where anything but 0 times it is read
    return Number(f.terms.earlier(x.poly, k)) if k else x


def extent(f: Floats, numbers: Sequence[Number]) -> tuple[Fraction, int]:
    """The largest size of these, and a unit of all that are not 0."""
    live = [b for b in numbers if not b.zero]
    return max((f.size(b) for b in live), default=Fraction(0)), min((b.poly.unit for b in live), default=0)


def check_factors(form: Format, f: Floats, place: str, step: Number, x: Number, of_b: tuple[Fraction, int]) -> None:
    """A scan multiplies two of Δ, B and x̂ first, in `form`, whoever reads it: no pair overflows or underflows (lemma of
    every entry; Factors.products_of_three). of_b: the `extent` of B.
    """
    for (a, i), (b, j) in combinations([(f.size(step), step.poly.unit), of_b, (f.size(x), x.poly.unit)], 2):
        if a and b:
            form.in_range(a * b, i + j, f"{place}: a product of Δ, B and x̂")


def mamba_block(f: Floats, what: str, u: Sequence[Number], w: Mapping[str, np.ndarray], config: dict[str, Any]) -> list:
    """What the mixer adds to every lane."""
    inner, n, rank = config["intermediate_size"], config["state_size"], config["time_step_rank"]
    x = convolved(f, what, w["in_proj.weight"][:inner], w["conv1d.weight"], w["conv1d.bias"], u)
    rows = [project(f, f"{what}: row {r} of x_proj", w["x_proj.weight"][r], x) for r in range(rank + 2 * n)]
    write, read = rows[rank : rank + n], rows[rank + n :]
    outputs, steps, of_b = [], {}, extent(f, write)
    rates = {a: decay(a) for a in np.unique(w["A_log"]).tolist()}
    for c in range(inner):
        place = f"{what}: channel {c}"
        gate = f.activation(f"{place}: gate", project(f, f"{place}: gate", w["in_proj.weight"][inner + c], u))
        key = (w["dt_proj.weight"][c].tobytes(), w["dt_proj.bias"][c].tobytes())
        if key not in steps:
            low = project(f, f"{place}: dt_proj", w["dt_proj.weight"][c], rows[:rank])
            steps[key] = f.step(f"{place}: Δ", low, dyadic(w["dt_proj.bias"][c]))
        step = steps[key]
        check_factors(FLOAT32, f, place, step, x[c], of_b)
        columns = zip(write, read, map(rates.__getitem__, w["A_log"][c].tolist()), strict=True)
        y = state_output(f, place, step, x[c], columns)
        d = dyadic(w["D"][c])
        y = f.sum(f"{place}: C·h + D·x̂", [(ONE, y), (d, x[c])]) if d else y
        outputs.append(f.product(f"{place}: y·silu(z)", y, gate))
    return [project(f, f"{what}: out_proj to lane {i}", w["out_proj.weight"][i], outputs) for i in range(len(u))]


def state_output(f: Floats, place: str, step: Number, x: Number, columns: Iterable[tuple]) -> Number:
    """Σ_n C_n h_n. What is driven by nothing is 0. The chunks of Mamba-2 form the sum of C at one position and h at an
    earlier one, before they multiply by an exp that may be 0: so it is in range for any two positions.
    """
    live = [] if step.zero or x.zero else [column for column in columns if not column[0].zero]
    read, reach = [], Fraction(0)
    for b, c, rate in live:
        drive = f.product(f"{place}: B·x̂", x, b)
        h = f.state(place, step, drive, rate)
        read.append((ONE, f.product(f"{place}: C·h", h, c)))
        reach += f.size(h) * f.size(c)
    FLOAT32.in_range(reach, FLOAT32.least, f"{place}: C·h of an earlier position")
    return f.sum(f"{place}: C·h", read) if read else NOTHING
