"""Circuits for the machine fnn+ssm: the same first passes as for every mixer, then its own two."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

import compiler.gadgets.core  # noqa: F401 (operations that a block computes are known to be such)
from compiler.analysis.domains import Domains
from compiler.context import Choices, Context
from compiler.errors import CompileError
from compiler.formats import FLOAT32
from compiler.interpreter import interpret, token_ids
from compiler.language.arguments import instance
from compiler.language.circuit import Circuit
from compiler.machines.fnn_ssm.layers import Network
from compiler.machines.fnn_ssm.lower import lower
from compiler.machines.fnn_ssm.sizes import PaperSizes, sizes
from compiler.machines.fnn_ssm.unfold import unfold
from compiler.passes.common_subexpressions import common_subexpressions
from compiler.passes.represent import represent
from compiler.passes.rule_weights import rule_weights
from compiler.run import Run
from compiler.targets.target import Target

if TYPE_CHECKING:
    import torch

    from compiler.machines.fnn_ssm.module import FnnSsm

NAME = "fnn+ssm"


class _Machine(Target):
    """What the shared passes ask of a target: nothing here depends on the input but what the networks compute."""

    name = NAME
    step = None
    column = None


@dataclass(frozen=True, eq=False)
class CompiledNetwork:
    """A circuit as a network of the paper's class.

    source: the circuit as written; core: what the layers compute; network: their exact matrices and taps.
    """

    source: Circuit
    core: Circuit
    domains: Domains
    network: Network

    @cached_property
    def sizes(self) -> PaperSizes:
        return sizes(self.network)

    def interpret(self, tokens: ArrayLike) -> np.ndarray:
        """What the circuit as written gives, exactly: (batch, time, width); Python integers and Fractions where
        float64 would round.
        """
        return interpret(self.source, self._ids(tokens), dtype=self.domains.exact_dtype(self.source))[
            self.source.output
        ]

    def run(self, tokens: ArrayLike, dtype: type = object) -> np.ndarray:
        """What the network gives, exactly: (batch, time, width). dtype: np.float64 where `fits_float64`."""
        return self.network.run(self._ids(tokens), dtype)

    def module(self, dtype: torch.dtype | None = None, form: str = "shift") -> FnnSsm:
        """The network as a torch module in one of the forms of `compiler.machines.fnn_ssm.module`."""
        from compiler.machines.fnn_ssm.module import FnnSsm

        return FnnSsm(self.network, dtype, form)

    @cached_property
    def fits_float64(self) -> bool:
        """Whether no number of the network, partial sums included, leaves 2^53 of its unit over any sequence."""
        return self.network.reach(self.source.max_length) < 2.0**52

    def _ids(self, tokens: ArrayLike) -> np.ndarray:
        return token_ids(tokens, self.source.token_alphabet.size)


def compile_network(circuit: Circuit) -> CompiledNetwork:
    """Lower a circuit to the machine; CompileError with every reason where it cannot express it."""
    instance(circuit, Circuit, "what is compiled", "a Circuit")
    circuit, context = Run().first("checked", circuit, Context.empty(circuit, _Machine(), FLOAT32, None))
    if circuit.alphabet is None:
        raise CompileError([(circuit.output, f"{NAME} embeds tokens, and this circuit reads numbers; use mamba")])
    core, context = circuit, replace(context, choices=Choices(decides=True)).bounding(circuit)
    for rewriting in (rule_weights, represent, unfold):
        core, context = common_subexpressions(*rewriting(core, context))
    return CompiledNetwork(circuit, core, context.domains, lower(core, context.domains))
