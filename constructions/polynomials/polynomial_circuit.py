"""A circuit language for the polynomial S6: blocks of named channels over named lanes.

A *lane* is one number of a token between blocks; a *channel* lives inside a block:

    h_t = keep_t·h_{t−1} + value_t,     out lane += weight · h_t · gate_t

(B = C = 1 unless the block says otherwise). `value` and `gate` are linear in the block's
input lanes, `keep`, B and C in the values of the block's channels. The constant 1 is the sum
of the lanes `one` (one-hot positions), so no bias is needed; every lane in `one` is passed
on by a channel that keeps nothing, unless the residual carries it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from compiler.errors import CompileError
from constructions.polynomials.polynomial_s6 import PolynomialBlock, PolynomialNetwork, affine
from constructions.polynomials.polynomial_transition import Linear, Need, Transition

Form = Mapping[str, Fraction | int]  # Σ coefficient · name
ONE = "one"  # in a form: the constant 1
ALWAYS: Form = {ONE: 1}


@dataclass(frozen=True)
class Channel:
    """value, gate: over input lanes; keep: over channel names; out: over output lanes.

    ONE may stand in each but the last.
    """

    name: str
    value: Form
    keep: Form = field(default_factory=dict)
    gate: Form = field(default_factory=lambda: ALWAYS)
    out: Form = field(default_factory=dict)

    @property
    def need(self) -> Need:
        """What this channel asks of the transition."""
        if not self.keep:
            return Need.FORGET
        return Need.KEEP if self.keep == ALWAYS else Need.VALUE


@dataclass(frozen=True)
class Layer:
    """The channels of a block and the new lanes they write.

    write, read: B and C, one form over channels per state column; constant: what is added to a lane at every position.
    """

    channels: Sequence[Channel]
    lanes: Sequence[str]
    write: Sequence[Form] = (ALWAYS,)
    read: Sequence[Form] = (ALWAYS,)
    constant: Form = field(default_factory=dict)


@dataclass(frozen=True)
class PolynomialCircuit:
    """inputs: lanes of the first block; one: the lanes whose sum is 1; residual: whether blocks add to the lanes."""

    inputs: Sequence[str]
    one: Sequence[str]
    layers: Sequence[Layer]
    residual: bool = False

    def widths(self) -> list[int]:
        """Lanes before the first block and after each; with a residual the common width."""
        if self.residual:
            total = len(self.inputs) + sum(len(layer.lanes) for layer in self.layers)
            return [total] * (len(self.layers) + 1)
        passed = [len(self.one)] * (len(self.layers) - 1) + [0]
        return [len(self.inputs), *(len(layer.lanes) + more for layer, more in zip(self.layers, passed, strict=True))]


def lower(circuit: PolynomialCircuit, transition: Transition = Linear()) -> PolynomialNetwork:
    """The circuit's weights; CompileError naming the first channel of each need that the transition cannot meet."""
    _check(circuit, transition)
    lanes = tuple(circuit.inputs)
    everything = (*lanes, *(name for layer in circuit.layers for name in layer.lanes))
    blocks = []
    for number, layer in enumerate(circuit.layers):
        last = number == len(circuit.layers) - 1
        before = everything if circuit.residual else lanes
        after = everything if circuit.residual else (*layer.lanes, *(() if last else circuit.one))
        blocks.append(_block(circuit, layer, before, after))
        lanes = after
    return PolynomialNetwork(tuple(blocks), transition)


def _check(circuit: PolynomialCircuit, transition: Transition) -> None:
    first: dict[Need, str] = {}
    for number, layer in enumerate(circuit.layers, start=1):
        for channel in (*layer.channels, *_constants(circuit, ())):  # a constant alone has channels of the second kind
            first.setdefault(channel.need, f"block {number}, channel {channel.name}")
    plain = (ALWAYS,)
    reasons = [
        (
            None,
            (
                f"block {number}: its B or C is not 1, so no channel can pass the lanes of "
                "the constant on; use the residual."
            ),
        )
        for number, layer in enumerate(circuit.layers, start=1)
        if (tuple(layer.write), tuple(layer.read)) != (plain, plain)
        and (layer.constant or not circuit.residual and number < len(circuit.layers))
    ]
    reasons += [(None, f"{where}: {reason}.") for need, where in first.items() if (reason := transition.refusal(need))]
    if reasons:
        raise CompileError(reasons)


def _block(
    circuit: PolynomialCircuit, layer: Layer, before: tuple[str, ...], after: tuple[str, ...]
) -> PolynomialBlock:
    channels = (*layer.channels, *_constants(circuit, after))
    ones = [c.name for c in channels[len(layer.channels) :]]
    lane_at = {name: i for i, name in enumerate(before)}
    channel_at = {channel.name: i for i, channel in enumerate(channels)}
    target_at = {name: i for i, name in enumerate(after)}

    def over_lanes(form: Form) -> dict[int, Fraction | int]:
        return _row(form, lane_at, circuit.one)

    def over_channels(form: Form) -> dict[int, Fraction | int]:
        return _row(form, channel_at, ones)

    out: list[dict[int, Fraction | int]] = [{} for _ in after]
    for i, channel in enumerate(channels):
        for lane, weight in channel.out.items():
            out[target_at[lane]][i] = weight
        for lane, weight in layer.constant.items() if i >= len(layer.channels) else ():
            out[target_at[lane]][i] = weight
    return PolynomialBlock(
        affine([over_lanes(c.value) for c in channels], len(before)),
        affine([over_lanes(c.gate) for c in channels], len(before)),
        affine([over_channels(c.keep) for c in channels], len(channels)),
        affine([over_channels(form) for form in layer.write], len(channels)),
        affine([over_channels(form) for form in layer.read], len(channels)),
        affine(out, len(channels)),
        tuple(c.name for c in channels),
        before,
        after,
        circuit.residual,
    )


def _constants(circuit: PolynomialCircuit, after: tuple[str, ...]) -> list[Channel]:
    """Channels whose values sum to 1: one for each position lane that must be passed on, one for all with a
    residual.
    """
    if circuit.residual:
        return [Channel("one", dict.fromkeys(circuit.one, 1))]
    return [Channel(name, {name: 1}, out={name: 1} if name in after else {}) for name in circuit.one]


def _row(form: Form, at: dict[str, int], ones: Sequence[str]) -> dict[int, Fraction | int]:
    row: dict[int, Fraction | int] = {}
    for name, weight in form.items():
        for member in ones if name == ONE else (name,):
            row[at[member]] = row.get(at[member], 0) + weight
    return row
