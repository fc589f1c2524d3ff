"""The shared list of circuits: each is run at every level, from the interpreter to the saved checkpoint.

An entry's oracle is plain Python and shares no code with the compiler. It takes the token
names of a sequence and gives for each position what the output must be: a number or a
tuple of numbers (compared exactly), a token name (the one strictly largest logit), or
None (nobody reads this position).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from compiler.driver import Compiled, run_blocks
from compiler.language import memory, output
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.codebook import balanced
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.stream import Stream, constant
from compiler.language.words import (
    concatenate,
    count,
    latch,
    latch_bank,
    lti,
    maximum,
    minimum,
    present,
    running_max,
    select,
)

Oracle = Callable[[list[str]], list]
SELECTIVE = ("mamba", "mamba2", "mamba-delta-t")
ALL = (*SELECTIVE, "s4d")
NO_LATCH = {"s4d": "has no lowering of latch"}
NO_BANK = {**NO_LATCH, "mamba-delta-t": "has no lowering of a bank of latches"}
FLAGS_ONLY = {"s4d": "for keys that are flags"}


@dataclass(frozen=True)
class Case:
    """A circuit, what it should say, where it compiles, and the words of the refusal where it does not."""

    name: str
    build: Callable[[], Circuit]
    oracle: Oracle
    targets: tuple[str, ...] = SELECTIVE
    refused: dict[str, str] = field(default_factory=lambda: NO_LATCH)
    exhaustive: int = 4


CASES: list[Case] = []


def case(
    oracle: Oracle, targets: tuple[str, ...] = SELECTIVE, refused: dict[str, str] | None = None, exhaustive: int = 4
):
    """Add the circuit that a function builds to the list, under the function's name."""

    def add(build: Callable[[], Circuit]) -> Callable[[], Circuit]:
        refusals = refused if refused is not None else {} if "s4d" in targets else NO_LATCH
        CASES.append(Case(build.__name__, build, oracle, targets, refusals, exhaustive))
        return build

    return add


