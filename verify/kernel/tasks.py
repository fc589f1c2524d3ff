"""Tasks: that the right letter scores highest at each position that asks, for the task that the manifest names.

Most tasks are machines (`texts.py`). Others are one function of (ledger, circuit, the manifest's entry, the id of each
letter's name), which returns the proved sentence. All read the circuit's polynomials and no weight, for the scores of
both are equal by then.
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from typing import Any

import numpy as np

from verify.kernel.cases import MOST_CASES, Grid, Parts
from verify.kernel.circuit import Circuit
from verify.kernel.claims import Ledger
from verify.kernel.exact import whole
from verify.kernel.floats import Unproved
from verify.kernel.machines import Machine, check_asked, check_machine, counted
from verify.kernel.readout import check_leads, state_scores
from verify.kernel.recall import mqar
from verify.kernel.terms import Poly, Terms
from verify.kernel.texts import MACHINES


def check_task(ledger: Ledger, circuit: Circuit, claim: Any) -> str:
    """The sentence that is proved of the answers; Unproved where there is none. claim: `task` of construction.json."""
    names, machines = read_task(circuit.data["alphabet"], claim)
    machines = [counted(ledger.terms, machine) for machine in machines]
    if any(machine.end != circuit.data["end"] for machine in machines):
        raise Unproved("circuit.json ends a text at another letter than the task, or only one of them does")
    for i, machine in enumerate(machines):
        check_asked(ledger, machine, f"a text that asks {i}")
    rule = RULES.get((claim["name"], claim.get("write")))
    if rule is not None and claim.get("n") != ledger.terms.language.length:  # n = length: it is the last letter
        return rule(ledger, circuit, claim, names)
    for machine in machines:
        check_machine(ledger, circuit, machine)
    told = json.dumps(claim, sort_keys=True)
    mark = hashlib.sha256(told.encode()).hexdigest()[:16]
    shown = told if len(told) <= 80 else f"{told[:79]}…"
    return f"{shown} (SHA-256 {mark}…): {' '.join((MACHINES[claim['name']].__doc__ or '').split())}"


def read_task(letters: list[str], claim: Any) -> tuple[dict[str, int], list[Machine]]:
    """(the id of each letter by its name, what the task asks)."""
    name = claim.get("name") if isinstance(claim, dict) else None
    if not isinstance(name, str) or name not in MACHINES:
        raise Unproved(f"the kernel has no rule for the task {name!r:.60}")
    if len(set(letters)) < len(letters):
        raise Unproved("two letters of circuit.json have one name")
    names = {name: i for i, name in enumerate(letters)}
    try:
        return names, MACHINES[claim["name"]](names, **{key: entry for key, entry in claim.items() if key != "name"})
    except (TypeError, AttributeError, LookupError) as wrong:
        raise Unproved(f"the task needs letters or parameters that are not there, or are others: {wrong!r}") from wrong


def keep_nth(ledger: Ledger, circuit: Circuit, claim: dict, names: dict[str, int]) -> str:
    """From position n on the letter that stood at n scores highest (lemma of kept letters).

    Check: every lane of the readout is a latch, of a function of the present letter, under one flag; the flag is 1
    where the position (the running sum of 1) is at most n, and 0 beyond. So from n on the latch holds the code of the
    letter at n, and head · code is largest at that letter, for every letter of the language.
    """
    n, terms = claim["n"], ledger.terms
    if n > terms.language.length:
        raise Unproved(f"the task keeps position {n}, which no sequence has")
    head, lanes = state_scores(terms, circuit)
    flags: dict[tuple, Poly] = {}
    codes = []
    for p in lanes:
        code = np.full(terms.language.tokens, Fraction(0), object)
        for m, c in p.terms.items():
            atom = terms.atoms[m[0][0]] if len(m) == 1 and m[0][1] == 0 else None
            if atom is None or atom.kind != "latch" or not all(terms.by_letter_alone(k) for k in atom.of.terms):
                raise Unproved("the readout reads more than what was kept of a letter")
            flags[atom.flag.key] = atom.flag
            code = code + c * terms.by_letter(atom.of)
        codes.append(code)
    if len(flags) != 1:
        raise Unproved("what is kept is kept at different positions")
    _check_open_until(terms, next(iter(flags.values())), n)
    used = np.flatnonzero(terms.language.used)
    check_leads(whole(head)[0], whole(np.stack(codes))[0][:, used], used)
    return f"from position {n} on: the letter that stood at it"


def _check_open_until(terms: Terms, flag: Poly, n: int) -> None:
    """The flag is 1 at the positions 1 … n and 0 beyond."""
    if n >= MOST_CASES:
        raise Unproved(f"the task keeps position {n}, and the kernel goes through {MOST_CASES} positions")
    place = next((a for a, atom in enumerate(terms.atoms) if atom.kind == "sum" and atom.of.key == (((), 1),)), None)
    if place is None:
        raise Unproved("the readout does not read the position")
    c, q = flag.primitive
    parts = [Parts(place, 0, tuple(range(2, n + 2)))]
    grid = Grid(terms, [q, Poly({((place, 0),): Fraction(1)})], parts)
    value, where = grid.spread(q), grid.spread(Poly({((place, 0),): Fraction(1)}))
    (lo, hi), (first, last) = grid.range(value), grid.range(where)
    for low, high, start, end in zip(*(x.reshape(-1) for x in np.broadcast_arrays(lo, hi, first, last)), strict=True):
        if not c * int(low) == c * int(high) == (int(end) <= n) or (int(start) <= n) != (int(end) <= n):
            raise Unproved(f"the flag is not 1 exactly up to position {n}")


RULES = {("keep-nth", None): keep_nth, ("mqar", "sum"): mqar}
"""By name and `write`, tasks that no machine proves: how long it takes does not depend on how much a text holds."""
