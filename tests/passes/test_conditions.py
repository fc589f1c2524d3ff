"""Each rewriting holds under a condition on its operands: where the condition fails, another lowering or a refusal."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import compiler
from compiler.artifact.package import bare, language_model
from compiler.context import Context
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.ir.block import UnsafePreactivation, rectified
from compiler.language import memory
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.codebook import Codebook, balanced, signs
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens, numbers, position
from compiler.language.stream import Stream
from compiler.language.types import Bool, Int, OneHot, Real
from compiler.language.words import concatenate, count, decode, latch, lti, present, running_max
from compiler.passes.represent import RULES
from compiler.passes.represent.rewriter import Rewriter
from compiler.targets import target_of
from tests.circuits import ABC, K4, abc, counters, is_a, is_b, is_c, logits, over_abc, token

NUMBERS = {"a": 3, "b": -2, "c": 5}
x = abc.number(NUMBERS)
y = abc.number({"a": 1, "b": 4, "c": -1})
late = (counters[0] > 1) & is_b.shift(1)  # a flag that no key implies


def agrees(circuit: Circuit, target: str, exhaustive: int = 5) -> None:
    """The blocks give what the interpreter gives, on all short sequences and on random long ones."""
    compiled = compiler.compile(circuit, target)
    longest = circuit.language.max_length
    batches = [np.array(list(circuit.language.strings(n))) for n in range(1, min(exhaustive, longest) + 1)]
    for tokens in [*batches, circuit.language.sample(20, longest, seed=0)]:
        assert np.array_equal(logits(compiled, tokens), interpret(circuit, tokens)[circuit.output].astype(float))


# Memories whose key is no flag -----------------------------------------------------------------------

KEYS = {
    "Int": x,
    "past Int": x.shift(1),
    "counter": counters[1],
    "rows": abc.rows(None, np.array([[2, -1], [0, 3], [Fraction(1, 2), 1]], dtype=float), "rows"),
    "code": abc.code(None, signs(3)),
    "number above 1": abc.number({"a": 5, "b": 1, "c": 2}),
}
VALUES = {"Int": y, "flag": is_a, "code": abc.code(None, balanced(3)), "counter": counters[1] - counters[0]}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("target", ["mamba", "mamba2", "mamba-delta-t"])
def test_a_condition_leaves_numeric_keys_as_they_are(target: str, key: str, value: str):
    try:
        agrees(
            over_abc("when", memory.write(KEYS[key], VALUES[value], when=late).read(KEYS[key]), 9), target, exhaustive=4
        )
    except CompileError as error:
        assert "different scales" in str(error) and target == "mamba2"


def test_the_example_of_the_report():
    """n = 5, f = 0 used to give 4; against plain Python."""
    compiled = compiler.compile(over_abc("sum", memory.write(x, is_c, when=late).read(is_c), 8))
    tokens = compiled.source.language.sample(50, 8, seed=1)
    for word, row in zip(tokens, logits(compiled, tokens)[..., 0], strict=True):
        names = [ABC.tokens[i] for i in word]
        total = 0
        for t, name in enumerate(names):
            held = names[: t + 1].count("a") > 1 and t > 0 and names[t - 1] == "b"
            total += NUMBERS[name] * (name == "c") * held
            assert row[t] == total * (name == "c")


# Codes on Mamba-2 ------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_values_that_are_no_flags_do_not_take_the_small_way_of_balanced_codes(factor: int):
    tokens = Tokens(K4)
    key, value = tokens.code("k", balanced(4)), factor * tokens.one_hot("v")
    circuit = Circuit("codes", memory.write(key.shift(1), value).read(key), InputLanguage.everything(K4, 6))
    agrees(circuit, "mamba2", exhaustive=4)


def test_queries_that_are_values_too_do_not_take_it():
    tokens = Tokens(K4)
    key, value = tokens.code("k", balanced(4)), tokens.one_hot("v")
    query = tokens.code(["k0", "v0", "v1", "v2"], balanced(4))
    circuit = Circuit("codes", memory.write(key.shift(1), value).read(query), InputLanguage.everything(K4, 6))
    agrees(circuit, "mamba2", exhaustive=4)


# Rules asked directly, with operands that their types would forbid --------------------------------------

n, m = numbers(Int(-3, 3), "n"), numbers(Int(0, 2), "m")
f, r = numbers(Bool(), "f"), numbers(Real(0, 2), "r")
many, one = numbers(Bool(3), "many"), numbers(OneHot(3), "one")

UNFIT = {
    "and": (ops.And(), (f, m), "0 or 1"),
    "or": (ops.Or(), (m, f), "0 or 1"),
    "not": (ops.Not(), (n,), "0 or 1"),
    "select": (ops.Select(), (m, n, n), "0 or 1"),
    "compare": (ops.Compare(">"), (r, n), "nothing shows how near to 0 it may come"),
    "same symbol": (ops.SameSymbol(), (many, one), "one-hot"),
    "lookup": (ops.Lookup((1, 2)), (r,), "an integer"),
    "one_hot": (ops.OneHotOf(3), (n / 4,), "an integer"),
    "latch": (ops.Latch(), (n, m), "0 or 1"),
    "running_max of reals": (ops.RunningMax(), (r, f), "an integer"),
    "running_max when": (ops.RunningMax(), (m, m), "0 or 1"),
    "running_max of much": (ops.RunningMax(), (numbers(Int(0, 10**9)), f), "clip"),
    "memory when": (ops.MemoryRead("sum"), (n, one, one, m), "0 or 1"),
    "first under flags": (ops.MemoryRead("first"), (n, many, one), "one-hot"),
    "last asked for flags": (ops.MemoryRead("last"), (n, one, many), "one-hot"),
    "decode halves": (ops.Decode(ops.exact_matrix(signs(2).words)), (n / 4,), "an integer"),
    "decode sums": (ops.Decode(ops.exact_matrix(signs(2).words)), (n,), "a codeword has"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_rule_whose_condition_fails_refuses(name: str):
    operation, operands, reason = UNFIT[name]
    context = Context.of(Circuit("", concatenate(*operands), length=5), target_of("mamba"))
    with pytest.raises(NotImplementedError, match=reason):
        Rewriter(RULES, context.domains.draft(), None).ruled(operation, *operands)


def test_a_table_that_is_called_a_code_is_not_carried_as_bits():
    """2·bits − present holds for ±1 words and zeros only."""
    table = ops.exact_matrix(np.array([[1, -1], [1, 0], [0, 0]], dtype=float))
    stream = Stream(ops.Embed(ABC, table, abc.code(["a"], Codebook(np.array([[1, -1]]))).type), ())
    agrees(over_abc("torn code", stream.cumsum()), "mamba")


# Decode ----------------------------------------------------------------------------------------------

PAIRS = Codebook(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]))


def test_decode_of_what_may_be_no_codeword_is_refused_or_absent():
    """All ones hold every word of PAIRS; three signs in −1…1 are a word or none."""
    with pytest.raises(CompileError, match="a codeword has"):
        compiler.compile(over_abc("pairs", decode(abc.rows(None, np.ones((3, 3)), "ones").retyped(Bool(3)), PAIRS)))
    agrees(over_abc("pairs", decode(abc.code(None, PAIRS).shift(1), PAIRS)), "mamba")
    rows = abc.rows(None, np.array([[1, 1, -1], [1, 0, 1], [0, 0, 0]]), "some")
    agrees(over_abc("signs", decode(latch(rows, is_b | is_a.shift(1)), signs(8))), "mamba")


def test_decode_says_what_its_docstring_says():
    stream = numbers(Int(-3, 3, 3))
    values = np.array([[[1, 1, 0], [1, 1, 1], [2, 0, 0], [0, 0, 0], [0, 1, 1]]])
    got = interpret(Circuit("", decode(stream, PAIRS)), inputs={stream: values})
    (rows,) = got.values()
    assert rows[0].tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 1, 0]]


# Lookups beside the table ------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [-4, -1, 0, 1, 3, 9])
@pytest.mark.parametrize("table", [[7], [0, 0, 1], [5, -2, 7, 4], [3, 3]])
def test_a_lookup_beside_its_table_is_zero(table: list[int], shift: int):
    stream = (counters[0] - counters[1] + shift).lookup(table)
    circuit = over_abc("lookup", stream, 8)
    agrees(circuit, "mamba", exhaustive=4)
    word = np.array([[ABC.index(name) for name in "aaabbbbb"]])
    balance = np.cumsum([1, 1, 1, -1, -1, -1, -1, -1]) + shift
    expected = [table[i] if 0 <= i < len(table) else 0 for i in balance]
    assert interpret(circuit, word)[stream][0, :, 0].tolist() == expected


# Counts ----------------------------------------------------------------------------------------------

RESETS = {
    "until": ~present(is_b),
    "not": ~is_b,
    "equal": counters[0] == 2,
    "at most": counters[0] <= counters[1],
    "or": (counters[0] > 2) | is_b.shift(1),
}


@pytest.mark.parametrize("reset", RESETS)
@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_a_count_takes_any_flag_as_its_reset(target: str, reset: str):
    circuit = over_abc("count", count(is_a, reset=RESETS[reset]), 12)
    agrees(circuit, target)
    compiled = compiler.compile(circuit, target)
    tokens = circuit.language.sample(8, 12, seed=0)
    import torch

    with torch.no_grad():
        real = bare(compiled)(torch.from_numpy(tokens)).double().numpy()
    assert np.array_equal(real, compiled.interpret(tokens))


# Delays ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["mamba", "mamba2", "s4d"])
@pytest.mark.parametrize(
    "stream",
    [
        x.shift(10**4),
        x.shift(6) + y.shift(5) + is_a,
        (x.shift(4) + y).shift(3) - x.shift(2),
        (counters[0].shift(10**9) > 0) | is_a,
        lti(x, [1, 0, 0, 0, 0, 2, 3, *[1] * 5000]),
        (x.shift(3) + 1).relu().shift(3).cumsum(),
    ],
)
def test_what_lies_before_every_sequence_is_zero(stream: Stream, target: str):
    agrees(over_abc("delays", stream, 6), target, exhaustive=6)


def test_delays_that_take_too_many_blocks_are_refused_before_the_work():
    with pytest.raises(CompileError, match="100000 positions later"):
        compiler.compile(over_abc("far", x.shift(10**5), 10**6))


def test_a_running_maximum_of_much_is_refused_before_the_work():
    with pytest.raises(CompileError, match=r"clip\(\) its value"):
        compiler.compile(over_abc("much", running_max(counters[0] * 1000, is_b), 1000))
    with pytest.raises(CompileError, match="from 0 up to 65536, and 4096 is the most"):  # a minute, before
        compiler.compile(over_abc("long", running_max(position(), is_b), 65_536))


# The block IR and the package --------------------------------------------------------------------------


def test_zero_is_no_step():
    """softplus(0) = ln 2."""
    rectified(np.zeros((1, 1, 1)), ("x",), "the pre-activation")
    with pytest.raises(UnsafePreactivation, match="it must be at least 20.1"):
        rectified(np.zeros((1, 1, 1)), ("x",), "the Δ pre-activation", zero_is_safe=False)


@pytest.mark.parametrize("width", [4, 50])
def test_a_language_model_has_a_token_for_every_score(width: int):
    wide = np.ones((width, 1)) @ counters[0]
    with pytest.raises(CompileError, match=f"it gives {width} numbers, and the alphabet has 3 tokens"):
        language_model(compiler.compile(over_abc("wide", wide)))
    assert token.width == 3 and language_model(compiler.compile(over_abc("fits", wide[[0, 1, 2]])))
