"""MQAR: associative recall of many queries (paper A, Theorems 2, 3 and 4, Appendix C).

Statement. There are one-layer models without gate that answer every query with the value
paired with its key: Mamba with d = O(κ + log V) and N = κ (Theorem 2), Mamba-2 with
d = O(log κ + log V) and N = log κ (Theorem 3), and, with the gate, an S4D mixer with
d = O(κ log V) and N = 1 (Theorem 4).

Conditions. The κ pairs carry distinct keys, as a half-sentence below (61) and (63) have it, and each key is
queried at most once, as its (46) has it, because (query, noise value) is stored as if it
were a pair: the additive memory would then read the sum of two values. Write policy "first"
lifts both conditions for any input, "last" rebinds. Theorem 3's key codes answer most
queries, not all: guarantee "random" reports how many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, log2
from typing import Any, ClassVar, Literal

from scipy import sparse

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.codebook import MeasuredCode, balanced, balanced_length, drawn
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.targets.target import KERNEL_COLUMNS
from constructions.construction import LARGEST_PARAMETER, Construction, WithMemory, parameter
from constructions.papers import MIXERS, OF_RECALL, SELECTIVITY, after
from verify.arguments import at_least
from verify.bounds import (
    SizeBound,
    information_bound_bits,
    mqar_theorem2,
    mqar_theorem4,
)
from verify.random_codes import Failure, all_keys, asked_sets, failure_of_code, failure_rate, key_code_for
from verify.tasks.mqar import BenchmarkLayout, ForgettingLayout, PaperLayout
from verify.tasks.task import Task

_DIGITS = "with keys kept as two digits"


@dataclass(frozen=True)
class MQAR(WithMemory, Construction):
    name: ClassVar[str] = "mqar"
    theorem: ClassVar[str] = f"{SELECTIVITY}, Theorems 2-4"
    unsaid: ClassVar[Mapping[str, Any]] = WithMemory.unsaid | {
        "code": "balanced", "coherence": 0.0, "wanted_failure": 0.0, "power": 0.01, "updates": 0
    }  # fmt: skip

    kappa: int = parameter("number of keys", default=16)
    vocab: int = parameter("number of values", default=512)
    arch: Literal["mamba", "mamba2", "s4d", "gated-deltanet", "gated-deltanet-qwen"] = parameter(
        "which mixer", default="mamba"
    )
    write: Literal["sum", "first", "last"] = parameter(
        "what a key keeps: all values, the first, the last", default="sum"
    )
    guarantee: Literal["all", "random"] = parameter("one-hot keys for every input, or key codes", default="all")
    key_code: int = parameter("length of the key codes (0: 8⌈log2 κ⌉, at least 8)", most=1 << 16, default=0)
    layout: Literal["paper", "benchmark", "forgetting"] = parameter(
        "which data to verify on (paper: its order of tokens, with noise of ours)", default="paper"
    )
    pairs: int = parameter(
        "pairs in a sequence (0: as many as keys; of benchmark and forgetting at most 16)", default=0
    )
    length: int = parameter(
        "tokens in a sequence (0: 100, of benchmark and forgetting 256; or 4 per pair if that is more)",
        most=1 << 24,
        default=0,
    )
    max_d_state: int = parameter(
        "columns that the state of a block may have (0: one for each key)", default=0, kw_only=True
    )

    code: Literal["balanced", "jl"] = parameter(
        "random key codes: balanced words, or free signs as Lemma 4 draws them (any coherence but for --coherence)",
        default="balanced",
        kw_only=True,
    )
    coherence: float = parameter(
        "draw key codes until |<c, c'>|/N is measured to be at most this (0: the first draw)", default=0.0, kw_only=True
    )
    wanted_failure: float = parameter(
        "take key codes so long that at most this share of answers is wrong, on average over codes of any coherence "
        "(0: not so)",
        default=0.0,
        kw_only=True,
    )

    power: float = parameter(
        "benchmark and forgetting: the exponent of the power law of queries", default=0.01, kw_only=True
    )
    updates: int = parameter("forgetting: keys that are bound again (0: half of the pairs)", default=0, kw_only=True)

    def __post_init__(self) -> None:
        at_least("kappa", self.kappa, 1, "there must be a key")
        at_least("vocab", self.vocab, 1, "there must be a value")
        at_least("max_length", self.max_length, 2, "a pair takes two tokens")
        self._check_codes()
        if self.layout == "forgetting" and self.write != "last":
            raise ValueError(f"layout 'forgetting' asks for last values, and write is {self.write!r}; use --write last")
        if not self.power > 0:
            raise ValueError(f"power = {self.power} is no power law; 0.01 is the benchmark's")

    def check_effect(self) -> None:
        of = {"power": ("benchmark", "forgetting"), "updates": ("forgetting",)}
        for name, layouts in of.items():
            value = getattr(self, name)
            if self.layout not in layouts and value != self.unsaid[name]:
                raise ValueError(
                    f"{name} = {value} has no effect with layout {self.layout!r}; use --layout {' or '.join(layouts)}"
                )

    def _check_codes(self) -> None:
        if self.guarantee == "all" and (self.code, self.coherence, self.wanted_failure) != ("balanced", 0.0, 0.0):
            raise ValueError("code, coherence and wanted_failure are for key codes; use them with --guarantee random")
        if not 0 <= self.coherence < 1 or not 0 <= self.wanted_failure < 1:
            raise ValueError(
                f"coherence = {self.coherence} and wanted_failure = {self.wanted_failure} must be shares: "
                "at least 0 and below 1"
            )
        if self.wanted_failure and self.key_code:
            raise ValueError("key_code and wanted_failure both say how long key codes are; give one of them")
        least = _least_key_code(self.kappa, self.code)
        if self.key_code and self.guarantee == "random" and self.key_code < least:
            raise ValueError(_too_short(self.key_code, self.kappa, self.code, least))
        if self.key_code and self.guarantee != "random":
            raise ValueError(
                f"key_code = {self.key_code} has no effect with one-hot keys; use --guarantee random, or key_code = 0"
            )
        if self.guarantee == "random" and self.write != "sum":
            raise ValueError(
                f"write {self.write!r} keeps one value per key, which needs one-hot keys; use --guarantee all"
            )

    @property
    def target(self) -> str:
        return self.arch

    @property
    def printed(self) -> bool:
        """Whether this is the circuit of Theorem 2, with one set of channels for keys and queries (its scores need the
        24 bits of float32); otherwise the memory of the language is used, whose keys and queries stand on channels of
        their own.
        """
        asked = (self.arch, self.write, self.guarantee, self.dtype, self.split)
        return asked == ("mamba", "sum", "all", "float32", False)

    @property
    def split(self) -> bool:
        """Whether there are fewer columns than keys, so that a key is kept as two digits, the second in a block before.
        Written "last" there is a latch for each key, and no column.
        """
        return 0 < self.max_d_state < self.kappa and self.write != "last"

    def columns(self) -> int | None:
        """A column for each key, unless fewer are asked for: Theorem 2's N, and what its certificate reads."""
        return self.max_d_state or (LARGEST_PARAMETER if self.kappa > KERNEL_COLUMNS else None)

    def letters(self) -> int:
        """The blank, keys and values."""
        return 1 + self.kappa + self.vocab

    def least_parameters(self) -> int:
        """Of embedding, head and the matrices of a block of twice their width, with a state column for each key.

        The width is a power of two, and holds a lane for each key and each bit of a value's code.
        """
        width = 1 << (self.kappa + balanced_length(self.vocab) - 1).bit_length()
        return 2 * width * (self.letters() + 3 * width + 3 * self.kappa) if self.printed else 0

    def circuit(self) -> Circuit:
        """Pairs (key at t − 1, value at t) go into a memory; the key at t reads it."""
        alphabet = Alphabet.of("_", k=self.kappa, v=self.vocab)
        x, book = Tokens(alphabet), balanced(self.vocab)
        if self.printed:
            recalled = printed_theorem2(alphabet, x)
        else:
            key, value = self.keys(x), x.code("v", book, "value")
            is_pair = x.is_in("k").shift(1) & x.is_in("v")
            recalled = memory.write(key.shift(1), value, is_pair, self.write, "recalled").read(key)
        return Circuit("mqar", readout(recalled, book, alphabet, "v"), self.language(alphabet))

    def keys(self, x: Tokens) -> Stream:
        """One-hot keys, or ±1 codes of O(log κ) entries: balanced, which is ours, or free signs as in Theorem 3."""
        if self.guarantee == "all":
            return x.one_hot("k", name="key")
        return x.code("k", self.key_codes.book, "key")

    @property
    def live(self) -> int:
        """Pairs in a sequence."""
        return self.pairs or self.kappa

    @property
    def key_length(self) -> int:
        if self.wanted_failure:
            least = _least_key_code(self.kappa, self.code)
            return key_code_for(self.wanted_failure, self.vocab, self.live, self.code, least)
        return self.key_code or 8 * max(1, ceil(log2(self.kappa)))

    @cached_property
    def key_codes(self) -> MeasuredCode:
        return drawn(self.code, self.kappa, self.key_length, self.coherence or 1.0, self.seed, most_draws=256)

    def drawn_codes(self) -> dict[str, Any] | None:
        if self.guarantee == "all":
            return None
        told = self.key_codes.to_json() | {"kind": self.code}
        this, average = failure_of_code(self.key_codes.book.words, self.vocab, self.live), self.average_failure()
        return (
            told
            | {"expected_failure": this.rate, "error": this.error, "sets": asked_sets(self.kappa, self.live)}
            | {"average_error": average.error, "average_at_most": average.at_most}
        )

    def language(self, alphabet: Alphabet) -> InputLanguage:
        """Distinct pairs, then distinct queries among noise (App. C.1); every sequence for the other policies."""
        if self.write != "sum":
            return InputLanguage.everything(alphabet, self.max_length)
        values = (f"v{i}" for i in range(self.vocab))
        noise = ("_",) if self.guarantee == "random" else ("_", *values)
        edges = [
            ("pairs", "key", "k", True),
            ("key", "pairs", "v"),
            ("key", "queries", "v"),
            ("queries", "queries", noise),
            ("queries", "queries", "k", True),
        ]
        return InputLanguage.of(
            alphabet, "pairs", edges, self.max_length, "distinct pairs, then each key queried at most once among noise"
        )

    def tasks(self) -> list[Task]:
        paper = self.layout == "paper"
        pairs = self.pairs or (self.kappa if paper else min(16, self.kappa, self.vocab))
        length = self.length or max(100 if paper else 256, 4 * pairs)
        if self.layout == "forgetting":
            updates = self.updates or max(1, pairs // 2)
            return [ForgettingLayout(self.kappa, self.vocab, length, pairs, self.power, "neutral", updates)]
        if self.layout == "benchmark":
            filler = "neutral" if self.write == "sum" else "vocabulary"
            return [BenchmarkLayout(self.kappa, self.vocab, length, pairs, self.power, filler)]
        again, filler = self.write != "sum", "neutral" if self.guarantee == "random" else "mixed"
        return [
            PaperLayout(
                self.kappa,
                self.vocab,
                length,
                filler,
                pairs,
                repeat_queries=again,
                rebind=self.write == "last",
                write=self.write,
            )
        ]

    def asks(self) -> dict[str, Any]:
        """The value stored under the key; written "sum": where exactly one pair was."""
        return {"name": "mqar", "write": self.write}

    def stated_bound(self) -> tuple[dict[str, int], str]:
        """Theorems 2 and 4 are asymptotic but for N, and for d the constants are those of our lanes. Theorem 3's codes
        are shorter than these.
        """
        kappa = self.kappa
        if self.guarantee == "random":
            return {}, ""
        if self.printed:
            source = "Theorem 2, d = O(κ + log V) and N = κ; the constant is ours: d = κ + p + 1, C(p, p/2) ≥ V"
            return _sizes(mqar_theorem2(kappa, self.vocab)), source
        if self.arch == "s4d":
            size = "p + 2" if kappa == 1 else "κp + 1"
            source = f"Theorem 4, d = O(κ log V) and N = 1; the constant is ours: d = {size}, C(p, p/2) ≥ V"
            return _sizes(mqar_theorem4(kappa, self.vocab)), source
        if self.arch == "mamba2":
            sizes = {"d_model": kappa + self.vocab, "d_state": kappa, "layers": 1}
            return sizes, "Theorem 3, step 1 of its proof: d = κ + V and N = κ"
        return {"d_state": kappa, "layers": 1}, "Theorem 2, N = κ"

    def nearest(self) -> str:
        """The theorem of its mixer, or of key codes."""
        number = 3 if self.guarantee == "random" else OF_RECALL.get(self.arch, 2)
        return f"{SELECTIVITY}, Theorem {number}"

    def otherwise(self) -> str:
        """Where its circuit is not that of its theorem, beside what goes beyond the paper."""
        if self.printed:
            return ""
        dealt = self.kappa > 1 and self.write != "last"  # which has latches, and no columns
        groups = super().groups_said() * dealt
        return ", ".join(filter(None, (self._keys(), groups)))

    def few_columns_said(self) -> str:
        """Told in `otherwise`, as are groups."""
        return ""

    groups_said = few_columns_said

    def _keys(self) -> str:
        """How it tells keys apart, where its theorem does it in another way."""
        if self.guarantee == "random":
            return "" if self.beyond() else "with key codes of another length"
        if self.split:
            return f"{_DIGITS}, in two blocks" if self.write == "sum" else _DIGITS
        if self.beyond():
            return ""
        return "with its κ log V lanes as channels, and not in the embedding" if self.arch == "s4d" else self._one_hot()

    def _one_hot(self) -> str:
        """How one block of one-hot keys that is not Theorem 2's does it."""
        return "step 1 of its proof" if self.arch == "mamba2" else "with keys and queries on channels of their own"

    def former_statements(self) -> tuple[str, ...]:
        """Earlier versions said of two blocks what is so of one, and nothing of groups."""
        former = super().former_statements()
        if self.beyond():
            return former
        how = {self._keys()} | ({self._one_hot()} if self.guarantee == "all" else set())
        return (*former, *(f"{after(self.nearest())}, {one}" for one in sorted(how)))

    def beyond(self) -> str:
        """Another mixer than the theorem's, or another rule for what a key keeps."""
        about = ("mamba2",) if self.guarantee == "random" else ("mamba", "mamba2", "s4d")
        mixer = "" if self.arch in about else MIXERS[self.arch]
        codes = "key codes on " * (self.guarantee == "random")
        rule = "" if self.write == "sum" else f"--write {self.write}"
        return ", ".join(filter(None, (mixer and codes + mixer, rule)))

    def promise(self) -> str:
        return self.guarantee

    def information_bits(self) -> float:
        return information_bound_bits(self.kappa, self.vocab, self.max_length)

    def expected_failure(self) -> float:
        """On average over codes, exact or an estimate (`average_failure`): `drawn_codes` tells of the one at hand."""
        return 0.0 if self.guarantee == "all" else self.average_failure().rate

    def average_failure(self) -> Failure:
        """The share of wrong answers on average over codes, with its error and what is proved of it."""
        return failure_rate(self.vocab, self.key_length, self.live, self.code, self.coherence or 1.0)

    def contrasts(self) -> list[MQAR]:
        """On the benchmark's layout: what the other write policies make of the same data."""
        if self.layout != "benchmark" or self.write != "first":
            return []
        return [replace(self, write=policy) for policy in ("sum", "last")]


def _least_key_code(kappa: int, kind: str) -> int:
    """The least length of codes without two words that are each other's negatives: half of all words, at most."""
    step = 2 if kind == "balanced" else 1
    length = step
    while all_keys(length, kind) < 2 * kappa:
        length += step
    return length


def _too_short(length: int, kappa: int, kind: str, least: int) -> str:
    """Why so many keys have no codes of this length: too few words, or none without a word's negative."""
    words = 0 if kind == "balanced" and length % 2 else all_keys(length, kind)
    if not words:
        reason = "no word of odd length has as many +1 as −1"
    elif words < kappa:
        reason = f"there are only {words} such words"
    else:
        reason = (
            f"the {words} such words are {words // 2} pairs of a word and its negative, so some key would be the "
            "negative of another, and their values would cancel"
        )
    theorem = ""
    if length == (kappa - 1).bit_length():
        step = "step 2 of the proof of Theorem 3"
        theorem = f"; so {step} does not go through with ⌈log2 κ⌉ = {length} signs to a key"
        if kind == "balanced":  # which are ours: the proof's signs are free
            theorem = (
                f"; nor does {step} go through with ⌈log2 κ⌉ = {length} free signs to a key, of which some would be "
                "the negatives of others"
            )
    return (
        f"key_code = {length} is too short for {kappa} {kind} codes: {reason}{theorem}; "
        f"the smallest key_code that works is {least}"
    )


def _sizes(bound: SizeBound) -> dict[str, int]:
    return {"d_model": bound.d_model, "d_inner": bound.d_model, "d_state": bound.d_state, "layers": 1}


def printed_theorem2(alphabet: Alphabet, x: Tokens) -> Stream:
    """Theorem 2 with constants of ours: u = relu(8 x(t−1) + 160 x(t) − 128), y = Σ u_values <u_keys, u_keys>.

    Key lanes hold 20 for the present key, value lanes the code shifted to {1, 3}: the
    previous key and the present value come out at 32 and {32, 352}, a previous value not
    at all. At adjacent keys (k', q) the read also sees h[k']/96, the share (c₀k − b)/(c₁k − b)
    of the paper's (65), so k' must not have been written 96 times.
    """
    keys = x.rows("k", 20 * sparse.eye_array(len(alphabet.ids("k"))), "key")
    values = x.rows("v", balanced(len(alphabet.ids("v"))).words + 2, "value")

    def convolved(lanes: Stream) -> Stream:
        return (8 * lanes.shift(1) + 160 * lanes - 128).relu()

    u_keys, u_values = convolved(keys).named("u.key"), convolved(values).named("u.value")
    return memory.outer_sum(u_values, write=u_keys, read=u_keys, name="recalled")
