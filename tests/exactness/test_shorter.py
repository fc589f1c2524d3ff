"""The length that a refusal names: only one that was tried."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile
from compiler.errors import CompileError, TooLong
from compiler.shorter import NONE, at_length, least_length, naming
from constructions.checkpoints.saved_circuit import SavedCircuit
from constructions.polynomials.count_in_row import CountInRow
from constructions.registry import CONSTRUCTIONS

LETTERS = Alphabet.of("a", "b")
REFUSAL = lambda guess: TooLong([(None, f"too large; {TooLong.SHORTER}")], lambda: guess)


def _named(longest: int, guess: int, promised: int, least: int = 1, width: int = 1) -> tuple[str, list[int]]:
    """What is said of a circuit that compiles from `least` to `longest`, and which lengths were tried."""
    wide = Alphabet.of("a", b=width)
    circuit = Circuit("any", Tokens(wide).one_hot(), InputLanguage.everything(wide, promised))
    asked = []

    def tried(length: int) -> None:
        asked.append(length)
        if length < least:
            raise ValueError(f"max_length is {length}, and {least} letters are needed")
        if length > longest:
            raise CompileError([(None, "it is too large")])

    return str(naming(REFUSAL(guess), circuit, tried)).removeprefix("too large; "), asked


@pytest.mark.parametrize("longest", [1, 7, 20, 251, 65_535])
@pytest.mark.parametrize("guess", [0, 1, 7, 199, 250, 65_535])
def test_a_length_that_is_named_was_tried_and_is_not_far_from_the_longest(longest: int, guess: int) -> None:
    said, asked = _named(longest, guess, 65_536)
    useless = ", but of use are smaller numbers" if longest == 1 else ""
    (length,) = map(int, re.fullmatch(f"a max_length of ([0-9]+) would fit{useless}", said).groups())  # type: ignore[union-attr]
    assert length in asked and 0.9 * longest <= length <= longest and len(asked) <= 12


def test_a_right_guess_takes_two_tries() -> None:
    assert _named(16, 16, 2**40) == ("a max_length of 16 would fit", [16, 17])


def test_where_nothing_is_tried_nothing_is_named() -> None:
    assert _named(16, 16, 1000, width=20_000) == (TooLong.SHORTER, [])


def test_where_no_length_does_this_is_said() -> None:
    """Because length 1 is refused, or since all that are not are too short for the task."""
    assert _named(0, 199, 65_536)[0] == _named(20, 7, 81, least=81)[0] == NONE
    assert _named(60, 7, 81, least=40)[0] == "a max_length of 60 would fit"


class _Long(CountInRow):
    """Whose circuit would compile for less, and which has none for less."""

    def circuit(self) -> Circuit:
        if self.max_length < 65_536:
            raise ValueError(f"max_length is {self.max_length}, and 65536 is the least")
        return super().circuit()


def test_a_length_for_which_the_construction_has_no_circuit_is_not_named() -> None:
    with pytest.raises(CompileError, match=NONE):
        _Long(largest=5, dtype="bfloat16").compiled()


def test_a_circuit_of_a_file_is_tried_for_other_lengths() -> None:
    construction = CONSTRUCTIONS["count-in-row"](largest=5, dtype="bfloat16")
    with pytest.raises(CompileError, match="a max_length of 2[45][0-9] would fit"):
        SavedCircuit(construction.circuit(), "mamba", dtype="bfloat16").compiled()


@pytest.mark.parametrize(
    ("name", "arch", "dtype", "sizes"),
    [
        ("count-in-row", "mamba", "float16", {"largest": 5}),
        ("count-in-row", "mamba2", "bfloat16", {"largest": 5}),
        ("count-in-row", "mamba2", "float16", {"largest": 5}),
        ("in-context-recall", "mamba", "float16", {"vocab": 8, "max_length": 2048}),
    ],
)
def test_a_construction_of_the_length_that_its_refusal_names_is_built(name, arch, dtype, sizes) -> None:
    """Another length is another circuit, which is planned otherwise, and refused for other reasons."""
    construction = CONSTRUCTIONS[name](**sizes, arch=arch, dtype=dtype)
    with pytest.raises(CompileError) as refusal:
        construction.compiled()
    found = set(re.findall("a max_length of ([0-9]+) would fit", str(refusal.value)))
    if (name, arch, dtype) == ("count-in-row", "mamba2", "float16"):  # no state fits there, however short
        assert not found and NONE in str(refusal.value)
        with pytest.raises(CompileError, match="is kept in a state"):
            replace(construction, max_length=1).compiled()
        return
    (length,) = map(int, found)
    construction.tried()(length)
    assert name != "count-in-row" or length >= 240


def test_no_length_is_named_with_which_the_construction_is_refused() -> None:
    """keep-nth is run on 300 tokens here: a promise of 299 would compile, and the command takes none below 300."""
    with pytest.raises(CompileError, match="a max_length of 300 would fit"):
        CONSTRUCTIONS["keep-nth"](n=300, vocab=3, dtype="bfloat16").compiled()


def test_a_length_that_its_tasks_do_not_have_is_not_named() -> None:
    """One token would fit, and no sequence of the task is so short."""
    construction = CONSTRUCTIONS["in-context-recall"](vocab=8, max_length=2048, arch="mamba2", dtype="float16")
    with pytest.raises(CompileError, match=NONE):
        construction.compiled()
    for length in (1, 2, 8, 128):
        with pytest.raises(ValueError):
            construction.tried()(length)


LOOP = [("go", "go", "a"), ("go", "asked", "b"), ("asked", "told", "a"), ("told", "told", "a")]


@pytest.mark.parametrize(
    ("edges", "asked", "end", "least"),
    [
        ([("go", "go", "a"), ("go", "go", "b")], "", None, 1),
        (LOOP, "", None, 1),
        (LOOP, "asked", None, 1),
        (LOOP, "asked", "a", 1),
        ([("go", "one", "a"), ("one", "two", "a"), ("two", "two", "b")], "two", None, 2),
        ([("go", "one", "a"), ("one", "two", "a"), ("two", "two", "b")], "two", "b", 3),
        ([("go", "one", "a"), ("one", "go", "a")], "", "b", 1),
        ([("go", "one", []), ("one", "one", "b"), ("go", "two", "a"), ("two", "one", "a")], "", "b", 3),
    ],
)
def test_how_short_a_whole_sequence_may_be(edges: list, asked: str, end: str | None, least: int) -> None:
    language = InputLanguage.of(LETTERS, "go", edges, 9, "any", asked)
    assert least_length(language, end) == least
    circuit = Circuit("any", Tokens(LETTERS).one_hot(), language, end=end)
    assert at_length(circuit, least).max_length == least
    if least > 1:
        with pytest.raises(ValueError, match=f"the shortest sequence that is whole has {least} tokens"):
            at_length(circuit, least - 1)


@pytest.mark.parametrize("name", ["shortest-path", "viterbi", "edit-distance"])
def test_compile_names_no_length_in_which_nothing_can_be_whole(name: str) -> None:
    """The circuit alone says that a chain ends with a letter, and how soon that may come."""
    sizes: dict = {"nodes": 5, "lengths": 3} if name == "shortest-path" else {"length": 40}
    circuit = CONSTRUCTIONS[name](**sizes, dtype="bfloat16").circuit()
    least = least_length(circuit.token_language, circuit.end)
    with pytest.raises(CompileError, match="max_length") as refusal:
        compile(circuit, "mamba2", "bfloat16")
    named = list(map(int, re.findall("a max_length of ([0-9]+) would fit", str(refusal.value))))
    assert least > 3 and (all(length >= least for length in named) if named else NONE in str(refusal.value))
