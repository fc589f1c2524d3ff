"""The generalisation bound of selective layers (paper C, Theorems 3, 4 and 5): what of it can be evaluated.

Our text of the paper has lost the whole inequality. All of it is RECONSTRUCTED from the words and from the lemmas that
they cite: the form of the inequality; the argument of the logarithm; the factor 2√2; the factors (rho + 1), 3 and
(rho + 2)²; the factor 1/(1 − K); the norms in rho. What the paper has in the logarithm cannot be read; here it is
2·channels·states·classes. Use the value for how it scales, never as the paper's number.

`magnitude` is a substitute that is proved in its docstring and independent of what was lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, isnan, log, sqrt

import numpy as np

from verify.arguments import at_least

LARGEST_RHO = 1e150
LARGEST_COUNT = 10**18
MOST_DRAWN = 1 << 22  # numbers of a random layer's state
RECONSTRUCTED = (
    "the form of the inequality",
    "the argument of the logarithm",
    "the factor 2√2",
    "the factors (rho + 1), 3 and (rho + 2)²",
    "the factor 1/(1 − K)",
    "the norms in rho",
)


@dataclass(frozen=True)
class GeneralizationBound:
    """err_D − err_S^margin ≤ complexity + confidence, with probability 1 − delta."""

    complexity: float
    confidence: float
    reconstructed: tuple[str, ...] = RECONSTRUCTED

    @property
    def total(self) -> float:
        return self.complexity + self.confidence


def generalization(
    rho: float,
    contraction: float,
    margin: float,
    samples: int,
    delta: float,
    channels: int,
    states: int,
    classes: int,
    data_norm: float | None = None,
) -> GeneralizationBound:
    """Theorems 3 and 5 as reconstructed, for a layer with |Ā| ≤ contraction < 1; the length does not enter.

    complexity = (2√2/(margin·m))·(rho + 1)·(1 + √(2 ln(2·channels·states·classes)))·data_norm/(1 − contraction)
    confidence = 3·√(ln(2(rho + 2)²/delta)/(2m))

    rho:       product of the norms of S_A, S_B, S_C and the classifier (Eq 35-36).
    data_norm: max over positions and coordinates of √(Σ_j ‖·‖²) over the m samples; √m where Eq 12 holds (None).
    """
    _between("contraction", contraction, "the states then grow without bound")
    _between("delta", delta, "it is a probability of failure")
    for name, value in (("samples", samples), ("channels", channels), ("states", states), ("classes", classes)):
        at_least(name, value, 1, "there is at least one")
        if value > LARGEST_COUNT:  # a float may not hold it
            raise ValueError(f"{name} is too large; the largest is {LARGEST_COUNT:,}.")
    if isnan(rho):
        raise ValueError("rho is no number, and a product of norms is one from 0 on.")
    at_least("rho", rho, 0, "it is a product of norms")
    if rho > LARGEST_RHO:
        raise ValueError(f"rho = {rho:g} is too large, because its square is taken; the largest is {LARGEST_RHO:g}.")
    if not margin > 0:
        raise ValueError(f"margin = {margin} is no margin; it must be positive.")
    bound = GeneralizationBound(
        2 * sqrt(2) / margin * rademacher(rho + 1, contraction, samples, channels, states, classes, data_norm),
        3 * sqrt((log(2) + 2 * log(rho + 2) - log(delta)) / (2 * samples)),  # 1/delta may be beyond every float
    )
    if not isfinite(bound.total):
        raise ValueError(f"margin = {margin} is so small that the bound lies beyond every float; choose a larger one.")
    return bound


def rademacher(
    rho: float,
    contraction: float,
    samples: int,
    channels: int,
    states: int,
    classes: int,
    data_norm: float | None = None,
) -> float:
    """Theorem 4, as reconstructed: a bound on the Rademacher complexity of the layers with norm product at most rho."""
    data = sqrt(samples) if data_norm is None else data_norm
    return rho / samples * (1 + sqrt(2 * log(2 * channels * states * classes))) * data / (1 - contraction)


def magnitude(classifier: float, write: float, read: float, contraction: float) -> float:
    """‖W_c‖₂·‖S_B‖_F·‖S_C‖_F/(1 − contraction), which |<W_c, y_L>| never exceeds if every ‖x_t‖₂ ≤ 1 and |Ā| ≤
    contraction.

    Proof: y_L[d] = Σ_s (Π_{k>s} Ā_k[d])·<S_C x_L, S_B x_s>·x_s[d] up to the transitions, which are at most
    contraction^(L−s) in absolute value, coordinate by coordinate. So ‖y_L‖ ≤ Σ_s contraction^(L−s)·‖S_C‖·‖S_B‖,
    a geometric sum, for every length L.
    """
    _between("contraction", contraction, "the states then grow without bound")
    return classifier * write * read / (1 - contraction)


def measured_magnitude(
    norms: float, contraction: float, channels: int, states: int, length: int = 64, layers: int = 8, seed: int = 0
) -> dict[str, float | bool]:
    """The largest |<W_c, y_L>| of random layers whose three norms multiply to `norms`, beside `magnitude`; JSON-able.

    Half of the layers are as bad as they can be: rank one, every transition at the contraction, every input the same
    direction.
    """
    if channels * states > MOST_DRAWN:
        raise ValueError(
            f"channels · states is {channels * states:,}, and random layers of at most {MOST_DRAWN:,} are measured."
        )
    rng, largest, sizes = np.random.default_rng(seed), 0.0, (channels, states)
    for number in range(layers):
        worst = number % 2 == 1
        direction = _unit(rng.normal(size=channels))
        rows = _unit(rng.normal(size=states))
        write, read = (
            (np.outer(rows, direction) for _ in range(2))
            if worst
            else (_unit(rng.normal(size=sizes[::-1])) for _ in range(2))
        )
        classifier = norms * (direction if worst else _unit(rng.normal(size=channels)))
        state = np.zeros(sizes)
        for _ in range(length):
            x = direction if worst else _unit(rng.normal(size=channels)) * rng.uniform()
            keep = contraction if worst else contraction * rng.uniform(-1, 1, size=(channels, 1))
            state = keep * state + np.outer(x, write @ x)
        largest = max(largest, abs(float(classifier @ (state @ (read @ x)))))
    bound = magnitude(norms, 1.0, 1.0, contraction)
    return {"largest_output": largest, "bound": bound, "within_bound": largest <= bound * (1 + 2.0**-40)}


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x)


def _between(name: str, value: float, otherwise: str) -> None:
    if not value < 1 or value < 0 or (name == "delta" and value == 0):
        if isnan(value):
            raise ValueError(f"{name} is no number; it must lie between 0 and 1.")
        if value < 0 and name == "contraction":
            otherwise = "no absolute value |Ā| is below 0"
        raise ValueError(f"{name} = {value} must lie between 0 and 1, because {otherwise}.")
