"""The one exception of this package."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be written or must not be loaded; the message is one sentence for people."""
