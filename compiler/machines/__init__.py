"""Idealised mixers: machines of the papers that no library ships, over numbers of any kind.

A machine that circuits of the language are compiled for is found here by the name that `compile` is given; it has its
own layers, and so its own last passes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compiler.machines.fnn_ssm.machine import CompiledNetwork

_MACHINES = {"fnn+ssm": "compiler.machines.fnn_ssm"}


def machine_names() -> tuple[str, ...]:
    """The names of the machines that circuits are compiled for."""
    return tuple(_MACHINES)


def compile_for(machine: str, circuit: object, dtype: str, max_d_state: int | None) -> CompiledNetwork:
    """Lower a circuit to a machine; ValueError for options that only targets with state columns have."""
    other = not isinstance(dtype, str) or dtype != "float32"
    if other or max_d_state is not None:
        asked = f"dtype = {dtype!r:.60}" if other else f"max_d_state = {max_d_state}"
        raise ValueError(f"{asked} has no meaning for {machine}, whose layers are exact numbers; leave it out")
    return import_module(_MACHINES[machine]).compile_network(circuit)
