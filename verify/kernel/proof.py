"""A proof from beginning to end: the same walk whether claims are searched for or read from a certificate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verify.kernel.circuit import Circuit
from verify.kernel.claims import Ledger, NextClaim
from verify.kernel.files import Checkpoint
from verify.kernel.meaning import check_meaning
from verify.kernel.mixers import Floats
from verify.kernel.model import check_head, lanes_of
from verify.kernel.tasks import check_task
from verify.kernel.terms import Terms


@dataclass(frozen=True)
class Proof:
    """What is proved of a checkpoint, of every sequence of its language: that every float operation of the model gives
    the exact value, that the scores are those of circuit.json and no special token ever scores highest; and what the
    answers are right for (None: the manifest names no task). length: of the longest sequence (None: there is none).
    claims: how many were needed. given: what the circuit takes for granted, without which it says nothing of its
    scores.
    """

    dtype: str
    length: int | None
    task: str | None
    claims: int
    given: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        length = "of every length" if self.length is None else f"of at most {self.length} tokens"
        asked = "no task is stated" if self.task is None else f"every answer is right: {self.task}"
        return [
            f"proved for every sequence of the input language {length}, in {self.dtype}, by ids:",
            "  arithmetic: every operation gives the exact value; no special token scores highest",
            f"  meaning: the scores are those of circuit.json{', where '.join(['', *self.given])}",
            f"  task: {asked}",
        ]


def run(checkpoint: Checkpoint, terms: Terms, next_claim: NextClaim) -> Proof:
    """Unproved, with the first place that no claim proves; Refused, with the number of a claim that is at fault."""
    ledger = Ledger(terms, next_claim)
    floats, head = Floats(ledger, checkpoint.form), checkpoint.tensors["lm_head.weight"]
    lanes = lanes_of(floats, checkpoint)
    polys = [lanes[i].poly for i in np.flatnonzero(head.any(axis=0)).tolist()]
    ledger.until("the head", polys, lambda: check_head(floats, lanes, head, checkpoint.language.tokens))
    circuit = Circuit(ledger, checkpoint.circuit)
    check_meaning(ledger, lanes, head, circuit)
    task = None if checkpoint.task is None else check_task(ledger, circuit, checkpoint.task)
    ledger.check_used()
    length = None if checkpoint.language.endless else checkpoint.language.length
    return Proof(checkpoint.form.name, length, task, len(ledger.claims), circuit.given)
