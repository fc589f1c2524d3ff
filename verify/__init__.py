"""Verification: tasks with independent answers, checks of models, certificates, bounds on sizes.

from verify import verify

verify(circuit, plain_python_function, upto=8)  # every sequence of up to eight tokens, or the first counterexample
"""

from typing import Any

__all__ = ["verify"]


def __getattr__(name: str) -> Any:
    """`verify`, imported when it is asked for: the rest of the package needs neither torch nor the compiler."""
    if name != "verify":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from verify.function import verify

    return verify
