"""Induction heads: what followed the present letter the last time scores highest (lemmas of recall and of readout)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from verify.kernel.circuit import Circuit
from verify.kernel.claims import Ledger
from verify.kernel.exact import exact_array
from verify.kernel.floats import Unproved
from verify.kernel.readout import check_leads, numbered, state_scores
from verify.kernel.recall import on_letters
from verify.kernel.terms import Poly, Terms


def induction_heads(ledger: Ledger, circuit: Circuit, claim: dict, names: dict[str, int]) -> str:
    """At each of the letters v0, v1, …: the letter that stood right after it the last time; × before that.

    A latch whose flag is 1 exactly where k stood right before holds what it stores of the last letter behind k, and 0
    where there was none. Check: each lane is Σ (function of the present letter) · such latch, and a function of the
    present letter; at letter q the latches of other letters are multiplied by 0. So for each q, and each v behind it or
    none, every score is a number, and the right one is the largest.
    """
    terms, letters = ledger.terms, numbered(names, "v")
    used = np.flatnonzero(terms.language.used)
    if set(claim) != {"name"} or "×" not in names or used.tolist() != sorted(letters.tolist()):
        raise Unproved("the letters of the language are not v0, v1, …, with × for none")
    head, lanes = state_scores(terms, circuit)
    numbers = exact_array(head).astype(object)
    held = [_lane(terms, p, used) for p in lanes]
    own = np.stack([plain for plain, _ in held])  # (lanes, letters of the language)
    for i in range(len(used)):
        codes = np.stack([found[i] for _, found in held])  # (lanes, letters behind)
        base = numbers.dot(own[:, i])
        check_leads(base[:, None] + numbers.dot(codes), used)
        check_leads(base[:, None], np.array([names["×"]]))
    return "at each letter, the letter that stood right after it the last time, × before that"


def _lane(terms: Terms, p: Poly, used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(what a lane adds at each present letter, what it reads at each present letter of each letter behind it)."""
    plain: dict = {m: c for m, c in p.terms.items() if terms.by_letter_alone(m)}
    own = np.array(terms.by_letter(Poly(plain)), object)[used]
    read = np.zeros((len(used), len(used), len(used)), object)  # (present, k, behind k)
    for m, c in p.terms.items():
        if m in plain:
            continue
        states = [f for f in m if terms.atoms[f[0]].kind == "latch" and not f[1]]
        rest = tuple(f for f in m if f not in states)
        if len(states) != 1 or not terms.by_letter_alone(rest):
            raise Unproved("the scores are no functions of the present letter times latches")
        latch = terms.atoms[states[0][0]]
        if not all(map(terms.by_letter_alone, latch.of.terms)):
            raise Unproved("a latch stores more than a function of the present letter")
        stored = np.array(terms.by_letter(latch.of), object)[used]
        gate = c * np.array(terms.by_letter(Poly({rest: Fraction(1)})), object)[used]
        read[:, _key(terms, latch.flag, used)] += gate[:, None] * stored[None, :]
    others = read.copy()
    others[np.arange(len(used)), np.arange(len(used))] = 0
    if others.any():
        raise Unproved("a query reads what stood behind another letter")
    return own, read[np.arange(len(used)), np.arange(len(used))]


def _key(terms: Terms, flag: Poly, used: np.ndarray) -> int:
    """The place of the letter k for which the flag is [k stood right before]."""
    if any(not m or any(lag != 1 for _, lag in m) for m in flag.terms):
        raise Unproved("a latch is written by more than the letter before")
    found = np.broadcast_to(on_letters(terms, flag, used[:1], used), (len(used),))
    if found.tolist().count(1) != 1 or found.tolist().count(0) != len(used) - 1:
        raise Unproved("a latch is not written behind exactly one letter")
    return found.tolist().index(1)
