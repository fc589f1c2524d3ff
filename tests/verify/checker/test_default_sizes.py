"""Tables of their default size on Mamba-2, which were not proved for a while and no test of a small size noticed."""

from __future__ import annotations

import pytest

from tests.trust.defaults import asked


@pytest.mark.parametrize("name", ["edit-distance", "lcs"])
def test_a_table_that_is_not_proved_with_sums_added_up_at_once_is_proved_without(name):
    _, reason = asked(name, "mamba2")
    assert reason is None
