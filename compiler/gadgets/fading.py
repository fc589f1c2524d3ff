"""Gadgets of states that fade by a given factor."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from compiler.exactness.levels import ON
from compiler.formats import FLOAT32
from compiler.gadgets.gadget import Operands
from compiler.gadgets.memory import OuterProduct
from compiler.gadgets.parts import per_lane, threshold
from compiler.gadgets.state import OneColumnState
from compiler.ir.decay import Fade, fade_by
from compiler.language import operations as ops
from compiler.language.graph import operation_of
from compiler.language.stream import Stream
from compiler.lowering.builder import BlockBuilder
from compiler.lowering.conditions import need_whole
from compiler.lowering.fitter import Fitter
from compiler.lowering.ports import Ports

LEAST_DECAY = Fraction(1, 2**64)  # below, powers of it soon leave float32, and nothing is right relatively
LARGEST_DECAY = 1 - Fraction(1, 2**18)  # above, 1/(1 − decay) is too much beside the rounding of each step


MOST_STEPS = 64  # of 128: exp(Δ·A) is then right within `fade_error` of that many


def check_fading(decay: Fraction, fitter: Fitter) -> None:
    """NotImplementedError where no error of a state that keeps this factor is proved."""
    if not LEAST_DECAY <= decay <= LARGEST_DECAY:
        raise NotImplementedError(f"its decay is {_told(decay)}, and float32 fades by 2^−64 to 1 − 2^−18")
    if fitter.facts.format is not FLOAT32:
        raise NotImplementedError(
            f"a state that fades has a proved error in float32 only, and the dtype is {fitter.facts.format.name}"
        )


def _told(decay: Fraction) -> str:
    """In nine digits; near 1 as how far it is from it, for it would be written as 1."""
    return f"1 − {_size(1 - decay)}" if decay > LARGEST_DECAY else _size(decay)


def _size(value: Fraction) -> str:
    """A positive number in nine digits, or about as a power of two where no float64 is as small."""
    power = value.numerator.bit_length() - value.denominator.bit_length()
    return f"{float(value):.9g}" if float(value) else f"about 2^{power}"


class FadingSum(OneColumnState):
    """Σ decay^(t−s)·v_s: a running sum whose A is −exp(A_log), A_log = ln(−ln(decay)/128), so that exp(128·A) = decay.

    Δ = 128 by dt_bias, B = 1/128, C = 1/32, gate 32, as for the running sum: what is written is exact. What is kept
    is right within `ir.decay.fade_error`; `exactness.error_bound` adds that up.
    """

    def operands(self, stream: Stream, target: Ports) -> Operands:
        return [(stream.inputs[0], "written")]

    def fit(self, stream: Stream, inputs: tuple[Stream, ...], fitter: Fitter) -> Stream:
        check_fading(operation_of(stream, ops.FadingSum).decay, fitter)
        return super().fit(stream, inputs, fitter)

    def written(
        self, stream: Stream, at: np.ndarray, builder: BlockBuilder
    ) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        step = {"delta_bias": ON, "decay": fade_by(operation_of(stream, ops.FadingSum).decay)}
        return *per_lane(builder, stream.inputs[0], at), step


class SelectiveSum(OneColumnState):
    """h ← decay^Δ·h + Δ·v, Δ = max(2·level − 1, 0): a fading sum whose Δ = softplus(256·level − 128) is a latch's.

    The pre-activation is −128 or less, or 128, 384, 640, …: softplus is 0 there or the number itself (E4).
    """

    def operands(self, stream: Stream, target: Ports) -> Operands:
        value, level = stream.inputs
        return [(value, "written"), (level, target.step or "lanes")]

    def rows(self, stream: Stream, wanted: np.ndarray) -> list[np.ndarray]:
        return [wanted, np.ones(1, dtype=bool)]

    def fit(self, stream: Stream, inputs: tuple[Stream, ...], fitter: Fitter) -> Stream:
        value, level = inputs
        check_fading(operation_of(stream, ops.SelectiveSum).decay, fitter)
        need_whole(fitter.domains, level)
        steps = 2 * fitter.domains.of(level).hi - 1
        if steps > MOST_STEPS:
            raise NotImplementedError(
                f"its level can be {fitter.domains.of(level).hi}, which is {steps} steps at once, and at most "
                f"{MOST_STEPS} work; clip() the level to {(MOST_STEPS + 1) // 2}"
            )
        level = fitter.at_port(level, fitter.target.step or "lanes")
        return fitter.rebuilt(stream, stream.operation, (fitter.written(value), level))

    def written(
        self, stream: Stream, at: np.ndarray, builder: BlockBuilder
    ) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        value, level = stream.inputs
        step = threshold(builder, level, np.zeros(len(at), dtype=np.int64))
        return *per_lane(builder, value, at), step | {"decay": fade_by(operation_of(stream, ops.SelectiveSum).decay)}


class FadingMemory(OuterProduct):
    """Σ decay^(t−s)·v_s·<k_s, q_t>: the outer-product memory (B = k/128, C = q/32, Δ = 128) with A as for the fading
    sum.
    """

    def fit(self, stream: Stream, inputs: tuple[Stream, ...], fitter: Fitter) -> Stream:
        check_fading(operation_of(stream, ops.FadingMemory).decay, fitter)
        return super().fit(stream, inputs, fitter)

    def column_group(self, stream: Stream) -> tuple:
        key, query = stream.inputs[1:3]
        return ("fading memory", operation_of(stream, ops.FadingMemory).decay, id(key), id(query))

    def decay(self, stream: Stream) -> Fade:
        return fade_by(operation_of(stream, ops.FadingMemory).decay)
