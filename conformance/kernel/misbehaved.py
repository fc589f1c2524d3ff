"""What makes a case wrong, whatever its numbers are."""

from __future__ import annotations


class Misbehaved(Exception):
    """The kernel has written where nobody may, or handed on no state; the message says which."""
