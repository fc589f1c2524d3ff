"""COPY: a token from an earlier place (after paper B, Theorem 2).

Statement. A Mamba block of size O(N) gives y_i = v_pos(i), v = Δ ⊙ x, for every i. The proof has e_i and e_pos(i) in
the input, A = 0, B = e_i and C = e_pos(i): one column of the state for each of N places. It fixes no Δ.

Conditions that the paper leaves unsaid. On real Mamba places that stand one-hot in B and C need a channel each, in
front of x_proj, and every channel has all N columns: the state grows as 2N², not as N. Mamba-2 takes B and C past
the channels and keeps to d·N. Where the place must be counted first, a block does that.

Circuits. string: before `|` each token is written under its place, behind it read under the next one; where nothing is
stored the chain ends. delay: pos(i) = i − n. pointer: `@3` asks for the token at place 3. place: every token says
itself where to copy from, as in the proof: `x1@3` is x1 and asks for place 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.output import _logits
from compiler.language.source import Tokens
from compiler.language.stream import Stream, constant
from compiler.language.words import count, present
from compiler.targets.target import KERNEL_COLUMNS
from constructions.construction import Construction, WithMemory, parameter
from constructions.copy_dp.chains import END, leaving, repeated
from constructions.copy_dp.places import FORGETS, Arch, by_hand, copied_by_sums
from constructions.copy_dp.sizes import with_our_constant
from constructions.papers import FREE_LUNCH, OF_PAPER_B, TOKEN_SELECTION
from verify.arguments import at_least
from verify.obstructions import Capacity, Obstruction, of_copy
from verify.tasks.chain import ChainTask
from verify.tasks.copying import CopyAt
from verify.tasks.solvers.copying import CopySolver
from verify.tasks.task import Task

BAR = "|"


@dataclass(frozen=True)
class Copy(WithMemory, Construction):
    name: ClassVar[str] = "copy"
    theorem: ClassVar[str] = f"{FREE_LUNCH}, Theorem 2"
    mixers: ClassVar[tuple[str, ...]] = OF_PAPER_B

    form: Literal["string", "delay", "pointer", "place"] = parameter("what says where to copy from", default="string")
    n: int = parameter("places (delay: how far back)", most=1 << 14, default=8)
    vocab: int = parameter("tokens that are copied: x0, x1, …", most=1 << 16, default=4)
    arch: Arch = parameter("which mixer", default="mamba", kw_only=True)
    max_length: int = parameter(
        "longest sequence that the promise covers (0: the longest that the form needs)", default=0, kw_only=True
    )

    def __post_init__(self) -> None:
        at_least("n", self.n, 1, "there must be a place to copy from")
        at_least("vocab", self.vocab, 1, "there must be a token to copy")
        if self.max_d_state and self.form == "delay":
            raise ValueError(f"max_d_state = {self.max_d_state} has no effect on a delay, which keeps no keyed memory")

    @property
    def target(self) -> str:
        return self.arch

    def letters(self) -> int:
        return self.vocab + 2 + {"pointer": self.n, "place": self.n * self.vocab}.get(self.form, 0)

    def alphabet(self) -> Alphabet:
        places = range(1, self.n + 1)
        asking = {
            "pointer": [f"@{p}" for p in places],
            "place": [f"x{v}@{p}" for v in range(self.vocab) for p in places],
        }
        return Alphabet.of(BAR, END, x=self.vocab, ask=asking.get(self.form, []))

    def longest(self) -> int:
        """Tokens of the longest sequence: copied once, twice as long as the delay, or all places and as many
        pointers.
        """
        return self.max_length or {"string": 2 * self.n + 2, "place": self.n}.get(self.form, 2 * self.n)

    def longest_sequence(self) -> int:
        """A chain has to come to its end; the other forms are run as long as is promised."""
        return 2 * self.n + 2 if self.form == "string" else self.longest()

    def language(self) -> InputLanguage:
        first, edges = repeated("start", "ask" if self.form == "place" else "x", self.n)
        if self.form == "delay":
            edges, text = [("start", "start", "x")], f"every sequence of the {self.vocab} tokens"
        elif self.form == "string":
            chain, copied = repeated("chain", "x", self.n)
            edges += leaving(first, "chain", [BAR]) + copied + leaving(chain, "end", [END]) + [("end", "end", [END])]
            text = f"at most {self.n} tokens and `|`, and what the model itself writes after it"
        elif self.form == "pointer":
            edges += leaving(first, "asking", "ask") + [("asking", "asking", "ask")]
            text = f"at most {self.n} tokens, then places to copy from"
        else:
            edges = edges if self.longest() > self.n else [("start", "start", "ask")]  # the length counts them
            text = f"at most {self.n} tokens with places to copy from"
        asked = "chain" if self.form == "string" else ""
        return InputLanguage.of(self.alphabet(), "start", edges, self.longest(), text, asked)

    def circuit(self) -> Circuit:
        x = Tokens(self.alphabet())
        if self.form == "string" and self.arch not in FORGETS:
            scores = copied_by_sums(self.arch, x, x.is_in([BAR]), self.n, END)
            return Circuit(self.name, scores, self.language(), end=END)
        build = {"string": self._string, "delay": self._delay, "pointer": self._pointer, "place": self._place}
        end = END if self.form == "string" else None
        return Circuit(self.name, self._written(build[self.form](x)), self.language(), end=end)

    def _string(self, x: Tokens) -> Stream:
        letter, bar = x.is_in("x"), x.is_in([BAR])
        place = count(letter, reset=bar).named("place")
        before = letter & ~present(bar)  # in a host model's text other tokens stand between, which are not written
        token = x.one_hot("x", name="token")
        text = memory.write((place - 1).one_hot(self.n), token, when=before, policy="once", name="text")
        return text.read(place.one_hot(self.n))

    def _delay(self, x: Tokens) -> Stream:
        return x.one_hot("x", name="token").shift(self.n)

    def _pointer(self, x: Tokens) -> Stream:
        place = x.is_in("x").cumsum().named("place")
        text = memory.write(
            (place - 1).one_hot(self.n), x.one_hot("x", name="token"), x.is_in("x"), policy="once", name="text"
        )
        return text.read(x.one_hot("ask", name="pointer"))

    def _place(self, x: Tokens) -> Stream:
        pairs = np.arange(self.vocab * self.n)
        token = x.rows("ask", np.eye(self.vocab)[pairs // self.n], "token")
        asked = x.rows("ask", np.eye(self.n)[pairs % self.n], "pointer")
        asks = x.is_in("ask")
        place = asks.cumsum().named("place")
        return memory.write((place - 1).one_hot(self.n), token, asks, policy="once", name="text").read(asked)

    def _written(self, copied: Stream) -> Stream:
        """The token that was copied: 2 on its lane; the end has 1, and wins where there is none."""
        ids = np.array([*self.alphabet().ids("x"), self.alphabet().index(END)])
        lanes = np.vstack([2 * np.eye(self.vocab), np.zeros((1, self.vocab))])
        return _logits(self.alphabet(), ids, (lanes, copied), (np.eye(self.vocab + 1)[:, [-1]], constant(1)))

    def asks(self) -> dict[str, Any]:
        return {"name": self.name, "form": self.form} | ({"n": self.n} if self.form == "delay" else {})

    def tasks(self) -> list[Task]:
        if self.form == "string":
            return [ChainTask(CopySolver(self.n, [f"x{v}" for v in range(self.vocab)]), self.language())]
        return [CopyAt(self.form, self.n, self.vocab, self.longest())]

    def by_hand(self) -> dict[str, int]:
        return by_hand(self.n, self.vocab, self.longest()) if self.form == "string" else {}

    def beyond(self) -> str:
        short = "the last n places alone" if self.form == "delay" else ""
        return ", ".join(filter(None, (super().beyond(), short)))

    def otherwise(self) -> str:
        """The proof is given the positions; here a block counts them, in two digits where columns are too few."""
        if self.form == "delay":
            return ""
        most = self.columns() or KERNEL_COLUMNS * self.groups()
        split = self.arch in FORGETS and self.n > most
        return f"with places that a block counts{', kept as two digits' * split}"

    def few_columns_said(self) -> str:
        """Told in `otherwise`."""
        return ""

    def on_network(self) -> str:
        """Theorem 3.1 writes a string again; nothing in that paper delays, or reads a place that is named."""
        if self.form == "string":
            return f"{TOKEN_SELECTION}, after Theorem 3.1, by places"
        how = f"a delay by {self.n}" if self.form == "delay" else "a token at a place that is named"
        return f"{TOKEN_SELECTION}, beside Theorem 3.1, {how}"

    def stated_bound(self) -> tuple[dict[str, int], str]:
        """One column of the state for each place; in all n·d numbers for tokens of d entries."""
        source = with_our_constant(self.theorem, f"of {self.n} places, with {self.vocab} numbers")
        return {"d_state": self.n, "state": self.n * self.vocab}, source

    def obstructions(self, has: Capacity) -> list[Obstruction]:
        """O1 and O3; on fnn+ssm the separator's delays are cosines over all places of the window, elsewhere a count."""
        return of_copy(self.n, self.vocab, has) if self.form == "string" else []
