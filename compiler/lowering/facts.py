"""What is known where a circuit is lowered: the ports, the floating point format, what the streams hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.analysis.affine_form import AffineForm, port_form
from compiler.analysis.domains import Domains
from compiler.exactness.levels import COUNT, RESET
from compiler.formats import Format
from compiler.language.stream import Stream
from compiler.lowering.ports import Ports


@dataclass(frozen=True, eq=False)
class Facts:
    """target: what its ports take; format: what is compiled for; domains: what streams can hold.

    forms: their affine forms, found once each.
    """

    target: Ports
    format: Format
    domains: Domains
    forms: dict[Stream, AffineForm] = field(default_factory=dict, repr=False)

    def form(self, stream: Stream) -> AffineForm:
        """The stream as Σ matrix · atom(t − lag)."""
        return port_form(stream, self.forms)

    @property
    def counts(self) -> bool:
        """Whether a channel counts since a reset: the target's Δ sees the past, and the format holds what a
        reset adds.
        """
        return self.target.counts and self.format.largest >= COUNT + RESET
