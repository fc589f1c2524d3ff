"""Tests for kernels and runtimes of selective state-space models: vectors and models whose results are known exactly.

    from conformance import load

    for case in load("vectors/selective_scan.safetensors"):
        y = my_scan(**case.inputs, **case.options)
        assert not case.wrong("y", y).any(), case.asks

`exact` is the operations in plain Python, `cases` draws operands for them, `judge` runs a kernel on them and says at
which stage it fails and where, `models` are compiled circuits for whole runtimes, `faults` are kernels with injected
bugs, which show what all this sees.
"""

from conformance.loader import Case, load, save

__all__ = ["Case", "load", "save"]
