"""What an export refuses."""

from __future__ import annotations


class ExportError(ValueError):
    """What a format cannot keep exact, or where it must not be written; one sentence for people."""
