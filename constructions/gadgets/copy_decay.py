"""Theorem 1 of paper B: COPY by a state of constant size that fades, its error measured on built weights against the
bound.

The circuit is one line: `memory.outer_sum(x, write=b, read=c, decay=a)`, equation (6) with Δ = 1 and one decay. With a
factor that depends on the token, a_t = decay^Δ_t and v_t = Δ_t·x_t for Δ_t of 0, 1 or 3, it is a product,
`fading_sum(…, level=…)` and another product, for then b_t and c pass the channels. Instances are drawn so that
Assumption 1 holds, and half of them adversarially: every term of the sum points the same way, so that the bound is
nearly reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler import digits
from verify.arguments import at_least
from verify.copy_bound import ASSUMPTIONS, CopyReport, copy_report

if TYPE_CHECKING:
    from compiler.language.stream import Stream

COLUMNS, WIDTH = 4, 2  # d_state and the width of x
LEVELS = 3  # Δ is 0, 1 or 3
LEAST_RANGE, LARGEST_RANGE = 2.0, 2.0**20  # of b, as the circuit declares it
MOST_NUMBERS = 1 << 22  # positions of all instances together; a few arrays hold four numbers for each
ROOM = 2.0**-20  # what is left below a limit, for scores are rounded to what float32 vectors give


@dataclass(frozen=True)
class Instances:
    """Arrays over n sequences of length T: a (n, T); b (n, T, N); c (n, N); x, step (n, T, d); pos, rho (n,); δ; L.

    level: (n, T) where the factor depends on the token, step = max(2·level − 1, 0).
    """

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    x: np.ndarray
    step: np.ndarray
    pos: np.ndarray
    rho: np.ndarray
    delta: float
    window: int
    level: np.ndarray | None = None

    def report(self) -> CopyReport:
        return copy_report(self.a, self.b, self.c, self.x, self.step, self.pos, self.rho, self.delta, self.window)


def draw(
    count: int, length: int, window: int, delta: float, decay: float | None, seed: int, selective: bool = False
) -> Instances:
    """Instances that satisfy Assumption 1 with M = 1.

    decay: the same at every step, None for steps of their own in (0.7, 1]; selective: its power Δ_t at step t.

    The numbers are float32 numbers, for the module is given no others.
    """
    at_least("length", length, window, "the window lies within the sequence")
    if count * length > MOST_NUMBERS:
        raise ValueError(
            f"{count} instances of {length} positions are {count * length:,}, and at most {MOST_NUMBERS:,} are drawn; "
            f"use at most {MOST_NUMBERS // length} samples"
        )
    rng = np.random.default_rng(seed)
    level = np.random.default_rng([seed, 1]).integers(0, LEVELS, (count, length)) if selective else None
    steps = np.ones((count, length)) if level is None else np.maximum(2 * level - 1, 0)
    a = rng.uniform(0.7, 1, (count, length)) if decay is None else decay**steps
    pos = rng.integers(length - window + 1, length + 1, count)
    rows = np.arange(count)
    weight = np.cumprod(np.concatenate([a[:, 1:], np.ones((count, 1))], axis=1)[:, ::-1], axis=1)[:, ::-1]
    adversarial = rng.integers(0, 2, (count, 1)).astype(bool)

    share = np.where(adversarial, 1, rng.uniform(0, 1, (count, length)))
    score = (delta - ROOM) * share * rng.choice([-1, 1], (count, length))
    missed = 10 ** rng.uniform(-3, -0.3, count)  # 1 − α_p·(c·b_p)
    late = (np.arange(length) >= length - window) & (rng.random((count, length)) < 0.3)
    late[rows, pos - 1] = False
    budget = (missed - 4 * ROOM) * np.where(adversarial[:, 0], 1, rng.random(count)) / np.maximum(late.sum(axis=1), 1)
    score = np.where(late, np.sign(score) * budget[:, None] / weight, score)
    score[rows, pos - 1] = (1 - missed) / weight[rows, pos - 1]

    c = rng.choice([-1.0, 1.0], (count, COLUMNS))
    noise = rng.uniform(-1, 1, (count, length, COLUMNS))
    noise -= np.einsum("nts,ns->nt", noise, c)[..., None] * c[:, None] / COLUMNS
    with np.errstate(over="ignore"):  # what fades too far is refused by name where a module is built
        b = (score[..., None] * c[:, None] / COLUMNS + noise).astype(np.float32).astype(float)
    score = np.einsum("nts,ns->nt", b, c)  # as rounded: Assumption 1 is asked of these
    pull = np.sign(score)
    pull[rows, pos - 1] = -1
    drawn = rng.uniform(-1, 1, (count, length, WIDTH)).astype(np.float32).astype(float)
    x = np.where(adversarial[..., None], pull[..., None], drawn)
    step = (
        np.repeat(steps[..., None], WIDTH, axis=2)
        if decay is not None
        else np.where(adversarial[..., None], 1, rng.uniform(0.1, 2, x.shape))
    )
    return Instances(a, b, c, x, step, pos, score[rows, pos - 1], delta, window, level)


def report(
    samples: int = 10_000, length: int = 16, window: int = 4, delta: float = 1 / 64, seed: int = 0
) -> dict[str, Any]:
    """Bound, theorem and measured error for general decays by formula; on the built module for several fixed
    ones and for factors that depend on the token.
    """
    at_least("samples", samples, 2, "half of the instances are adversarial")
    formula = draw(samples, length, window, delta, None, seed).report()
    built = [("7/8", False), ("15/16", False), ("63/64", False), ("7/8", True), ("63/64", True)]
    rows = [_built(Fraction(decay), samples, length, window, delta, seed, levels) for decay, levels in built]
    broken = _broken(samples, length, window, delta, seed)
    return {
        "theorem": "paper B, Theorem 1 with the corrected bound",
        "samples": samples,
        "length": length,
        "window": window,
        "delta": delta,
        "formula": _summary(formula),
        "rows": rows,
        "broken": broken,
        "good": all(row["within_bound"] for row in rows) and not _summary(formula)["violations"],
    }


def _summary(found: CopyReport) -> dict[str, Any]:
    held = found.holds
    ratio = _shares(found.error, found.bound)[held]
    return {
        "instances": int(held.sum()),
        "violations": int((found.error > found.bound * (1 + 1e-9))[held].sum()),
        "theorem_violations": int((found.error > found.theorem * (1 + 1e-9))[held].sum()),
        "tightness": float(ratio.max()),
        "median_ratio": float(np.median(ratio)),
    }


def key_range(instances: Instances) -> float:
    """The least power of two, from 2 on, that no entry of a key exceeds.

    A token that has faded to α is copied by a score of 1/α, so keys grow as the window does.
    """
    largest = float(np.abs(instances.b).max())
    return max(LEAST_RANGE, 2.0 ** np.ceil(np.log2(largest))) if np.isfinite(largest) else np.inf


def module_outputs(instances: Instances, decay: Fraction) -> tuple[np.ndarray, float]:
    """(y of the built module at the last position (n, d), how far the module may be from the exact y) for one decay."""
    from compiler import Circuit, Int, Real, compile, memory, numbers
    from compiler.artifact.numeric import numeric_stack

    x = numbers(Real(-1, 1, WIDTH), "x")
    keys = key_range(instances)
    b = numbers(Real(-keys, keys, COLUMNS), "b")
    c = numbers(Real(-1, 1, COLUMNS), "c")
    inputs = {x: instances.x, b: instances.b}
    if instances.level is None:
        copied = memory.outer_sum(x, write=b, read=c, decay=decay)
    else:
        level = numbers(Int(0, LEVELS - 1), "level")
        copied, inputs[level] = _selective_copy(x, b, c, decay, level), instances.level[..., None]
    made = compile(Circuit("copy-decay", copied, length=instances.a.shape[1]))
    if made.error_bound is None:
        raise ArithmeticError("the compiler knows no error bound of a fading memory.")
    queries = np.repeat(instances.c[:, None], instances.a.shape[1], axis=1)
    outputs = numeric_stack(made).run(inputs | {c: queries})
    return outputs[:, -1], made.error_bound


def _selective_copy(x: Stream, b: Stream, c: Stream, decay: Fraction, level: Stream) -> Stream:
    """Σ_j α_j·Δ_j·x_j·<b_j, c>: lane (i, n) of the state keeps x_i·b_n."""
    from compiler import fading_sum

    each_x, each_column = np.eye(WIDTH), np.eye(COLUMNS)
    spread, tiled = np.kron(each_x, np.ones((COLUMNS, 1))), np.kron(np.ones((WIDTH, 1)), each_column)
    held = fading_sum((spread @ x) * (tiled @ b), decay, level=level)
    return np.kron(each_x, np.ones((1, COLUMNS))) @ (held * (tiled @ c))


def _built(
    decay: Fraction, samples: int, length: int, window: int, delta: float, seed: int, selective: bool
) -> dict[str, Any]:
    instances = draw(samples, length, window, delta, float(decay), seed + 1, selective)
    name, keys = f"({decay})^Δ" if selective else str(decay), key_range(instances)
    too_far = f"window = {window} is too far back for decay {name}: keys of up to {keys:g} make up for what has faded"
    if keys > LARGEST_RANGE:
        raise ValueError(f"{too_far}, and at most {LARGEST_RANGE:g} is tried; use a shorter window")
    found = instances.report()
    outputs, rounding = module_outputs(instances, decay)
    if not rounding < found.bound.max():
        raise ValueError(
            f"{too_far}, and float32 may then be off by {digits.at_most(rounding, 2)}, more than the bound on the copy "
            f"({digits.at_most(found.bound.max(), 2)}) that it is compared with; use a shorter window"
        )
    target = (instances.step * instances.x)[np.arange(samples), instances.pos - 1]
    measured = np.abs(outputs - target).max(axis=1)
    held = found.holds
    return {
        "decay": name,
        **_summary(found),
        "largest_error": float(measured[held].max()),
        "largest_bound": float(found.bound[held].max()),
        "module_off": float(np.abs(measured - found.error).max()),
        "module_bound": rounding,
        "within_bound": bool((measured <= found.bound + rounding)[held].all() and held.all()),
        "ratios": np.sort(_shares(measured, found.bound)[held]).tolist(),
    }


def _shares(error: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """error / bound; 0 where both are 0, as they are where no position has a step."""
    return np.divide(error, bound, out=np.where(error > 0, np.inf, 0.0), where=bound > 0)


def _broken(samples: int, length: int, window: int, delta: float, seed: int) -> list[dict[str, Any]]:
    """What the calculator says where one assumption is broken on purpose, and how often the bound then fails."""
    from dataclasses import replace

    whole = draw(samples, length, window, delta, 15 / 16, seed + 2)
    far = whole.b + whole.c[:, None] * (np.arange(length) < length - window)[None, :, None] * 0.25
    outside = {"mismatch": replace(whole, b=far)} if window < length else {}  # else every position is in the window
    cases = outside | {
        "match": replace(whole, rho=whole.rho + 0.5),
        "sum": replace(whole, b=whole.b * 2, rho=whole.rho * 2),
        "values": replace(whole, x=whole.x * 3),
    }
    rows = []
    for name, instances in cases.items():
        found = instances.report()
        named = sum(ASSUMPTIONS[name] in found.fails(i) for i in range(min(samples, 200)))
        wrong = float((found.error > found.bound).mean())
        rows.append({"assumption": ASSUMPTIONS[name], "named": named / min(samples, 200), "bound_fails": wrong})
    return rows


def draw_tightness(result: dict[str, Any], path: Any) -> None:
    """The share of the bound that the measured error of the built module reaches, instance by instance, sorted."""
    from matplotlib.figure import Figure

    from constructions.pictures.page import save

    figure = Figure(figsize=(5.5, 3.6), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    for row in result["rows"]:
        ratios = np.array(row["ratios"])
        axes.plot(np.linspace(0, 1, len(ratios)), ratios, label=f"decay {row['decay']}")
    axes.axhline(1, color="black", linewidth=0.8, linestyle="--", label="bound")
    axes.set_xlabel(f"share of {result['samples']} instances")
    axes.set_ylabel("measured error / bound")
    axes.set_title(f"COPY by a fading state, T = {result['length']}, L = {result['window']}", fontsize=10)
    axes.legend(fontsize=8)
    save(figure, path)