def words(case_: Case, circuit: Circuit, count_: int = 8, seed: int = 0) -> list[np.ndarray]:
    """Batches of token ids: every sequence of the language up to `exhaustive`, then random longer ones."""
    language = circuit.language
    batches = [np.array(list(language.strings(n)), dtype=np.int64) for n in range(1, case_.exhaustive + 1)]
    longest = [n for n in range(1, language.max_length + 1) if _spellable(language, n)][-1]
    batches += [language.sample(count_, n, seed) for n in {(case_.exhaustive + longest + 1) // 2, longest}]
    return [batch for batch in batches if len(batch)]


def _spellable(language: InputLanguage, length: int) -> bool:
    try:
        language.sample(1, length, 0)
    except ValueError:
        return False
    return True


def logits(compiled: Compiled, tokens: np.ndarray) -> np.ndarray:
    """What the block IR gives: (batch, time, width)."""
    last = run_blocks(compiled, tokens)[-1]
    flat = last.reshape(-1, last.shape[-1])
    return np.asarray((compiled.head @ flat.T).T).reshape(*tokens.shape, -1)


def mistakes(case_: Case, circuit: Circuit, tokens: np.ndarray, outputs: np.ndarray) -> list[str]:
    """Where outputs (batch, time, width) differ from the oracle's."""
    found = []
    for word, rows in zip(tokens, outputs, strict=True):
        names = [circuit.language.alphabet.tokens[i] for i in word]
        for t, (expected, row) in enumerate(zip(case_.oracle(names), rows, strict=True)):
            if not _agrees(expected, row, circuit):
                found.append(f"{' '.join(names)} at {t}: expected {expected}, got {list(row)}")
    return found


def _agrees(expected, row: np.ndarray, circuit: Circuit) -> bool:
    if expected is None:
        return True
    if isinstance(expected, str):
        best = circuit.language.alphabet.index(expected)
        return all(row[best] > row[i] for i in range(len(row)) if i != best)
    return tuple(row) == (expected if isinstance(expected, tuple) else (expected,))


# Helpers of the entries ------------------------------------------------------------------------------

ABC = Alphabet.of("a", "b", "c")
abc = Tokens(ABC)
is_a, is_b, is_c = (abc.is_in([name]) for name in "abc")
token = abc.one_hot()


def over_abc(name: str, stream: Stream, max_length: int = 24) -> Circuit:
    return Circuit(name, stream, InputLanguage.everything(ABC, max_length))


def each(step: Callable[[list[str], int], object]) -> Oracle:
    """An oracle from a function of (sequence, position)."""
    return lambda word: [step(word, t) for t in range(len(word))]


def back(word: list[str], t: int, k: int) -> str | None:
    return word[t - k] if t >= k else None


def one_hot_of(name: str | None, names: str = "abc") -> tuple[int, ...]:
    return tuple(int(name == n) for n in names)


# Shifts ------------------------------------------------------------------------------------------


@case(each(lambda w, t: back(w, t, 1) if t else None), ALL)
def previous_token() -> Circuit:
    return over_abc("previous_token", output.readout_one_hot(token.shift(1), ABC))


@case(each(lambda w, t: tuple(v for k in range(1, 8) for v in one_hot_of(back(w, t, k))[:2])), ALL)
def shifts_of_one_to_seven() -> Circuit:
    return over_abc("shifts", concatenate(*(token[:2].shift(k) for k in range(1, 8))))


@case(each(lambda w, t: int(t >= 2 and w[t - 2] != "a")), ALL)
def shift_of_a_not() -> Circuit:
    return over_abc("shift_of_a_not", (~is_a).shift(2))


@case(each(lambda w, t: int(t >= 1 and "a" not in w[max(t - 2, 0) : t])), ALL)
def shift_of_a_late_not() -> Circuit:
    return over_abc("shift_of_a_late_not", (~(is_a | is_a.shift(1))).shift(1))


@case(each(lambda w, t: w[: max(t - 1, 0)].count("a")), ALL)
def shift_of_a_state() -> Circuit:
    return over_abc("shift_of_a_state", is_a.cumsum().shift(2))


@case(each(lambda w, t: int(t >= 20)), ALL)
def a_far_shift() -> Circuit:
    return over_abc("a_far_shift", constant(1).shift(20))


@case(
    each(lambda w, t: (*one_hot_of(back(w, t, 17)), w[: max(t - 16, 0)].count("a") - w[: max(t - 16, 0)].count("b"))),
    ALL,
)
def delay_of_seventeen() -> Circuit:
    """A token and a signed number, by rings where the target has them."""
    return over_abc("delay", concatenate(token.shift(17), abc.number({"a": 1, "b": -1}).cumsum().shift(17)), 60)


@case(each(lambda w, t: int(t >= 3 and w[t - 3] == w[t])), ALL)
def same_as_three_back() -> Circuit:
    return over_abc("same_as_three_back", token == token.shift(3))


@case(each(lambda w, t: 4 * (w[t] == "a") + 2 * (back(w, t, 1) == "a") - 3 * (back(w, t, 3) == "a")), ALL)
def one_token_at_several_lags() -> Circuit:
    return over_abc("several_lags", 4 * is_a + 2 * is_a.shift(1) - 3 * is_a.shift(3))


@case(each(lambda w, t: sum(k * (back(w, t, i) == "b") for i, k in enumerate((1, 0, -2, 0, Fraction(1, 2))))), ALL)
def fixed_filter() -> Circuit:
    return over_abc("fixed_filter", lti(is_b, [1, 0, -2, 0, Fraction(1, 2)]))


# Functions of one position -----------------------------------------------------------------------------


def _counts(word: list[str], t: int) -> tuple[int, int]:
    return word[: t + 1].count("a"), word[: t + 1].count("b")


counters = is_a.cumsum(), is_b.cumsum()


@case(
    each(
        lambda w, t: (lambda a, b: tuple(map(int, (a > b, a >= b, a < b, a <= b, a == b, a != b, a > 2))))(
            *_counts(w, t)
        )
    ),
    ALL,
)
def comparisons_of_counters() -> Circuit:
    a, b = counters
    return over_abc("comparisons", concatenate(a > b, a >= b, a < b, a <= b, a == b, a != b, a.heaviside(2)))


@case(each(lambda w, t: (lambda a, b: tuple(map(int, (a > 1 and b > 1, a > 1 or b > 1, a <= 1))))(*_counts(w, t))), ALL)
def logic_on_counters() -> Circuit:
    a, b = (counter > 1 for counter in counters)
    return over_abc("logic", concatenate(a & b, a | b, ~a))


@case(each(lambda w, t: (lambda a, b: (min(a, b), max(a, b), max(min(a - b, 2), -1), a * b))(*_counts(w, t))), ALL)
def arithmetic_on_counters() -> Circuit:
    a, b = counters
    return over_abc("arithmetic", concatenate(minimum(a, b), maximum(a, b), (a - b).clip(-1, 2), a * b))


@case(each(lambda w, t: (lambda a, b: a - b if a > b else 3)(*_counts(w, t))), ALL)
def selection_on_counters() -> Circuit:
    a, b = counters
    return over_abc("selection", select(a > b, a - b, 3))


@case(each(lambda w, t: (lambda a, b: (a - b) * (a - b) * (b - 1))(*_counts(w, t))), ALL)
def signed_products() -> Circuit:
    a, b = counters
    return over_abc("signed_products", (a - b) ** 2 * (b - 1))


@case(each(lambda w, t: {0: 5, 1: -2, 2: 7, 3: 4}.get(w[: t + 1].count("a"), 0)), ALL)
def table_of_a_counter() -> Circuit:
    """0 beside the table."""
    return over_abc("table", counters[0].lookup([5, -2, 7, 4]))


@case(each(lambda w, t: (lambda a, b: ((a - b) // 3, (a - b) % 3, b // 2, a % 4))(*_counts(w, t))), ALL)
def division_of_counters() -> Circuit:
    """Rounded down, of negative integers too."""
    a, b = counters
    return over_abc("division", concatenate((a - b) // 3, (a - b) % 3, b // 2, a % 4))


@case(each(lambda w, t: tuple(int(w[: t + 1].count("a") == n) for n in range(4))), ALL)
def one_hot_of_a_counter() -> Circuit:
    return over_abc("one_hot", counters[0].one_hot(4))


@case(each(lambda w, t: {"a": 4, "b": -1, "c": 0}[back(w, t, 1)] if t else 0), ALL)
def table_of_a_symbol() -> Circuit:
    return over_abc("table_of_a_symbol", token.shift(1).lookup({0: 4, 1: -1, 2: 0}))


@case(each(lambda w, t: max(max(max(_counts(w, t)[0] - 1, 0) - (back(w, t, 1) == "b"), 0) - 1, 0)), ALL)
def nested_rectifiers() -> Circuit:
    return over_abc("nested", (((counters[0] - 1).relu() - is_b.shift(1)).relu() - 1).relu())


@case(each(lambda w, t: 7), ALL)
def a_constant() -> Circuit:
    return over_abc("a_constant", constant(7))


# States ------------------------------------------------------------------------------------------


def _since_b(word: list[str], t: int) -> int:
    last = max((i for i in range(t + 1) if word[i] == "b"), default=-1)
    return word[last + 1 : t + 1].count("a")


@case(each(_since_b), exhaustive=5)
def count_since() -> Circuit:
    """How many a's since the last b."""
    return over_abc("count_since", count(is_a, reset=is_b))


@case(each(lambda w, t: sum({"a": 2, "b": -3, "c": 0}[x] for x in w[: t + 1])), ALL)
def signed_sum() -> Circuit:
    return over_abc("signed_sum", abc.number({"a": 2, "b": -3}).cumsum())


@case(each(lambda w, t: (int("b" in w[: t + 1]), int("ab" in "".join(w[: t + 1])))))
def presence() -> Circuit:
    return over_abc("presence", concatenate(present(is_b), present(is_a.shift(1) & is_b)))


def _stored(word: list[str], t: int, first: bool) -> int:
    values = {"a": 2, "b": -1, "c": 5}
    written = [values[word[i - 1]] for i in range(1, t + 1) if word[i] == "c"]
    return written[0 if first else -1] if written else 0


@case(each(lambda w, t: (_stored(w, t, first=True), _stored(w, t, first=False))))
def first_and_last_latch() -> Circuit:
    """What stood before the first and before the last c."""
    value = abc.number({"a": 2, "b": -1, "c": 5}).shift(1)
    when = is_c & constant(1).shift(1)
    return over_abc("latches", concatenate(latch(value, when, first=True), latch(value, when)))


@case(
    each(lambda w, t: tuple(max((i + 1 for i in range(t + 1) if w[i] == x), default=0) for x in "abc")),
    SELECTIVE[:2],
    NO_BANK,
)
def last_place_of_each_token() -> Circuit:
    return over_abc("bank", latch_bank(constant(1).cumsum(), token))


def _largest_lead(word: list[str], t: int) -> int:
    leads = [word[: i + 1].count("a") - word[: i + 1].count("b") for i in range(t + 1) if word[i] == "c"]
    return min(max(leads, default=0), 3) if max(leads, default=0) > 0 else 0


@case(each(_largest_lead), SELECTIVE[:2], NO_BANK)
def largest_lead() -> Circuit:
    """The largest lead (to 3) of a's over b's seen at a c."""
    a, b = counters
    return over_abc("largest_lead", running_max((a - b).clip(0, 3), is_c))


_DEBTS = {"a": -3, "b": 2, "c": -1}


def _least_debt(word: list[str], t: int) -> tuple[int, int]:
    seen = [_DEBTS[letter] for letter in word[: t + 1]]
    return max((v for v in seen if v < 0), default=0), max(2 * v for v in seen)


@case(each(_least_debt), SELECTIVE[:2], NO_BANK)
def least_debt() -> Circuit:
    """The largest of negative numbers, 0 before there is one, beside that of their doubles: two lanes, two flags."""
    debt = abc.number(_DEBTS)
    lanes, flags = concatenate(debt, 2 * debt), concatenate(~is_b, constant(1))
    return over_abc("least_debt", running_max(lanes, flags))


# Memories ----------------------------------------------------------------------------------------


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


# Outputs -----------------------------------------------------------------------------------------


@case(each(lambda w, t: "c" if "c" in w[: t + 1] else "b" if t and w[t - 1] == "a" else "a"))
def first_rule_that_holds() -> Circuit:
    return over_abc("emit", output.emit(ABC, (present(is_c), "c"), (is_a.shift(1), "b"), otherwise="a"))


DIGITS = Alphabet.of("+", d=5)


@case(each(lambda w, t: f"d{min(w[: t + 1].count('+'), 4)}"), ALL)
def tally_as_a_digit() -> Circuit:
    """Integer readout: the digit nearest to the number of pluses."""
    total = Tokens(DIGITS).is_in(["+"]).cumsum()
    scores = output.readout_integer(total, DIGITS, {f"d{i}": i for i in range(5)})
    return Circuit("tally_as_a_digit", scores, InputLanguage.everything(DIGITS, 6))
