"""The Haar transform on real Mamba (paper A, Theorem 1).

Statement. Every Haar wavelet is approached by combinations of three S6 bases g(s; 1, x) = exp(−∫_s^1 Δ)·B, which
approach Heaviside steps as the slope w of Δ(s) = softplus(w s + b) goes to −∞. Here Δ is exactly
0 or constant, so that a channel holds Σ_{s>i} x_s, and for T = 2^J samples the last position has
all T coefficients: ψ_{j,k} takes the sums from its start, its middle (−2 times) and its end.

Two forms. "steps" are those that the theorem's bases approach. A coefficient is then a difference of long sums, which
costs some accuracy on real numbers; "bumps" (Δ on at one position, one latch a sample) has none
of that. Both are exact on integers without the factors 2^(j/2). With them they are the
orthonormal transform, whose odd powers of √2 are irrational: right to float32 rounding.

The bases of the theorem itself, for finite w, are in `haar_bases`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from compiler.artifact.numeric import NumericStack, numeric_stack
from compiler.artifact.package import bare_sizes, size_fields
from compiler.compiled import Compiled
from compiler.driver import compile
from compiler.language.circuit import Circuit
from compiler.language.source import numbers
from compiler.language.stream import Stream, constant
from compiler.language.types import Int, Real
from compiler.language.words import concatenate, latch_bank, sum_where
from constructions.construction import NumericConstruction, parameter
from constructions.papers import SELECTIVITY
from verify.haar import haar_of
from verify.tasks.haar import HaarTask
from verify.tasks.numbers import AnyNumbers, NumberTask

LARGEST = 2.0**80  # |x| of real samples; the scaled halves and their sums stay in the range of float32
LARGEST_LEVELS = 8  # compiling T·T weights takes minutes beyond
_NUMBERS_PER_RUN = 1 << 22  # batch · positions · T at a time: the block holds several arrays of this size


def haar_matrix(levels: int) -> np.ndarray:
    """(T, T) integer matrix of the unnormalised transform: a row of ones, then ±1 on the support of ψ_{j,k}, j = 0 … J
    − 1.
    """
    length = 2**levels
    rows = [np.ones(length, dtype=np.int64)]
    for j in range(levels):
        width = length >> j
        for k in range(2**j):
            row = np.zeros(length, dtype=np.int64)
            row[k * width : k * width + width // 2] = 1
            row[k * width + width // 2 : (k + 1) * width] = -1
            rows.append(row)
    return np.array(rows)


def orthonormal_factors(levels: int) -> np.ndarray:
    """(T,) float32 numbers 2^((j − J)/2) that make the rows of `haar_matrix` orthonormal (the row of ones counts as j =
    0).
    """
    scales = [0, *(j for j in range(levels) for _ in range(2**j))]
    return np.float32(2.0 ** ((np.array(scales) - levels) / 2)).astype(np.float64)


@dataclass(frozen=True)
class Haar(NumericConstruction):
    """All T = 2^levels coefficients of T samples, at the last position."""

    name: ClassVar[str] = "haar"
    theorem: ClassVar[str] = f"{SELECTIVITY}, Theorem 1"
    unsaid: ClassVar[Mapping[str, Any]] = {"arch": "mamba"}

    levels: int = parameter("J: transforms of 2^J samples", default=4)
    form: Literal["steps", "bumps"] = parameter(
        "the steps of Theorem 1, by running sums, or one latch per sample", default="steps"
    )
    orthonormal: bool = parameter("with the factors 2^(j/2), over real numbers; else ±1, over integers", default=True)
    largest: float = parameter("the largest |sample| (0: 2^80, or 2^(21 − J) for integers)", default=0.0)
    arch: Literal["mamba", "mamba2"] = parameter("which mixer (Remark 1: the theorem holds for both)", default="mamba")

    @property
    def target(self) -> str:  # type: ignore[override]
        return self.arch

    @property
    def length(self) -> int:
        return 2**self.levels

    @property
    def reach(self) -> float:
        """The largest |sample|."""
        return self.largest or (LARGEST if self.orthonormal else 2.0 ** (21 - self.levels))

    def check_sizes(self) -> None:
        if not 1 <= self.levels <= LARGEST_LEVELS:
            raise ValueError(
                f"levels = {self.levels} is outside 1 … {LARGEST_LEVELS}: the layer has more than 3·2^levels channels"
            )
        if self.form not in ("steps", "bumps"):
            raise ValueError(f"form {self.form!r} is unknown; it must be 'steps' or 'bumps'")

    def circuit(self) -> Circuit:
        self.check_sizes()
        length, top = self.length, self.reach
        x = numbers(Real(-top, top) if self.orthonormal else Int(-int(top), int(top)), "x")
        position = numbers(Int(1, length), "position")
        held = _suffix_sums(x, position, length) if self.form == "steps" else _samples(x, position, length)
        matrix = _on_suffix_sums(self.levels) if self.form == "steps" else haar_matrix(self.levels)
        factors = orthonormal_factors(self.levels) if self.orthonormal else np.ones(length)
        output = ((factors[:, None] * matrix) @ held).named("coefficients")
        return Circuit("haar", output, length=length)

    def tasks(self) -> list[NumberTask]:
        return [AnyNumbers(self.circuit()), HaarTask(self.levels, self.orthonormal, self.reach)]

    def asks_where(self) -> str:
        return f"at position {self.length}, where the positions are 1, 2, 3, …"

    def beyond(self) -> str:
        """Remark 1 of the paper has both mixers."""
        return "one latch for each sample" if self.form == "bumps" else ""

    def otherwise(self) -> str:
        """The theorem's bases are steps by their decay; these are by Δ in front of B, with A = 0."""
        return "by running sums (A = 0)" if self.form == "steps" else ""


