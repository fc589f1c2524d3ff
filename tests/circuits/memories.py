"""Circuits with keyed memories."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compiler.language import memory, output
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.codebook import balanced
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.stream import constant
from compiler.language.words import (
    concatenate,
    latch,
)
from tests.circuits.case import (
    ABC,
    ALL,
    FLAGS_ONLY,
    SELECTIVE,
    Oracle,
    abc,
    case,
    each,
    is_a,
    is_b,
    one_hot_of,
    over_abc,
    token,
)


def _successor(word: list[str], t: int) -> str | None:
    earlier = [j for j in range(t) if word[j] == word[t]]
    return word[earlier[-1] + 1] if earlier else None


@case(each(_successor), exhaustive=5)
def induction_heads() -> Circuit:
    """The token after the last earlier place of the present token."""
    return over_abc(
        "induction_heads", output.readout_one_hot(memory.write(token.shift(1), token, policy="last").read(token), ABC)
    )


KV = Alphabet.of(".", k=2, v=3)
kv = Tokens(KV)
anything = InputLanguage.everything(KV, 12)
PAPER = InputLanguage.of(
    KV,
    "pairs",
    [
        ("pairs", "value", "k", True),
        ("value", "pairs", "v"),
        ("pairs", "rest", "."),
        ("rest", "rest", "."),
        ("rest", "rest", "k", True),
    ],
    12,
    "MQAR: pairs of distinct keys, then filler and queries, each key asked at most once",
)


def _pairs(word: list[str], t: int, key: str) -> list[str]:
    return [word[i] for i in range(1, t + 1) if word[i - 1] == key and word[i][0] == "v"]


def mqar(policy: str, language: InputLanguage) -> Circuit:
    key, value = kv.one_hot("k"), kv.code("v", balanced(3))
    when = kv.is_in("k").shift(1) & kv.is_in("v")
    read = memory.write(key.shift(1), value, when=when, policy=policy).read(key)
    return Circuit(f"mqar_{policy}", output.readout(read, balanced(3), KV, "v"), language)


def _answer(pick: Callable[[list[str]], str]) -> Oracle:
    return each(lambda w, t: pick(_pairs(w, t, w[t])) if w[t][0] == "k" and _pairs(w, t, w[t]) else None)


@case(_answer(lambda values: values[0]), ALL, exhaustive=6)
def mqar_sum() -> Circuit:
    return mqar("sum", PAPER)


@case(_answer(lambda values: values[0]), ALL, exhaustive=6)
def mqar_once() -> Circuit:
    """No key is bound twice, and the compiler proves it."""
    return mqar("once", PAPER)


@case(_answer(lambda values: values[0]), ALL)
def mqar_first() -> Circuit:
    return mqar("first", anything)


@case(_answer(lambda values: values[-1]))
def mqar_last() -> Circuit:
    return mqar("last", anything)


def _tally(word: list[str], t: int) -> tuple[int, ...]:
    """How often each value followed the present key, by token id (. k0 k1 v0 v1 v2)."""
    values = _pairs(word, t, word[t]) if word[t][0] == "k" else []
    return (0, 0, 0, *(values.count(v) for v in ("v0", "v1", "v2")))


@case(each(_tally), ALL)
def mqar_tally() -> Circuit:
    """Additive memory, one-hot keys and values, on any sequence: it counts."""
    key, value = kv.one_hot("k"), kv.one_hot("v")
    return Circuit("mqar_tally", output.readout_one_hot(memory.write(key.shift(1), value).read(key), KV, "v"), anything)


K4 = Alphabet.of(".", k=4, v=3)
CODES = {f"k{i}": tuple(int(x) for x in word) for i, word in enumerate(balanced(4).words)}


def _code_keys(word: list[str], t: int) -> tuple[int, ...]:
    asked = CODES.get(word[t], (0,) * 4)
    totals = [0] * 3
    for i in range(1, t + 1):
        if word[i][0] == "v" and word[i - 1] in CODES:
            totals[int(word[i][1])] += sum(x * y for x, y in zip(CODES[word[i - 1]], asked, strict=True))
    return (0,) * 5 + tuple(totals)


@case(each(_code_keys), SELECTIVE, FLAGS_ONLY, exhaustive=3)
def mqar_code_keys() -> Circuit:
    """Keys as balanced ±1 codes (Theorem 3 of paper A): other keys may leak, and the leak is exact too."""
    tokens = Tokens(K4)
    key, value = tokens.code("k", balanced(4)), tokens.one_hot("v")
    read = memory.write(key.shift(1), value).read(key)
    return Circuit("mqar_code_keys", output.readout_one_hot(read, K4, "v"), InputLanguage.everything(K4, 10))


VALUE_CODES = balanced(3).words.astype(int).tolist()


def _printed(word: list[str], t: int) -> tuple[int, ...]:
    """Theorem 2, position by position, from its formula."""

    def embedded(s: int) -> tuple[list[int], list[int]]:
        name = word[s] if s >= 0 else "."
        keys = [20 * (name == "k0"), 20 * (name == "k1")]
        return keys, [x + 2 for x in VALUE_CODES[int(name[1])]] if name[0] == "v" else [0] * len(VALUE_CODES[0])

    def convolved(s: int) -> tuple[list[int], list[int]]:
        return tuple(
            [max(0, 8 * x + 160 * y - 128) for x, y in zip(*pair, strict=True)]
            for pair in zip(embedded(s - 1), embedded(s), strict=True)
        )

    def product_(x: list[int], y: list[int]) -> int:
        return sum(a * b for a, b in zip(x, y, strict=True))

    query, _ = convolved(t)
    weights = [(product_(keys, query), values) for keys, values in map(convolved, range(t + 1))]
    y = [sum(weight * values[j] for weight, values in weights) for j in range(len(VALUE_CODES[0]))]
    return (0, 0, 0, *(product_(code, y) for code in VALUE_CODES))


def printed_mqar() -> Circuit:
    """Keys at 20·e_i, values as their code shifted by β = 2."""
    book = balanced(3)
    keys, values = kv.rows("k", 20 * np.eye(2), "key"), kv.rows("v", book.words + 2, "value")
    u_keys, u_values = ((8 * x.shift(1) + 160 * x - 128).relu() for x in (keys, values))
    read = memory.outer_sum(u_values, write=u_keys, read=u_keys)
    return Circuit("printed_mqar", output.readout(read, book, KV, "v"), PAPER)


@case(each(_printed), SELECTIVE, FLAGS_ONLY, exhaustive=6)
def mqar_as_printed() -> Circuit:
    """Theorem 2 of paper A at the block level."""
    return printed_mqar()


@case(_answer(lambda values: values[0]), SELECTIVE, FLAGS_ONLY, exhaustive=6)
def mqar_as_printed_answers() -> Circuit:
    """The same circuit judged by its answers."""
    return printed_mqar()


@case(each(lambda w, t: (sum(w[i] == "a" and w[i - 1] == w[t] for i in range(1, t + 1)), w[: t + 1].count(w[t]))), ALL)
def two_memories() -> Circuit:
    """Different columns cannot share a block: two blocks."""
    followed = memory.outer_sum(is_a, write=token.shift(1), read=token)
    seen = memory.outer_sum(constant(1), write=token, read=token)
    return over_abc("two_memories", concatenate(followed, seen))


@case(each(lambda w, t: one_hot_of(_last_after(w, t, "b"))))
def chained_memories() -> Circuit:
    """A memory asked for what another memory answered: the token that last followed the last token after b."""
    after_b = latch(token, is_b.shift(1))
    return over_abc("chained_memories", memory.write(token.shift(1), token, policy="last").read(after_b))


def _last_after(word: list[str], t: int, name: str | None) -> str | None:
    def after(which: str | None) -> str | None:
        found = [word[i] for i in range(1, t + 1) if which is not None and word[i - 1] == which]
        return found[-1] if found else None

    return after(after(name))


def _signed_recall(word: list[str], t: int) -> int:
    numbers = {"a": 2, "b": -1, "c": 1}
    return sum(numbers[word[s]] * numbers[word[s - 1]] for s in range(1, t + 1)) * numbers[word[t]]


@case(each(_signed_recall), SELECTIVE, FLAGS_ONLY)
def signed_keys() -> Circuit:
    """Keys that are no codes: Σ_s x(s)·x(s − 1)·x(t)."""
    x = abc.number({"a": 2, "b": -1, "c": 1})
    return over_abc("signed_keys", memory.outer_sum(x, write=x.shift(1), read=x))


def _kept(word: list[str], t: int) -> str | None:
    """The letter after the last place of the present one, unless that was a c, which deletes."""
    after = [word[i] for i in range(1, t + 1) if word[i - 1] == word[t]]
    return after[-1] if after and after[-1] != "c" else None


@case(each(lambda w, t: one_hot_of(_kept(w, t))), exhaustive=5)
def deleted_keys() -> Circuit:
    """What followed the present letter last, where a c deletes what it would follow."""
    held = memory.write(token.shift(1), token, policy="last").delete(abc.is_in(["c"]))
    return over_abc("deleted_keys", held.read(token))
