"""What files say of their own proof is not believed."""

from __future__ import annotations

from tests.verify.checker import proof_edits


def test_an_edited_claim_of_a_proof_is_rejected_or_not_read():
    counts, broken = proof_edits.run(range(12))
    assert not broken, "\n".join(broken)
    assert sum(counts.values()) == 12 and len(counts) == 2
