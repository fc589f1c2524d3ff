"""What a user may get wrong: each mistake gets one sentence that names the argument and what would work."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from compiler.artifact.generate import generate
from compiler.artifact.load import load
from compiler.artifact.package import bare, language_model
from compiler.artifact.save import save
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.codebook import Codebook, balanced, random_balanced, signs
from compiler.language.input_language import Edge, InputLanguage
from compiler.language.operations import Linear, MemoryRead, OneHotOf, Relu
from compiler.language.output import emit, readout, readout_integer, readout_one_hot, readout_or_blank
from compiler.language.source import numbers, position
from compiler.language.stream import Stream, constant
from compiler.language.types import Code, Int, Real
from compiler.language.words import (
    concatenate,
    count,
    decode,
    latch,
    latch_bank,
    lti,
    maximum,
    scaled_sum,
    select,
    sum_where,
)
from tests.circuits import ABC, abc, is_a, is_b, over_abc, token
from tests.language.slips import one_sentence
from verify import verify

N = is_a.cumsum().named("n")
EVERYTHING = InputLanguage.everything(ABC, 9)
SIGNS = signs(3)
CODE = abc.code(None, SIGNS, "letter")
NAN, INF = float("nan"), float("inf")


def _cycle() -> Circuit:
    first = is_a.shift(1)
    first.inputs = (first.shift(1),)
    return Circuit("cycle", first, EVERYTHING)


SOME = Circuit("some", readout_integer(N, ABC, {"a": 1, "b": 2}), EVERYTHING)


def _edge(*ids: int) -> Edge:
    return Edge("s", "s", frozenset(ids))


MEMBERS = ", and the name of a group, a list of tokens or None is needed"
LISTS: dict[str, tuple[Callable[[object], object], str]] = {
    "one_hot": (abc.one_hot, MEMBERS),
    "is_in": (abc.is_in, MEMBERS),
    "code": (lambda array: abc.code(array, SIGNS), MEMBERS),
    "rows": (lambda array: abc.rows(array, np.eye(3), "x"), MEMBERS),
    "readout": (lambda array: readout(CODE, SIGNS, ABC, array), MEMBERS),
    "readout_one_hot": (lambda array: readout_one_hot(token, ABC, array), MEMBERS),
    "readout_or_blank": (lambda array: readout_or_blank(token, token, ABC, array, "a"), MEMBERS),
    "ids": (ABC.ids, MEMBERS),
    "decode": (ABC.decode, ", and a list of token ids is needed"),
    "accepts": (EVERYTHING.accepts, ", and a list of ids is needed"),
    "max_count": (EVERYTHING.max_count, ", and a list of token ids is needed"),
    "edges": (lambda array: InputLanguage.of(ABC, "s", array, 3, ""), ", and a list of edges is needed"),
    "a group": (lambda array: Alphabet.of("a", k=array), ", and a number or a list of tokens is needed"),
    "a readout": (lambda array: readout_or_blank(array, token, ABC, None, "a"), ", and a stream is needed"),
}
MISUSES: dict[str, tuple[Callable[[], object], str]] = {
    # what is run, read and written
    "save a circuit": (lambda: save(SOME, "x"), "what save writes is Circuit(name='some'"),
    "overwrite by a text": (lambda: compile(SOME).save("x", overwrite="no"), "overwrite of save is 'no', and True or"),
    "load what is sealed": (lambda: load("x", sealed="no"), "sealed of load is 'no', and True or False is needed"),
    "save nowhere": (lambda: compile(SOME).save(None), "the directory is None, and a path is needed"),
    "load a number": (lambda: load(3), "the directory is 3, and a path is needed"),
    "prompts as a list": (lambda: generate(3, "a"), "the directory is 3, and a path is needed"),
    "interpret a text": (lambda: compile(SOME).interpret("a b"), "tokens have entries such as 'a b'"),
    "interpret names": (lambda: compile(SOME).interpret([["a", "b"]]), "tokens have entries such as 'a'"),
    "interpret one row": (lambda: compile(SOME).interpret([0, 1]), "tokens have the shape (2,), and (batch, time)"),
    "interpret another id": (lambda: compile(SOME).interpret([[9]]), "token id 9 is none of the alphabet's 0 … 2"),
    "interpret a negative id": (lambda: compile(SOME).interpret([[-1]]), "token id -1 is none of the alphabet's"),
    "interpret a list of names": (lambda: interpret(SOME, [["a"]]), "tokens have entries such as 'a'"),
    "interpret what is compiled": (lambda: interpret(compile(SOME)), "compiled.interpret(tokens) runs a compiled one"),
    "verify by a text": (lambda: verify(SOME, "f"), "the function is 'f', and a function of a sequence's tokens"),
    "numbers backwards": (lambda: numbers(Real(3, -3)), "lo must be at most hi"),
    "integers beyond an open bound": (
        lambda: numbers(Int(2**63, None)),
        "its open hi stands for 2^62, which its other",
    ),
    "numbers beyond an open bound": (lambda: numbers(Real(2.0**63)), "its open hi stands for 2^62, which its other"),
    "numbers below an open bound": (lambda: numbers(Real(None, -(2.0**70))), "its open lo stands for -2^62, which its"),
    "half an integer": (lambda: numbers(Int(0.5, 2)), "a bound of numbers is 0.5, and an integer is needed"),
    "numbers of no width": (lambda: numbers(Int(0, 1, 0)), "the width of numbers is 0, and it must be at least 1"),
    "a gap below 0": (lambda: numbers(Real(-1, 1, gap=-1)), "the gap of numbers is -1, and it must be at least 0"),
    # operands
    "add a text": (lambda: N + "1", "an operand is '1', and a stream or a number is needed"),
    "times a function": (lambda: count * N, "a factor is count (function), and a stream or a number is needed"),
    "times infinity": (lambda: N * INF, "a factor is inf, and a finite number is needed"),
    "times NaN": (lambda: N * NAN, "a factor is nan, and a finite number is needed"),
    "times a third": (lambda: compile(over_abc("c", N * Fraction(1, 3))), "its value 1/3 is no dyadic rational"),
    "divided by 3": (lambda: compile(over_abc("c", N / 3)), "its value 1/3 is no dyadic rational"),
    "thirds": (
        lambda: [[1, Fraction(1, 3)]] @ concatenate(N, N),
        "entry [0, 1] of the matrix before @: weight 1/3 is no dyadic",
    ),
    "add None": (lambda: None + N, "an operand is None, and a stream or a number is needed"),
    "divided by 0": (lambda: N / 0, "n is divided by 0, and a number other than 0 is needed"),
    "divided by a stream": (lambda: N / N, "n is divided by a stream, and only a number can divide"),
    "equal to None": (lambda: N == None, "an operand is None, and a stream or a number is needed"),  # noqa: E711
    "more than a text": (lambda: N > "b", "an operand is 'b', and a stream or a number is needed"),
    "flag and no flag": (lambda: is_a ^ 1, "the operand of ^ beside is_a is 1, and a flag is needed"),
    "no flag and flag": (lambda: True ^ is_a, "the operand of ^ beside is_a is True, and a flag is needed"),
    "both of two streams": (lambda: divmod(N, N), "n is divided by a stream, and only a positive integer can divide"),
    "both by a stream": (lambda: divmod(7, N), "7 is divided by n, and only a number can divide"),
    "one-hot of nothing": (lambda: Stream(OneHotOf(3), ()), "one_hot was given 0 inputs, and it takes (x)"),
    "values without end": (
        lambda: compile(Circuit("c", position().one_hot(2**20).sum(), EVERYTHING.with_length(2**20))),
        "it takes a rectifier for each of the 1048576 values that its operand can have, and 16384 are the most",
    ),
    "a filter without end": (
        lambda: compile(Circuit("c", lti(N, [1] * 3000), EVERYTHING.with_length(5000))),
        "it is read 2999 positions later, which takes a block for each 3; 1536 are the most",
    ),
    "flag or number": (lambda: is_a | 1, "'b' of or is 1, and a stream is needed; constant(…) makes a stream"),
    "number and flag": (lambda: True & is_a, "'a' of and is True, and a stream is needed"),
    "as a truth value": (lambda: 1 if is_a else 0, "has no truth value while the circuit is built"),
    "power of a half": (lambda: N**0.5, "the exponent of n is 0.5, and an integer is needed"),
    "power 0": (lambda: N**0, "the exponent of n is 0, and it must be at least 1"),
    "a vector before @": (lambda: np.ones(1) @ N, "the matrix before @ has 1 axes, and two are needed: (rows, 1)"),
    "a matrix behind @": (lambda: N @ np.ones((1, 1)), "n stands before @, and the matrix must"),
    "a NaN in a matrix": (
        lambda: np.array([[NAN]]) @ N,
        "entry [0, 0] of the matrix before @ is nan, and a finite number",
    ),
    "a text in a matrix": (lambda: np.array([["a"]]) @ N, "entry [0, 0] of the matrix before @ is 'a', and a number"),
    "a complex matrix": (lambda: np.array([[1j]]) @ N, "entry [0, 0] of the matrix before @ is 1j (complex), and a"),
    "a sparse complex matrix": (lambda: sparse.csr_array([[1j]]) @ N, "entry [0, 0] of the matrix before @ is 1j"),
    "None in a matrix": (lambda: [[2, None]] @ concatenate(N, N), "entry [0, 1] of the matrix before @ is None, and a"),
    "a ragged matrix": (lambda: [[1], [2, 3]] @ N, "the matrix before @ is [[1], [2, 3]] (list), and rows of as many"),
    "no matrix": (lambda: None @ N, "the matrix before @ is None, and a matrix of (rows, 1) numbers is needed"),
    "no rows": (lambda: np.ones((0, 1)) @ N, "the matrix before @ has the shape (0, 1), and at least one row"),
    "too many columns": (
        lambda: compile(over_abc("c", np.ones((1, 2)) @ N)),
        "the matrix has 2 columns, and 1 are needed, one for each lane of its operand",
    ),
    "more lanes": (
        lambda: compile(over_abc("c", token + concatenate(N, N))),
        "its operands have 3 and 2 lanes; they must agree, or one of them be a single lane",
    ),
    "another width": (lambda: N.retyped(Int(0, 9, 2)), "the type of retyped has 2 lanes, and n has 1"),
    "bounds of text": (lambda: N.retyped(Int("a", "b")), "a bound of retyped is 'a', and an integer is needed"),
    "a bound of NaN": (lambda: N.retyped(Int(NAN, 50)), "a bound of retyped is nan, and an integer is needed"),
    "an infinite bound": (lambda: N.retyped(Int(-INF, INF)), "a bound of retyped is -inf, and an integer is needed"),
    "a bound beyond floats": (lambda: N.retyped(Int(-3, 2**1200)), "a bound of retyped lies beyond ±2^1023"),
    "a width of two": (lambda: N.retyped(Int(-3, 3, np.array([1, 2]))), "the width of retyped is array([1, 2])"),
    "real bounds backwards": (lambda: N.retyped(Real(1, 0)), "and lo must be at most hi"),
    "a real bound of NaN": (lambda: N.retyped(Real(NAN, 1)), "a bound of retyped is nan, and a finite number is"),
    "a real bound of text": (lambda: N.retyped(Real(None, "x")), "a bound of retyped is 'x', and a number is needed"),
    "a gap that is claimed": (lambda: N.retyped(Real(gap=0.5)), "the gap of retyped is 0.5, and it must be 0"),
    "real bounds that are not shown": (
        lambda: compile(over_abc("c", N.retyped(Real(0, 1)))),
        "it is declared Real(lo=0, hi=1, width=1, gap=0.0), and all that can be shown is 0…24",
    ),
    "a code that is not shown": (
        lambda: compile(over_abc("c", concatenate(N, N).retyped(Code(signs(3))))),
        "it is declared a Code, and what it reads is not shown to hold words of that codebook",
    ),
    "a code of another book": (
        lambda: compile(over_abc("c", CODE.retyped(Code(Codebook(-SIGNS.words))))),
        "it is declared a Code, and what it reads is not shown to hold words of that codebook",
    ),
    "a number by a stream": (lambda: 1 / N, "1 is divided by n, and only a number can divide"),
    "a number by a stream, down": (lambda: 5 // N, "5 is divided by n, and only a number can divide"),
    "what a stream leaves over": (lambda: 5 % N, "5 is divided by n, and only a number can divide"),
    "a stream as exponent": (lambda: 2**N, "2 has the exponent n, and only a number can be one"),
    "an operation that is a number": (
        lambda: Stream(np.float32(0.5), (), "x"),
        "the operation of a stream is np.float32(0.5) (float32), and an operation such as Relu() is needed",
    ),
    "no inputs at all": (lambda: Stream(Relu(), None), "the inputs of relu is None, and a tuple of streams is needed"),
    "an input too many": (lambda: Stream(Relu(), (N, N)), "relu was given 2 inputs, and it takes (x)"),
    "an input too few": (
        lambda: Stream(MemoryRead("sum"), (N,)),
        "memory[sum] was given 1 inputs, and it takes (value, key, query, *when)",
    ),
    "a matrix too few": (
        lambda: Stream(Linear((np.ones((1, 1)),)), (N, N)),
        "linear was given 2 inputs, and it needs 1, one for each matrix",
    ),
    # lanes, time, tables
    "a lane too far": (lambda: token[5], "lane 5 of token is none of its lanes 0 … 2"),
    "a lane by name": (lambda: token["a"], "lane 'a' of token is none of its lanes 0 … 2"),
    "no lanes": (lambda: token[3:], "picks no lanes of token"),
    "half a shift": (lambda: N.shift(1.5), "k of shift is 1.5, and an integer is needed"),
    "a shift ahead": (lambda: compile(over_abc("ahead", N.shift(-1))), "only the past can be read"),
    "half a clip": (lambda: N.clip(0, 1.5), "hi of clip is 1.5, and an integer is needed"),
    "one_hot of a group": (lambda: N.one_hot("letters"), "n of one_hot is 'letters', and an integer is needed"),
    "one_hot of nothing": (lambda: N.one_hot(0), "n of one_hot is 0, and it must be at least 1"),
    "a table with a gap": (lambda: N.lookup({0: 1, 2: 3}), "the table of lookup has 2 entries and none for 1"),
    "a table of text": (lambda: N.lookup("ab"), "the table of lookup is 'ab', and a list or a dict of integers"),
    "a table of halves": (lambda: compile(over_abc("c", N.lookup([0.5]))), "must hold integers, at least one"),
    "a table of names": (lambda: N.lookup(["a"]), "entry 0 of the table of lookup is 'a', and a number is"),
    "a filter of nothing": (lambda: lti(N, []), "the kernel of lti has no taps, and at least one is needed"),
    "a filter of NaN": (lambda: lti(N, [NAN]), "a tap of lti is nan, and a finite number is needed"),
    "a name of a number": (lambda: constant(1).named(3), "name is 3, and a text is needed"),
    # functions of streams
    "nothing side by side": (lambda: concatenate(), "concatenate was given no streams, and at least one is needed"),
    "a number side by side": (lambda: concatenate(N, 3), "an input of concatenate is 3, and a stream is needed"),
    "select by a number": (lambda: select(1, N, N), "'condition' of select is 1, and a stream is needed"),
    "maximum of a text": (lambda: maximum(N, "3"), "an operand is '3', and a stream or a number is needed"),
    "reset by None": (lambda: count(is_a, None), "'reset' of count is None, and a stream is needed"),
    "latch a number": (lambda: latch(3, is_a), "'value' of latch is 3, and a stream is needed; constant("),
    "latch a fraction": (lambda: latch(0.5, is_a), "'value' of latch is 0.5, and a stream is needed; constant("),
    "write a number": (lambda: memory.write(N, 1), "'value' of memory.write is 1, and a stream is needed; constant("),
    "a filter of one number": (lambda: lti(N, np.array(3)), "the kernel of lti is a single number, and a list of"),
    "a table of one number": (lambda: N.lookup(np.array(3)), "the table of lookup is array(3) (ndarray), and a list"),
    "a bank by name": (lambda: latch_bank(N, "k", is_a), "'index' of latch_bank is 'k', and a stream is needed"),
    "emit over text": (lambda: emit("abc", otherwise="a"), "the alphabet of emit is 'abc', and an Alphabet is needed"),
    "the last token": (lambda: ABC.decode([-1]), "a token id is -1, and it must be at least 0"),
    "names for ids": (lambda: EVERYTHING.accepts(["a"]), "a token id is 'a', and an integer is needed"),
    "a count of one id": (lambda: EVERYTHING.max_count(0), "ids is 0, and a list of token ids is needed"),
    "a codebook without end": (lambda: balanced(2**60), "and it must be at most 1048576"),
    "perhaps the first": (lambda: latch(N, is_a, first="no"), "first of latch is 'no', and True or False is needed"),
    "sum where what": (lambda: sum_where(N, "a"), "'when' of sum_where is 'a', and a stream is needed"),
    "a weight of 3": (lambda: scaled_sum(N, 3, N), "'weight' of scaled_sum is 3, and a stream is needed"),
    "decode by a number": (lambda: decode(N, 3), "book of decode is 3, and a codebook is needed"),
    "a constant of NaN": (lambda: constant(NAN), "the value of constant is nan, and a finite number is needed"),
    "a constant nowhere": (lambda: constant(1, 0), "width of constant is 0, and it must be at least 1"),
    "numbers of int": (lambda: numbers(int), "the type of numbers is int (type), and a stream type such as Int(-3, 3)"),
    # arrays where lists are needed
    **{
        f"{word} of {kind}": (lambda call=call, array=array: call(array), words)
        for kind, array in (("one number", np.array(1.0)), ("a sparse array", sparse.eye_array(2)))
        for word, (call, words) in LISTS.items()
    },
    # memories
    "a policy in an array": (
        lambda: memory.write(token, N, policy=np.array([1, 2])),
        "policy of memory.write is array([1, 2]) (ndarray), and 'sum', 'first', 'last' or 'once' is needed",
    ),
    "a key by name": (lambda: memory.write("k", N), "'key' of memory.write is 'k', and a stream is needed"),
    "a condition True": (lambda: memory.write(token, N, True), "'when' of memory.write is True, and a stream"),
    "a policy": (
        lambda: compile(over_abc("c", memory.write(token, N, policy="newest").read(token))),
        "it must be 'sum', 'first', 'last' or 'once'",
    ),
    "key and value swapped": (
        lambda: compile(over_abc("swapped", memory.write(N, token, policy="last").read(N))),
        "are key and value swapped?",
    ),
    # outputs and circuits
    "one-hot of a count": (lambda: readout_one_hot(N, ABC), "n has 1 lanes, and readout_one_hot needs 3"),
    "integer of a one-hot": (lambda: readout_integer(token, ABC, {"a": 1}), "token has 3 lanes, and readout_integer"),
    "integer of nothing": (lambda: readout_integer(N, ABC, {}), "the values of readout_integer are empty"),
    "readout of a text": (lambda: readout("n", balanced(3), ABC, None), "the stream of readout is 'n', and a stream"),
    "readout by tokens": (lambda: readout_one_hot(token, abc), "the alphabet of readout_one_hot is"),
    "rules without a token": (lambda: emit(ABC, is_a, otherwise="b"), "a rule of emit is"),
    "no output": (lambda: Circuit("c", None), "the output of circuit 'c' is None, and a stream is needed"),
    "a length of text": (lambda: Circuit("c", N, length="9"), "the length of circuit 'c' is '9', and an integer"),
    "a value whose square is no float": (
        lambda: readout_integer(N, ABC, {"a": 2**62 + 1}),
        "weight 9223372036854775810 has more than 53 bits",
    ),
    "a rule's number beyond floats": (lambda: readout_integer(N, ABC, {"a": 10**200}), "has more than 53 bits"),
    "add beyond floats": (lambda: N + 10**400, "an operand lies beyond ±2^1023, and no float reaches it"),
    "times beyond floats": (lambda: N * Fraction(-(10**400), 3), "a factor lies beyond ±2^1023"),
    "compared beyond floats": (lambda: N > 10**400, "an operand lies beyond ±2^1023"),
    "divisor beyond floats": (lambda: N // 10**400, "the divisor of n lies beyond ±2^1023"),
    "tap beyond floats": (lambda: lti(N, [1, 10**400]), "lies beyond ±2^1023"),
    "entry beyond floats": (lambda: N.lookup([0, 10**400]), "entry 1 of the table of lookup lies beyond ±2^1023"),
    "token's number beyond floats": (lambda: abc.number({"a": 10**400}), "lies beyond ±2^1023"),
    "more lanes than any module": (
        lambda: N.one_hot(10**9),
        "n of one_hot is 1000000000, and it must be at most 1048576",
    ),
    "a width beyond any module": (
        lambda: constant(1, 10**9),
        "width of constant is 1000000000, and it must be at most",
    ),
    "too many rules": (
        lambda: emit(ABC, *[(is_a, "a")] * 1001, otherwise="b"),
        "and weights of powers of two end at 1000",
    ),
    "a language of text": (
        lambda: Circuit("c", N, "abc"),
        "the language of circuit 'c' is 'abc', and an InputLanguage",
    ),
    "an end in an array": (lambda: Circuit("c", N, EVERYTHING, end=np.array([1, 2])), "end is array([1, 2]) (ndarray)"),
    "an edge of None": (lambda: EVERYTHING.is_repeatable(None), "edge is None, and an integer is needed"),
    "an edge by name": (lambda: EVERYTHING.is_repeatable(""), "edge is '', and an integer is needed"),
    "an edge too far": (lambda: EVERYTHING.is_repeatable(2**70), "and it must be at most 0"),
    "keep everything": (lambda: interpret(SOME, [[0]], None, keep=True), "keep is True, and a list of the circuit's"),
    "a dtype of text": (lambda: interpret(SOME, [[0]], dtype="x"), "dtype of interpret is 'x', and it must be object"),
    "keep by name": (lambda: interpret(SOME, [[0]], keep="a"), "what is kept is 'a', and a stream is needed"),
    "keep another": (lambda: interpret(SOME, [[0]], keep=[is_b]), "keep holds is_b, and circuit 'some' has no such"),
    "inputs by name": (lambda: interpret(SOME, [[0]], "a"), "inputs is 'a', and a dict from numeric input to array"),
    "a cycle": (lambda: compile(_cycle()), "reads itself on a cycle"),
    "compile a stream": (lambda: compile(N), "what is compiled is <n: Int"),
    "an unknown target": (lambda: compile(over_abc("c", N), "mamba3"), "mamba, mamba2"),
    "no target": (lambda: compile(over_abc("c", N), None), "mamba, mamba2"),
    "an unknown dtype": (lambda: compile(over_abc("c", N), dtype="float8"), "float32, bfloat16, float16"),
    "a dtype in a list": (
        lambda: compile(over_abc("c", N), dtype=[]),
        "dtype [] is unknown; it must be one of float32",
    ),
    "a target in an array": (lambda: compile(over_abc("c", N), np.array([1, 2])), "array([1, 2]) is no target; there"),
    "a dtype of a machine": (
        lambda: compile(SOME, "fnn+ssm", np.array([1, 2])),
        "dtype = array([1, 2]) has no meaning",
    ),
    "bare of a circuit": (lambda: bare(over_abc("c", N)), "and what compile(circuit, target) returns is needed"),
    "model of a circuit": (lambda: language_model(over_abc("c", N)), "and what compile(circuit, target) returns"),
}


@pytest.mark.parametrize(("mistake", "words"), MISUSES.values(), ids=MISUSES)
def test_a_mistake_gets_one_sentence(mistake: Callable[[], object], words: str) -> None:
    one_sentence(mistake, words)


def test_what_a_user_may_well_write_is_accepted() -> None:
    """numpy's integers and flags, lists of tokens, iteration over lanes."""
    assert N.shift(np.int64(2)).operation.k == 2
    assert (np.array([[True]]) @ N).width == 1
    assert +N is N
    assert len(list(token)) == 3 and all(isinstance(lane, Stream) for lane in token)
    assert compile(over_abc("c", concatenate(CODE.retyped(Code(signs(3))), N.retyped(Real(1, 24))))).error_bound == 0
    assert Alphabet.of(k=np.int64(2)).tokens == ("k0", "k1")
    quotient, remainder = divmod(N, 3)
    assert (quotient.label, remainder.label) == ("n // 3", "n % 3")
    assert random_balanced(3, 2**20, 0).length == 2**20
    assert readout_one_hot(concatenate(is_a, is_b), ABC, ["a", "b"]).width == 3
    assert N.lookup({0: np.int64(3), 1: 4}).operation.table == (3, 4)
    for alike in (abc.is_in("a", "b"), abc.one_hot("a", "b")):
        assert [float(v) for v in alike.operation.table.toarray().sum(axis=1)] == [1.0, 1.0, 0.0], "both are tokens"


def test_a_reason_of_two_streams_on_a_line_is_told_once() -> None:
    with pytest.raises(CompileError) as caught:
        compile(over_abc("c", concatenate(constant(Fraction(1, 3)).relu(), constant(Fraction(1, 3)).relu())))
    assert len(caught.value.reasons) == 2
    assert str(caught.value).count("is no dyadic rational") == 1
