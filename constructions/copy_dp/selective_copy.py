"""Selective copying (Gu and Dao's task, after paper B's Theorem 2): tokens among noise are written in their order.

Statement. After Theorem 2: COPY with pos(i) the place of the i-th token that is no noise, however much noise stands
between.

Our choice. The place is a count of what is kept, so the state has a column for each token that is kept and none for
noise. That size is ours: Theorem 2 has O(N) for a sequence of N tokens, noise among them, and the size of paper D's
Theorem D.2 is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.output import readout_one_hot
from compiler.language.source import Tokens
from compiler.language.stream import Stream, constant
from compiler.language.words import count, present
from constructions.construction import WithMemory, parameter
from constructions.copy_dp.chains import END, ChainConstruction, Edges, leaving, repeated
from constructions.copy_dp.places import FORGETS, Arch, by_hand, copied_by_sums
from constructions.copy_dp.sizes import AFTER_COPY
from constructions.papers import OF_PAPER_B, TOKEN_SELECTION
from verify.arguments import at_least
from verify.obstructions import Capacity, Obstruction, of_copy
from verify.tasks.chain import Solver
from verify.tasks.solvers.recall import SelectiveCopySolver

BAR, NOISE = "|", "_"


@dataclass(frozen=True)
class SelectiveCopy(ChainConstruction, WithMemory):
    name: ClassVar[str] = "selective-copy"
    theorem: ClassVar[str] = AFTER_COPY
    mixers: ClassVar[tuple[str, ...]] = OF_PAPER_B
    group: ClassVar[str] = ""

    n: int = parameter("tokens that are kept, at most", most=1 << 12, default=4)
    vocab: int = parameter("tokens that are copied: x0, x1, …", most=1 << 16, default=4)
    length: int = parameter("tokens and noise together, at most", most=1 << 16, default=16)
    arch: Arch = parameter("which mixer", default="mamba", kw_only=True)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        at_least("n", self.n, 1, "there must be a token to keep")
        at_least("vocab", self.vocab, 1, "there must be a token to copy")
        at_least("length", self.length, self.n, "it counts the tokens that are kept, too")

    def alphabet(self) -> Alphabet:
        return Alphabet.of(BAR, END, NOISE, x=self.vocab)

    def edges(self) -> Edges:
        prompt, edges = repeated("start", "x", self.n)
        chain, in_chain = repeated("chain", "x", self.n)
        noise = [(state, state, [NOISE]) for state in prompt]
        return edges + noise + leaving(prompt, "chain", [BAR]) + in_chain + leaving(chain, "end", [END])

    def table(self) -> int:
        return self.n

    def on_network(self) -> str:
        return f"{TOKEN_SELECTION}, after Theorem D.2, by places"

    def stated_bound(self) -> tuple[dict[str, int], str]:
        """Theorem 2 copies all tokens, not some among noise."""
        return {}, ""

    def longest(self) -> int:
        return self.length + 1 + self.n + 1

    def prompts(self) -> str:
        return f"at most {self.n} tokens among noise"

    def scores(self) -> Stream:
        x = Tokens(self.alphabet())
        token, kept, bar = x.one_hot("x", name="token"), x.is_in("x"), x.is_in([BAR])
        if self.arch not in FORGETS:
            return copied_by_sums(self.arch, x, bar, self.n, END)
        place = count(kept, reset=bar).named("place")
        text = memory.write((place - 1).one_hot(self.n), token, when=kept & ~present(bar), policy="once", name="text")
        lanes, end = np.zeros((x.alphabet.size, self.vocab)), np.zeros((x.alphabet.size, 1))
        lanes[list(x.alphabet.ids("x")), range(self.vocab)] = 2
        end[x.alphabet.index(END)] = 1
        return readout_one_hot(lanes @ text.read(place.one_hot(self.n)) + end @ constant(1), x.alphabet)

    def asks(self) -> dict[str, Any]:
        return {"name": self.name}

    def solver(self) -> Solver:
        return SelectiveCopySolver(self.length, self.n, [f"x{v}" for v in range(self.vocab)])

    def by_hand(self) -> dict[str, int]:
        return by_hand(self.n, self.vocab, self.longest())

    def obstructions(self, has: Capacity) -> list[Obstruction]:
        """O1 and O3; on fnn+ssm the separator's delays are cosines over all places of the window, elsewhere a count."""
        return of_copy(self.n, self.vocab, has)
