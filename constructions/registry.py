"""Every construction over tokens that the `construct` command knows, by name."""

from __future__ import annotations

from constructions.absolute_time import AbsoluteTime
from constructions.construction import Construction
from constructions.count_in_row import CountInRow
from constructions.induction_heads import InductionHeads
from constructions.keep_nth import KeepNth
from constructions.mqar import MQAR

CONSTRUCTIONS: dict[str, type[Construction]] = {c.name: c for c in (MQAR, InductionHeads, KeepNth, AbsoluteTime, CountInRow)}
