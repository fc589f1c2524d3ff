"""One block of `Mamba2ForCausalLM`, operation by operation as its class computes it.

    (z, xBC, δ) = in_proj(u)    (x̂, B, C) = silu(conv(xBC))    Δ = softplus(δ + dt_bias), one per head
    h ← exp(ΔA) h + Δ B x̂      y = C h + D x̂                  out = out_proj(norm(y · silu(z)))

The heads stand in n_groups groups of equal size, one after the other. Each group has B, C and a norm of its own.

The scan runs in chunks and multiplies C·B first, then sums over the past: all terms are non-negative, so every
partial sum is at most what the lemmas bound. Decays come as exp of sums of Δ·A, and as differences of prefix sums
within a chunk: these must be exact and in range (lemma of decay). It reads the state at the end of an earlier chunk
with the C of each position, before it decays (`states._check_apart`). A step with a cache multiplies Δ, B and x̂ in
the dtype. `verify/kernel/mamba2.py` lists all that both forms compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from verify.checker.arithmetic.factors import Extent, check_factors, check_scores_range
from verify.checker.arithmetic.mamba import ONE, convolved, project
from verify.checker.arithmetic.norms import normed
from verify.checker.arithmetic.pads import step_at_pads
from verify.checker.arithmetic.states import Step, state_output, step_of
from verify.checker.arithmetic.sums import activation, exact_product, exact_sum, in_range
from verify.checker.files import Matrix
from verify.checker.formats import FORMATS, Rejected, decay, exponent
from verify.checker.values.bounds import bounds, largest
from verify.checker.values.values import Value, World, constant

EXACT_DECAYS = ((Fraction(0), Fraction(0)), (Fraction(1), Fraction(1)))


def mamba2_block(world: World, u: Sequence[Value], tensors: dict[str, Matrix], config: dict, what: str) -> list[Value]:
    """What the mixer adds to every lane."""
    inner, p, groups = config["intermediate_size"], config["head_dim"], config["n_groups"]
    in_proj, heads, columns = tensors["in_proj.weight"], config["num_heads"], groups * config["state_size"]
    features = convolved(world, u, in_proj.part(inner, inner + 2 * columns), tensors, what)
    writes = _in_groups(features[inner : inner + columns], groups)
    reads = _in_groups(features[inner + columns :], groups)
    steps = [_step(world, u, in_proj, tensors, config, h, f"{what}: head {h}") for h in range(heads)]
    skip = tensors["D"].dense_row(0)
    outputs = []
    extents = [Extent.of(world, write) for write in writes]
    scores = [_scores(world, write, read) for write, read in zip(writes, reads, strict=True)]
    for c in range(inner):
        group = c * groups // inner
        write, read = writes[group], reads[group]
        place = f"{what}: channel {c}"
        gate = activation(world, project(world, u, in_proj, c, f"{place}: gate"), True, f"{place}: gate")
        step, a = steps[c // p]
        check_factors(world.format, world, step.value, features[c], extents[group], place)
        _check_scores(world, step, features[c], scores[group], place)
        y = state_output(world, step, features[c], [(b, q, a) for b, q in zip(write, read, strict=True)], place)
        d = Fraction(float(skip[c // p]))
        y = exact_sum(world, [(ONE, y), (d, features[c])], f"{place}: C·h + D·x̂")
        outputs.append(exact_product(world, y, gate, f"{place}: y·silu(z)"))
    weight, epsilon = tensors["norm.weight"].dense_row(0), config["layer_norm_epsilon"]
    weights = weight.reshape(groups, -1)
    normal = [
        value
        for group, own in enumerate(_in_groups(outputs, groups))
        for value in normed(world, own, weights[group], epsilon, f"{what}: gated norm of group {group}")
    ]
    return [
        project(world, normal, tensors["out_proj.weight"], i, f"{what}: out_proj to lane {i}") for i in range(len(u))
    ]


def _in_groups(values: Sequence[Value], groups: int) -> list[Sequence[Value]]:
    """Shares of equal size, one after the other."""
    each = len(values) // groups
    return [values[group * each : (group + 1) * each] for group in range(groups)]


def _step(
    world: World, u: Sequence[Value], in_proj: Matrix, tensors: dict[str, Matrix], config: dict, head: int, place: str
) -> tuple[Step, tuple[Fraction, Fraction]]:
    """Δ of a head and bounds on its |A|."""
    row = 2 * config["intermediate_size"] + 2 * config["n_groups"] * config["state_size"] + head
    raw = project(world, u, in_proj, row, f"{place}: in_proj")
    bias = constant(Fraction(float(tensors["dt_bias"].dense_row(0)[head])))
    step = step_of(
        world, activation(world, exact_sum(world, [(ONE, raw), (ONE, bias)], f"{place}: Δ"), False, f"{place}: Δ")
    )
    a = decay(float(tensors["A_log"].dense_row(0)[head]))
    limit = config.get("time_step_limit")
    if isinstance(limit, list) and limit[1:] == [{"__float__": "Infinity"}]:  # so transformers writes no limit
        limit = [limit[0], float(world.format.largest)]
    if not (isinstance(limit, list) and list(map(type, limit)) == [float, float]):
        raise Rejected(f"time_step_limit is {limit!r:.60}, expected two floats, such as [0.0, 65504.0]")
    low, high = limit
    padded = step_at_pads(bias.const, f"{place}: Δ") if a[1] else Fraction(0)
    top = max(step.top, padded)
    if not (low == 0 and top <= high):
        raise Rejected(f"{place}: Δ can reach {float(top):g}, and time_step_limit is {limit!r:.60}")
    if high > float(world.format.largest):
        raise Rejected(f"{place}: time_step_limit is {high:g}, which {world.format.name} does not hold")
    if top and a not in EXACT_DECAYS:
        raise Rejected(f"{place}: Mamba-2 sums Δ·A over a chunk, which is exact for A = 0 and A = -1 only")
    if a == EXACT_DECAYS[1] and top:
        form, reach = FORMATS["float32"], top * config["chunk_size"]
        unit = min(exponent(x) for x in (padded, Fraction(2) ** step.value.unit if step.top else 0) if x)
        if reach > form.units * Fraction(2) ** unit:
            raise Rejected(
                f"{place}: Δ·A can reach {float(top):g} at each of the {config['chunk_size']} positions of a chunk"
            )
        in_range(form, reach, unit, f"{place}: the sum of Δ·A over a chunk")
    return step, a


def _check_scores(world: World, step: Step, x: Value, scores: Scores, place: str) -> None:
    """Σ_n C_n B_n, which the chunked scan forms before anything else: all is positive, and each sum is exact."""
    check_scores_range(world, step.value, scores.reach, place)
    if scores.zero or step.value.constant and not step.value.const:
        return
    if scores.negative or bounds(world, x)[0] < 0:
        raise Rejected(f"{place}: a factor of the chunked scan is negative")
    if scores.units > world.format.units:
        raise Rejected(f"{place}: C·B can reach {float(scores.units):.0f} units, beyond {world.format.units}")


@dataclass(frozen=True)
class Scores:
    """Of Σ_n C_n B_n: whether it has no terms or a negative factor, what it can reach, and that in its units."""

    zero: bool
    negative: bool
    reach: Fraction
    units: Fraction


def _scores(world: World, write: Sequence[Value], read: Sequence[Value]) -> Scores:
    terms = [(b, c) for b, c in zip(write, read, strict=True) if not (b.zero or c.zero)]
    negative = any(bounds(world, v)[0] < 0 for pair in terms for v in pair)
    unit = min((b.unit + c.unit for b, c in terms), default=0)
    reach = sum((largest(world, b) * largest(world, c) for b, c in terms), Fraction(0))
    return Scores(not terms, negative, reach, reach / Fraction(2) ** unit)
