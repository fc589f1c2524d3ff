"""Tasks: that the right letter scores highest at each position that asks, for the task that the manifest names.

Each task is one function of (ledger, circuit, the manifest's entry, the id of each letter's name). It reads the
circuit's polynomials and no weight, for the scores of both are equal by then. It returns the proved sentence.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from verify.kernel.cases import MOST_CASES, Grid, Parts
from verify.kernel.circuit import Circuit
from verify.kernel.claims import Ledger
from verify.kernel.exact import exact_array, matmul
from verify.kernel.floats import Unproved
from verify.kernel.heads import induction_heads
from verify.kernel.machines import automaton, edit_distance, selective_copy
from verify.kernel.readout import check_leads, state_scores
from verify.kernel.recall import mqar
from verify.kernel.terms import Poly, Terms


def check_task(ledger: Ledger, circuit: Circuit, claim: Any) -> str:
    """The sentence that is proved of the answers; Unproved where there is none. claim: `task` of construction.json."""
    if not isinstance(claim, dict) or claim.get("name") not in TASKS:
        raise Unproved(f"the kernel has no rule for the task {claim!r:.60}")
    names = circuit.data["alphabet"]
    if any(type(name) is not str for name in names) or len(set(names)) < len(names):
        raise Unproved("two letters of circuit.json have one name, or one has none")
    if circuit.data["end"] != ENDS.get(claim["name"], claim.get("end")):
        raise Unproved("circuit.json ends a text at another letter than the task, or only one of them does")
    return TASKS[claim["name"]](ledger, circuit, claim, {name: i for i, name in enumerate(names)})


def keep_nth(ledger: Ledger, circuit: Circuit, claim: dict, names: dict[str, int]) -> str:
    """From position n on the letter that stood at n scores highest (lemma of kept letters).

    Check: every lane of the readout is a latch, of a function of the present letter, under one flag; the flag is 1
    where the position (the running sum of 1) is at most n, and 0 beyond. So from n on the latch holds the code of the
    letter at n, and head · code is largest at that letter, for every letter of the language.
    """
    n, terms = claim.get("n"), ledger.terms
    if set(claim) != {"name", "n"} or type(n) is not int or not 1 <= n < terms.language.length:
        raise Unproved(f"the task keeps position {n!r:.20}")
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
            code = code + c * np.array(terms.by_letter(atom.of), object)
        codes.append(code)
    if len(flags) != 1:
        raise Unproved("what is kept is kept at different positions")
    _check_open_until(terms, next(iter(flags.values())), n)
    scores, used = (
        matmul(exact_array(head), exact_array(np.stack(codes, axis=1)).T),
        np.flatnonzero(terms.language.used),
    )
    check_leads(scores[:, used], used)
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


TASKS = {
    "automaton": automaton,
    "edit-distance": edit_distance,
    "induction-heads": induction_heads,
    "keep-nth": keep_nth,
    "mqar": mqar,
    "selective-copy": selective_copy,
}
ENDS = {
    "edit-distance": ".",
    "selective-copy": ".",
}  # the letter that ends a text; an automaton says it, and others end none
