"""What came of a case, and what is known of why cases are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from torch import Tensor

from conformance.kernel.kernel import Layout
from conformance.loader import Case

Status = Literal["passed", "failed", "failed to run", "skipped"]
RAN: tuple[Status, ...] = ("passed", "failed")
"""Of a case for which a kernel gave a result, right or wrong."""


@dataclass(frozen=True)
class Finding:
    """How a case came out.

    position: the first wrong position, None where none or where the last state alone is wrong; near: that position
    against known borders; wrong, of: how many entries; entries: which they are; asks: what the case asks for that no
    earlier one does; cause: the known mistake that gives all that was seen, "" where there is none; op: the operation
    whose case it is, "" of a model; compared: what of its results, where it is not all of them.
    """

    stage: str
    case: str
    status: Status
    says: str = ""
    position: int | None = None
    near: str = ""
    cause: str = ""
    wrong: int = 0
    of: int = 0
    entries: str = ""
    asks: str = ""
    op: str = ""
    compared: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Ran:
    """A case that was run; results: what came back, where it was compared; lacks: whether it was not run because the
    kernel has no argument for something; layouts: how each operand was given; untold: what of `features` the kernel is
    told in no call.
    """

    case: Case
    finding: Finding
    results: Mapping[str, Tensor] | None = None
    lacks: bool = False
    layouts: Mapping[str, frozenset[Layout]] = field(default_factory=dict)
    untold: frozenset[str] = frozenset()

    @property
    def strided(self) -> bool:
        """Whether it was run with an operand that is no dense tensor."""
        ran = self.finding.status in RAN
        return ran and any(not each.dense for seen in self.layouts.values() for each in seen)

    @property
    def states(self) -> bool:
        """Whether a last state was compared, or those of documents."""
        return self.results is not None and any(name in self.results for name in self.case.states)


@dataclass(frozen=True)
class Why:
    """What is known of why cases are wrong.

    likely: the known mistakes that give all that was seen, of right cases too; else "". somewhere: where that is "",
    the one known mistake that gives all wrong results, and does not leave all right ones right; else "". apart: each
    says what all wrong cases have and no right one has; first: where there is no such thing, what the first of them has
    and no right one; none_right: whether there is no right one.
    """

    likely: str = ""
    somewhere: str = ""
    apart: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    none_right: bool = False
