"""A circuit over numbers as a checkpoint: the same model after loading, and every change of a file is found."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import compiler
from compiler import (
    Bool,
    Circuit,
    CompileError,
    Int,
    OneHot,
    Real,
    concatenate,
    constant,
    dot,
    fading_sum,
    latch_bank,
    numbers,
)
from compiler.analysis.domains import Domains
from compiler.artifact import CheckpointError
from compiler.artifact.artifact import REACHES, Artifact, error_bounds
from compiler.artifact.compare import differences
from compiler.artifact.files import CARD, GRAPH, MANIFEST, NUMBERS_FILES
from compiler.artifact.load import load_over_tokens
from compiler.artifact.manifest import sealed
from compiler.artifact.numbers_config import NumberInput
from compiler.artifact.numeric import NumericStack, _record, numeric_stack
from compiler.language.words import minimum

X, N, PLACE = numbers(Real(-8, 8, 2), "x"), numbers(Int(-9, 9), "n"), numbers(OneHot(4), "position")
CIRCUITS = {
    "product": dot(X, X) * N,
    "exact": N.cumsum() * N,
    "bank": latch_bank(concatenate(X, N), PLACE),
    "linear": 3 * X.shift(2) - 1,
    "halved": fading_sum(N, 0.5),
}


def compiled(name: str, target: str = "mamba"):
    return compiler.compile(Circuit(name, CIRCUITS[name], length=4), target)


def values(made, seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    drawn = {"x": rng.uniform(-8, 8, (5, 4, 2)).astype(np.float32), "n": rng.integers(-9, 10, (5, 4, 1))}
    names = {record.name for record in numeric_stack(made).inputs}
    return {name: array for name, array in drawn.items() if name in names}


def reseal(directory: Path) -> None:
    """What an attacker does who knows how checkpoints are sealed."""
    content = sealed(json.loads((directory / MANIFEST).read_text()), directory)
    (directory / MANIFEST).write_text(json.dumps(content, sort_keys=True, indent=2, ensure_ascii=False) + "\n")


@pytest.mark.parametrize("name", CIRCUITS)
def test_a_saved_model_gives_the_same_numbers(name: str, tmp_path: Path) -> None:
    made = compiled(name)
    made.save(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {MANIFEST, CARD, GRAPH, *NUMBERS_FILES}
    loaded = compiler.load(tmp_path / "out")
    assert np.array_equal(loaded.run(values(made)), numeric_stack(made).run(values(made)))
    assert loaded.manifest.promise.inputs == list(loaded.inputs)
    assert differences(tmp_path / "out", Artifact.of(made)) == []


def test_more_positions_than_promised_are_refused(tmp_path: Path) -> None:
    made = compiled("exact")
    made.save(tmp_path / "out")
    for model in (compiler.load(tmp_path / "out"), numeric_stack(made)):
        with pytest.raises(ValueError, match="the inputs have 5 positions, and the promise is for at most 4"):
            model.run({"n": np.zeros((1, 5, 1))})


def test_an_exact_circuit_on_mamba2_lives_on(tmp_path: Path) -> None:
    made = compiler.compile(Circuit("sum", N.cumsum(), length=4), "mamba2")
    made.save(tmp_path / "out")
    loaded = compiler.load(tmp_path / "out")
    assert loaded.manifest.promise.level == "bit-exact"
    n = values(made)["n"]
    assert np.array_equal(loaded.run({"n": n}), n.cumsum(axis=1))


def test_the_same_circuit_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        compiled("product").save(tmp_path / name)
    for name in (*NUMBERS_FILES, CARD, GRAPH, MANIFEST):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_changed_weight_is_found_even_if_sealed_again(tmp_path: Path) -> None:
    made = compiled("product")
    made.save(tmp_path / "out")
    weights = tmp_path / "out" / "model.safetensors"
    tensors = load_file(weights)
    tensors["head.weight"][0, -1] += 2.0**-20
    save_file(tensors, weights, metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match="damaged"):
        compiler.load(tmp_path / "out")
    reseal(tmp_path / "out")
    compiler.load(tmp_path / "out")
    assert differences(tmp_path / "out", Artifact.of(made)) == ["its weights head.weight differ"]


@pytest.mark.parametrize("path", [("promise", "length"), ("promise", "error_bound"), ("sizes", "d_inner")])
def test_a_changed_claim_is_found(path: tuple[str, str], tmp_path: Path) -> None:
    made = compiled("product")
    made.save(tmp_path / "out")
    manifest = tmp_path / "out" / MANIFEST
    content = json.loads(manifest.read_text())
    content[path[0]][path[1]] = content[path[0]][path[1]] / 2 if path[1] == "error_bound" else 3
    manifest.write_text(json.dumps(content))
    reseal(tmp_path / "out")
    (found,) = differences(tmp_path / "out", Artifact.of(made))
    assert ".".join(path) in found


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"mixer": "s4d"}, "mixer"),
        ({"blocks": [{}]}, "another d_model"),
        ({"outputs": 0}, "outputs"),
        ({"d_model": 1 << 40}, "d_model"),
        ({"inputs": []}, "inputs stand"),
        ({"auto_map": {}}, "auto_map"),
        ({"blocks": [{"d_model": 8}] * 1000}, "2000 layers"),
    ],
)
def test_a_hostile_config_is_refused(change: dict, reason: str, tmp_path: Path) -> None:
    compiled("product").save(tmp_path / "out")
    path = tmp_path / "out" / "config.json"
    config = json.loads(path.read_text())
    if reason == "2000 layers":
        change = {"blocks": config["blocks"] * 1000}
    path.write_text(json.dumps(config | change))
    reseal(tmp_path / "out")
    with pytest.raises(CheckpointError, match=reason):
        compiler.load(tmp_path / "out")


def test_what_has_no_saved_form_is_refused_in_a_sentence(tmp_path: Path) -> None:
    twice = numbers(Int(0, 3), "n") + numbers(Int(0, 3), "n")
    with pytest.raises(CompileError, match="two of its inputs are called 'n'"):
        compiler.compile(Circuit("twice", twice, length=4)).save(tmp_path / "out")
    with pytest.raises(CompileError, match="compile it for mamba"):
        compiler.compile(Circuit("sum", N.cumsum(), length=4), "mamba-delta-t").save(tmp_path / "out")


def test_values_are_given_by_name(tmp_path: Path) -> None:
    compiled("bank").save(tmp_path / "out")
    loaded = compiler.load(tmp_path / "out")
    x, n = np.ones((1, 4, 2)), np.ones((1, 4, 1))
    places = np.eye(4)[None]
    assert np.array_equal(loaded.run({"x": x, "n": n}), loaded.run({"x": x, "n": n, "position": places}))
    with pytest.raises(ValueError, match="there is no numeric input 'y'; the inputs are x, n, position"):
        loaded.run({"y": x})
    with pytest.raises(ValueError, match="'n' has no values"):
        loaded.run({"x": x})
    with pytest.raises(ValueError, match="must be an integer from -9 to 9"):
        loaded.run({"x": x, "n": n / 2})
    with pytest.raises(ValueError, match=r"'x' has the shape \(1, 4, 1\), and \(1, 4, 2\) is needed"):
        loaded.run({"x": n, "n": n})
    for few in (x[0], x[0, 0], x[None]):
        with pytest.raises(ValueError, match=r"and \(sequences, positions, 2\) is needed"):
            loaded.run({"x": few, "n": n})


def test_values_under_a_key_that_is_no_input_are_refused(tmp_path: Path) -> None:
    """An input called "position" counts by itself where it has no values: so it did beside values of another key."""
    place = numbers(Int(0, 9), "position")
    made = compiler.compile(Circuit("sum", N + 10 * place, length=4))
    made.save(tmp_path / "out")
    stack, loaded, five = numeric_stack(made), compiler.load(tmp_path / "out"), np.full((1, 3, 1), 5)
    rest = {"n": five}
    assert (stack.run({N: five, place: five}) == 55).all() and (loaded.run(rest | {"position": five}) == 55).all()
    for model, key in [(loaded, place), (stack, numbers(Int(0, 9), "position")), (loaded, None), (loaded, 7)]:
        with pytest.raises(ValueError, match="there is no numeric input .*; the inputs are n, position"):
            model.run({**rest, key: five})
    with pytest.raises(ValueError, match="'position' is given twice, by its name and by its stream"):
        stack.run({N: five, place: five, "position": five})
    for odd in (5, None, [five]):
        with pytest.raises(TypeError, match="a dict from numeric input to array is needed"):
            loaded.run(odd)
    for dtype in (torch.bfloat16, torch.int8, torch.float64):
        held = torch.full((1, 3, 1), 5, dtype=dtype, requires_grad=dtype.is_floating_point)
        assert (loaded.run({"n": held, "position": held}) == 55).all()


def test_more_digits_than_float64_holds_are_told_as_they_are() -> None:
    near = np.full((1, 1, 1), 1, np.longdouble) + np.finfo(np.longdouble).eps
    if near == near.astype(np.float64):
        pytest.skip("longdouble is float64 here")
    with pytest.raises(ValueError, match=r"holds 1\.0*1\d*, which float64 does not"):
        numeric_stack(compiler.compile(Circuit("sum", N.cumsum(), length=4))).run({N: near})
    with pytest.raises(CompileError, match=r"its value 1\.00000000000000011\d* has more than 53 bits"):
        compiler.compile(Circuit("near", Fraction(2**53 + 1, 2**53) - N, length=4))


def test_a_mamba2_of_several_groups_is_saved_and_loaded(tmp_path: Path) -> None:
    made = compiler.compile(Circuit("sum", N.cumsum(), length=4), "mamba2", n_groups=2)
    made.save(tmp_path / "out")
    given = {"n": np.arange(-4, 4).reshape(2, 4, 1)}
    assert (compiler.load(tmp_path / "out").run(given) == given["n"].cumsum(axis=1)).all()


@pytest.mark.parametrize(("kind", "least"), [(Real(5, 600), 5), (Real(-600, -5, 2), 5), (Real(-8, 600), 0)])
def test_no_bound_is_told_of_inputs_that_are_smaller_than_any(kind: Real, least: float) -> None:
    told = error_bounds(compiler.compile(Circuit("square", dot(x := numbers(kind, "x"), x), length=4)))
    assert [size for size, _ in told] == [size for size in (*REACHES, 600.0) if least <= size <= 600]


EXAMPLES = [Int(2, 9), Real(-3.5, -0.5, 2), Int(-3, 3), OneHot(3), Real(1 / 3, 5, gap=0.25)]
EXAMPLES += [Real(0.25, 5, gap=0.5), Real(-5, -0.25, gap=0.5), Real(-5, 0.25, gap=0.5)]


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_example_of_the_card_runs(kind: Int | Real | OneHot, tmp_path: Path) -> None:
    compiler.compile(Circuit("sum", numbers(kind, "x").cumsum(), length=2)).save(tmp_path / "out")
    example = re.findall("```python\n(.*?)```", (tmp_path / "out" / CARD).read_text(), re.DOTALL)[0]
    exec(example.replace("DIRECTORY", str(tmp_path / "out")), {})


@pytest.mark.parametrize(("name", "told"), [("x", False), ("position", True)])
def test_a_position_is_told_of_where_it_is_an_input(name: str, told: bool, tmp_path: Path) -> None:
    compiler.compile(Circuit("sum", numbers(Int(1, 9), name).cumsum(), length=2)).save(tmp_path / "out")
    assert ("An input called `position` may be left out" in (tmp_path / "out" / CARD).read_text()) == told


@pytest.mark.parametrize(
    "lo, hi, said",
    [
        (-(2.0**24), 2.0**24, "an integer from -16777216 to 16777216"),
        (0.0, 1.0, "an integer from 0 to 1"),
        (-(2.0**24), 2.0**100, "an integer from -16777216 to 2^100"),
        (-(2.0**24), 3 * 2.0**100, "an integer from -16777216 to 3.80295e+30"),
        (None, 1234567.0, "an integer from -2^62 to 1234567"),
    ],
)
def test_bounds_of_integers_are_shown_whole(lo: float | None, hi: float, said: str) -> None:
    assert NumberInput("x", True, lo, hi, [0]).kind == said


WEIGHTS = np.array([[2.0**23 - 1, -3, -5, -7]])


def picked(kind=None):
    """2^23 − 1, −3, −5 or −7: exact where one of them is picked, and not where they are added up in another order."""
    return compiler.compile(Circuit("picked", WEIGHTS @ numbers(kind or OneHot(4), "p"), length=4))


def test_an_input_that_is_no_one_hot_is_refused(tmp_path: Path) -> None:
    """(1, 1, 0, 1) gave 25165812 beside a circuit of … 25165813, and a promise of bits."""
    made = picked()
    made.save(tmp_path / "out")
    for model in (compiler.load(tmp_path / "out"), numeric_stack(made)):
        assert str(model.inputs[0]) == "p: 4 numbers, one-hot or all 0"
        rows = np.vstack([np.eye(4)[:3], np.zeros(4)])[None]
        assert np.array_equal(model.run({"p": rows})[0, :, 0], [*WEIGHTS[0, :3], 0])
        for wrong, found in (
            ((1, 1, 0, 1), "has a 1 in lanes 0, 1, 3"),
            ((0, 2, 0, 0), "2, and"),
            ((-1, 1, 1, 0), "-1"),
        ):
            rows[0, 2] = wrong
            with pytest.raises(ValueError, match=f"'p' .*{found}.* it must be one-hot or all 0"):
                model.run({"p": rows})
    said = json.loads((tmp_path / "out" / MANIFEST).read_text())["promise"]
    assert said["description"] == "p: 4 numbers, one-hot or all 0" and said["inputs"][0]["one_hot"] is True
    assert "p: 4 numbers, one-hot or all 0" in (tmp_path / "out" / CARD).read_text()


@pytest.mark.parametrize("kind", [Bool(4), Int(0, 1, 4)])
def test_several_flags_are_no_one_hot(kind) -> None:
    model = numeric_stack(compiler.compile(Circuit("sum", numbers(kind, "p").sum(), length=4)))
    assert str(model.inputs[0]) == "p: 4 numbers, each an integer from 0 to 1" and model.inputs[0].one_hot is False
    assert model.run({"p": np.ones((1, 2, 4))}).ravel().tolist() == [4, 4]


KINDS = [Bool(), Bool(3), OneHot(1), OneHot(3), Int(-2, 5), Int(0, 1, 3), Int(0, None), Int(None, 4, 2)]
KINDS += [Int(), Real(-1.5, 2, 2), Real(), Real(None, 3), Real(-1, 1, gap=1 / 64)]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_an_input_may_be_all_that_the_compiler_takes_it_for_and_nothing_else(kind) -> None:
    """The record, which the model checks and the promise prints, beside the domain, on which exactness rests."""
    stream = numbers(kind, "n")
    domain = Domains(None, 4).of(stream)
    record = _record(stream, [0] * stream.width)
    low, high = (np.full(stream.width, float(end)) for end in (record.least, record.most))
    assert np.array_equal(domain.low, np.minimum(low, 0)) or np.array_equal(domain.low, low)
    assert np.array_equal(domain.high, np.maximum(high, 0)) or np.array_equal(domain.high, high)
    assert (domain.step == 1) == record.integral
    size = np.maximum(np.abs(low), np.abs(high)).sum()
    assert float(domain.l1) == (1 if record.one_hot else size)


@pytest.mark.parametrize("kind", [Int(0, None), Int(0, None, 2)])
def test_an_open_bound_is_2_to_the_62(kind) -> None:
    """1e39 is no float32: the model gave NaN beside a promise of bits."""
    model = numeric_stack(compiler.compile(Circuit("late", numbers(kind, "n") >= 3, length=4)))
    lanes = np.ones((1, 1, kind.width))
    assert model.run({"n": 2.0**62 * lanes}).ravel().tolist() == [1] * kind.width
    for beyond in (2.0**63, 1e39):
        with pytest.raises(ValueError, match=r"'n' holds .*, and it must be an integer from 0 to 2\^62"):
            model.run({"n": beyond * lanes})


def changed(directory: Path, **entries) -> None:
    """config.json and the promise with other entries of their first input, sealed again; None: without it."""
    for name in ("config.json", MANIFEST):
        content = json.loads((directory / name).read_text())
        record = (content["promise"] if name == MANIFEST else content)["inputs"][0]
        record.update(entries)
        for gone in [key for key, value in record.items() if value is None]:
            del record[gone]
        (directory / name).write_text(json.dumps(content))
    reseal(directory)


def test_flags_of_an_earlier_version_are_refused(tmp_path: Path) -> None:
    """Which did not say whether they were one-hot."""
    for made, name in (
        (picked(), "one"),
        (compiler.compile(Circuit("sum", numbers(Bool(2), "p").sum(), length=4)), "two"),
    ):
        made.save(tmp_path / name)
        changed(tmp_path / name, one_hot=None)
        with pytest.raises(CheckpointError, match="input 'p' does not say whether it is one-hot.* build it again"):
            compiler.load(tmp_path / name)


def test_a_one_hot_that_is_said_to_be_none_is_found(tmp_path: Path) -> None:
    made = picked()
    made.save(tmp_path / "out")
    changed(tmp_path / "out", one_hot=False)
    compiler.load(tmp_path / "out")
    assert any("one_hot" in found or "inputs" in found for found in differences(tmp_path / "out", Artifact.of(made)))
    changed(tmp_path / "out", one_hot=True, hi=2)
    with pytest.raises(CheckpointError, match="has an entry one_hot, and its numbers are no flags"):
        compiler.load(tmp_path / "out")


def test_a_model_over_numbers_writes_no_tokens(tmp_path: Path) -> None:
    compiled("exact").save(tmp_path / "out")
    with pytest.raises(CheckpointError, match="holds a model over numbers, and only one over tokens writes"):
        compiler.generate(tmp_path / "out", "a")
    with pytest.raises(CheckpointError, match="one over tokens is needed"):
        load_over_tokens(tmp_path / "out")


def _pair(first: str = "n", second: str = "m") -> NumericStack:
    n, m = numbers(Int(-8, 8), first), numbers(Int(-8, 8), second)
    return numeric_stack(compiler.compile(Circuit("pair", n - 2 * m, length=3)))


ONES = np.ones((1, 3, 1))
HALF = np.full((1, 3, 1), Fraction(1, 2), dtype=object)
NEARLY = np.full((1, 3, 1), 1 + Fraction(1, 2**60), dtype=object)  # the nearest float64 is 1
NO_NUMBERS: dict[str, tuple[object, str]] = {
    "halves": (HALF, "must be an integer from -8 to 8"),
    "nearly integers": (NEARLY, f"holds {1 + Fraction(1, 2**60)}, and it must be an integer from -8 to 8"),
    "more digits": ([[[2**63 + 1]] * 3], "holds 9223372036854775809, and it must be an integer from -8 to 8"),
    "beyond float64": (np.full((1, 3, 1), 10**400, dtype=object), "holds a number beyond float64"),
    "complex": (ONES + 2j, "has entries of dtype complex128, and real numbers are needed"),
    "complex objects": ((ONES + 2j).astype(object), "has complex entries, and real numbers are needed"),
    "texts": (ONES.astype(str), "and real numbers are needed"),
    "texts in objects": (ONES.astype(str).astype(object), "has str entries, and real numbers are needed"),
    "times": (ONES.astype("timedelta64[s]"), "and real numbers are needed"),
    "nothing": (np.full((1, 3, 1), None), "has NoneType entries, and real numbers are needed"),
    "masked": (np.ma.masked_equal(ONES, 1), "is a masked array, and every number is needed"),
    "masked in a list": ([np.ma.masked_equal(ONES[0], 1)], "is a masked array, and every number is needed"),
    "one masked in lists": ([[[1.0], [np.ma.masked], [1.0]]], "is a masked array, and every number is needed"),
    "meta": (torch.ones(1, 3, 1, device="meta"), "is a meta tensor, and one that holds every number is needed"),
    "sparse": (torch.ones(1, 3, 1).to_sparse(), "is a sparse_coo tensor"),
    "meta in a list": ([[torch.ones(1, device="meta")] * 3], "is a meta tensor"),
    "a long fraction": (np.full((1, 3, 1), Fraction(3**9999, 2**15848), dtype=object), "holds a fraction near 1.0"),
    "ragged": ([[[1], [1, 2], [1]]], "has rows of different lengths"),
    "no sequences": (ONES[:0], "no sequences, and at least one is needed"),
    "no positions": (ONES[:, :0], "no positions, and at least one is needed"),
}


@pytest.mark.parametrize("case", NO_NUMBERS)
def test_what_holds_no_numbers_is_refused_in_a_sentence(case: str) -> None:
    values, reason = NO_NUMBERS[case]
    with pytest.raises(ValueError, match=reason):
        _pair().run({"n": values, "m": values})


def test_numbers_of_any_kind_are_taken() -> None:
    whole = [[[2], [0], [-3]]]
    for kind in (np.int8, np.int64, np.float16, np.float32, object, bool):
        n = np.array(whole).astype(kind)
        out = _pair().run({"n": n, "m": np.array([[[1], [1], [Fraction(4, 2)]]], dtype=object)})
        assert out.ravel().tolist() == [int(n[0, 0, 0]) - 2, int(n[0, 1, 0]) - 2, int(n[0, 2, 0]) - 4]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_quantized_tensor_is_refused() -> None:
    quantized = torch.quantize_per_tensor(torch.ones(1, 3, 1), 1.0, 0, torch.qint8)
    with pytest.raises(ValueError, match="is a quantized tensor, and one that holds every number is needed"):
        _pair().run({"n": quantized, "m": quantized})


def test_lists_of_tensors_are_taken() -> None:
    one = torch.ones(1)
    for entry in (one.bfloat16(), one.half(), one.int(), one.requires_grad_(), one.detach()):
        assert _pair().run({"n": [[entry, 3 * entry]], "m": [one.detach().expand(2, 1)]}).ravel().tolist() == [-1, 1]


def test_an_input_that_is_named_anew_is_not_given_twice() -> None:
    n = numbers(Int(-8, 8), "n")
    stack = numeric_stack(compiler.compile(Circuit("one", 2 * n, length=3)))
    n.named("r")
    assert (stack.run({n: ONES}) == 2).all()
    with pytest.raises(ValueError, match="'n' is given twice, by its name and by its stream"):
        stack.run({n: ONES, "n": 0 * ONES})


def test_a_model_without_inputs_says_so() -> None:
    stack = numeric_stack(compiler.compile(Circuit("three", 3 * constant(1), length=3)))
    with pytest.raises(ValueError, match="there is no numeric input 'x'; the model has no input"):
        stack.run({"x": ONES})


def test_a_large_integer_is_not_rounded() -> None:
    n = numbers(Int(0, None), "n")
    stack = numeric_stack(compiler.compile(Circuit("least", minimum(n, 5), length=1)))
    with pytest.raises(ValueError, match="holds 9007199254740993, which float64 does not"):
        stack.run({"n": np.array([[[2**53 + 1]]])})


def test_a_shape_is_of_sequences_and_positions() -> None:
    for shape in ((1, 1, 7), (3,), ("a", 1)):
        with pytest.raises(ValueError, match=r"and \(sequences, positions\) is needed"):
            _pair().run({}, shape)


def test_a_name_of_two_inputs_is_refused() -> None:
    stack = _pair("x", "x")
    with pytest.raises(ValueError, match="2 numeric inputs are called 'x'; give each by its stream"):
        stack.run({"x": ONES})
