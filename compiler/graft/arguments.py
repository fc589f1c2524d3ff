"""What graft, branch and reader are given: one sentence where that is none of what they take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compiler.compiled import Compiled
from compiler.graft.errors import GraftError
from compiler.language.arguments import shown
from compiler.language.circuit import Circuit


def source_of(circuit: Circuit | Compiled) -> Circuit:
    """The circuit, also of a compiled one; TypeError for anything else."""
    source = circuit.source if isinstance(circuit, Compiled) else circuit
    if not isinstance(source, Circuit):
        raise TypeError(f"what is grafted is {shown(source)}, and a Circuit is needed")
    return source


def check_token_map(tokens: object) -> None:
    """GraftError for what is no mapping at all; what it leads to is for the caller to check."""
    if not isinstance(tokens, Mapping):
        raise GraftError(f"the token map is {shown(tokens)}, and a mapping such as {{'a': 3}} is needed.")


def ids_of(places: int | Sequence[int]) -> list[int]:
    """One token or several, as a list; what is no sequence is one."""
    return list(places) if isinstance(places, (list, tuple, range)) else [places]  # type: ignore[list-item]
