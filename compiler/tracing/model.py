"""A loaded language model that can be traced and patched by the names of its circuit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch

from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import CIRCUIT
from compiler.artifact.json_files import read_json
from compiler.artifact.model import Stack
from compiler.artifact.package import LanguageModel, language_model, with_a_block
from compiler.compiled import Compiled
from compiler.driver import compile
from compiler.language.arguments import listed
from compiler.language.data import from_data
from compiler.layout import Layout
from compiler.targets.family import EMBEDDING, FINAL_NORM, HEAD, mixer_prefix, norm_name
from compiler.tracing.decoding import Decoder
from compiler.tracing.forward import Run, run
from compiler.tracing.inside import BlockValues
from compiler.tracing.intervention import Carriers, Intervention, LaneSetting, lane_settings
from compiler.tracing.patch import Given, Patch
from compiler.tracing.trace import Trace
from compiler.tracing.trial import trial
from compiler.tracing.variables import Variables

Text = str | Sequence[str] | Sequence[int]


class Truth:
    """A compiled circuit beside the language model that runs it: the names, and what they stand for.

    stack: whose lane i stands at coordinate i of d_model, as `language_model` packages it; layout: of its tensors.
    """

    def __init__(
        self, compiled: Compiled, stack: Stack, layout: Layout, variable_names: Mapping[int, str] | None = None
    ):
        self.compiled, self.stack, self.layout = compiled, stack, layout
        self.variables = Variables(compiled, variable_names)
        self.carriers = Carriers(self.variables, partial(trial, self))

    def ids(self, text: Text) -> np.ndarray:
        """The token ids of an input: white-space separated text, or a list of letters or ids. ValueError for none."""
        alphabet = self.compiled.source.token_alphabet
        if isinstance(text, str):
            ids = alphabet.encode(text)
        else:
            given = listed(text, "the input", "text, or a list of letters")
            ids = [alphabet.index(t) if isinstance(t, str) else int(t) for t in given]
        if not ids:
            raise ValueError("the input holds no token, so there is nothing to trace")
        if not all(0 <= i < alphabet.size for i in ids):
            raise ValueError(f"a token id of the input is none of the letters' 0 … {alphabet.size - 1}")
        return np.array(ids, dtype=np.int64)

    def decoder(self, name: str) -> Decoder:
        """What turns the numbers of a variable into letters, and back; NoVariable for an unknown name."""
        variable = self.variables[name]
        return Decoder(variable.stream, variable.name, self.compiled.source.alphabet)

    def trace(self, ids: np.ndarray, setting: Intervention, outside: Sequence[str] = ()) -> Trace:
        """One input (time,) under an intervention; NotCarried where a variable of it cannot be set."""
        beyond = [*self._beyond(ids), *outside]
        done = self.run(ids[None], lane_settings(self.carriers, ids[None], setting, not beyond))
        with torch.no_grad():
            reads = [norm(stream) for norm, stream in zip(self.stack._norms(), done.streams, strict=False)]
        parts = zip(self.compiled.blocks, self.stack.blocks, reads, strict=True)
        inside = [
            BlockValues(i + 1, block, module, u, self.layout.axes[f"{mixer_prefix(i)}out_proj.weight"][1])
            for i, (block, module, u) in enumerate(parts)
        ]
        return Trace(self.variables, ids, done, inside, setting, beyond)

    def run(self, ids: np.ndarray, settings: Mapping[int, Sequence[LaneSetting]]) -> Run:
        """The model on ids (batch, time), with lanes set behind so many blocks."""
        return run(self.stack, self.stack._embed(torch.from_numpy(ids)), self.compiled.lanes, settings)

    def _beyond(self, ids: np.ndarray) -> list[str]:
        """In what an input is outside the promise."""
        language = self.compiled.source.token_language
        if len(ids) > language.max_length:
            return [f"the input has {len(ids)} tokens, and the promise ends at {language.max_length}"]
        paths, step = None, 256
        for start in range(0, len(ids), step):
            paths = language.paths(ids[start : start + step].tolist(), paths)
            if not paths:
                return [f"the input is none of the promised: {language.description}"]
        return []


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

    def _compiled_again(self) -> Compiled:
        manifest = self.manifest
        weights = sum(p.numel() * p.element_size() for p in self.parameters())
        circuit = from_data(read_json(self.directory / CIRCUIT), weights)
        found = compile(circuit, manifest.arch, manifest.dtype, manifest.max_d_state, manifest.n_groups)
        return with_a_block(found)


def _check_same(stack: Stack, packaged: LanguageModel) -> None:
    """CheckpointError unless the stack has these weights: the layout explains no others."""
    ours = {"embedding.weight": EMBEDDING, "final_norm.weight": FINAL_NORM, "head.weight": HEAD}
    for name, tensor in stack.state_dict().items():
        theirs = ours.get(name)
        if theirs is None:
            kind, number, rest = name.split(".", 2)
            theirs = norm_name(int(number)) if kind == "norms" else mixer_prefix(int(number)) + rest
        expected = packaged.tensors[theirs].to(tensor.dtype)
        if not torch.equal(tensor, expected):
            raise CheckpointError(
                f"the weights {theirs} are not those that {CIRCUIT} compiles to, so its names do not stand for them; "
                "construct verify lists the differences."
            )
