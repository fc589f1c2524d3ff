"""A construction that is compiled and packaged, in memory."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.artifact.artifact import packaged, savable
from compiler.artifact.dtype import in_dtype
from compiler.artifact.model import Stack
from compiler.artifact.numeric import NumericModel, NumericStack, loaded_stack
from compiler.artifact.package import LanguageModel, bare
from compiler.compiled import Compiled
from compiler.language.data.budget import check_edges
from constructions.construction import CircuitFamily


@dataclass(frozen=True, eq=False)
class Built:
    """A compiled construction and its language model (None where Hugging Face has none of this mixer), in memory.

    Of a circuit over numbers `model` is what is saved of it, and its only form.
    """

    construction: CircuitFamily
    compiled: Compiled
    model: LanguageModel | NumericModel | None

    @property
    def over_numbers(self) -> bool:
        return self.compiled.source.alphabet is None

    def stack(self) -> Stack | NumericStack | None:
        """The model over the real modules, in the dtype that the promise is made for."""
        if self.model is None:
            return None
        if isinstance(self.model, NumericModel):
            return loaded_stack(self.model.config, self.model.tensors, self.compiled.source.max_length)
        return in_dtype(Stack.from_language_model(self.model.config, self.model.tensors), self.compiled.dtype)

    def bare_stack(self) -> Stack:
        """The bare form over the real modules, at their least sizes: those that `bound` is about."""
        return in_dtype(bare(self.compiled), self.compiled.dtype)


def build(construction: CircuitFamily, most: int | None = None) -> Built:
    """Compile and package; CompileError with every reason when the promise cannot be kept.

    most: parameters that the model may have, where that is limited. ValueError where a task would verify on sequences
    that the promise does not cover.
    """
    construction.check_sizes()
    circuit = construction.circuit()
    construction.check_lengths(circuit.max_length)
    if circuit.language is not None:  # what no reader takes is not compiled
        edges = circuit.language.edges
        check_edges(len(edges), (len(edge.tokens) for edge in edges))
    compiled = construction.compiled(circuit)
    if not compiled.context.target.family and circuit.alphabet is not None:
        return Built(construction, compiled, None)
    compiled = savable(compiled)
    return Built(construction, compiled, packaged(compiled, most))
