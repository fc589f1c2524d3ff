"""What files say of their own proof is not believed."""

from __future__ import annotations

from tests.spread import some
from tests.verify.checker import proof_edits


def test_an_edited_claim_of_a_proof_is_rejected_or_not_read():
    cases = some(range(12), 0.2, least=4)
    counts, broken = proof_edits.run(cases)
    assert not broken, "\n".join(broken)
    assert sum(counts.values()) == len(cases) and len(counts) == 2
