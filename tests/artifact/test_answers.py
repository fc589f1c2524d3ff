"""A task of one's own: asked when a checkpoint is written, and of the model by `construct verify`; proved if it can."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from compiler import (
    Alphabet,
    CheckpointError,
    Circuit,
    InputLanguage,
    Tokens,
    compile,
    count,
    emit,
    latch,
    readout_integer,
    readout_one_hot,
)
from compiler.artifact.answers import read_answers, task_function
from compiler.artifact.json_files import canonical_json
from compiler.artifact.manifest import manifest_content, sealed, text_hash
from compiler.language.random_strings import RandomStrings
from constructions.command.cli import app
from verify import Automaton, Counted, Lookup

LETTERS = Alphabet.of("a", "b", "c", *(str(n) for n in range(9)))


def plain(tokens: list[str]) -> str:
    """How many a's since the last b.

    A second paragraph, which no card needs.
    """
    return str("".join(tokens).rpartition("b")[2].count("a"))


def made(task=None) -> Circuit:
    x = Tokens(LETTERS)
    answer = readout_integer(count(x.is_in("a"), reset=x.is_in("b")), LETTERS, {str(n): n for n in range(9)})
    language = InputLanguage.of(LETTERS, "any", [("any", "any", ("a", "b", "c"))], 8, "strings of a, b, c")
    return Circuit("count-since", answer, language, task=task)


FORM = Counted(["a"], [str(n) for n in range(9)], ["b"])


def run(*arguments: object) -> tuple[int, dict]:
    done = CliRunner().invoke(app, [str(a) for a in (*arguments, "--json")])
    return done.exit_code, json.loads(done.stdout)


@pytest.mark.parametrize("given", ["circuit", "save", "file"])
def test_a_function_s_answers_are_kept_and_asked_again(given, tmp_path):
    file = tmp_path / "oracle.py"
    file.write_text(
        'def right(tokens):\n    """Since b."""\n    return str("".join(tokens).rpartition("b")[2].count("a"))\n'
    )
    task = f"{file}:right" if given == "file" else plain
    circuit = made(plain) if given == "circuit" else made()
    compile(circuit).save(tmp_path / "c", task=None if given == "circuit" else task)
    manifest = manifest_content(tmp_path / "c")
    kept = read_answers(tmp_path / "c" / "answers.json", LETTERS.tokens)
    assert manifest["answers"]["questions"] == kept.questions == sum(len(s.tokens) for s in kept.sequences) > 3000
    assert manifest["answers"]["function"] == ("right" if given == "file" else "plain") and "task" not in manifest
    for asked in kept.sequences:
        assert asked.answers == [plain(asked.tokens[: t + 1]) for t in range(len(asked.tokens))]
    card = (tmp_path / "c" / "README.md").read_text("utf-8")
    assert f"{kept.questions:,} questions" in card and ("Since b" if given == "file" else "How many a's since") in card
    code, said = run("verify", tmp_path / "c")
    assert code == 0 and said["verification"]["queries"] == kept.questions and said["verification"]["accuracy"] == 1


def test_the_same_task_gives_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        compile(made(plain)).save(tmp_path / name)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def test_a_form_is_proved_by_the_command(tmp_path):
    compile(made(FORM)).save(tmp_path / "c")
    assert manifest_content(tmp_path / "c")["task"] == FORM.claim | {"end": None}
    code, said = run("prove", tmp_path / "c")
    assert code == 0 and said["task"]["proved"] and "since the last of `b`" in said["task"]["asks"]
    code, said = run("verify", tmp_path / "c")
    assert code == 0 and said["guarantee"]["proof"].startswith("proved from the weights: every answer is right")


@pytest.mark.parametrize("another", [False, True])
def test_the_two_tasks_of_a_checkpoint_are_told_apart(another, tmp_path):
    """The one that construction.json states, and the author's answers: of another one, which may never be asked."""
    compile(made(FORM)).save(tmp_path / "c")
    if another:
        manifest = manifest_content(tmp_path / "c") | {"task": FORM.claim | {"since": ["c"], "end": None}}
        (tmp_path / "c" / "construction.json").write_text(canonical_json(sealed(manifest, tmp_path / "c")))
    stated, authors = run("verify", tmp_path / "c")[1]["verification"]["tasks"]
    assert "asked, as construction.json states it: how many of `a` there were" in stated
    assert "questions (answers.json)" in authors and ("another task than the one of" in authors) == another


