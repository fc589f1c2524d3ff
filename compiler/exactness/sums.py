"""Exactness: every number that the blocks form stays within the integers of the dtype.

Sums of lattice values are exact, in any order, while they stay below 2^p steps, p the
significand of the dtype (exactness E11). This pass bounds every sum in steps, from
the domains, and refuses with the operation and the smallest change that would fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, isqrt

import numpy as np
from scipy import sparse

from compiler.analysis.affine_form import ONE, affine_form
from compiler.analysis.domains import Domains
from compiler.context import Context
from compiler.errors import CompileError, TooLong
from compiler.exactness.levels import HALF, LEAST_STATE, SAFE_POSITIVE
from compiler.exactness.saturation import saturating
from compiler.exactness.weights import unheld_weights
from compiler.formats import FLOAT32, Format
from compiler.ir.block import SelectiveBlock
from compiler.language.input_language import EVERY_LENGTH, LARGEST_LENGTH
from compiler.language.operations import Source
from compiler.language.stream import Stream
from compiler.lattice.units import array_units
from compiler.lowering.lanes import Lanes
from compiler.passes.schedule import Schedule
from compiler.targets.target import Target

_REAL_UNIT = Fraction(1, 1 << 60)
_GROWN = EVERY_LENGTH // 2  # quanta: what is reached by the number that stands for every length
_TRIALS = 24  # lengths that are tried for the one that is guessed


@dataclass(frozen=True)
class Claim:
    """A sum that the module forms, in quanta."""

    stream: Stream
    what: str
    steps: Fraction


def check_exact(plan: Schedule, lanes: Lanes, blocks: tuple[SelectiveBlock, ...], context: Context) -> None:
    """Raise CompileError naming every weight that the dtype does not hold and every sum that could leave its exact
    range.
    """
    domains, format = context.domains, context.format
    limit = format.exact_integers
    output = plan.circuit.output
    reasons: list[tuple[Stream | None, str]] = list(
        unheld_weights(plan, plan.forms.get(output) or affine_form(output), format)
    )
    values, partial = _beyond(plan, domains, context.target, limit)
    reasons += [(claim.stream, _refusal(claim, limit, format, domains)) for claim in values]
    bounds = lane_bounds(plan, lanes, domains)
    for number, block in enumerate(blocks, start=1):
        reasons += [(None, reason) for reason in _too_large(block, bounds, number, context)]
    reasons += _out_of_range(plan, bounds, lanes, context)
    named = {stream for stream, _ in reasons}
    reasons += [(c.stream, _refusal(c, limit, format, domains)) for c in partial if c.stream not in named]
    if values or partial:
        raise TooLong(reasons, lambda: _longest(plan, context, limit, [*values, *partial]))
    if reasons:
        raise CompileError(reasons)


def _beyond(plan: Schedule, domains: Domains, target: Target, limit: int) -> tuple[list[Claim], list[Claim]]:
    """The sums that can leave the exact integers: of operations, and of linear maps before anything cancels."""
    saturated = saturating(plan, domains, limit)
    values = [c for c in _claims(plan, domains, target) if c.steps > limit and c.stream not in saturated]
    return values, [c for c in _partial_sums(plan, domains, saturated) if c.steps > limit]


def _longest(plan: Schedule, context: Context, limit: int, found: list[Claim]) -> int:
    """A length up to which the sums of this plan stay exact, the longest where few trials find it; 0 where none does.
    Another length may be planned otherwise, and be refused for other reasons, so this is a guess.

    The first guess takes sums for proportional to the length; then the interval is halved on the logarithmic scale.
    """

    def fit(length: int) -> bool:
        language = context.domains.language
        shorter = None if language is None else replace(language, max_length=length)
        try:
            return not any(_beyond(plan, Domains(shorter, length), context.target, limit))
        except CompileError:
            return False

    low, high = 0, min(context.domains.max_length, LARGEST_LENGTH + 1)

    def settle(length: int) -> None:
        nonlocal low, high
        if low < length < high:
            low, high = (length, high) if fit(length) else (low, length)

    settle(int(high * limit / max(claim.steps for claim in found)))
    settle(low + 1)  # a sum that is proportional is settled by this, and whether any length fits
    for _ in range(_TRIALS):
        settle(min(max(isqrt(low * high), low + 1), high - 1))
    return low


def _claims(plan: Schedule, domains: Domains, target: Target) -> Iterator[Claim]:
    for stream in plan.circuit.streams:
        if stream.operation.source is Source.NUMBERS:
            yield from _claims_of(stream, domains, target)
    for operations in plan.blocks:
        for stream in operations:
            yield from _claims_of(stream, domains, target)


def _claims_of(stream: Stream, domains: Domains, target: Target) -> Iterator[Claim]:
    """What an operation adds up: its own value, its state, and the pre-activations of rectifiers."""
    domain = domains.of(stream)
    if domain.step == 0:
        return
    yield Claim(stream, "its value", domain.steps)
    for source in stream.inputs:
        if domains.of(source).step:
            yield Claim(stream, f"its operand {source.label}", domains.of(source).steps)
    gadget = target.gadget(stream.operation)
    if gadget is not None:
        yield from (Claim(stream, what, steps) for what, steps in gadget.claims(stream, domains))
        for part in gadget.absorbs(stream):
            yield from _claims_of(part, domains, target)


def _partial_sums(plan: Schedule, domains: Domains, saturated: set[Stream]) -> Iterator[Claim]:
    """What each linear map adds up before anything cancels: of every operand, and of the scores.

    The order of a sum is the kernel's, so every partial sum counts: it lies between the sum
    of the negative terms and that of the positive ones. Falling ramps of saturated counts
    are exempt (`saturation`).
    """
    output = plan.circuit.output
    for stream, form in {**plan.forms, output: plan.forms.get(output) or affine_form(output)}.items():
        if form and not saturated & {atom for atom, _ in form}:
            what = "a score, or a term of it," if stream is output else "a sum of its terms"
            terms = ((matrix, atom) for (atom, _), matrix in form.items())
            yield Claim(stream, what, domains.partial_sum(terms))


def _out_of_range(plan: Schedule, bounds: np.ndarray, lanes: Lanes, context: Context) -> list[tuple[Stream, str]]:
    """Lanes, states and scores beyond the largest number of the format, and lattices finer than its least."""
    domains, format, output = context.domains, context.format, plan.circuit.output
    head = lanes.map(plan.forms.get(output) or affine_form(output), output.width)
    found = []
    sizes = {output: float((abs(head) @ bounds).max(initial=0))}
    for stream in (s for operations in plan.blocks for s in operations):
        domain = domains.of(stream)
        sizes[stream] = max(sizes.get(stream, 0.0), float(domain.bound))
        if stream.operation.keyed:
            value = domains.of(stream.inputs[0])
            scale = max(Fraction(1), HALF / value.step) if value.step else Fraction(HALF)
            sizes[stream] = max(sizes[stream], float(domains.cell_bound(stream) * scale))
        if 0 < domain.step < Fraction(format.smallest):
            reason = (
                f"its lattice is as fine as {float(domain.step):g}, and {format.name} flushes what is below "
                f"{format.smallest:g} to 0; scale it up"
            )
            found.append((stream, reason))
    finest = _finest_term(head, lane_units(lanes, domains))
    if finest < format.smallest:
        reason = (
            f"a score, or a term of it, is a multiple of {finest:g}, and {format.name} flushes what is below "
            f"{format.smallest:g} to 0; scale it up"
        )
        found.append((output, reason))
    for stream, size in sizes.items():
        if size > format.largest:
            reason = f"it can reach {size:g}, and {format.name} ends at {format.largest:g}; declare smaller bounds"
            found.append((stream, reason + ("" if format is FLOAT32 else " or use float32")))
    return found


def _refusal(claim: Claim, limit: int, format: Format, domains: Domains) -> str:
    advice, wider = TooLong.SHORTER, " or use float32" if format is not FLOAT32 else ""
    every_length = domains.language is not None and domains.language.every_length
    if every_length and claim.steps > _GROWN:  # a sum that does not grow is told by its number
        return (
            f"{claim.what} grows with the length, and the promise is for every length; {format.name} adds exactly up "
            f"to {limit} quanta, so {advice}"
        )
    return (
        f"{claim.what} can reach {int(claim.steps)} quanta, and {format.name} adds exactly up to {limit}; "
        f"{advice}{wider}"
    )


def lane_bounds(plan: Schedule, lanes: Lanes, domains: Domains) -> np.ndarray:
    """A bound on |value| of every lane at every position: (lanes,)."""
    bounds = np.zeros(lanes.count)
    if lanes.embedding.nnz:
        bounds[:] = abs(lanes.embedding).max(axis=0).toarray().reshape(-1)
    inputs = [s for s in lanes.index if s.operation.source is Source.NUMBERS]
    for stream in (*inputs, *(s for operations in plan.blocks for s in operations)):
        at = lanes.index[stream]
        bounds[at[at >= 0]] = domains.of(stream).bounds[at >= 0]
    return bounds


def lane_units(lanes: Lanes, domains: Domains) -> np.ndarray:
    """The power of two of which every lane is a multiple, 0 where it is real, infinity where it is 0: (lanes,)."""
    units = np.ones(lanes.count)
    for stream, at in lanes.index.items():
        if stream is not ONE:
            units[at[at >= 0]] = domains.of(stream).units[at >= 0]
    return units


def _finest_term(matrix: sparse.csr_array, units: np.ndarray) -> float:
    """Of what all weight · lane are multiples, lanes that are real or 0 left out."""
    terms = array_units(matrix.data) * units[matrix.indices]
    return float(terms[terms > 0].min(initial=inf))


def finest_lane(lanes: Lanes, domains: Domains, reals: bool = True) -> tuple[Stream, Fraction]:
    """The stream with the finest lanes, and the power of two of which they are multiples.

    reals: whether real lanes count, as multiples of 2^-60 of their bound. What is lost below is less than the bound on
    their errors leaves to the arithmetic of the bounds.
    """
    finest = {ONE: Fraction(1)}
    for stream, at in lanes.index.items():
        if stream is not ONE and (at >= 0).any():
            domain = domains.of(stream)
            unit = float(domain.units[at >= 0].min())
            if 0 < unit < inf:
                finest[stream] = Fraction(unit)
            elif unit == 0 and reals and domain.bound:
                finest[stream] = domain.bound * _REAL_UNIT
    return min(finest.items(), key=lambda item: item[1])


def _too_large(block: SelectiveBlock, bounds: np.ndarray, number: int, context: Context) -> list[str]:
    """Physical values beyond the largest number of the dtype: pre-activations, what leaves the gates, and what a scan
    over chunks multiplies x̂ by. What else a scan forms stands in float32, whatever the dtype.
    """
    format = context.format
    if context.target.chunk and block.d_state and format.largest < LEAST_STATE:
        return [_no_state(block, number, context)]
    reach, channels = feature_bounds(block, bounds), block.channels.names
    gated = block.bounds(bounds)
    gates = abs(block.channels.gate) @ bounds
    found = []
    for values, names, what, of in (
        (reach, block.features.names, "pre-activation", format),
        (gates, channels, "gate", format),
        (gated, channels, "gated output", format),
        (chunk_bounds(block, bounds) if context.target.chunk else np.zeros(0), channels, "Δ⟨C, B⟩", format),
        (scan_bounds(block, bounds, context.domains.max_length), channels, "product C·Δ·B·x̂", FLOAT32),
    ):
        if values.size and values.max() > of.largest:
            at = int(values.argmax())
            remedy = "declare smaller bounds" if of is FLOAT32 else "use float32"
            found.append(
                f"block {number}: the {what} of {names[at]} can reach {values[at]:g}, and "
                f"{of.name} ends at {of.largest:g}; {remedy}"
            )
    return found


def _no_state(block: SelectiveBlock, number: int, context: Context) -> str:
    """Why no state of a target whose B and C go through silu fits the format, however small its numbers are."""
    name, target, format = block.channels.names[int(block.channels.writes.argmax())], context.target, context.format
    return (
        f"block {number}: {name} is kept in a state, and {target.name} reads Δ·x̂·B·C of it, each at least "
        f"{SAFE_POSITIVE} where softplus and silu are exact, {LEAST_STATE:.0f} together, and {format.name} ends at "
        f"{format.largest:g}; use bfloat16 or float32, or mamba, whose B and C go through no silu"
    )


def largest_step(block: SelectiveBlock, bounds: np.ndarray) -> float:
    """A bound on Δ = softplus(pre-activation) over the channels of a block, 0 where it has none."""
    channels = block.channels
    reach = feature_bounds(block, bounds)
    pre = np.abs(channels.delta_bias) + abs(channels.delta_features) @ reach + abs(channels.delta_lanes) @ bounds
    return float(pre.max(initial=0.0)) + 1


def feature_bounds(block: SelectiveBlock, bounds: np.ndarray) -> np.ndarray:
    """A bound on |pre-activation| of each convolved channel, hence on |x̂|."""
    taps = np.abs(block.features.taps).sum(axis=1)
    return taps * (abs(block.features.rows) @ bounds) + np.abs(block.features.bias)


def _step_bounds(block: SelectiveBlock, bounds: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """A bound on Δ of each channel, where no x̂ exceeds `reach`."""
    channels = block.channels
    pre = channels.delta_bias + abs(channels.delta_features) @ reach + abs(channels.delta_lanes) @ bounds
    return np.logaddexp(0, pre)


def scan_bounds(block: SelectiveBlock, bounds: np.ndarray, length: int) -> np.ndarray:
    """A bound on whatever a scan multiplies for each channel, in any order: Δ, B, C and x̂, summed over the length; and
    over the columns, for Mamba-2's chunks add up C·h of C and h at different positions, though later it may be 0.

    The steps of a scaled sum leave room for what they add up to by themselves (`gadgets.scaled_sum.step_rate`), and
    such a sum is read by a constant.
    """
    channels, columns, reach = block.channels, block.columns, feature_bounds(block, bounds)
    most = lambda sizes: max(1.0, float(sizes.max(initial=0.0)))
    written, read = abs(columns.write) @ reach, abs(columns.read) @ reach
    met = max(most(written) * most(read), float(written @ read))
    factors = np.full(len(channels.names), float(length) * met)
    factors[list(channels.real_steps)] = most(written)
    steps = np.maximum(1.0, _step_bounds(block, bounds, reach))
    return steps * np.maximum(1.0, reach[channels.feature]) * factors


def chunk_bounds(block: SelectiveBlock, bounds: np.ndarray) -> np.ndarray:
    """A bound on Δ_s ⟨C_t, B_s⟩ of each channel, which mamba_ssm's chunk scan rounds to the dtype before it meets x̂_s:
    beyond its range it is infinite, and NaN where x̂ is 0.
    """
    columns, reach = block.columns, feature_bounds(block, bounds)
    products = (abs(columns.write) @ reach) @ (abs(columns.read) @ reach) if block.d_state else 0.0
    return _step_bounds(block, bounds, reach) * products
