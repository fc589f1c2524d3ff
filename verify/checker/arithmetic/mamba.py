"""One block of `MambaForCausalLM`, operation by operation as its class computes it.

(x, z) = in_proj(u)      x̂ = silu(conv(x))      (δ, B, C) = x_proj(x̂)      Δ = softplus(dt_proj(δ) + dt_bias)
h ← exp(ΔA) h + Δ B x̂    y = C h + D x̂          out = out_proj(y · silu(z))
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from verify.checker.arithmetic.factors import Extent, check_factors
from verify.checker.arithmetic.states import Step, state_output, step_of
from verify.checker.arithmetic.sums import activation, check_range, exact_product, exact_sum
from verify.checker.files import Matrix
from verify.checker.formats import FORMATS, Rejected, decay
from verify.checker.values.bounds import largest, values_of
from verify.checker.values.values import Value, World, combine, constant, later

ONE = Fraction(1)


def mamba_block(world: World, u: Sequence[Value], tensors: dict[str, Matrix], config: dict, what: str) -> list[Value]:
    """What the mixer adds to every lane."""
    inner, n, rank = config["intermediate_size"], config["state_size"], config["time_step_rank"]
    features = convolved(world, u, tensors["in_proj.weight"].part(0, inner), tensors, what)
    gates = [
        activation(
            world,
            project(world, u, tensors["in_proj.weight"], inner + c, f"{what}: gate {c}"),
            True,
            f"{what}: gate {c}",
        )
        for c in range(inner)
    ]
    x_proj = [
        project(world, features, tensors["x_proj.weight"], r, f"{what}: row {r} of x_proj") for r in range(rank + 2 * n)
    ]
    write, read = x_proj[rank : rank + n], x_proj[rank + n :]
    outputs = []
    skip, a_log, bias = tensors["D"].dense_row(0), tensors["A_log"], tensors["dt_proj.bias"].dense_row(0)
    _check_decays(a_log)
    writes = Extent.of(world, write)
    steps: dict[tuple, Step] = {}
    for c, (x, gate) in enumerate(zip(features, gates, strict=True)):
        place = f"{what}: channel {c}"
        step = _step(world, x_proj[:rank], tensors["dt_proj.weight"].row(c), Fraction(float(bias[c])), steps, place)
        check_factors(FORMATS["float32"], world, step.value, x, writes, place)
        y = constant(0)
        if not (step.value.constant and not step.value.const):
            decays = a_log.dense_row(c)
            columns = [
                (b, q, decay(float(a))) for b, q, a in zip(write, read, decays, strict=True) if b.terms or b.const
            ]
            y = state_output(world, step, x, columns, place)
        d = Fraction(float(skip[c]))
        y = exact_sum(world, [(ONE, y), (d, x)], f"{place}: C·h + D·x̂") if d else y
        outputs.append(exact_product(world, y, gate, f"{place}: y·silu(z)"))
    return [
        project(world, outputs, tensors["out_proj.weight"], i, f"{what}: out_proj to lane {i}") for i in range(len(u))
    ]


def project(world: World, values: Sequence[Value], matrix: Matrix, row: int, what: str) -> Value:
    """One row of a linear map."""
    return exact_sum(world, [(w, values[i]) for i, w in matrix.row(row)], what)


def convolved(world: World, u: Sequence[Value], rows: Matrix, tensors: dict[str, Matrix], what: str) -> list[Value]:
    """silu(conv(rows · u)) of every channel; lag j has the tap at d_conv − 1 − j, and before the start all is 0."""
    taps, bias = tensors["conv1d.weight"], tensors["conv1d.bias"].dense_row(0)
    found: dict[tuple, Value] = {}
    result = []
    for c in range(rows.shape[0]):
        kernel = taps.row(c)
        key = (tuple(rows.row(c)), tuple(kernel), float(bias[c]))
        if key not in found:
            place = f"{what}: convolution {c}"
            row = project(world, u, rows, c, f"{what}: in_proj {c}")
            terms = [(w, later(world, row, taps.shape[1] - 1 - k)) for k, w in kernel]
            total = exact_sum(world, [*terms, (ONE, constant(Fraction(float(bias[c]))))], place)
            found[key] = activation(world, total, True, place)
        result.append(found[key])
    return result


def _check_decays(a_log: Matrix) -> None:
    """No entry may overflow, whoever reads it: 0 · ∞ is NaN (lemma of every entry)."""
    if a_log.data.size:
        decay(float(a_log.data.max()))


def _step(world: World, steps: Sequence[Value], row: list, bias: Fraction, known: dict, place: str) -> Step:
    """Δ of one channel. Sums that are not exact are allowed where only huge values are at fault (`_loose`)."""
    key = (tuple(row), bias)
    if key not in known:
        inner = exact_sum(world, [(w, steps[r]) for r, w in row], f"{place}: dt_proj")
        try:
            total = exact_sum(world, [(ONE, inner), (ONE, constant(bias))], f"{place}: dt_proj + bias")
            known[key] = step_of(world, activation(world, total, False, f"{place}: Δ"))
        except Rejected:
            total = _loose(world, inner, bias, place)
            known[key] = step_of(world, activation(world, total, False, f"{place}: Δ"), loose=True)
    return known[key]


def _loose(world: World, value: Value, bias: Fraction, place: str) -> Value:
    """value + bias where rounding concerns huge sums only: from 2^16 on, a relative error of 2^-7 is allowed for
    (lemma of decay).
    """
    found = values_of(world, value)
    total = combine([(ONE, value)], bias)
    small = None if found is None else [v + bias for v in found if abs(v + bias) < 1 << 16]
    if small is None or any(s and abs(s) > world.format.units * Fraction(2) ** Value(s, {}).unit for s in small):
        raise Rejected(f"{place}: dt_proj + bias is not exact")
    check_range(world, largest(world, total), world.format.least, f"{place}: dt_proj + bias")
    return total
