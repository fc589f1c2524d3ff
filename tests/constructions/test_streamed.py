"""One long sequence in constant memory: a latch, a recall and an automaton agree with themselves; faults are found."""

from __future__ import annotations

import json

import pytest
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from compiler.artifact.errors import EditedError
from compiler.artifact.json_files import canonical_json
from compiler.artifact.manifest import sealed
from compiler.artifact.model import Stack
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout_integer
from compiler.language.source import Tokens
from compiler.language.words import latch
from constructions.automata.automaton import Automaton, table_json
from constructions.automata.languages import NAMED
from constructions.checkpoints import streamed
from constructions.checkpoints.artifact import save
from constructions.checkpoints.built import Built, build
from constructions.checkpoints.saved_circuit import SavedCircuit
from constructions.checkpoints.streamed import verify_streamed
from constructions.command.cli import app
from constructions.selectivity.induction_heads import InductionHeads
from constructions.selectivity.mqar import MQAR

LENGTH = 9_000


def a_latch(arch: str) -> Built:
    letters = Alphabet.of("a", "b", "c")
    x = Tokens(letters)
    held = latch(x.is_in("a"), x.is_in("a", "b"))
    circuit = Circuit(
        "latch", readout_integer(held, letters, {"a": 1, "b": 0}), InputLanguage.everything(letters, None)
    )
    return build(SavedCircuit(circuit, arch))


CASES = {
    "latch on mamba": lambda: a_latch("mamba"),
    "latch on mamba2": lambda: a_latch("mamba2"),
    "recall": lambda: build(InductionHeads(vocab=5)),
    "automaton": lambda: build(Automaton(table=table_json(NAMED["tomita-4"].make()))),
}


@pytest.mark.parametrize("name", CASES)
def test_chunks_steps_and_the_whole_have_the_same_bits(name: str, monkeypatch) -> None:
    monkeypatch.setattr(streamed, "_WHOLE", 1000)
    monkeypatch.setattr(streamed, "_WINDOWS", 2)
    built = CASES[name]()
    told: list[int] = []
    found = verify_streamed(built, built.stack(), LENGTH, progress=told.append)
    assert found.failure is None and (found.length, found.whole) == (LENGTH, 1000) and found.stepped >= 128
    assert sum(told) == LENGTH and max(told) == streamed.CHUNK


@pytest.fixture(scope="module")
def latched() -> Built:
    return a_latch("mamba")


def test_a_chunk_that_forgets_is_found(latched: Built, monkeypatch) -> None:
    """From the third on, chunks start with empty caches: only the whole sequence tells."""
    monkeypatch.setattr(streamed, "CHUNK", 100)
    advance, calls = streamed.advance, []

    def forgetful(stack, tokens, caches):
        calls.append(tokens.shape[1])
        late = tokens.shape[1] == 100 and calls.count(100) > 2
        return advance(stack, tokens, stack.initial_state(1) if late else caches)

    monkeypatch.setattr(streamed, "advance", forgetful)
    found = verify_streamed(latched, latched.stack(), 2_000)
    assert str(found.failure).endswith("in chunks other scores come out than in one whole sequence.")


@pytest.mark.parametrize(("part", "said"), [(0, "scores come out than in chunks"), (1, "other caches than chunks")])
def test_a_step_that_is_wrong_is_found_far_from_the_beginning(
    latched: Built, part: int, said: str, monkeypatch
) -> None:
    monkeypatch.setattr(streamed, "_WHOLE", 100)
    stack, step, taken = latched.stack(), Stack.step, []

    def wrong(self, token, state):
        scores, after = step(self, token, state)
        taken.append(1)
        if len(taken) == (70, 128)[part]:  # within the second window, and at its end
            scores = scores + (part == 0)
            after[0][1].add_(float(part))
        return scores, after

    monkeypatch.setattr(Stack, "step", wrong)
    found = verify_streamed(latched, stack, LENGTH)
    assert said in str(found.failure) and str(found.failure).startswith("between tokens 4,096 and 8,192")


def test_a_wrong_weight_is_found_by_the_circuit() -> None:
    built = a_latch("mamba")
    stack = built.stack()  # which shares its weights with what is built
    stack.head.weight.data[0] *= 2
    assert "the model's scores are not the circuit's" in str(verify_streamed(built, stack, 500).failure)


def test_what_the_promise_does_not_cover_is_refused() -> None:
    built = build(MQAR(kappa=2, vocab=3, max_length=128))
    with pytest.raises(ValueError, match=r"--length 10,000,000: the promise covers 1 to 128 tokens"):
        verify_streamed(built, built.stack(), 10_000_000)
    with pytest.raises(ValueError, match="this walk ends after"):
        spent = InputLanguage.of(Alphabet.of("a", "b"), "s", [("s", "s", ("a", "b"), True)], 50, "each once")
        circuit = Circuit("spent", Tokens(spent.alphabet).one_hot(), spent)
        built = build(SavedCircuit(circuit, "mamba"))
        verify_streamed(built, built.stack(), 40)


def test_the_command_says_what_was_compared(latched: Built, tmp_path) -> None:
    save(latched, {}, tmp_path / "latch")
    arguments = ["verify", str(tmp_path / "latch"), "--length", "600"]
    result = CliRunner().invoke(app, [*arguments, "--stream", "--json"])
    assert result.exit_code == 0 and json.loads(result.stdout)["equal"] is True
    assert isinstance(CliRunner().invoke(app, arguments).exception, ValueError)
    for more in (["--data", "x.npz"], ["--samples", "7"], ["--verify", "none"]):
        assert isinstance(CliRunner().invoke(app, [*arguments, "--stream", *more]).exception, ValueError)


def test_weights_that_the_walk_does_not_meet_are_compared(latched: Built, tmp_path) -> None:
    """The rows of tokens that no walk has, as all that a walk would meet behind its beginning: sealed anew."""
    place = tmp_path / "latch"
    save(latched, {}, place)
    tensors = load_file(place / "model.safetensors")
    tensors["backbone.embeddings.weight"][-1] += 1
    save_file(tensors, place / "model.safetensors", {"format": "pt"})
    content = json.loads((place / "construction.json").read_text("utf-8"))
    (place / "construction.json").write_text(canonical_json(sealed(content, place)), "utf-8")
    refused = CliRunner().invoke(app, ["verify", str(place), "--length", "600", "--stream"]).exception
    assert isinstance(refused, EditedError) and "its weights backbone.embeddings.weight differ" in str(refused)
