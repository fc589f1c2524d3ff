"""What is not proved names the token, the stream and where it was written, and says what would be provable."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from compiler import Alphabet, Circuit, InputLanguage, Tokens, emit, memory, present
from examples.programs import two_brackets
from tests.verify.checker.checkpoints import write
from verify.checker.check import check
from verify.checker.files import Matrix
from verify.checker.formats import EXACT
from verify.checker.meaning import told
from verify.checker.meaning.compare import compare
from verify.checker.meaning.conditions import place
from verify.checker.values import bounds
from verify.checker.values.language import Edge, Language
from verify.checker.values.values import World

SOURCE = Path(two_brackets.__file__).read_text("utf-8").splitlines()


def _line(text: str) -> int:
    return next(i for i, line in enumerate(SOURCE, start=1) if text in line)


def test_a_score_names_its_letter_and_the_stream_that_the_weights_do_not_show(tmp_path, monkeypatch):
    made = write(tmp_path / "made", two_brackets.circuit(), "mamba")
    monkeypatch.setattr(bounds, "_summed_at_once", lambda world, value: None)
    reason = check(made).meaning
    assert reason.startswith("the score of ')' (token 2) is not shown to be the circuit's")
    assert (
        f"the Cumsum[0] (two_brackets.py:{_line('cumsum')}) after block 3; a running sum is mostly proved where"
        in reason
    )


def _embed(values: list[int], name: str | None, line: int) -> dict:
    table = {"shape": [2, 1], "rows": [[[0, v]] if v else [] for v in values]}
    return {
        "operation": "Embed",
        "attributes": {"table": table},
        "inputs": [],
        "name": name,
        "source": ["own.py", line],
    }


@pytest.mark.parametrize("name, called", [("weight", "weight[0] (own.py:3)"), (None, "the Embed[0] (own.py:3)")])
def test_an_operand_that_is_no_flag_is_named_with_what_is_known_of_it(name, called):
    streams = [_embed([0, 2], name, 3), _embed([1, 0], "flag", 4)]
    streams.append(
        {"operation": "And", "attributes": {}, "inputs": [0, 1], "name": "both", "source": ["own.py", 5]}
    )  # what counts is that one operand is 0 or 2
    data = {"alphabet": ["a", "b"], "streams": streams, "output": 2}
    world = World(Language(2, "q", (Edge("q", "q", np.ones(2, dtype=bool), False, True),), 4), EXACT)
    empty = np.zeros(0, dtype=np.int64)
    reason = compare(world, data, [], Matrix((2, 0), empty, empty, np.zeros(0)))
    assert reason == (
        f"both (own.py:5): an operand of `and` is not proved to be 0 or 1: {called}, of which only 0 to 2 is known; a "
        "comparison, such as `x > 0`, would be"
    )


def test_an_operation_that_is_not_exact_names_the_streams_it_computes_with(tmp_path):
    made = write(tmp_path / "made", two_brackets.circuit(), "mamba")
    file = made / "model.safetensors"
    tensors = load_file(file)
    tensors["backbone.layers.1.mixer.D"] *= 0.5
    save_file(tensors, file, {"format": "pt"})
    found = check(made)
    reason = found.arithmetic
    assert ".clip(lo, hi)" in reason and "no bound that the circuit states helps other weights" in found.lines()[-1]
    assert "block 3: gate 0 can be 16; it must be 0, above 20 or at most -104" in reason
    assert f"it computes with the Cumsum[0] (two_brackets.py:{_line('cumsum')})" in reason


SIDES = {"round": ("(", "{", ")", "}"), "square": ("[", "<", "]", ">")}


def _two_stacks(together: bool) -> Circuit:
    """Whether some bracket of either stack was closed by one of the other type; `together`: in one latch."""
    letters = Alphabet.of(*SIDES["round"], *SIDES["square"], "yes", "no")
    x = Tokens(letters)
    wrong = []
    for name, (one, other, *close) in SIDES.items():
        opens, closes = x.is_in([one, other]), x.is_in(close)
        level = ((opens - closes).cumsum() + closes).clip(0, 2).one_hot(3)
        top = memory.write(level, x.is_in([other]), when=opens, policy="last", name=name).read(level)
        wrong.append(closes & (top != x.is_in([close[1]])))
    bad = present(wrong[0] | wrong[1]) if together else present(wrong[0]) | present(wrong[1])
    edges = [
        (f"{i},{j}", f"{i + up * (side == 'round')},{j + up * (side == 'square')}", SIDES[side][2 * (up < 0) :][:2])
        for i in range(3)
        for j in range(3)
        for side, at in (("round", i), ("square", j))
        for up in (1, -1)
        if 0 <= at + up <= 2
    ]
    language = InputLanguage.of(letters, "0,0", edges, 8, "two stacks")
    return Circuit("two-stacks", emit(letters, (bad, "no"), otherwise="yes"), language)


def test_two_memories_that_are_asked_at_once_are_both_named_and_what_is_advised_is_proved(tmp_path):
    reason = check(write(tmp_path / "one", _two_stacks(together=True), "mamba")).meaning
    assert reason.startswith("the score of 'no' (token 9) is not shown to be the circuit's: no number of the weights")
    assert "round (test_told.py:" in reason and "it is asked beside square (test_told.py:" in reason
    assert reason.endswith("and each by itself may be proved: such as a latch of each")
    assert check(write(tmp_path / "two", _two_stacks(together=False), "mamba")).accepted


def test_a_circuit_that_is_none_says_nothing_of_the_weights(tmp_path):
    made = write(tmp_path / "made", two_brackets.circuit(), "mamba")
    file = made / "model.safetensors"
    tensors = load_file(file)
    tensors["backbone.layers.1.mixer.D"] *= 0.5
    save_file(tensors, file, {"format": "pt"})
    (made / "circuit.json").write_text("{}")
    verdict = check(made)
    assert "computes with" not in verdict.arithmetic and "circuit.json" in verdict.meaning


def test_names_of_letters_and_streams_may_be_missing():
    assert told.letter({}, 3) == "the score of token 3"
    assert place([{"operation": "Relu"}], 0) == "the Relu (stream 0)"
