"""The words that make streams of streams: one operation each, in the order choice, memory, sums, filters."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy import sparse

from compiler.language import operations as ops
from compiler.language.arguments import Number, instance, integer, listed, number, truth
from compiler.language.codebook import Codebook
from compiler.language.stream import Stream, both, constant, given_stream
from compiler.language.types import Bool


def concatenate(*streams: Stream) -> Stream:
    """All lanes of the streams side by side."""
    if not streams:
        raise ValueError("concatenate was given no streams, and at least one is needed")
    widths = [given_stream(s, "an input of concatenate").width for s in streams]
    starts = np.cumsum([0, *widths])
    matrices = tuple(
        sparse.csr_array((np.ones(w), (range(start, start + w), range(w))), shape=(sum(widths), w))
        for start, w in zip(starts, widths, strict=False)
    )
    flags = all(isinstance(s.type, Bool) for s in streams)
    return Stream(ops.Linear(matrices, Bool(sum(widths)) if flags else None), streams)


def minimum(a: Stream | Number, b: Stream | Number) -> Stream:
    """The smaller of two numbers, lane by lane; of real numbers within `Compiled.error_bound`."""
    return Stream(ops.Min(), both(a, b))


def maximum(a: Stream | Number, b: Stream | Number) -> Stream:
    """The larger of two numbers, lane by lane; of real numbers within `Compiled.error_bound`."""
    return Stream(ops.Max(), both(a, b))


def select(condition: Stream, yes: Stream | Number, no: Stream | Number = 0) -> Stream:
    """`yes` where the condition holds, else `no`."""
    return Stream(ops.Select(), (condition, *both(yes, no)))


def latch(value: Stream, when: Stream, first: bool = False) -> Stream:
    """The value at the last (first) position where `when` held; zeros before there is one.

    Of several flags one latch each: lane k·w + i is lane i of the value at flag k.
    """
    if truth(first, "first of latch"):
        given_stream(when, "'when' of latch")
        when = when & (when.cumsum() == 1)
    return Stream(ops.Latch(), (value, when))


def latch_bank(value: Stream, index: Stream, when: Stream | None = None) -> Stream:
    """One latch per alternative of a OneHot index: lane k·w + i is lane i of the last value stored at k.

    when: stores only where it holds; of several flags, flag k tells it for alternative k.
    """
    given_stream(index, "'index' of latch_bank")
    return Stream(ops.Latch(), (value, index if when is None else index & when))


def sum_where(value: Stream, when: Stream) -> Stream:
    """For each flag, the sum of the values at positions where it held: lane k·w + i is lane i of the sum under
    flag k.
    """
    return Stream(ops.SumWhere(), (value, when))


def decode(code: Stream, book: Codebook) -> Stream:
    """Which codeword a stream holds, as a OneHot; absent where it holds none."""
    instance(book, Codebook, "book of decode", "a codebook")
    return Stream(ops.Decode(ops.exact_matrix(book.words)), (code,))


def dot(a: Stream, b: Stream) -> Stream:
    """Σ over the lanes of a·b at the present position, as one number."""
    return Stream(ops.Dot(), (a, b))


def fading_sum(value: Stream, decay: Number, level: Stream | None = None) -> Stream:
    """Σ_{s≤t} decay^(t−s) · value_s, lane by lane: a state that keeps this factor (in (0, 1)) of itself at every step.

    level: a whole number that says how far the state goes at a position, h ← decay^Δ·h + Δ·value with Δ = 0 for level 0
        (or less: nothing is kept less or added), 1 for level 1, 3 for level 2, 5 for level 3, …; None: 1 everywhere. A
        flag is a level, so `fading_sum(x, decay, level=seen)` fades and adds only where something is seen.

    A real number: the module gives it within `Compiled.error_bound`.
    """
    factor = Fraction(number(decay, "decay of fading_sum"))
    if level is None:
        return Stream(ops.FadingSum(factor), (value,))
    return Stream(ops.SelectiveSum(factor), (value, given_stream(level, "level of fading_sum")))


def silu_product(a: Stream, b: Stream, scale: Number = 128) -> Stream:
    """a·b as Lemma 1 of paper B computes it, by four values of silu, within (|a| + |b|)⁴/(48·scale²) and rounding.

    scale: λ, a power of two; about 128 times the largest |a| and |b| is best in float32. `a * b` is exact.
    """
    return Stream(ops.SiluProduct(Fraction(number(scale, "scale of silu_product"))), (a, b))


def scaled_sum(value: Stream, weight: Stream, gate: Stream) -> Stream:
    """gate_t · Σ_{s≤t} value_s · weight_s, lane by lane, in one block.

    Where `value` is 0 at all earlier positions this is the product of three numbers.
    """
    return Stream(ops.ScaledSum(), (value, weight, gate))


def count(when: Stream, reset: Stream) -> Stream:
    """How often `when` held since `reset` last did; at a reset itself the count is 0."""
    return Stream(ops.Count(), (when, reset))


def present(when: Stream) -> Stream:
    """Whether `when` held at any position so far, the present one included; lane by lane."""
    given_stream(when, "'when' of present")
    return Stream(ops.Latch(), (constant(1), when)).retyped(Bool(when.width))


def permute(
    start: int | None, swaps: Stream, pairs: Sequence[tuple[int, int]] | None = None, reset: Stream | None = None
) -> Stream:
    """On which of n places a state stands that begins on `start` and is moved by swaps of two places: OneHot(n).

    swaps: a OneHot of the swaps; where no lane holds the state stays. Each position moves it before it is read.
    pairs: the two places that each lane swaps; None: lane i swaps the neighbours i and i + 1, of n = lanes + 1 places.
    reset: a OneHot(n) of the place that the state is put on where it is present, whatever is swapped there.
    start: None for a state that is absent (zeros) until there is a reset.

    Swaps of neighbours generate every permutation. No state of Mamba follows them for ever: its factors are not
    negative (Sarrof, Veitsman, Hahn 2024). Gated DeltaNet's are reflections (Grazzi et al. 2024).
    """
    given_stream(swaps, "'swaps' of permute")
    found = [(i, i + 1) for i in range(swaps.width)] if pairs is None else listed(pairs, "pairs of permute", "a list")
    each = tuple(
        tuple(integer(place, "a place in pairs of permute", 0) for place in listed(pair, "a pair of permute", "a pair"))
        for pair in found
    )
    begin = None if start is None else integer(start, "start of permute", 0)
    inputs = (swaps,) if reset is None else (swaps, given_stream(reset, "'reset' of permute"))
    places = max((place for pair in each for place in pair), default=-1) + 1
    n = max(places, 0 if begin is None else begin + 1) if reset is None else reset.width
    if begin is None and reset is None:
        raise ValueError("permute has neither a start nor a reset, so its state would always be absent; give one")
    return Stream(ops.Permute(n, each, begin), inputs)


def running_max(value: Stream, when: Stream) -> Stream:
    """The largest value so far among positions where `when` holds; 0 before there is one.

    Integers; `when` has one flag for each lane of the value.
    """
    return Stream(ops.RunningMax(), (value, when))


def lti(stream: Stream, kernel: Sequence[Number]) -> Stream:
    """The causal convolution Σ_k kernel[k]·stream(t − k)."""
    instance(kernel, (Sequence, np.ndarray), "the kernel of lti", "a list of numbers")
    if isinstance(kernel, np.ndarray) and not kernel.ndim:
        raise TypeError("the kernel of lti is a single number, and a list of numbers is needed")
    taps = tuple(Fraction(number(tap, "a tap of lti")) for tap in kernel)
    if not taps:
        raise ValueError("the kernel of lti has no taps, and at least one is needed")
    return Stream(ops.Lti(taps), (stream,))