@pytest.mark.parametrize(
    "task, said",
    [
        (lambda tokens: str(tokens.count("a")), "on a b: the circuit answers '0', the task '1'; nothing is saved"),
        (lambda tokens: "nine", "the task answers 'nine' on a; a token"),
        (lambda tokens: 1, "the task answers 1 on a"),
        (lambda tokens: None, "answers None on all [0-9,]+ sequences that it was asked\\.$"),
        (Automaton("e", {"e": {"q": "e"}}, {"e": "0"}), "was asked; it reads 'q', which is no token of the circuit's"),
        (Lookup(["k"], ["0"]), "answers None on all .*; it reads 'k', which is no token"),
    ],
    ids=["wrong", "no token", "a number", "never", "a strange token", "a strange key"],
)
def test_nothing_is_written_where_the_circuit_answers_otherwise(task, said, tmp_path):
    with pytest.raises(CheckpointError, match=said):
        compile(made()).save(tmp_path / "c", task=task)
    assert not (tmp_path / "c").exists()


def test_an_error_of_the_function_names_the_sequence(tmp_path):
    def fails(tokens):
        return plain(tokens) if len(tokens) < 2 else str(1 // 0)

    with pytest.raises(ZeroDivisionError) as raised:
        compile(made()).save(tmp_path / "c", task=fails)
    assert any("on the sequence: a a" in note for note in raised.value.__notes__)


@pytest.mark.parametrize(
    "task, said",
    [
        (3, "a function of tokens"),
        ("oracle", "FILE.py:function"),
        ("none.py:f", "does not exist"),
        ("{file}:wright", "no function 'wright'.*right"),
    ],
)
def test_what_is_no_function_is_refused(task, said, tmp_path):
    file = tmp_path / "oracle.py"
    file.write_text("def right(tokens):\n    return None\n")
    with pytest.raises((TypeError, ValueError), match=said):
        task_function(task.format(file=file) if isinstance(task, str) else task)
    with pytest.raises(TypeError, match="the task of circuit"):
        made(task=3)


def test_an_oracle_s_file_may_have_the_name_of_a_package_of_ours(tmp_path):
    import verify

    file = tmp_path / "verify.py"
    file.write_text("def right(tokens):\n    return None\n")
    assert task_function(f"{file}:right")(["a"]) is None
    assert sys.modules["verify"] is verify


def _resealed(directory: Path) -> None:
    content = manifest_content_unchecked(directory)
    (directory / "construction.json").write_text(json.dumps(sealed(content, directory)), "utf-8")


def manifest_content_unchecked(directory: Path) -> dict:
    return json.loads((directory / "construction.json").read_text("utf-8"))


def test_a_model_that_answers_otherwise_fails_although_every_hash_fits(tmp_path):
    compile(made(plain)).save(tmp_path / "c")
    weights = tmp_path / "c" / "model.safetensors"
    tensors = load_file(weights)
    tensors["lm_head.weight" if "lm_head.weight" in tensors else "backbone.embeddings.weight"] *= -1
    save_file({k: v.contiguous() for k, v in tensors.items()}, weights, metadata={"format": "pt"})
    _resealed(tmp_path / "c")
    code, said = run("verify", tmp_path / "c")
    assert code == 1


def test_answers_that_are_not_the_circuit_s_fail(tmp_path):
    compile(made(plain)).save(tmp_path / "c")
    path = tmp_path / "c" / "answers.json"
    path.write_text(path.read_text("utf-8").replace('["a"], "answers": ["1"]', '["a"], "answers": ["2"]'), "utf-8")
    code, said = run("verify", tmp_path / "c")
    assert code == 1 and "answers.json is damaged" in said["damage"]
    _resealed(tmp_path / "c")
    code, said = run("verify", tmp_path / "c")
    assert code == 1 and said["verification"]["accuracy"] < 1


@pytest.mark.parametrize(
    "old, new, said",
    [
        ('"version": 1', '"version": 2', "version 2"),
        ('["a"], "answers": ["1"]', '["a"], "answers": []', "1 tokens and 0 answers"),
        ('["a"], "answers": ["1"]', '["z"], "answers": ["1"]', "'z'"),
        ('["a"], "answers": ["1"]', '["a"], "answers": [1]', "answers"),
    ],
)
def test_a_damaged_answers_json_is_one_sentence(old, new, said, tmp_path):
    compile(made(plain)).save(tmp_path / "c")
    path = tmp_path / "c" / "answers.json"
    path.write_text(path.read_text("utf-8").replace(old, new, 1), "utf-8")
    with pytest.raises(CheckpointError, match=said):
        read_answers(path, LETTERS.tokens)
    _resealed(tmp_path / "c")
    assert CliRunner().invoke(app, ["verify", str(tmp_path / "c")]).exit_code in (1, 2)


def test_a_circuit_over_numbers_takes_no_task(tmp_path):
    from compiler import Real, numbers

    circuit = Circuit("twice", 2 * numbers(Real(-1, 1), "x"), length=4)
    with pytest.raises(CheckpointError, match="reads numbers"):
        compile(circuit).save(tmp_path / "c", task=plain)


class Other:
    """How many a's since the last b."""

    claim = FORM.claim | {"of": ["c"]}  # which is another task

    def __call__(self, tokens: list[str]) -> str:
        return plain(tokens)


def test_a_function_that_claims_to_be_another_task_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="on a: the task Other answers '1', and what it claims to be answers '0'"):
        compile(made(Other())).save(tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_a_look_up_of_more_pairs_than_the_proof_goes_through_is_asked(tmp_path):
    """The second value behind a, in texts with up to 20 pairs: saved, asked and, in a sentence, not proved."""
    letters = Alphabet.of("a", "b", "c")
    x = Tokens(letters)
    pair = x.is_in("a").shift(1) & x.is_in("b", "c")
    second = latch(x.one_hot("b", "c"), pair & (pair.cumsum() == 2))
    scores = emit(letters, (second[0], "b"), (second[1], "c"), otherwise="a")
    language = InputLanguage.everything(letters, 40)
    right, wrong = (Lookup(["a"], ["b", "c"], which) for which in (2, 3))
    compile(Circuit("second", scores, language, task=right)).save(tmp_path / "c")
    code, said = run("prove", tmp_path / "c")
    assert code == 1 and said["task"]["reason"] == "a look-up is gone through with at most 12 pairs in a sequence"
    code, said = run("verify", tmp_path / "c")
    assert code == 0 and said["verification"]["queries"] > 1000 and said["verification"]["accuracy"] == 1
    with pytest.raises(CheckpointError, match="the task 'b'; nothing is saved"):
        compile(Circuit("second", scores, language, task=wrong)).save(tmp_path / "d")


@pytest.mark.parametrize("answers", [True, False])
def test_a_false_task_is_asked_and_fails(answers, tmp_path):
    """Whoever writes into a manifest what the circuit is for, with fitting hashes, is not believed."""
    place = tmp_path / "c"
    compile(made(FORM)).save(place)
    manifest = manifest_content(place)
    manifest["task"]["of"] = ["c"]
    if not answers:
        (place / "answers.json").unlink()
        del manifest["answers"]
    (place / "construction.json").write_text(json.dumps(sealed(manifest, place)))
    done = CliRunner().invoke(app, ["verify", str(place)])
    said = " ".join(done.stdout.split())
    assert done.exit_code == 1 and "task, stated and not proved: how many of `c`" in said and "lead by" not in said
    code, said = run("verify", place)
    assert code == 1 and not said["guarantee"]["certificate"]["parts"]["task"]
    assert said["verification"]["accuracy"] < 1


def test_a_task_is_asked_in_another_basis_as_well(tmp_path):
    place = tmp_path / "c"
    compile(made(FORM)).save(place)
    assert CliRunner().invoke(app, ["disguise", str(place), "--out", str(tmp_path / "d")]).exit_code == 0
    code, said = run("verify", tmp_path / "d")
    assert code == 0 and said["verification"]["queries"] > 1000 and said["verification"]["accuracy"] == 1
    content = json.loads((tmp_path / "d" / "construction.json").read_text())
    content["task"]["of"] = ["c"]
    del content["sha256"]
    content["sha256"] = text_hash(canonical_json(content))
    (tmp_path / "d" / "construction.json").write_text(json.dumps(content))
    code, said = run("verify", tmp_path / "d")
    assert code == 1 and said["verification"]["accuracy"] < 1


def test_a_length_that_no_string_has_is_searched_for_once(tmp_path):
    """Six pairs of distinct edges hold 61 letters at most, of 64 that are promised; each search gives up late."""
    letters = Alphabet.of(*(f"t{i}" for i in range(12)))
    names = letters.tokens
    pairs = [(("A", f"B{i}", names, True), (f"B{i}", "A", names[:3], True)) for i in range(3)]
    language = InputLanguage.of(letters, "A", [edge for pair in pairs for edge in pair], 64, "pairs")
    circuit = Circuit("held", readout_one_hot(Tokens(letters).one_hot(), letters), language)
    asked = []
    draw = RandomStrings.draw
    with patch.object(RandomStrings, "draw", lambda self, rng: asked.append(self.length) or draw(self, rng)):
        compile(circuit).save(tmp_path / "c", task=lambda names: names[-1])
    assert 0 < asked.count(64) < 10
