"""Rule of memories in two digits: masked by the high digit on the way in, gated by it on the way out."""

from __future__ import annotations

import numpy as np

from compiler.language import operations as ops
from compiler.language.lanes import repeated, tiled
from compiler.language.stream import Stream
from compiler.lattice.domain import Domain, power_of_two
from compiler.lowering.conditions import need_flags, need_one_hot
from compiler.passes.represent.rewriter import Rewriter, Rules, rule_of
from compiler.passes.represent.stored import storable

RULES: Rules = {}


@rule_of(RULES, ops.TwoDigitRead)
def _two_digits(
    rewriter: Rewriter,
    operation: ops.TwoDigitRead,
    value: Stream,
    high: Stream,
    low: Stream,
    asked_high: Stream,
    asked_low: Stream,
    *when: Stream,
) -> Stream:
    """Σ_h [asked h] · (the memory by the low digit of the value where the high digit is h and all conditions hold).

    a_h = high_h + Σ conditions − their number is 1 where h is written, and at most 0 elsewhere. For "first", with n
    the writes to the slot so far, this one included, 2·a − n is 1 at the first write and at most 0 elsewhere.
    """
    need_flags(rewriter.domains, *when)
    need_one_hot(rewriter.domains, high, low, asked_high, asked_low)
    back, stored = storable(rewriter.domains, value)
    literals = [flag for w in when for flag in rewriter.logic.conjuncts(w)]
    written = (
        high + np.ones((high.width, 1)) @ (sum(literals[1:], start=literals[0]) - len(literals)) if literals else high
    )
    writes = operation.writes
    if operation.policy == "first":
        so_far = Stream(ops.GatedRead(writes), (written.relu(), low, low, high), "writes_so_far")
        written, writes = 2 * written - np.ones((high.width, 1)) @ so_far, 1
    bank = _bank(rewriter, stored, written)
    return back(Stream(ops.GatedRead(writes), (bank, low, asked_low, asked_high)))


def _bank(rewriter: Rewriter, stored: Stream, written: Stream) -> Stream:
    """For each h the value where `written` is 1, and 0 where it is at most 0: one rectifier for each number."""
    domains, entries, width = rewriter.domains, written.width, stored.width
    domain = domains.of(stored)
    size = 1 if domain.is_flag else power_of_two(domain.bound)
    bank = (tiled(stored, entries) + size * repeated(written - 1, width)).relu()
    units, high, totals = (np.tile(a, entries) for a in (domain.units, domain.high, domain.totals))
    domains.meet(bank, Domain(units, 0 * high, high, domain.l1, totals))
    return bank
