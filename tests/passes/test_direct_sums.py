"""Direct sums of column groups in one block: where memories leave each other alone, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.analysis.paths import MOST_STEPS
from compiler.artifact.package import bare
from compiler.compiled import Compiled, run_blocks
from compiler.driver import compile
from compiler.exactness.compare import Miscompiled
from compiler.exactness.read_back import check_read_back
from compiler.ir.decay import FORGET
from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.words import concatenate, count, latch
from compiler.passes.direct_sums import WORK_FOR_A_STREAM, DirectSums
from compiler.passes.schedule import column_group
from constructions.construction import Construction
from constructions.copy_dp.knapsack import Knapsack
from constructions.copy_dp.phonebook import Phonebook
from constructions.copy_dp.tables import MatrixChain, ShortestPath
from constructions.copy_dp.words import EditDistance

KEYS, VALUES = "ab", {"1": 1, "2": 2}
ALPHABET = Alphabet.of(*KEYS, *VALUES, "?", "!")
x = Tokens(ALPHABET)
key, digit = x.one_hot(list(KEYS), name="key"), x.number(VALUES, name="digit")
asks, bang = x.is_in(["?"], name="asks"), x.is_in(["!"], name="bang")
near, far = key.shift(1), key.shift(2)


def read(where: Stream, value: Stream, query: Stream) -> Stream:
    return memory.write(where, value, policy="sum").read(query)


def apart() -> Stream:
    """Digits under the letter before and under the one before that; a `?` asks for both: no digit is read at once."""
    return concatenate(read(near, digit, near & asks), read(far, digit, far & asks))


def coinciding() -> Stream:
    """The same, but a `2` reads the second memory where it writes it."""
    at_two = asks | x.is_in(["2"], name="two")
    return concatenate(read(near, digit, near & asks), read(far, digit, far & at_two))


def mirrored() -> Stream:
    """`!` writes to the second memory and reads both: the first is silent for digits only, so it is mirrored."""
    return concatenate(read(near, digit, near & (asks | bang)), read(far, bang, far & bang))


def with_states() -> Stream:
    """Beside a running sum, a latch and a count since a reset, in the constant column."""
    states = [digit.cumsum(), latch(digit, bang.shift(1)), count(x.is_in(["1"]), reset=bang)]
    return concatenate(read(near, digit, near & asks), *states)


def overwriting() -> Stream:
    """A memory that keeps the last number behind a letter, a bank of latches, beside one that adds."""
    last = memory.write(near, digit, policy="last").read(key)
    return concatenate(read(near, digit, near & asks), last)


def oracle(circuit: Callable, word: list[str]) -> list[list[int]]:
    """What the circuits above mean, in plain Python."""
    rows, last = [], [0, 0]
    for t in range(len(word)):
        now = word[t]

        def total(back: int, value: Callable[[int], int], open_: bool, t: int = t) -> int:
            if not open_ or t < back or word[t - back] not in KEYS:
                return 0
            return sum(value(s) for s in range(back, t + 1) if word[s - back] == word[t - back])

        digit_at = lambda s: VALUES.get(word[s], 0)
        bang_at = lambda s: int(word[s] == "!")
        if circuit is apart:
            rows.append([total(1, digit_at, now == "?"), total(2, digit_at, now == "?")])
        elif circuit is coinciding:
            rows.append([total(1, digit_at, now == "?"), total(2, digit_at, now in "?2")])
        elif circuit is mirrored:
            rows.append([total(1, digit_at, now in "?!"), total(2, bang_at, now == "!")])
        elif circuit is overwriting:
            told = [s for s in range(1, t + 1) if word[s - 1] == now in KEYS]
            rows.append([total(1, digit_at, now == "?"), digit_at(told[-1]) if told else 0])
        else:
            if t and word[t - 1] == "!":
                last[0] = digit_at(t)
            last[1] = 0 if now == "!" else last[1] + (now == "1")
            rows.append([total(1, digit_at, now == "?"), sum(map(digit_at, range(t + 1))), *last])
    return rows


@cache
def compiled(circuit: Callable, target: str = "mamba", dtype: str = "float32", length: int = 24) -> Compiled:
    return compile(Circuit("sum", circuit(), InputLanguage.everything(ALPHABET, length)), target, dtype)


def joined(made: Compiled) -> dict[int, frozenset]:
    return made.schedule.mirrored


CIRCUITS = [apart, mirrored, with_states, overwriting]


@pytest.mark.parametrize(("circuit", "twice"), [(apart, 0), (mirrored, 1), (with_states, 1), (overwriting, 1)])
def test_memories_that_leave_each_other_alone_share_a_block(circuit: Callable, twice: int):
    made = compiled(circuit)
    assert len(made.blocks) == 1 and [len(groups) for groups in joined(made).values()] == [twice]
    assert len(compiled(circuit, "mamba2").blocks) > 1, "A of Mamba-2 is a number for each head"


def test_one_write_that_is_read_at_once_keeps_them_apart():
    assert len(compiled(coinciding).blocks) == 2 and not joined(compiled(coinciding))


def many(count: int) -> Stream:
    """Memories side by side, each under a key of its own, of which no two are shown to leave each other alone."""
    shifted = [key.shift(1 + i) for i in range(count)]
    return concatenate(*(read(where, digit.shift(i % 7), where & asks) for i, where in enumerate(shifted)))


@pytest.mark.parametrize("count", [8, 16])
def test_the_search_for_what_shares_a_block_is_linear(count: int, monkeypatch: pytest.MonkeyPatch):
    """As many paths as the budget allows, and blocks that compute the circuit all the same."""
    monkeypatch.setattr("compiler.passes.direct_sums.LEAST_WORK", 1 << 9)  # the least that our constructions need
    steps = []
    spend = DirectSums._spend
    monkeypatch.setattr(DirectSums, "_spend", lambda self, work: steps.append(work) or spend(self, work))
    circuit = Circuit("many", many(count), InputLanguage.everything(ALPHABET, 24))
    made = compile(circuit)
    searches = 3  # of a circuit as it is, with masks folded, and with these apart
    longest = MOST_STEPS  # of the path that ends the search
    assert sum(steps) <= searches * ((1 << 9) + WORK_FOR_A_STREAM * len(made.core.streams) + longest)
    ids = np.random.default_rng(0).integers(0, ALPHABET.size, (20, 24))
    ran = (run_blocks(made, ids)[-1] @ made.head.toarray().T)[..., : made.source.output.width]
    assert np.array_equal(ran, made.interpret(ids))


def test_a_search_that_may_take_nothing_joins_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("compiler.passes.direct_sums.LEAST_WORK", 0)
    monkeypatch.setattr("compiler.passes.direct_sums.WORK_FOR_A_STREAM", 0)
    made = compile(Circuit("sum", apart(), InputLanguage.everything(ALPHABET, 24)))
    assert not joined(made) and len(made.blocks) == 2


def test_what_is_shared_is_the_least_that_could_be():
    """Two memories of one value and different queries that are read where they are written: no block computes both,
    for every channel reads its present write with the same factor ΣBC.
    """
    made = compiled(coinciding)
    groups = {s: column_group(s, made.context.target) for block in made.schedule.blocks for s in block}
    sums = DirectSums(groups, made.context)
    assert sums.mirrored(tuple(dict.fromkeys(g for g in groups.values() if g))) is None
    present = oracle(coinciding, list("ab2"))[-1]
    assert present == [0, 2], "what the two are to read of the same present write has no common factor"


@pytest.mark.parametrize("circuit", [*CIRCUITS, coinciding], ids=lambda c: c.__name__)
@given(word=st.lists(st.sampled_from(ALPHABET.tokens), min_size=1, max_size=24))
@settings(max_examples=30, deadline=None)
def test_blocks_and_modules_say_what_python_says(circuit: Callable, word: list[str]):
    made = compiled(circuit)
    ids = np.array([[ALPHABET.tokens.index(token) for token in word]])
    expected = np.array([oracle(circuit, word)], dtype=float)
    assert np.array_equal(made.interpret(ids), expected)
    assert np.array_equal(run_blocks(made, ids)[-1] @ made.head.toarray().T, expected)
    with torch.no_grad():
        assert np.array_equal(_module(circuit)(torch.from_numpy(ids)).double().numpy(), expected)


@cache
def _module(circuit: Callable) -> torch.nn.Module:
    return bare(compiled(circuit))


@pytest.mark.parametrize("word", ["1", "?", "a1?", "a?1", "ab1!?", "a1b2a?", "!a1!", "aa1a2a?", "b!a!b!"])
@pytest.mark.parametrize("circuit", CIRCUITS, ids=lambda c: c.__name__)
def test_edges_of_segments(circuit: Callable, word: str):
    """Empty segments, writes next to each other and at both ends."""
    ids = np.array([[ALPHABET.tokens.index(token) for token in word]])
    with torch.no_grad():
        found = _module(circuit)(torch.from_numpy(ids)).double().numpy()
    assert np.array_equal(found, [oracle(circuit, list(word))])


def test_in_bfloat16_what_could_leave_its_integers_takes_a_block_each():
    assert len(compiled(apart, dtype="bfloat16", length=12).blocks) == 1
    assert len(compiled(apart, dtype="bfloat16").blocks) == 1 and len(compiled(apart).blocks) == 1
    wide = compile(Circuit("sum", mirrored(), InputLanguage.everything(ALPHABET, 128)), "mamba", "bfloat16")
    assert len(wide.blocks) == 2, "256 of its own and 2 of the mirror are more than 256 at some order of the sum"


def test_columns_beyond_what_was_allowed_take_a_block_each():
    circuit = Circuit("sum", apart(), InputLanguage.everything(ALPHABET, 24))
    assert [len(compile(circuit, "mamba", max_d_state=n).blocks) for n in (3, 4)] == [2, 1]


def test_an_exclusion_that_only_the_input_language_shows():
    """Both memories are read where they are written: a `1` stands right behind a letter, a `2` one further."""

    def stream() -> Stream:
        ones, twos = (x.is_in([d]) for d in VALUES)
        return concatenate(read(near, ones, near), read(far, twos, far))

    edges = [("s", "key", ["?"]), ("key", "value", [*KEYS]), ("value", "s", ["1"]), ("value", "two", ["!"])]
    cycle = InputLanguage.of(
        ALPHABET, "s", [*edges, ("two", "s", ["2"])], 16, "a letter and its digit, again and again"
    )
    assert len(compile(Circuit("cycle", stream(), cycle), "mamba").blocks) == 1
    assert len(compile(Circuit("any", stream(), InputLanguage.everything(ALPHABET, 16)), "mamba").blocks) == 2


def test_a_weight_that_is_wrong_is_told():
    """Every A_log of a direct sum, own and foreign, D that takes the constant column off, and signs of the mirror."""
    for circuit in (mirrored, with_states):
        made = compiled(circuit)
        (block,) = made.blocks
        target, lanes = made.context.target, np.arange(made.lanes.count)
        size = replace(target.sizes(block, len(lanes)), d_state=block.d_state + 1)
        tensors = dict(target.printed(block, size, lanes, lanes).tensors)
        assert (tensors["A_log"] == FORGET.a_log).any() and (tensors["A_log"] < 0).any()
        used = [("A_log", (c, n)) for c in range(len(block.channels.names)) for n in range(block.d_state)]
        used += [("D", tuple(at)) for at in np.argwhere(tensors["D"].numpy())]
        rank = size.dt_rank
        used += [("x_proj.weight", (rank + i, j)) for i, j in np.argwhere(tensors["x_proj.weight"][rank:].numpy())]
        for name, at in used:
            planted = tensors[name].clone()
            planted[at] = planted[at] + 1
            with pytest.raises(Miscompiled, match="the weights that were printed"):
                check_read_back(target.read(tensors | {name: planted}, size), block, lanes, lanes)


@pytest.mark.parametrize(
    ("construction", "blocks", "columns"),
    [(Knapsack(), 6, 5), (ShortestPath(), 8, 10), (MatrixChain(), 8, 18), (MatrixChain(matrices=2), 7, 6)],
    ids=lambda c: getattr(c, "name", str(c)),
)
def test_dynamic_programs_take_as_many_blocks_as_without_conflicts(
    construction: Construction, blocks: int, columns: int
):
    made = compile(construction.circuit(), "mamba")
    assert len(made.blocks) == blocks == made.schedule.least
    assert max(block.d_state for block in made.blocks) <= columns


@pytest.mark.parametrize(
    ("construction", "groups"),
    [(ShortestPath(), [[4, 6]] * 3), (MatrixChain(), [[4, 4, 4, 6], [4, 6]]), (Knapsack(), [])],
    ids=lambda c: getattr(c, "name", ""),
)
def test_who_shares_a_block_is_what_the_page_says(construction: Construction, groups: list[list[int]]):
    """The table of results beside the letters of the input, told by their columns."""
    made = compile(construction.circuit(), "mamba")
    found = []
    for block in sorted(joined(made)):
        of = {column_group(s, made.context.target): s for s in made.schedule.blocks[block]}
        found.append(sorted(s.inputs[1].width for group, s in of.items() if group))
    assert found == groups


@pytest.mark.parametrize(
    ("construction", "blocks", "without_conflicts"),
    [
        (Phonebook(arch="mamba2"), 5, 4),
        (EditDistance(length=2, arch="mamba2"), 7, 6),
        (ShortestPath(arch="mamba2"), 11, 9),
        (MatrixChain(arch="mamba2"), 13, 9),
        (Knapsack(arch="mamba2"), 7, 7),
    ],
    ids=lambda c: getattr(c, "name", str(c)),
)
def test_what_mamba2_would_save_is_what_the_page_says(construction: Construction, blocks: int, without_conflicts: int):
    made = compile(construction.circuit(), "mamba2")
    assert not joined(made) and (len(made.blocks), made.schedule.least) == (blocks, without_conflicts)
