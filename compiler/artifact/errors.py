"""The exceptions of this package."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be written or must not be loaded; the message is one sentence for people."""


class ScoreError(CheckpointError):
    """A checkpoint whose model was run and scores no numbers, so that no token can be chosen."""
