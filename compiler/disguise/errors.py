"""What a disguise refuses."""

from __future__ import annotations

from compiler.artifact.errors import CheckpointError


class DisguiseError(CheckpointError):
    """A checkpoint that has no exact disguise of the kind asked for, or a key that does not fit; one sentence."""
