"""A program: its text, the circuit that the text builds, and what it means on a sequence."""

from __future__ import annotations

from dataclasses import dataclass

from tests.fuzz.kinds import Kind, shown
from tests.fuzz.language import Language
from tests.fuzz.words import WORDS
from tests.fuzz.words.reals import APPROXIMATE
from tests.fuzz.words.word import Column, compared, fits

HEADER = (
    "import numpy as np\nfrom fractions import Fraction\nfrom compiler import *\nfrom compiler.language import memory\n"
)


@dataclass(frozen=True)
class Node:
    """One line of a program: a word, the lines that it reads, its parameters, the kind of what it gives."""

    word: str
    inputs: tuple[int, ...]
    params: dict
    kind: Kind


@dataclass(frozen=True)
class Program:
    """Lines over an input language, of which the user reads `outputs`; `end` is the letter that ends a generation.

    max_d_state: what the compiler is given.
    """

    language: Language
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    end: str | None = None
    max_d_state: int | None = None

    def text(self) -> str:
        """The program as code that leaves a circuit under the name `circuit`."""
        lines = [f"letters = Alphabet.of({', '.join(map(repr, self.language.letters))})", "x = Tokens(letters)"]
        for i, node in enumerate(self.nodes):
            params = {name: shown(value) for name, value in node.params.items()}
            lines.append(f"v{i} = " + WORDS[node.word].code.format(*(f"v{j}" for j in node.inputs), **params))
        names = [f"v{i}" for i in self.outputs]
        output = names[0] if len(names) == 1 else f"concatenate({', '.join(names)})"
        end = "" if self.end is None else f", end={self.end!r}"
        lines.append(f"circuit = Circuit('fuzz', {output}, {self.language.code()}{end})")
        return "\n".join(lines) + "\n"

    def circuit(self):
        """The circuit that the text builds."""
        names: dict = {}
        exec(HEADER, names)
        exec(compile(self.text(), "program", "exec"), names)
        return names["circuit"]

    def meaning(self, letters: tuple[str, ...]) -> Column:
        """What the outputs are at each position of a sequence."""
        columns: list[Column] = []
        for node in self.nodes:
            inputs = [columns[i] for i in node.inputs]
            columns.append(WORDS[node.word].means(node.params, list(letters), *inputs))
        return [sum(rows, ()) for rows in zip(*(columns[i] for i in self.outputs), strict=True)]

    @property
    def decides(self) -> bool:
        """Whether only the largest score is meant."""
        return any(self.nodes[i].kind.name == "decision" for i in self.outputs)

    @property
    def approximate(self) -> bool:
        """Whether a model gives it within a bound only."""
        return any(node.word in APPROXIMATE for node in self.nodes)

    @property
    def well_typed(self) -> bool:
        """Whether every word has inputs of the kinds that it is documented for: then its meaning is known."""
        kinds = [node.kind for node in self.nodes]
        return all(
            fits(kinds[i], wanted, None if k == 0 else kinds[node.inputs[compared(wanted)]], len(self.language.letters))
            for node in self.nodes
            for k, (i, wanted) in enumerate(zip(node.inputs, WORDS[node.word].takes, strict=True))
        )

    def trimmed(self) -> Program:
        """Without the lines that nothing reads."""
        live, pending = set(), list(self.outputs)
        while pending:
            i = pending.pop()
            if i not in live:
                live.add(i)
                pending += self.nodes[i].inputs
        place = {old: new for new, old in enumerate(sorted(live))}
        nodes = tuple(
            Node(n.word, tuple(place[i] for i in n.inputs), n.params, n.kind)
            for n in (self.nodes[old] for old in sorted(live))
        )
        return Program(self.language, nodes, tuple(place[i] for i in self.outputs), self.end, self.max_d_state)
