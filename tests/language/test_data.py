"""Circuits as data: the way there and back keeps everything, and nothing but a circuit is read."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from compiler.artifact.package import bare
from compiler.compiled import Compiled
from compiler.driver import compile
from compiler.interpreter import interpret
from compiler.language import operations as ops
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.codebook import balanced, bits
from compiler.language.data import DataError, from_data, language_from_data, language_to_data, to_data
from compiler.language.data.budget import EDGES
from compiler.language.data.matrices import LARGEST_LISTED, read_matrix, write_matrix
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.types import Int
from constructions.polynomials.count_in_row import CountInRow
from constructions.polynomials.linear_attention import Head, HeadOnMamba
from constructions.polynomials.polynomial_expression import parse_polynomial
from constructions.polynomials.polynomial_mamba import build_on_mamba
from constructions.selectivity.absolute_time import AbsoluteTime
from constructions.selectivity.haar import build_haar
from constructions.selectivity.induction_heads import InductionHeads
from constructions.selectivity.keep_nth import KeepNth
from constructions.selectivity.mqar import MQAR
from constructions.selectivity.with_position import KeepNthPosition
from tests.circuits import ABC, CASES, FILES, Case, abc, is_a, over_abc, token
from tests.json_places import places
from tests.spread import some


def _through_text(circuit: Circuit) -> Circuit:
    """The circuit written to JSON text and read back; its data stays the same."""
    data = to_data(circuit)
    again = from_data(json.loads(json.dumps(data, allow_nan=False)))
    assert to_data(again) == data
    return again


def _weights(circuit: Circuit, target: str, dtype: str = "float32") -> dict[str, bytes]:
    return _tensors(compile(circuit, target, dtype))


def _tensors(compiled: Compiled) -> dict[str, bytes]:
    return {name: t.numpy().tobytes() for name, t in bare(compiled).state_dict().items()}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_circuits_come_back_and_compile_to_the_same_weights(case: Case) -> None:
    circuit = case.build()
    again = _through_text(circuit)
    assert again.language == circuit.language
    assert [s.origin for s in again.streams] == [s.origin for s in circuit.streams]
    for target in case.targets:
        assert _weights(again, target) == _tensors(case.compiled(target))


CONSTRUCTIONS = [
    *(MQAR(kappa=3, vocab=5, write=write) for write in ("sum", "first", "last")),
    *(MQAR(kappa=3, vocab=5, arch=arch) for arch in ("mamba2", "s4d")),
    MQAR(kappa=3, vocab=5, guarantee="random"),
    *(InductionHeads(vocab=4, arch=arch) for arch in ("mamba", "mamba2", "mamba-delta-t")),
    *(KeepNth(vocab=4, arch=arch) for arch in ("mamba", "mamba2")),
    AbsoluteTime(vocab=4),
    CountInRow(),
]


@pytest.mark.parametrize("construction", CONSTRUCTIONS, ids=lambda c: f"{c.name}-{c.target}-{getattr(c, 'write', '')}")
def test_constructions_come_back_and_compile_to_the_same_weights(construction) -> None:
    circuit, dtype = construction.circuit(), construction.dtype
    again = _through_text(circuit)
    assert _weights(again, construction.target, dtype) == _weights(circuit, construction.target, dtype)


def _attention() -> Circuit:
    rng = np.random.default_rng(0)
    return HeadOnMamba(Head(*(rng.normal(size=(2, 2)) for _ in range(3))), 8).compiled.source


NUMERIC: dict[str, Callable[[], Circuit]] = {
    "haar": lambda: build_haar(2).compiled.source,
    "haar-bumps": lambda: build_haar(2, "bumps", orthonormal=False).compiled.source,
    "keep-nth": lambda: KeepNthPosition(2, 3).circuit(),
    "polynomial": lambda: build_on_mamba(parse_polynomial("x1**2*x2 - 3*x2 + 1/2")).compiled.source,
    "linear-attention": _attention,
}


@pytest.mark.parametrize("build", NUMERIC.values(), ids=NUMERIC)
def test_circuits_over_numbers_come_back(build: Callable[[], Circuit]) -> None:
    circuit = build()
    assert _weights(_through_text(circuit), "mamba") == _weights(circuit, "mamba")


def test_the_same_circuit_has_the_same_text() -> None:
    circuit = MQAR(kappa=3, vocab=5).circuit
    assert json.dumps(to_data(circuit())) == json.dumps(to_data(circuit()))


def test_source_files_stand_without_directories() -> None:
    data = to_data(over_abc("flag", is_a.shift(1)))
    assert {tuple(s["source"])[0] for s in data["streams"]} <= {*FILES, "test_data.py"}


def test_equal_codebooks_are_written_once() -> None:
    a, b = (abc.code(None, balanced(3), name) for name in "ab")
    data = to_data(over_abc("codes", a + b))
    assert len(data["codebooks"]) == 1
    assert [s["type"]["book"] for s in data["streams"] if s["type"]["kind"] == "Code"] == [0, 0]


def test_zeros_of_a_code_are_not_stored() -> None:
    """What is 0 has no entry, so equal columns of an embedding share a lane, before and after the way through data."""
    for stream in (abc.code(None, bits(3)), abc.number({"a": 0, "b": 2})):
        assert stream.operation.table.data.all()


# Matrices ------------------------------------------------------------------------------------------


def _random_matrix(rows: int, columns: int, seed: int) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    numerators = rng.integers(-(2**40), 2**40, (rows, columns)) * (rng.random((rows, columns)) < 0.5)
    return sparse.csr_array(numerators * 2.0**-30)


@pytest.mark.parametrize("rows", [1, 3, LARGEST_LISTED // 3])
def test_matrices_are_exact(rows: int) -> None:
    matrix = _random_matrix(rows, 5, rows)
    data = json.loads(json.dumps(write_matrix(matrix)))
    assert ("values" in data) == (rows > 1000)
    again = read_matrix(data, lambda entries: None)
    assert again.shape == matrix.shape and (again != matrix).nnz == 0


def test_a_matrix_beyond_64_bits_is_written_entry_by_entry() -> None:
    matrix = sparse.csr_array(np.tile([[2.0**90, 2.0**-90, 1 + 2.0**-52]], (LARGEST_LISTED, 1)))
    data = write_matrix(matrix)
    assert data["rows"][0] == [[0, 2**90], [1, f"1/{2**90}"], [2, f"{2**52 + 1}/{2**52}"]]
    assert (read_matrix(data, lambda entries: None) != matrix).nnz == 0


def test_a_scaled_identity_is_short() -> None:
    data = write_matrix(sparse.eye_array(50_000, format="csr") * 0.5)
    assert data == {"diagonal": "1/2", "size": 50_000}
    assert read_matrix(data, lambda entries: None).sum() == 25_000


@pytest.mark.parametrize(
    "rows", [[[1, 1], [0, 0]], [[0, 0], [1, 1]], [[1, 0], [0, 1]], [[2, 0], [0, 1]], [[0, 1], [1, 0]]]
)
def test_only_a_diagonal_is_written_as_one(rows) -> None:
    """A row of two entries beside an empty one has its columns in order, too: the table of a letter was lost so."""
    data = write_matrix(np.array(rows, dtype=float))
    assert (read_matrix(data, lambda entries: None).toarray() == np.array(rows)).all()


# Operations from outside ---------------------------------------------------------------------------


@dataclass(frozen=True)
class EveryNth(ops.Operation):
    """1 at every n-th position, times a factor; unknown to the package."""

    n: int
    factor: Fraction = Fraction(1)
    label: str | None = None

    def result_type(self, *inputs):
        return Int(0, None)

    def evaluate(self, x):
        steps = np.arange(1, x.shape[1] + 1)[None, :, None] % self.n == 0
        return (steps * x).astype(x.dtype)


def test_an_operation_from_outside_needs_no_entry() -> None:
    circuit = over_abc("every third", Stream(EveryNth(3, Fraction(5, 4), "third"), (is_a,)))
    again = _through_text(circuit)
    assert again.output.operation == circuit.output.operation
    words = np.zeros((1, 7), dtype=np.int64)
    assert (interpret(again, words)[again.output] == interpret(circuit, words)[circuit.output]).all()


def test_a_second_operation_of_a_name_is_refused() -> None:
    with pytest.raises(TypeError, match="has an operation Shift already; give this one another name"):

        class Shift(ops.Operation):
            pass


@dataclass(frozen=True)
class Opaque(EveryNth):
    thing: object = None


def test_an_attribute_without_a_data_form_is_named() -> None:
    circuit = over_abc("opaque", Stream(Opaque(3, thing=object()), (is_a,)))
    with pytest.raises(DataError, match=r"attribute 'thing' of Opaque has the type .*; use int, float, Fraction"):
        to_data(circuit)


# Languages -----------------------------------------------------------------------------------------


def test_languages_come_back() -> None:
    alphabet = Alphabet.of("_", k=3, v=4)
    edges = [("a", "b", "k", True), ("b", "a", ["v0", "v1", "v3"]), ("b", "b", ["_"])]
    language = InputLanguage.of(alphabet, "a", edges, 9, "pairs")
    data = language_to_data(language)
    assert data["language"]["edges"][1] == {"from": "b", "to": "a", "tokens": [[4, 5], [7, 7]], "distinct": False}
    assert data["language"]["tokens"] == 8 and data["language"]["start"] == "a" and data["length"] == 9
    assert language_from_data(json.loads(json.dumps(data)), alphabet) == language


# Hostile data --------------------------------------------------------------------------------------


def _example() -> dict:
    tokens = Tokens(ABC)
    code = tokens.code(None, bits(3))
    flag = (token.shift(1).sum() + code.sum() > 1) & is_a
    return to_data(over_abc("example", (2 * flag - tokens.number({"a": 3})).clip(-1, 2)))


def _set(path: list, value: object) -> dict:
    data = _example()
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return data


def _first(operation: str) -> int:
    return next(i for i, s in enumerate(_example()["streams"]) if s["operation"] == operation)


_COMPARED = {"operation": "Compare", "attributes": {"relation": "~"}}
MALFORMED = {
    "a list": ([], "it is a list, and an object with an entry 'version' is needed"),
    "version": (_set(["version"], 7), "the circuit has version 7, and this program reads version 1"),
    "no name": ({k: v for k, v in _example().items() if k != "name"}, "the entry 'name' is missing"),
    "extra": (_example() | {"more": 1}, "the entry 'more' is unknown"),
    "tokens": (_set(["alphabet"], ["a", 5]), "the alphabet must be a list of token names"),
    "twice": (_set(["alphabet"], ["a", "a"]), "token 'a' stands 2 times"),
    "groups": (_set(["groups"], [["g", 0, 9]]), "the group 'g' reaches beyond the 3 tokens"),
    "output": (_set(["output"], 99), "the output is stream 99"),
    "true": (_set(["output"], True), "the entry 'output' is True, and an integer is needed"),
    "unread": (_set(["output"], 0), "is not read on any way to the output"),
    "cycle": (_set(["streams", _first("Shift"), "inputs"], [_first("Shift")]), "it can read 0 to"),
    "operation": (_set(["streams", 0, "operation"], "Rm"), "the operation 'Rm' is unknown; import the module"),
    "inputs": (_set(["streams", _first("Shift"), "inputs"], []), "Shift cannot take 0 inputs of these types"),
    "type": (_set(["streams", _first("And"), "type", "width"], 2), "its type is Bool"),
    "kind": (_set(["streams", _first("Embed"), "type", "kind"], "Word"), "its type is"),
    "attribute": (_set(["streams", _first("Shift"), "attributes"], {}), "the attribute 'k' is missing"),
    "half": (
        _set(["streams", _first("Shift"), "attributes", "k"], "1/2"),
        "attribute 'k': it is '1/2', and an integer",
    ),
    "relation": (
        _set(["streams", _first("And")], _example()["streams"][_first("And")] | _COMPARED),
        "it is no Compare: relation '~' is unknown; it must be one of >, >=",
    ),
    "zero": (_set(["streams", _first("Constant"), "attributes", "values"], ["1/0"]), '"p/q" in lowest terms is needed'),
    "power": (_set(["streams", _first("Constant"), "attributes", "values"], ["1e999999999"]), '"p/q" in lowest terms'),
    "huge": (_set(["streams", _first("Constant"), "attributes", "values"], [1 << 9999]), "an integer of 10000 bits"),
    "ahead": (_set(["streams", _first("Shift"), "attributes", "k"], -1), "only the past can be read"),
    "source": (_set(["streams", 0, "source"], ["/home/me/x.py", 1]), "a file name without directories"),
    "language": (_set(["promise", "language", "tokens"], 4), "it is over 4 tokens, and the alphabet has 3"),
    "ranges": (_set(["promise", "language", "edges", 0, "tokens"], [[0, 10**9]]), "token ranges must rise"),
    "diagonal": (
        _set(["streams", _first("Linear"), "attributes", "matrices"], [{"diagonal": 1, "size": 10**12}]),
        "has 1000000000000 lanes or rows in one of its attributes, and there can be 1048576",
    ),
    "matrix": (
        _set(["streams", _first("Linear"), "attributes", "matrices"], [{"shape": [1, 3], "rows": [[[7, 1]]]}]),
        "it has an entry outside its 3 columns",
    ),
    "book": (_set(["codebooks"], []), "it is codebook 0, and there are 0"),
}


@pytest.mark.parametrize(("data", "words"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_data_is_refused_in_one_sentence(data: object, words: str) -> None:
    with pytest.raises(DataError) as caught:
        from_data(data)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


JUNK = [
    None,
    True,
    -1,
    0,
    2,
    10**7,
    10**30,
    0.5,
    float("nan"),
    "",
    "1/3",
    "Bool",
    "any",
    [],
    [[]],
    {},
    [1, 2],
    {"kind": "Int"},
]


def test_data_changed_anywhere_is_read_or_refused() -> None:
    """Thousands of circuits with one or two entries replaced: each is refused in a sentence, or is a circuit again."""
    example, draw = _example(), random.Random(0)
    inside = [path for path in places(example) if path]
    read = 0
    tried = some(range(3000), 0.0018)
    for _ in tried:
        data = copy.deepcopy(example)
        for path in draw.sample(inside, draw.choice((1, 1, 2))):
            place = data
            try:
                for key in path[:-1]:
                    place = place[key]
                place[path[-1]] = copy.deepcopy(draw.choice(JUNK))
            except (KeyError, IndexError, TypeError):
                continue  # the first change took the second one's place away
        try:
            again = from_data(data)
        except DataError as error:
            assert "\n" not in str(error)
        else:
            assert to_data(again) == data
            read += 1
    assert 0 < read < len(tried) / 3


def test_a_language_of_too_many_edges_is_not_read() -> None:
    data = to_data(InductionHeads().circuit())
    data["promise"]["language"]["edges"] *= EDGES + 1
    with pytest.raises(DataError, match=f"edges, and there can be {EDGES}"):
        from_data(data)
