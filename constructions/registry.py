"""Every construction that the `construct` command knows, by name."""

from __future__ import annotations

from constructions.construction import Construction
from constructions.count_in_row import CountInRow
from constructions.mqar import MQAR

CONSTRUCTIONS: dict[str, type[Construction]] = {c.name: c for c in (MQAR, CountInRow)}
