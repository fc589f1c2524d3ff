"""The case of an operation by which it is seen how many initial states a kernel takes beside offsets."""

from __future__ import annotations

AFTER_A_STATE = "documents after a state"
