"""A loaded language model that can be traced and patched by the names of its circuit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from compiler.artifact.errors import CheckpointError, EditedError, of_damage
from compiler.artifact.files import CIRCUIT, MANIFEST
from compiler.artifact.json_files import read_json, same_json
from compiler.artifact.model import Stack, stack_name
from compiler.artifact.package import LanguageModel, language_model, with_a_block
from compiler.compiled import Compiled
from compiler.driver import compile
from compiler.language.circuit import Circuit
from compiler.language.data import from_data, language_to_data
from compiler.targets import family_of
from compiler.tracing.causal_graph import causal_graph
from compiler.tracing.hooks import Hooks, hooks
from compiler.tracing.interchange import Interchange, interchange
from compiler.tracing.patch import Given, Patch
from compiler.tracing.saved_variables import with_variables
from compiler.tracing.trace import Trace
from compiler.tracing.truth import Text, Truth


class TracedModel(Stack):
    """A language model that was loaded from a checkpoint, with the circuit that its weights are compiled from.

    directory: where it was loaded from. The circuit is compiled when it is first asked for, and its weights compared.
    """

    directory: Path

    @cached_property
    def truth(self) -> Truth:
        """The names of the circuit and where they stand. CheckpointError where the weights are not the circuit's."""
        compiled = self._compiled_again()
        packaged = language_model(compiled)
        _check_same(self, packaged)
        return Truth(compiled, self, packaged.layout)

    def graph(self) -> dict[str, Any]:
        """The causal graph of the circuit, in the node-link form of networkx (`tracing.causal_graph`)."""
        return causal_graph(self.truth.compiled)

    def hooks(self) -> Hooks:
        """For each variable that stands on lanes the module whose output holds it, and how to read and set it there.
        NoVariable, a KeyError, for a name that has none.
        """
        return hooks(self.truth)

    def trace(self, text: Text) -> Trace:
        """What the model computes on an input, by the names of the circuit.

        text: tokens with spaces between, or a list of them. `trace(text)["stack"]` has one entry a position.
        """
        return self.truth.trace(self.truth.ids(text), {})

    def patch(self, values: Mapping[str, Given] = {}, source: Text | None = None) -> Patch:
        """The model with variables set: `model.patch({"stack": {3: "("}}).trace(text)`.

        values: for each variable {position: value}, or, with `source`, a list of positions at which it takes the value
            that it has there in the run on that other input. A value is decoded, as a trace shows it, or a list of
            numbers; None is absent. NoVariable, NotCarried or ValueError for what cannot be set.
        """
        return Patch(self.truth).also(values, source)

    def ablate(self, *names: str, mean_of: Sequence[Text] = (), positions: Sequence[int] | None = None) -> Patch:
        """The model with variables set to zeros at these positions [default: all]; or, with `mean_of`, to the mean of
        their numbers over all positions of these inputs, rounded to the model's own format.
        """
        return Patch(self.truth).ablated(names, mean_of, positions)

    def interchange(self, name: str, pairs: Sequence[tuple[Text, Text, int]]) -> Interchange:
        """How often the model answers as the circuit, where a variable is set to what it is in another run.

        pairs: (base, source, position) each.
        """
        return interchange(self.truth, name, pairs)

    def _compiled_again(self) -> Compiled:
        """CheckpointError, of a file that was changed, where the circuit beside the weights is none, or another."""
        manifest, path = self.manifest, self.directory / CIRCUIT
        weights = sum(p.numel() * p.element_size() for p in self.parameters())
        with of_damage():
            try:
                circuit = with_variables(from_data(read_json(path), weights), self.directory)
                self._check_promise(circuit)
                found = compile(circuit, manifest.arch, manifest.dtype, manifest.max_d_state, manifest.n_groups)
            except CheckpointError:
                raise
            except ValueError as reason:  # as DataError and CompileError are
                raise CheckpointError(f"{path} does not compile: {str(reason).rstrip('.')}.") from reason
        return with_a_block(found)

    def _check_promise(self, circuit: Circuit) -> None:
        """CheckpointError where the promise is not that of the circuit: what is outside would be told of another."""
        promise, language = self.manifest.promise, language_to_data(circuit.token_language)
        for name in ("language", "length"):
            if not same_json(getattr(promise, name), language[name]):
                raise EditedError(
                    f"{MANIFEST} promises another {name} than {CIRCUIT}; construct verify lists the differences."
                )


def _check_same(stack: Stack, packaged: LanguageModel) -> None:
    """CheckpointError unless the stack has these weights: the layout explains no others."""
    family, tensors = family_of(packaged.config["model_type"]), stack.state_dict()
    for name, expected in family.in_house(packaged.config, packaged.tensors).items():
        tensor = tensors[stack_name(name)]
        if not torch.equal(tensor, expected.to(tensor.dtype)):
            raise EditedError(
                f"the weights {name} are not those that {CIRCUIT} compiles to, so its names do not stand for them; "
                "construct verify lists the differences."
            )