@dataclass(frozen=True, eq=False)
class HaarLayer:
    """A compiled transform: call it on samples (batch, T)."""

    parameters: Haar
    compiled: Compiled

    @property
    def length(self) -> int:
        return self.parameters.length

    @cached_property
    def stack(self) -> NumericStack:
        return numeric_stack(self.compiled)

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        """All T coefficients at the last position, (batch, T) float64: the mean first, then by scale j and shift k."""
        samples = np.asarray(samples, dtype=np.float64)
        if samples.ndim != 2 or samples.shape[1] != self.length:
            raise ValueError(f"the samples have shape {samples.shape}, and (batch, {self.length}) is needed.")
        rows = max(1, _NUMBERS_PER_RUN // self.length**2)
        parts = [samples[start : start + rows] for start in range(0, len(samples), rows)]
        return np.concatenate([self.stack.run({"x": part[..., None]})[:, -1] for part in parts])


def build_haar(
    levels: int,
    form: Literal["steps", "bumps"] = "steps",
    orthonormal: bool = True,
    largest: float = 0,
    arch: Literal["mamba", "mamba2"] = "mamba",
) -> HaarLayer:
    """Compile the transform of 2^levels samples with |x| ≤ largest (default: 2^80, or 2^(21 − levels) for integers)."""
    parameters = Haar(levels, form, orthonormal, largest, arch)
    return HaarLayer(parameters, compile(parameters.circuit(), arch))


def _suffix_sums(x: Stream, position: Stream, length: int) -> Stream:
    """Lane i holds Σ_{s>i} x_s, i = 0 … T − 1: Δ_i is a Heaviside step of the position."""
    after = concatenate(*(position > i for i in range(length)))
    return sum_where(x, after).named("suffix")


def _samples(x: Stream, position: Stream, length: int) -> Stream:
    """Lane i holds x_{i+1}, latched when its position comes."""
    return latch_bank(x, (position - constant(1)).one_hot(length)).named("sample")


def _on_suffix_sums(levels: int) -> np.ndarray:
    """The same coefficients from the suffix sums: 1, −2 and 1 at the start, middle and end of each wavelet
    (Theorem 1).
    """
    length = 2**levels
    sums = np.triu(np.ones((length, length), dtype=np.int64))  # row i: which samples the sum from i has
    return np.round(haar_matrix(levels) @ np.linalg.inv(sums)).astype(np.int64)


def haar_pyramid(samples: np.ndarray) -> np.ndarray:
    """The orthonormal transform (batch, T) by the classic pyramid of sums and differences, in float64, in our order of
    rows.
    """
    approximation, details = np.asarray(samples, dtype=np.float64), []
    while approximation.shape[-1] > 1:
        even, odd = approximation[..., 0::2], approximation[..., 1::2]
        details.append((even - odd) / np.sqrt(2))
        approximation = (even + odd) / np.sqrt(2)
    return np.concatenate([approximation, *reversed(details)], axis=-1)


def haar_report(
    levels: int,
    form: Literal["steps", "bumps"] = "steps",
    samples: int = 256,
    seed: int = 0,
    arch: Literal["mamba", "mamba2"] = "mamba",
) -> dict:
    """Build both transforms, run them on random samples, and say what came out: plain numbers for JSON.

    integers_exact: whether the ±1 transform of integers, the largest allowed included, is `haar_of` in Python's
        integers.
    largest_error:  of the orthonormal transform, over Σ|x| of its sequence, against the pyramid in float64.
    """
    if samples < 1:
        raise ValueError(f"samples = {samples} must be at least 1")
    whole = build_haar(levels, form, orthonormal=False, arch=arch)
    rng, top = np.random.default_rng(seed), 2 ** (21 - levels)
    integers = np.concatenate([rng.integers(-top, top + 1, (samples, whole.length)), top * haar_matrix(levels)])
    reals = np.float32(rng.standard_normal((samples, whole.length))).astype(np.float64)
    real = build_haar(levels, form, arch=arch)
    error = float((np.abs(real(reals) - haar_pyramid(reals)).max(axis=1) / np.abs(reals).sum(axis=1)).max())
    sizes = [size_fields(size) for size in bare_sizes(whole.compiled)]
    return {
        "theorem": whole.parameters.statement(),
        "levels": levels,
        "form": form,
        "arch": arch,
        "sizes": {name: max(size[name] for size in sizes) for name in sizes[0]} | {"layers": len(sizes)},
        "bound": whole.parameters.bound(),
        "sequences": len(integers) + len(reals),
        "integers_exact": bool(np.array_equal(whole(integers), [haar_of(row) for row in integers.tolist()])),
        "largest_error": error,
        "largest_error_is_over": "Σ|x| of a sequence",
    }
