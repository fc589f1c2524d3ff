"""The list of exact cases of the two scans: what a row says holds for either.

Every operand is a small integer, or a power of two, and nothing is 0 that could hide what stands beside it. Every
operand and every state fits into 8 bits, so that a kernel that rounds fails in what follows (precise_rows.py) and not
here.
"""

from __future__ import annotations

import math

from conformance.cases.row import BOTH, ERASE, KEEP, NEIGHBOURS, RARELY, Row
from conformance.cases.states import AFTER_A_STATE

ROWS = (
    Row(stage="recurrence", name="one step", asks="y = C Δ u B", length=1, columns=1),
    Row(stage="recurrence", name="three steps", asks="a sum over steps, B and C each of its own step", length=3),
    Row(stage="recurrence", name="columns", asks="a sum over state columns", length=13, columns=4),
    Row(stage="step", name="bias", asks="Δ's bias, added once", length=5, columns=1, bias=(1, 2, 3), step=(1, 2)),
    Row(
        *(), stage="step", name="tiny step", asks="a step of 2^-20: nothing clamps it from below", length=5,
        step=(2**-20,), columns=1,
    ),
    Row(
        *(), stage="step", name="large step", asks="a step of 4096: nothing clamps it from above", length=5,
        step=(4096,), columns=1,
    ),
    Row(
        *(), stage="step", name="softplus of 32", asks="softplus(x) = x for large x", length=5, step=(32,),
        softplus=True, columns=1,
    ),
    Row(
        *(), stage="step", name="softplus of 4096", asks="softplus(x) without overflow: it is x", length=5,
        step=(4096,), softplus=True, columns=1,
    ),
    Row(
        *(), stage="step", name="softplus of -128", asks="softplus(x) = 0 for x ≤ −104: nothing is written",
        length=9, step=(-128, 32), softplus=True, columns=1,
    ),
    Row(
        *(), stage="step", name="softplus of -2^24", asks="softplus(x) = 0 as far below as float32 counts", length=5,
        step=(-(2.0**24), 32), softplus=True, columns=1,
    ),
    Row(
        *(), stage="step", name="bias, then softplus", asks="the bias comes before the softplus, and once", length=7,
        step=(-128,), bias=(-64, 160, 192), softplus=True, columns=1, heads=6,
    ),
    Row(
        *(), stage="step", name="softplus of 160 - 288", asks="softplus is large or small by Δ and its bias, not by Δ",
        length=7, step=(160, 320), bias=(-288,), softplus=True, columns=1,
    ),
    Row(
        *(), stage="step", name="limits", asks="Δ is clamped by its limits, after the softplus", length=7,
        step=(-128, 32, 256), limit=(2.0, 64.0), softplus=True, columns=1, only="ssd",
    ),
    Row(
        *(), stage="step", name="limit from above", asks="Δ is clamped from above alone", length=7,
        step=(0, 32, 256), limit=(0.0, 64.0), columns=1, only="ssd",
    ),
    Row(
        *(), stage="step", name="limit from below", asks="Δ is clamped from below alone", length=7, step=(0, 32, 256),
        limit=(2.0, math.inf), columns=1, only="ssd",
    ),
    Row(
        *(), stage="step", name="limits below 0", asks="Δ is clamped by its limits, and by nothing else", length=7,
        step=(-3, 2, 64, -32), limit=(-8.0, 16.0), columns=1, only="ssd",
    ),
    Row(
        *(), stage="step", name="negative step", asks="a step below 0: without a softplus nothing clamps it", length=7,
        step=(-3, 2), columns=1, only="selective_scan",
    ),
    Row(stage="decay", name="erase", asks="exp(ΔA) = 0 for ΔA ≤ −104", length=13, decay=(ERASE,)),
    Row(
        *(), stage="decay", name="erase in a tiny step", asks="A of −2^28: nothing clamps it from below", length=13,
        decay=(KEEP, -(2.0**28)), step=(0, 2**-20),
    ),
    Row(stage="decay", name="erase or keep", asks="exp(0) = 1: Δ = 0 keeps all", length=13, decay=BOTH, step=(0, 1)),
    Row(
        *(), stage="decay", name="erase after much", asks="exp(ΔA) = 0 exactly, not a small number", length=9,
        decay=(ERASE,), step=(0, 1), values=(2.0**14, -(2.0**14), 2.0**-6), columns=1,
    ),
    Row(
        *(), stage="skip and gate", name="skip", asks="D u, each channel with its own D, and without Δ", length=5,
        step=(0, 1), skip=True, heads=5,
    ),
    Row(
        *(), stage="skip and gate", name="skip of channels", asks="D u, each channel of a head with its own D",
        length=5, step=(0, 1), skip=True, heads=3, each_skip=True, only="ssd",
    ),
    Row(
        *(), stage="skip and gate", name="skip of 40 channels", asks="D of channels beyond a tile of 32", length=5,
        skip=True, heads=2, channels=40, each_skip=True, only="ssd",
    ),
    Row(stage="skip and gate", name="gate", asks="a factor silu(z)", length=7, step=(0, 1), gate=True),
    Row(
        *(), stage="skip and gate", name="skip and gate", asks="the gate acts on C·h + D u", length=7, step=(0, 1),
        skip=True, gate=True,
    ),
    Row(
        *(), stage="batch", name="batch", asks="each row has its own B, C, Δ and state", length=9, batch=3,
        decay=BOTH, step=(0, 1), skip=True,
    ),
    Row(
        *(), stage="batch", name="one B for all rows", asks="B and C that all rows share: a stride of 0 between rows",
        length=9, batch=3, shared=True,
    ),
    Row(
        *(), stage="batch", name="33 rows", asks="rows beyond a tile of 32", length=5, batch=33, decay=BOTH,
        step=(0, 1), u=1,
    ),
    Row(stage="batch", name="gates of a batch", asks="each row has its own z", length=5, batch=3, gate=True),
    Row(stage="groups", name="two groups", asks="heads h/g·i … share group i", length=9, heads=8, groups=2, batch=2),
    Row(
        *(), stage="groups", name="one group with an axis", asks="B and C of one group, (b, 1, n, l)", length=5,
        grouped=True, only="selective_scan",
    ),
    Row(
        *(), stage="groups", name="groups of three", asks="a group that ends inside of a vector of channels or heads",
        length=9, heads=6, channels=1, groups=2,
    ),
    Row(
        *(), stage="groups", name="four groups", asks="heads h/g·i … share group i", length=12, heads=8, groups=4,
        decay=BOTH, step=(0, 1), skip=True,
    ),
    Row(
        *(), stage="groups", name="eight groups", asks="more than four groups", length=9, heads=8, groups=8,
        decay=BOTH, step=(0, 1),
    ),
    Row(
        *(), stage="occupancy", name="12 heads", asks="more than eight heads, and no power of two", length=9, heads=12,
        channels=3, groups=3, batch=2, decay=BOTH, step=(0, 1), skip=True,
    ),
    Row(
        *(), stage="occupancy", name="odd sizes", asks="the last channel, head and column of a tile", length=5,
        heads=7, channels=11, columns=19, batch=2, decay=BOTH, step=(0, 1), b=1, u=1, c=1, skip=True,
    ),
    Row(
        *(), stage="occupancy", name="heads of 128 channels", asks="channels of a head beyond a tile of 64", length=3,
        heads=2, channels=128, columns=2, u=1, c=1, only="ssd",
    ),
    Row(
        *(), stage="occupancy", name="many channels", asks="the last channel and head of a tile", length=3, heads=33,
        channels=4, columns=1, step=(1,), skip=True,
    ),
    Row(
        *(), stage="occupancy", name="bias of many channels", asks="the bias of heads and channels beyond a tile",
        length=3, heads=40, channels=2, columns=1, bias=(1, 2, 3), u=1,
    ),
    Row(
        *(), stage="occupancy", name="many columns", asks="the last column of a tile", length=3, heads=1, channels=2,
        columns=65, u=1, c=1,
    ),
    Row(
        *(), stage="occupancy", name="128 columns", asks="128 columns, as layers have them", length=5, heads=1,
        channels=2, columns=128, u=1, c=1, decay=BOTH, step=(0, 1),
    ),
    Row(
        *(), stage="occupancy", name="256 columns", asks="columns beyond the 128 of most tiles", length=2, heads=1,
        channels=2, columns=256, u=1, c=1,
    ),
    Row(
        *(), stage="occupancy", name="98,304 inputs", asks="places of operands beyond 2^16", length=16, heads=512,
        channels=4, columns=1, batch=3, decay=BOTH, step=RARELY,
    ),
    Row(
        *(), stage="chunk", name="16 and one", asks="a second chunk of one step", length=17, decay=BOTH,
        step=RARELY,
    ),
    Row(stage="chunk", name="chunks of 16", asks="many chunks, the last one full", length=64, decay=BOTH, step=RARELY),
    Row(
        *(), stage="chunk", name="300", asks="chunks of 16 … 256, the last not full", length=300, decay=BOTH,
        step=RARELY, heads=3,
    ),
    Row(
        *(), stage="chunk", name="chunks of 37", asks="a chunk size that is no power of two", length=100, chunk=37,
        decay=BOTH, step=RARELY,
    ),
    Row(
        *(), stage="chunk", name="chunks of 1", asks="chunks of one position", length=13, chunk=1, decay=BOTH,
        step=(0, 0, 1), only="ssd",
    ),
    Row(
        *(), stage="chunk", name="chunks of 256", asks="a chunk size of 256", length=300, chunk=256, decay=BOTH,
        step=RARELY, groups=2, heads=4,
    ),
    Row(stage="last state", name="state after one", asks="the state after the last step", length=1, last=True),
    Row(
        *(), stage="last state", name="state after 13", asks="the state after the last step, not of padding behind it",
        length=13, last=True, decay=BOTH, step=(0, 1),
    ),
    Row(
        *(), stage="last state", name="state after 40", asks="the state after the last chunk, not the one before",
        length=40, last=True, decay=BOTH, step=(0, 0, 1),
    ),
    Row(
        *(), stage="last state", name="state, softplus", asks="padding behind the last step: softplus(0) is no 0",
        length=13, last=True, step=(32,), bias=(32,), softplus=True, decay=(ERASE,), columns=1, batch=2,
    ),
    Row(
        *(), stage="last state", name="state, limits", asks="padding behind the last step is not clamped from below",
        length=13, last=True, step=(-128, 32), limit=(2.0, 64.0), softplus=True, decay=BOTH, columns=1, heads=4,
        only="ssd",
    ),
    Row(
        *(), stage="initial state", name="kept", asks="the initial state, of which nothing fades", length=5,
        initial=25, last=True, batch=3,
    ),
    Row(
        *(), stage="initial state", name="erased", asks="the first step's decay acts on the initial state", length=9,
        initial=25, decay=BOTH, step=(0, 1), last=True,
    ),
    Row(
        *(), stage="initial state", name="through chunks", asks="the initial state reaches later chunks", length=75,
        initial=25, decay=BOTH, step=RARELY, last=True, batch=2, skip=True,
    ),
    Row(
        *(), stage="initial state", name="chunks of 32", asks="a chunk size of 32, with all around it",
        length=100, chunk=32, decay=BOTH, step=RARELY, skip=True, gate=True, initial=25, last=True, only="ssd",
    ),
    Row(
        *(), stage="initial state", name="chunks of 128", asks="a chunk size of 128, with all around it",
        length=300, chunk=128, decay=BOTH, step=RARELY, skip=True, gate=True, initial=25, last=True, only="ssd",
    ),
    Row(
        *(), stage="continuation", name="odd cuts", asks="a state handed from piece to piece", length=75,
        cuts=(1, 3, 40, 41), decay=BOTH, step=RARELY, last=True, batch=2,
    ),
    Row(
        *(), stage="packed", name="three documents", asks="a document begins with an empty state", length=30,
        documents=(7, 3, 20), decay=(KEEP,), step=(0, 1),
    ),
    Row(
        *(), stage="packed", name=AFTER_A_STATE, asks="the initial state is that of the first document",
        length=40, documents=(16, 1, 15, 8), decay=(KEEP,), step=(0, 1), initial=25, last=True,
    ),
    Row(
        *(), stage="packed", name="a first document of number 3", length=40, documents=(16, 1, 15, 8),
        asks="the initial state is that of the first document, whatever its number", numbers=(3, 4, 9, 11),
        decay=(KEEP,), step=(0, 1), initial=25, last=True,
    ),
    Row(
        *(), stage="packed", name="documents over chunks", asks="documents that end inside chunks, and at their ends",
        length=100, documents=(5, 11, 1, 40, 43), decay=BOTH, step=RARELY, last=True, skip=True,
    ),
    Row(
        *(), stage="packed", name="numbers that fall", asks="a document begins wherever the number is another one",
        length=30, documents=(7, 3, 8, 12), numbers=(65796, 260, 4, 0), decay=(KEEP,), step=(0, 1),
    ),
    Row(
        *(), stage="packed", name="large numbers that are neighbours", documents=(7, 3, 8, 2, 4, 6), decay=(KEEP,),
        asks="numbers are compared as int32: bfloat16, float16 and float32 take neighbours for one", length=30,
        numbers=NEIGHBOURS, step=(0, 1),
    ),
    Row(
        *(), stage="packed", name="a border at 2,049", asks="offsets are integers: bfloat16 and float16 have no 2,049",
        length=2060, documents=(2049, 2, 9), decay=BOTH, step=RARELY,
    ),
)  # fmt: skip

FULL_ROWS = (
    Row(
        *(), stage="chunk", name="2500", asks="chunks of up to 2048", length=2500, decay=BOTH, step=RARELY,
        chunk=256,
    ),
    Row(
        *(), stage="continuation", name="late cuts", asks="pieces longer than a chunk", length=700, cuts=(301, 338),
        decay=BOTH, step=RARELY, last=True, chunk=256,
    ),
    Row(
        *(), stage="occupancy", name="wide layer", asks="the last channel, head and column of a tile", length=4,
        heads=9, channels=64, columns=16, groups=3, u=1, c=1, skip=True,
    ),
)  # fmt: skip
