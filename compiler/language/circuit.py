"""A circuit: an output stream, the graph behind it, and the inputs it is promised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from compiler.language.alphabet import Alphabet
from compiler.language.arguments import instance, integer, shown
from compiler.language.graph import inputs_first
from compiler.language.input_language import InputLanguage
from compiler.language.stream import Stream, given_stream
from compiler.language.variables import note_variables

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, eq=False)
class Circuit:
    """What the compiler compiles.

    name:     a word for messages and file names.
    output:   the stream that the user reads (logits, for a language model).
    language: the token sequences that every promise is made for; None for numeric inputs.
    length:   the most positions of a circuit over numbers.
    end:      the letter with which a generation ends; None where none does.
    task:     what it should answer, for who saves and verifies it: a function from the tokens so far to the token that
              must score highest (None: nobody asks), or "FILE.py:function". The compiler does not look at it.
    """

    name: str
    output: Stream
    language: InputLanguage | None = None
    length: int = 0
    end: str | None = None
    task: Callable[[list[str]], str | None] | str | Path | None = None

    def __post_init__(self) -> None:
        instance(self.name, str, "the name of a circuit", "a text")
        given_stream(self.output, f"the output of circuit {self.name!r}")
        if self.language is not None:
            instance(self.language, InputLanguage, f"the language of circuit {self.name!r}", "an InputLanguage or None")
        integer(self.length, f"the length of circuit {self.name!r}", 0)
        if self.task is not None and not callable(self.task):
            instance(self.task, (str, Path), f"the task of circuit {self.name!r}", 'a function or "FILE.py:function"')
        letters = self.language.alphabet.tokens if self.language else ()
        if self.end is not None and not (isinstance(self.end, str) and self.end in letters):
            raise ValueError(
                f"end is {shown(self.end)}, and it must be a token of the circuit's alphabet: {_some(letters)}"
            )
        note_variables()

    @cached_property
    def graph(self) -> nx.DiGraph:
        """Streams as nodes, an edge from each input to its reader."""
        import networkx as nx  # not at the top: `construct list` would wait for it

        graph = nx.DiGraph()
        graph.add_node(self.output)
        pending, seen = [self.output], {self.output}
        while pending:
            node = pending.pop()
            for source in node.inputs:
                graph.add_edge(source, node)
                if source not in seen:
                    seen.add(source)
                    pending.append(source)
        return graph

    @cached_property
    def streams(self) -> tuple[Stream, ...]:
        """Every stream the output depends on, inputs before readers, in an order fixed by the circuit's text."""
        order = tuple(inputs_first([self.output], lambda node: tuple(reversed(node.inputs))))
        place = {stream: i for i, stream in enumerate(order)}
        for i, stream in enumerate(order):
            if any(place[source] >= i for source in stream.inputs):
                name = f"{stream.operation.symbol} ({stream.origin})"
                raise ValueError(
                    f"{name} reads itself on a cycle; a stream can read earlier streams only, shift() the past"
                )
        return order

    @property
    def max_length(self) -> int:
        """How many positions a sequence of the promise has at most."""
        return self.language.max_length if self.language else self.length

    @property
    def alphabet(self) -> Alphabet | None:
        """The token alphabet, or None for a circuit over numbers."""
        for stream in self.streams:
            if stream.operation.token_alphabet is not None:
                return stream.operation.token_alphabet
        return self.language.alphabet if self.language else None

    @property
    def token_language(self) -> InputLanguage:
        """The input language of a circuit that reads tokens; ValueError where there is none."""
        if self.language is None:
            _ = self.token_alphabet  # whoever reads numbers can be given no language either
            raise ValueError(f"circuit {self.name!r} has no input language, and one is needed; give it language=…")
        return self.language

    @property
    def token_alphabet(self) -> Alphabet:
        """The alphabet of a circuit that reads tokens; ValueError for a circuit over numbers."""
        if self.alphabet is None:
            raise ValueError(f"circuit {self.name!r} reads numbers, and one that reads tokens is needed")
        return self.alphabet


def _some(names: tuple[str, ...]) -> str:
    return (" ".join(names[:8]) + (" …" if len(names) > 8 else "")) or "none, for it reads numbers"
