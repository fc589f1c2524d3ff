"""Build, and prove, once what is asked for again: most damage leaves the parameters alone."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

from constructions.checkpoints import saved
from constructions.checkpoints.built import Built
from constructions.checkpoints.guarantee import Proof
from constructions.construction import CircuitFamily
from constructions.selectivity.mqar import MQAR


@contextmanager
def built_once() -> Iterator[None]:
    """What is built again from the same parameters is built, and proved, once: most damage leaves them alone."""
    build, proof = saved.build, saved.proof_of
    known: dict[str, Built] = {}
    proofs: dict[Built, Proof] = {}

    def built(construction: CircuitFamily, most: int | None = None) -> Built:
        if not isinstance(construction, MQAR):
            return build(construction, most)
        key = repr(construction)
        known[key] = known.get(key) or build(construction, most)
        return known[key]

    def proved(one: Built) -> Proof:
        if one not in proofs:
            proofs[one] = proof(one)
        return copy.deepcopy(proofs[one])

    saved.build, saved.proof_of = built, proved
    try:
        yield
    finally:
        saved.build, saved.proof_of = build, proof
