"""Verification: tasks with independent answers, checks of models, certificates, bounds on sizes.

from verify import verify

verify(circuit, plain_python_function, upto=8)  # every sequence of up to eight tokens, or the first counterexample

`Automaton`, `Lookup` and `Counted` are such functions, which a circuit can have as its task and the checker proves.
"""

from typing import Any

__all__ = ["Automaton", "Counted", "Lookup", "verify"]


def __getattr__(name: str) -> Any:
    """What is asked for, imported then: the rest of the package needs neither torch nor the compiler."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("verify.function" if name == "verify" else "verify.tasks.forms"), name)
