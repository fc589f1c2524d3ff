"""The exception of this package."""


class GraftError(ValueError):
    """A host, circuit or token map that cannot be grafted; the message is one sentence for people."""
