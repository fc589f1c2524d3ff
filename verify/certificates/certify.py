"""Which certificate fits a memory's task."""

from __future__ import annotations

from compiler.artifact.model import Stack
from compiler.driver import Compiled
from verify.certificates.ask import Ask
from verify.certificates.certificate import Certificate
from verify.certificates.inductive import certify_latches
from verify.certificates.kernel import certify_kernel


def certify(stack: Stack, compiled: Compiled, ask: Ask) -> Certificate:
    """A proof that the bare module answers what is asked: by latches where the last write counts, by its kernel where
    writes add up.

    Raises Refused where neither applies and Violated where a latch is wrong; a kernel certificate may come back that
    does not hold.
    """
    if ask.policy == "last":
        return certify_latches(stack, compiled, ask)
    return certify_kernel(stack, compiled.source.token_language, ask)
