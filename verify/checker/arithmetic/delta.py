"""One block of a Gated DeltaNet, operation by operation as `OlmoHybridGatedDeltaNet` and `Qwen3_5GatedDeltaNet` of
transformers compute it.

    (q, k, v) = silu(conv(W u)), without a bias      q, k over √(|x|² + 10⁻⁶)      β = c·σ(W_b u)
    g = −exp(A_log)·softplus(W_a u + dt_bias)        S ← e^g (I − β k kᵀ) S + β k vᵀ        o = Sᵀ q/√d_k
    y = w·o/√(mean(o²) + ε) · silu(W_g u)            out = W_o y

The delta rule runs in float32 whatever the dtype, step by step or in chunks of at most 64 positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from verify.checker.arithmetic.heads import CHUNK, FLOAT32, Head, head_output
from verify.checker.arithmetic.mamba import ONE, convolved, project
from verify.checker.arithmetic.pads import step_at_pads
from verify.checker.arithmetic.sums import activation, exact_product, exact_sum, in_range
from verify.checker.delta_family import LARGEST_BETA, silent
from verify.checker.files import Matrix
from verify.checker.formats import ERASED, Rejected, decay, exponent
from verify.checker.values.bounds import bounds, values_of
from verify.checker.values.values import Value, World, constant, scaled

SURE = Fraction(64)  # σ(x) = 1 for x at or above this
_NAMES = {"g_proj": "in_proj_z", "a_proj": "in_proj_a", "b_proj": "in_proj_b", "o_proj": "out_proj", "o_norm": "norm"}
_EPSILON = {"olmo_hybrid": 1e-5}  # of a head's norm, where the class does not read it from the config


def check_silent(tensors: dict[str, Matrix], config: dict) -> None:
    """MLPs and attention add 0, as each of their tensors is 0 (lemma of every entry)."""
    for name in silent(config):
        if tensors[name].data.size:
            raise Rejected(
                f"{name} has an entry other than 0, and the checker knows that part of the model silent only"
            )


def delta_block(world: World, u: Sequence[Value], tensors: dict[str, Matrix], config: dict, what: str) -> list[Value]:
    """What the mixer adds to every lane."""
    tensors = _in_parts(tensors, config)
    heads, d_k, d_v = (config[f"linear_{k}"] for k in ("num_value_heads", "key_head_dim", "value_head_dim"))
    rows = convolved(world, u, tensors["qkv"], tensors, what)
    keyed = heads * d_k
    weight = tensors["o_norm"].dense_row(0)
    epsilon = _EPSILON.get(config["model_type"], config["rms_norm_eps"])
    outputs = []
    for h in range(heads):
        place = f"{what}: head {h}"
        query, key = (rows[start + h * d_k : start + (h + 1) * d_k] for start in (0, keyed))
        value = rows[2 * keyed + h * d_v : 2 * keyed + (h + 1) * d_v]
        beta = _beta(world, u, tensors["b_proj"], h, LARGEST_BETA[config["model_type"]], place)
        forgets = _forgets(world, u, tensors, h, place)
        gates = []
        for c in range(h * d_v, (h + 1) * d_v):
            gate = project(world, u, tensors["g_proj"], c, f"{what}: gate {c}")
            gates.append(activation(world, gate, True, f"{what}: gate {c}"))
        found = head_output(world, Head(query, key, value, beta, forgets), weight, epsilon, place)
        pairs = enumerate(zip(found, gates, strict=True))
        outputs += [exact_product(world, y, gate, f"{place}: column {c}·silu(g)") for c, (y, gate) in pairs]
    return [project(world, outputs, tensors["o_proj"], i, f"{what}: o_proj to lane {i}") for i in range(len(u))]


def _in_parts(tensors: dict[str, Matrix], config: dict) -> dict[str, Matrix]:
    """By one set of names, of which `convolved` knows those of a convolution."""
    if config["model_type"] == "olmo_hybrid":
        found = {name.removesuffix(".weight"): tensor for name, tensor in tensors.items()}
        found["qkv"] = _stacked([found[f"{name}_proj"] for name in "qkv"])
    else:
        found = {ours: tensors[f"{theirs}.weight"] for ours, theirs in _NAMES.items()}
        found |= {"A_log": tensors["A_log"], "dt_bias": tensors["dt_bias"], "qkv": tensors["in_proj_qkv.weight"]}
    nothing = np.zeros(0, np.int64)
    taps = tensors["conv1d.weight"]
    found["conv1d.bias"] = Matrix((1, taps.shape[0]), nothing, nothing, np.zeros(0))
    return found | {"conv1d.weight": taps}


def _stacked(parts: Sequence[Matrix]) -> Matrix:
    """One above the other."""
    above = np.cumsum([0, *(part.shape[0] for part in parts)])
    rows = np.concatenate([part.rows + first for part, first in zip(parts, above, strict=False)])
    cols, data = (np.concatenate([getattr(part, name) for part in parts]) for name in ("cols", "data"))
    return Matrix((int(above[-1]), parts[0].shape[1]), rows, cols, data)


def _beta(world: World, u: Sequence[Value], rows: Matrix, head: int, largest: int, place: str) -> Fraction:
    """c·σ(b) of a b that is the same everywhere, and 0 or so large that σ is 1."""
    b = project(world, u, rows, head, f"{place}: b_proj")
    if not b.constant or (b.const and b.const < SURE):
        lo, hi = bounds(world, b)
        raise Rejected(
            f"{place}: the input of its β is from {float(lo):g} to {float(hi):g}, expected 0 or {SURE}, always"
        )
    return Fraction(largest) if b.const else Fraction(largest, 2)


def _forgets(world: World, u: Sequence[Value], tensors: dict[str, Matrix], head: int, place: str) -> Value:
    """1 where e^g = 0, and 0 where e^g = 1 (lemma of decay); Rejected where it may be between."""
    a = decay(float(tensors["A_log"].dense_row(0)[head]))
    raw = project(world, u, tensors["a_proj"], head, f"{place}: a_proj")
    bias = constant(Fraction(float(tensors["dt_bias"].dense_row(0)[head])))
    total = exact_sum(world, [(ONE, raw), (ONE, bias)], f"{place}: the step of its decay")
    if not a[1]:
        return constant(0)  # exp(A_log) = 0: whatever the step, g = -0
    step = activation(world, total, False, f"{place}: the step of its decay")
    padded = step_at_pads(bias.const, f"{place}: the step of its decay")
    if step.zero and not padded:
        return constant(0)
    values = values_of(world, step)
    if values is None or len({v for v in values if v}) != 1 or a != (ONE, ONE) or max(values) < ERASED:
        raise Rejected(f"{place}: its decay is neither 0 nor 1 everywhere")
    reach, unit = max(*values, padded) * CHUNK, min(step.unit, exponent(padded) if padded else step.unit)
    if reach > FLOAT32.units * Fraction(2) ** unit:
        raise Rejected(f"{place}: the sum of its steps over {CHUNK} positions of a chunk is not exact")
    in_range(FLOAT32, reach, unit, f"{place}: the sum of its steps over a chunk")
    return scaled(step, 1 / max(values))
