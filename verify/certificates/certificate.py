"""What every certificate says, and how it says no."""

from __future__ import annotations

from abc import ABC
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal


class Refused(ValueError):
    """The module or the task is outside a certificate's reach: nothing is said about whether it is right."""


class Violated(ValueError):
    """A step of the proof fails for these weights, at a named channel and window."""


@dataclass(frozen=True)
class Certificate(ABC):
    """A proof about the weights of a real module.

    margin: at every position where the task asks, the logit of the right token exceeds every other by at least this
            much (None where no task was given).
    domain: the inputs that the proof covers, in words.
    level:  "bit-exact": the numbers of the module are those of the block IR, bit for bit; "margin-certified": the
        argmax is right.
    """

    margin: float | None
    domain: str
    level: ClassVar[Literal["bit-exact", "margin-certified"]]

    @property
    def holds(self) -> bool:
        """Whether the certificate proves what the task asks."""
        return self.margin is None or self.margin > 0

    def to_json(self) -> dict[str, Any]:
        """Plain values for a manifest or a report."""
        return {"kind": type(self).__name__, "level": self.level, "holds": self.holds, **asdict(self)}
