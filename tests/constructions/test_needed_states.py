"""Bits that are said to be needed of any state, against beginnings that are told apart by brute force.

Each task is written here a second time, from its definition. Two beginnings need two states where a common
continuation, promised for both, has different right answers at its end. Beginnings every two of which do are as many
states at least, of any machine. So many bits a construction may say are needed, and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import combinations, permutations, product
from math import log2

import pytest

from constructions.construction import CircuitFamily
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.selective_copy import SelectiveCopy
from constructions.registry import CONSTRUCTIONS
from constructions.selectivity.induction_heads import InductionHeads
from constructions.selectivity.keep_nth import KeepNth
from constructions.selectivity.mad_compression import MadCompression
from constructions.selectivity.mad_memorization import MadMemorization
from constructions.selectivity.mqar import MQAR
from constructions.token_selection.copy_ngram import CopyNgram
from constructions.token_selection.recall import AssociativeRecall
from constructions.token_selection.selection import TokenSelection
from constructions.token_selection.unique_induction import UniqueInduction
from verify.bounds import induction_heads_information_bits, keep_nth_information_bits
from verify.obstructions import Capacity
from verify.task_states import induction_heads_states, keep_nth_states

Text = tuple[Hashable, ...]
Asked = Iterable[tuple[Text, Hashable]]
ROOM = 1e-9


def everything(letters: Sequence[Hashable], length: int) -> Iterable[Text]:
    for size in range(1, length + 1):
        yield from product(letters, repeat=size)


def induction(it: InductionHeads) -> Asked:
    for text in everything(range(it.vocab), it.max_length):
        earlier = [j for j in range(len(text) - 1) if text[j] == text[-1]]
        yield text, text[earlier[-1] + 1] if earlier else "blank"


def keep(it: KeepNth) -> Asked:
    for text in everything(range(it.vocab), it.max_length):
        if len(text) >= it.n:
            yield text, text[it.n - 1]


def mqar(it: MQAR) -> Asked:
    keys, values = [f"k{i}" for i in range(it.kappa)], [f"v{i}" for i in range(it.vocab)]
    for text in everything(["_", *keys, *values], it.max_length):
        if text[-1] in keys and (it.write != "sum" or distinct_pairs_then_queries(text, keys, values)):
            bound = [b for a, b in zip(text, text[1:], strict=False) if a == text[-1] and b in values]
            if bound and (it.write != "sum" or len(bound) == 1):
                yield text, bound[-1 if it.write == "last" else 0]


def distinct_pairs_then_queries(text: Text, keys: Sequence[str], values: Sequence[str]) -> bool:
    """Some number of pairs, their keys distinct; behind them every key at most once."""
    for end in range(2, len(text) + 1, 2):
        shown, rest = text[:end:2], [token for token in text[end:] if token in keys]
        pairs = all(token in keys for token in shown) and all(token in values for token in text[1:end:2])
        if pairs and len(set(shown)) == len(shown) and len(set(rest)) == len(rest):
            return True
    return False


def recall(it: AssociativeRecall) -> Asked:
    keys = range(it.keys)
    for count in range(1, it.pairs + 1):
        for shown in permutations(keys, count) if it.distinct else product(keys, repeat=count):
            for values in product("abcdef"[: it.values], repeat=count):
                text = tuple(token for pair in zip(shown, values, strict=True) for token in pair)
                for asked in set(shown):
                    found = {v for k, v in zip(shown, values, strict=True) if k == asked}
                    if len(found) == 1:
                        yield (*text, asked), found.pop()


def unique_induction(it: UniqueInduction) -> Asked:
    for text in everything(range(it.vocab), it.length):
        found = {text[j + 1] for j in range(len(text) - 1) if text[j] == text[-1]}
        if len(found) == 1:
            yield text, found.pop()


def selection(it: TokenSelection) -> Asked:
    if it.keys == "angle":
        keys: list = list(range(it.size))
        far = lambda a, b: min((a - b) % it.size, (b - a) % it.size)
    else:
        keys = list(product((-1, 1), repeat=it.size))
        far = lambda a, b: -sum(x * y for x, y in zip(a, b, strict=True))
    pairs = list(product(keys, range(it.values)))
    for shown in everything(pairs, it.length - 1):
        for query in keys:
            least = min(far(key, query) for key, _ in shown)
            found = {value for key, value in shown if far(key, query) == least}
            if len(found) == 1:
                yield (*shown, ("asked", query)), found.pop()


def copied(prompt: Text, text: Text) -> Asked:
    """The text behind its separator, token by token, and its end."""
    for i in range(len(text) + 1):
        yield (*prompt, "|", *text[:i]), (*text, "end")[i]


def copy(it: Copy) -> Asked:
    for text in [(), *everything(range(it.vocab), it.n)]:
        yield from copied(text, text)


def selective_copy(it: SelectiveCopy) -> Asked:
    for prompt in [(), *everything(["_", *range(it.vocab)], it.length)]:
        text = tuple(token for token in prompt if token != "_")
        if len(text) <= it.n:
            yield from copied(prompt, text)


def copy_ngram(it: CopyNgram) -> Asked:
    for text in one_continuation((), {}, it):
        yield from copied(text, text)


def one_continuation(text: Text, follows: dict[Text, int], it: CopyNgram) -> Iterable[Text]:
    """The strings that begin so and have no context with two continuations; follows: what stood behind each so far."""
    context = text[-it.n :]
    if context not in follows:  # else the end would be another continuation of it
        yield text
    if len(text) < it.length:
        for token in range(it.vocab):
            if follows.get(context, token) == token:
                yield from one_continuation((*text, token), follows | {context: token}, it)


def compression(it: MadCompression) -> Asked:
    for text in product(range(it.vocab - 1), repeat=it.n):
        for place in range(it.n):
            yield (*text, "|", ("place", place)), text[place]


def memorization(it: MadMemorization) -> Asked:
    for keys in everything(range(it.keys), it.length // 2):
        yield tuple(token for key in keys for token in (key, "|")), it.facts()[keys[-1]]


ORACLES: dict[str, Callable[..., Asked]] = {
    "induction-heads": induction,
    "keep-nth": keep,
    "mqar": mqar,
    "recall": recall,
    "unique-induction": unique_induction,
    "token-selection": selection,
    "copy": copy,
    "selective-copy": selective_copy,
    "copy-ngram": copy_ngram,
    "mad-compression": compression,
    "mad-memorization": memorization,
}
CASES = [
    *(InductionHeads(v, length=1, max_length=t) for v, t in [(1, 3), (2, 4), (3, 3), (3, 4), (3, 6), (4, 5)]),
    *(KeepNth(n, v, length=t, max_length=t) for n, v, t in [(1, 3, 2), (2, 2, 4), (2, 3, 4), (3, 2, 6), (3, 2, 7)]),
    *(KeepNth(n, v, length=t, max_length=t) for n, v, t in [(2, 2, 2), (2, 2, 3), (3, 2, 4), (3, 3, 5), (2, 1, 4)]),
    *(MQAR(k, v, pairs=1, length=t, max_length=t) for k, v, t in [(2, 2, 5), (2, 3, 5), (3, 2, 5), (2, 2, 4)]),
    *(MQAR(2, 2, write=write, pairs=1, length=5, max_length=t) for write in ("first", "last") for t in (3, 5)),
    MQAR(2, 2, guarantee="random", key_code=4, pairs=1, length=5, max_length=5),
    *(AssociativeRecall(k, v, p, d) for k, v, p, d in [(2, 2, 2, False), (3, 2, 2, True), (2, 3, 1, True)]),
    *(UniqueInduction(v, t) for v, t in [(2, 5), (3, 4), (3, 6), (4, 5), (5, 4)]),
    *(TokenSelection("angle", n, v, t) for n, v, t in [(2, 2, 3), (3, 2, 3), (3, 2, 4), (4, 3, 2)]),
    *(TokenSelection("signs", n, v, t) for n, v, t in [(1, 3, 3), (2, 2, 3)]),
    *(Copy(n=n, vocab=v) for n, v in [(1, 3), (2, 2), (3, 2), (2, 3)]),
    *(SelectiveCopy(n=n, vocab=v, length=t) for n, v, t in [(1, 2, 2), (2, 2, 3), (2, 3, 2)]),
    *(
        CopyNgram(*sizes)
        for sizes in [(2, 2, 2), (3, 2, 3), (2, 3, 2), (2, 3, 3), (4, 2, 5), (1, 2, 4), (2, 2, 5), (1, 2, 24)]
    ),
    *(MadCompression(n, v, questions=1) for n, v in [(1, 3), (2, 3), (3, 3), (2, 4)]),
    *(MadMemorization(v, length=4, seed=seed) for v in (5, 9, 12) for seed in range(3)),
]


def claimed(it: CircuitFamily) -> float:
    """The most bits of state that it is said to need: by itself, or by an obstruction."""
    bounds = it.obstructions(Capacity(1, 1, 1))
    return max([it.information_bits(), *(one.least for one in bounds if one.kind == "information")])


def futures(asked: Asked) -> list[dict[Text, Hashable]]:
    """For each beginning the answers behind its continuations; equal ones once."""
    found: dict[Text, dict[Text, Hashable]] = {}
    for text, answer in asked:
        for i in range(len(text)):
            found.setdefault(text[:i], {})[text[i:]] = answer
    return [dict(items) for items in {frozenset(future.items()) for future in found.values()}]


def told_apart(asked: Asked) -> int:
    """Beginnings every two of which need two states: from each one on greedily, and the most that were found."""
    found = futures(asked)
    differ = [0] * len(found)  # sets as bits
    for i, j in combinations(range(len(found)), 2):
        if any(found[j].get(text, answer) != answer for text, answer in found[i].items()):
            differ[i] |= 1 << j
            differ[j] |= 1 << i
    return max(1 + _grown(differ, left) for left in differ)


def _grown(differ: list[int], left: int) -> int:
    """How many of those left part from one another: always the next that parts from most of the others."""
    count = 0
    while left:
        left &= max((row for i, row in enumerate(differ) if left >> i & 1), key=lambda row: (row & left).bit_count())
        count += 1
    return count


@pytest.mark.parametrize("it", CASES, ids=lambda it: f"{it.name} {' '.join(map(str, it.params().values()))}")
def test_no_more_bits_are_asked_for_than_beginnings_are_told_apart(it: CircuitFamily) -> None:
    assert claimed(it) <= log2(told_apart(ORACLES[it.name](it))) + ROOM


def test_every_construction_that_asks_for_bits_is_among_them() -> None:
    asking = {name for name, made in CONSTRUCTIONS.items() if claimed(made())}
    assert asking == set(ORACLES) == {it.name for it in CASES}
    assert all(any(claimed(it) for it in CASES if it.name == name) for name in ORACLES)


def induction_answers(text: Text, vocab: int, further: int) -> tuple:
    """The answers to the tokens of every continuation of up to so many tokens."""
    rows = [(*text, *more) for more in everything(range(vocab), further)]
    return tuple(
        row[max(j for j in range(len(row) - 1) if row[j] == row[-1]) + 1] if row[-1] in row[:-1] else -1 for row in rows
    )


@pytest.mark.parametrize(("vocab", "length"), [(1, 1), (1, 2), (2, 2), (2, 3), (3, 2), (3, 4), (3, 5), (4, 5), (4, 7)])
def test_the_states_of_induction_heads_are_counted_exactly(vocab: int, length: int) -> None:
    """Beginnings that answer the next token alike answer the next three alike (Myhill and Nerode)."""
    begun = [(), *everything(range(vocab), length - 1)]
    counts = {len({induction_answers(text, vocab, further) for text in begun}) for further in (1, 2, 3)}
    assert counts == {induction_heads_states(vocab, length)}
    assert length < max(2, 2 * vocab - 1) or counts == {induction_heads_states(vocab)}
    assert vocab > 3 or counts == {told_apart(induction(InductionHeads(vocab, length=1, max_length=length)))}


def test_the_states_of_induction_heads_by_hand() -> None:
    """V = 2: the start, either token alone, and either token last with the other one before it."""
    assert [induction_heads_states(vocab) for vocab in (1, 2, 3, 4, 5)] == [2, 5, 19, 117, 1061]
    assert [round(induction_heads_information_bits(v), 1) for v in (10, 20, 40)] == [30.5, 82.7, 208.1]


@pytest.mark.parametrize(("n", "vocab", "length"), [(1, 2, 5), (2, 2, 6), (3, 2, 6), (2, 3, 6), (2, 1, 6), (3, 2, 3)])
def test_the_states_of_keep_nth_are_enough_and_no_fewer_are(n: int, vocab: int, length: int) -> None:
    """A machine that counts to n − 1 and then keeps the token; where one state is counted, it says what it reads."""
    it = KeepNth(n, vocab, length=length, max_length=length)
    counted = keep_nth_states(n, vocab, length)
    states = set()
    for text, answer in keep(it):
        state: tuple[str, int] = ("count", 0)
        for token in text:
            states.add(state)
            if state[0] == "count":
                state = ("count", state[1] + 1) if state[1] + 1 < n else ("token", token)
        assert answer == (text[-1] if counted == 1 else state[1])
    assert counted == told_apart(keep(it))
    assert counted == 1 or counted == len(states) == n + vocab


def test_the_bits_of_keep_fifth() -> None:
    assert keep_nth_information_bits(5, 128) == log2(133)
