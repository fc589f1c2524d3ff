"""Tasks: where inputs come from and what their right answers are, in NumPy and plain Python only."""

from verify.tasks.task import IGNORED, Batch, Task

__all__ = ["IGNORED", "Batch", "Task"]
