"""What a construction is: the parameters of a theorem, its circuit, its bound and its task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from compiler.language.circuit import Circuit
from verify.tasks.task import Task


def parameter(help: str, **options: Any):
    """A dataclass field with the help text that the command line shows."""
    from dataclasses import field

    return field(metadata={"help": help}, **options)


@dataclass(frozen=True)
class Construction(ABC):
    """A parametrised circuit from a theorem. Subclasses are frozen dataclasses whose fields are the parameters.

    name:    what the command line calls it.
    theorem: the statement it builds.
    """

    name: ClassVar[str]
    theorem: ClassVar[str]

    @property
    @abstractmethod
    def target(self) -> str:
        """The compiler's target: "mamba", "mamba2" or "s4d"."""

    @abstractmethod
    def circuit(self) -> Circuit:
        """The circuit, over the input language that the guarantee is for."""

    @abstractmethod
    def tasks(self) -> Sequence[Task]:
        """Independent oracles: what the circuit must do on the inputs of its language."""

    @abstractmethod
    def bound(self) -> dict[str, int]:
        """The theorem's explicit bounds on sizes, by name of the size."""

    def guarantee(self) -> str:
        """What the theorem promises: "all" inputs of the language, or "random" ones with a failure law."""
        return "all"

    def params(self) -> dict[str, Any]:
        """The parameters by name, as the manifest records them."""
        return asdict(self)

    @classmethod
    def parameters(cls):
        """The dataclass fields that the command line offers."""
        return fields(cls)
