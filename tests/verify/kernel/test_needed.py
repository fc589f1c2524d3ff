"""Who needs which kind of claim: without it a search finds no proof of the checkpoint that is named."""

from __future__ import annotations

import pytest

from tests.verify.kernel.attack import Short
from verify.kernel.claims import Refused
from verify.kernel.files import read
from verify.kernel.floats import Unproved
from verify.prover.prove import search_of

NEEDED = {
    "ballast": "keep",
    "new": "keep",
    "cut": "keep",
    "total": "recall",
    "occurrences": "recall",
    "stops": "firsts",
    "follow": "copies",
    "answers": "copies",
}
"""By the fixture of the checkpoint. The edit distance of docs/proofs.md needs two more in 22 CPU seconds: `same`,
and `weight`, as all rules over scores do.
"""


@pytest.mark.parametrize(("kind", "name"), NEEDED.items())
def test_without_a_kind_of_claim_a_checkpoint_is_not_proved(kind: str, name: str, request: pytest.FixtureRequest):
    class Without(Short):
        def _ideas(self, place, subjects):
            return (claim for claim in super()._ideas(place, subjects) if claim[0] != kind)

    with pytest.raises((Unproved, Refused)):
        search_of(read(request.getfixturevalue(name)), Without, reach=1)
