"""The fuzzer itself, and some hundred of its programs."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

from compiler import CompileError
from tests.fuzz import report
from tests.fuzz.__main__ import main
from tests.fuzz.device import SECONDS
from tests.fuzz.generate import MORE, PARTLY, SCALED, generate
from tests.fuzz.kinds import FLAG, INT, REAL, Draw, Kind, Matrix, Written
from tests.fuzz.language import Language, continued, everything, sequences
from tests.fuzz.program import Node, Program
from tests.fuzz.run import (
    DTYPES,
    FORMS,
    TARGETS,
    Expected,
    classified,
    difference,
    expectations,
    outcomes,
    refusal,
)
from tests.fuzz.words import WORDS
from tests.spread import some

ABC = ("a", "b", "c")


def test_a_number_stays_the_number_of_its_program() -> None:
    """docs/trust.md counts programs by their numbers: what is added to the generator has numbers of its own."""
    starts = (1_000_000, MORE, PARTLY, SCALED)
    drawn = "\n".join(generate(start + 101 * k).text() for start in starts for k in range(12))
    assert hashlib.sha256(drawn.encode()).hexdigest()[:16] == "e9355f08d5cb3ef7"


def program(*lines: tuple, outputs: tuple[int, ...] | None = None, max_length: int = 6) -> Program:
    """A program of (word, inputs, parameters, kind) lines over a, b, c; the last line is read."""
    nodes = tuple(Node(*line) for line in lines)
    return Program(Language(ABC, everything(ABC), max_length), nodes, outputs or (len(nodes) - 1,))


NUMBER = ("number", (), {"values": {"a": 2, "b": -1}}, INT)
IS_C = ("is_in", (), {"members": ["c"]}, FLAG)
SYMBOL = ("one_hot", (), {"members": list(ABC)}, Kind("symbol", 3))


@pytest.mark.parametrize(
    ("targets", "dtypes", "forms", "seeds"),
    [
        (("mamba",), ("float32",), ("bare",), range(80)),
        (("mamba2",), ("float32",), ("bare",), range(160, 190)),
        (TARGETS, DTYPES, ("bare",), range(220, 225)),
        (("mamba", "mamba2"), ("float32", "bfloat16"), FORMS, range(230, 233)),
        (("mamba", "mamba2"), ("float32",), ("bare",), range(MORE, MORE + 30)),
        (("mamba", "mamba2"), ("float32",), ("language model",), range(SCALED, SCALED + 20)),
    ],
)
def test_programs_are_exact_or_refused(targets, dtypes, forms, seeds):
    seeds = some(seeds, 0.06 * len(targets) * len(dtypes) * len(forms), least=2)
    found = report.fuzz(seeds, targets, dtypes, forms)
    assert found.failures == []
    assert found.compiled > len(seeds) / 2  # mostly refusals would show little


def test_a_seed_is_a_program():
    assert [generate(seed).text() for seed in range(20)] == [generate(seed).text() for seed in range(20)]
    assert len({generate(seed).text() for seed in range(20)}) == 20


def test_every_word_is_met():
    seeds = [*range(3000), *range(MORE, MORE + 1000)]
    met = {node.word for seed in seeds for node in generate(seed).nodes}
    assert met == set(WORDS)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("lines", "word", "values"),
    [
        ((NUMBER, ("shift", (0,), {"k": 2}, INT)), "abca", [0, 0, 2, -1]),
        ((NUMBER, ("cumsum", (0,), {}, INT)), "abca", [2, 1, 1, 3]),
        ((NUMBER, IS_C, ("latch", (0, 1), {}, INT)), "acbc", [0, 0, 0, 0]),
        ((NUMBER, ("position", (), {}, INT), IS_C, ("latch", (1, 2), {}, INT)), "acbc", [0, 2, 2, 4]),
        ((NUMBER, ("position", (), {}, INT), IS_C, ("latch first", (1, 2), {}, INT)), "acbc", [0, 2, 2, 2]),
        ((NUMBER, IS_C, ("running_max", (0, 1), {}, INT)), "acb", [0, 0, 0]),
        ((NUMBER, ("> number", (0,), {"k": 1}, FLAG), IS_C, ("count", (1, 2), {}, INT)), "aacab", [1, 2, 0, 1, 1]),
        ((NUMBER, ("lookup", (0,), {"table": [5, 6, 7]}, INT)), "abc", [7, 0, 5]),
        ((NUMBER, SYMBOL, ("memory", (1, 0, 1), {}, INT)), "aabca", [2, 4, -1, 0, 6]),
        ((("position", (), {}, INT), SYMBOL, ("memory first", (1, 0, 1), {}, INT)), "abab", [1, 2, 1, 2]),
        ((("position", (), {}, INT), SYMBOL, ("memory last", (1, 0, 1), {}, INT)), "abab", [1, 2, 3, 4]),
        ((NUMBER, ("fading_sum", (0,), {"decay": 0.5}, REAL)), "abc", [2, 0, 0]),
        ((NUMBER, SYMBOL, ("fading memory", (1, 0, 1), {"decay": 0.5}, REAL)), "aba", [2, -1, 2.5]),
        ((NUMBER, IS_C, ("exceeds", (0, 1), {"gap": 3}, REAL)), "abc", [1, 0, 0]),
        ((NUMBER, IS_C, ("differs", (0, 1), {"gap": 4}, REAL)), "abc", [0.5, 0.25, 0.25]),
        ((NUMBER, IS_C, ("choose", (0, 1, 0), {"gap": 2}, REAL)), "abc", [0, -0.75, 0.5]),
    ],
)
def test_meanings(lines, word, values):
    assert program(*lines).meaning(tuple(word)) == [(value,) for value in values]


def test_a_weight_that_is_flushed_is_found(monkeypatch):
    """A planted error: nobody asks whether every backend holds the weights."""
    monkeypatch.setattr("compiler.artifact.package._check_representable", lambda *_: None)
    (failure,) = report.fuzz([9_000_238], ["mamba2"], ["float32"], ["bare"]).failures
    assert failure["verdict"] == "wrong"


def test_a_wrong_meaning_is_found_and_shrunk(monkeypatch):
    """A planted error: the running sum forgets the present position."""
    right = WORDS["cumsum"]
    late = replace(right, means=lambda p, letters, x: [(0,) * len(x[0]), *right.means(p, letters, x)][:-1])
    monkeypatch.setitem(WORDS, "cumsum", late)
    lines = (NUMBER, IS_C, ("cumsum", (0,), {}, INT), ("add", (2, 1), {}, INT))
    monkeypatch.setattr(report, "generate", lambda seed: program(*lines, outputs=(1, 3)))
    (failure,) = report.fuzz([0], ["mamba"], ["float32"], ["bare"]).failures
    assert failure["verdict"] == "wrong" and failure["where"] == ["mamba", "float32", "interpreter"]
    assert ".cumsum()" in failure["program"] and "concatenate" not in failure["program"]
    assert failure["program"].count("\nv") == 2  # a source and the sum


def test_real_numbers_are_held_to_the_bound_and_decisions_to_their_winner():
    batch = Expected(np.zeros((1, 1), dtype=np.int64), (1,), [[(1, 3, 2)]])
    off = np.array([[[1, 3.25, 2]]])
    assert difference(batch, off) and difference(batch, off, within=0.125) and not difference(batch, off, within=0.25)
    assert not difference(batch, off, decides=True)
    assert difference(batch, np.array([[[3, 3, 2]]]), decides=True)  # a tie goes to the lower token


def test_the_error_that_is_allowed_is_the_one_that_is_proved(monkeypatch):
    from compiler.artifact.model import Stack

    faded = program(NUMBER, ("fading_sum", (0,), {"decay": Fraction(9, 10)}, REAL))
    assert [o.verdict for o in outcomes(faded, 0, ["mamba"], ["float32"], ["bare"])] == ["exact", "exact"]
    forward = Stack.forward
    monkeypatch.setattr(Stack, "forward", lambda self, tokens: forward(self, tokens) + 2.0**-12)
    assert [o.verdict for o in outcomes(faded, 0, ["mamba"], ["float32"], ["bare"])] == ["exact", "wrong"]


def test_a_wrong_model_is_found(monkeypatch):
    from compiler.artifact.model import Stack

    forward = Stack.forward
    monkeypatch.setattr(Stack, "forward", lambda self, tokens: forward(self, tokens) * (tokens[..., None] != 2))
    found = outcomes(program(("position", (), {}, INT)), 0, ["mamba"], ["float32"], ["bare"])
    assert [outcome.verdict for outcome in found] == ["exact", "wrong"]


def test_crashes_and_hangs_are_no_refusals(monkeypatch):
    from tests.fuzz import run

    def crash(*arguments):
        return [][1]

    def hang(*arguments):
        while True:
            pass

    at_most = run.at_most
    monkeypatch.setattr(run, "at_most", lambda seconds: at_most(0.05))
    for broken, verdict in ((crash, "crash"), (hang, "hang")):
        monkeypatch.setattr(run, "compile", broken)
        assert [o.verdict for o in outcomes(program(NUMBER), 0, ["mamba"], ["float32"], [])] == [verdict]


def test_models_run_on_the_device_that_is_asked_for(monkeypatch):
    monkeypatch.setitem(SECONDS, "meta", 10)  # on which nothing can be read back
    forms = ("bare", "language model", "steps", "transformers")
    scored = program(SYMBOL)
    found = outcomes(scored, 0, ["mamba"], ["float32"], forms, device="meta")
    assert [outcome.verdict for outcome in found] == ["exact", *["crash"] * 4]
    assert [o.verdict for o in outcomes(scored, 0, ["mamba"], ["float32"], forms, device="cpu")] == ["exact"] * 5


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_device_it_is_said(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["python -m tests.fuzz", "--device", "cuda"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "--device cuda: it needs a CUDA device, and PyTorch finds none." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("says", "target", "verdict"),
    [
        ("causal_conv1d only supports channel dimension divisible by 8 for now", "mamba2", "refused by the kernels"),
        ("Number of convolution channels is required to be a multiple of 8.", "mamba2", "refused by the kernels"),
        ("an illegal memory access", "mamba2", "crash"),
        ("selective_scan only supports state dimension <= 256", "mamba", "crash"),  # it has one column
    ],
)
def test_kernels_refuse_what_they_are_known_not_to_take(monkeypatch, says, target, verdict):
    from compiler.artifact.model import Stack

    def forward(self, tokens):
        raise RuntimeError(says)

    monkeypatch.setattr(Stack, "forward", forward)
    counted = program(NUMBER, ("cumsum", (0,), {}, INT))
    found = outcomes(counted, 0, [target], ["float32"], ["bare"])
    assert [outcome.verdict for outcome in found] == ["exact", verdict]


def test_only_what_the_compiler_says_on_purpose_is_a_refusal():
    assert refusal(CompileError([(None, "too wide")])) == "too wide"
    with pytest.raises(TypeError) as raised:
        program(("number", (), {"values": {"a": 0.5}}, INT)).circuit()
    assert refusal(raised.value) == str(raised.value)
    with pytest.raises(ValueError) as raised:
        np.zeros(2) + np.zeros(3)
    assert refusal(raised.value) is None
    assert classified("its value can reach 17 quanta, float32 up to 2^24") == classified(
        "its value can reach 9 quanta, float32 up to 2^24"
    )


def test_sequences_are_walks():
    language = Language(ABC, (("s0", "s1", ("a", "b"), True), ("s1", "s0", ("c",), False)), 5)
    found = sequences(language, Draw(0))
    assert {word[:2] for word in found} == {("a", "c"), ("b", "c")}
    assert set(found) == {tuple("acbc"), tuple("bcac")}  # a and b are used up after four letters
    assert len(continued(language, Draw(0), language.empty, 3)) == 3
    everywhere = {word[:2] for word in sequences(Language(ABC, everything(ABC), 12), Draw(0))}
    assert len(everywhere) == 9


def test_expectations_cover_one_letter_and_long_sequences():
    found = [b for seed in range(30) for b in expectations(program(NUMBER, max_length=100), seed)]
    assert {batch.tokens.shape[1] for batch in found} == {12, 100}
    assert all((batch.tokens == batch.tokens[:, :1]).all(axis=1).any() for batch in found)


def test_numbers_reach_the_text_unrounded():
    rows = ("rows", (), {"members": ["a"], "matrix": Matrix([(2**53 + 1, 0.5)])}, Kind("real", 2))
    assert "dtype=object" in program(rows).text()
    assert (
        "signs(3)" in program(("code", (), {"members": list(ABC), "book": Written("signs(3)")}, Kind("code", 2))).text()
    )
