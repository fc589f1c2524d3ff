"""A compiled circuit beside the language model that runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import torch

from compiler.artifact.model import Stack
from compiler.compiled import Compiled
from compiler.language.arguments import listed
from compiler.language.input_language import InputLanguage
from compiler.language.markdown import one_line
from compiler.layout import Layout
from compiler.tracing.decoding import Decoder
from compiler.tracing.forward import Basis, Run, run
from compiler.tracing.inside import BlockValues
from compiler.tracing.intervention import Carriers, Intervention, LaneSetting, lane_settings
from compiler.tracing.trace import Trace
from compiler.tracing.trial import trial
from compiler.tracing.variables import Variables

Text = str | Sequence[str] | Sequence[int]


class Truth:
    """A compiled circuit beside the language model that runs it: the names, and what they stand for.

    stack: whose lane i stands at coordinate i of d_model, as `language_model` packages it, unless a basis says where it
    stands; layout: of the tensors that the circuit compiles to.
    """

    def __init__(self, compiled: Compiled, stack: Stack, layout: Layout, basis: Basis | None = None):
        self.compiled, self.stack, self.layout, self.basis = compiled, stack, layout, basis
        self.variables = Variables(compiled)
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
        return self.variables.decoder(self.variables[name], name)

    def trace(self, ids: np.ndarray, setting: Intervention, outside: Sequence[str] = ()) -> Trace:
        """One input (time,) under an intervention; NotCarried where a variable of it cannot be set."""
        outside = [*beyond(self.compiled.source.token_language, ids.tolist()), *outside]
        done = self.run(ids[None], lane_settings(self.carriers, ids[None], setting, not outside))
        inside = [] if self.basis is not None else self._inside(done)  # channels of another basis have no names
        return Trace(self.variables, ids, done, inside, setting, outside)

    def _inside(self, done: Run) -> list[BlockValues]:
        with torch.no_grad():
            reads = [norm(stream) for norm, stream in zip(self.stack._norms(), done.streams, strict=False)]
        parts = zip(self.compiled.blocks, self.stack.blocks, reads, strict=True)
        family = self.compiled.context.target.family
        assert family is not None, "a language model has one"
        return [
            BlockValues(i + 1, block, module, u, self.layout.axes[family.output_name(i)][1])
            for i, (block, module, u) in enumerate(parts)
        ]

    def run(self, ids: np.ndarray, settings: Mapping[int, Sequence[LaneSetting]]) -> Run:
        """The model on ids (batch, time), with lanes set behind so many blocks."""
        return run(self.stack, self.stack._embed(torch.from_numpy(ids)), self.compiled.lanes, settings, self.basis)


def beyond(language: InputLanguage, ids: Sequence[int]) -> list[str]:
    """In what an input is outside the promise, a sentence each."""
    if len(ids) > language.max_length:
        return [f"the input has {len(ids)} tokens, and the promise ends at {language.max_length}"]
    paths, step = None, 256
    for start in range(0, len(ids), step):
        paths = language.paths(ids[start : start + step], paths)
        if not paths:
            return [f"the input is none of the promised: {one_line(language.description)}"]
    return []
