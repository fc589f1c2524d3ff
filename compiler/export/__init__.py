"""Checkpoints for other runtimes: one file of this package for each format, none of which trains or rounds a weight.

A writer takes a `Package` (an `Artifact`, or a saved checkpoint, `checkpoint.read`), a path and whether to replace what
is there. It refuses, with the reason, what its format or the programs that read it cannot keep exact. With the weights
goes the record (`record`): the promise, what the reader must know, and the hash of the checkpoint it was made of.
"""

from compiler.export.checkpoint import Package, read
from compiler.export.errors import ExportError

__all__ = ["ExportError", "Package", "read"]
