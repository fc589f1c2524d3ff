"""`construct generate`: both runtimes write the solver's chains, batches and streams, and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from compiler import Alphabet, Circuit, Tokens, compile, generate, readout_integer, readout_one_hot
from compiler.artifact.errors import ScoreError
from compiler.artifact.generate import MOST_UNASKED, Writer
from compiler.artifact.manifest import sealed
from compiler.language.input_language import InputLanguage
from compiler.runtime.generation import UNHEARD, NoNumberError, _Rows
from constructions.__main__ import _refused
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.command.cli import app
from constructions.copy_dp.words import EditDistance
from verify.generation import check_generation

PROMPTS = {"a b | b ;": "0 1 ; 1 1 ; 2 1 .", "| ;": "0 .", "b | ;": "0 ; 1 ."}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    directory = tmp_path_factory.mktemp("generate") / "edit"
    built = build(EditDistance(length=2, distinct_letters=2))
    artifact.save(built, {}, directory)
    return built, directory


@pytest.mark.parametrize("runtime", ["mamba-ssm", "transformers"])
def test_a_batch_of_prompts_of_different_lengths(checkpoint, runtime):
    written = Writer(checkpoint[1], runtime).write(list(PROMPTS))
    assert {row.prompt: row.text for row in written} == PROMPTS
    assert all(row.ended and row.inside for row in written)


def test_chains_against_the_solver_on_every_runtime(checkpoint):
    built, directory = checkpoint
    runs = check_generation(built.construction.tasks()[0], directory, seed=0)
    by = ["step", "transformers", "transformers without cache", "transformers in one pass"]
    assert [run.runtime for run in runs] == by
    assert all(run.wrong is None and run.chains >= 3 for run in runs[:3]) and runs[3].wrong is None
    assert runs[3].tokens == 3 * 3 + 3, "three rows of three entries, each with a mark behind it"


def test_every_chain_and_a_wrong_one(checkpoint, monkeypatch):
    built, directory = checkpoint
    task = built.construction.tasks()[0]
    step, cached, *_ = check_generation(task, directory, seed=0, every=True)
    assert step.chains == cached.chains == task.exhaustive_count() == 49 and not (step.wrong or cached.wrong)
    right = task.solver.chain
    monkeypatch.setattr(task.solver, "chain", lambda prompt: right(prompt)[::-1] if prompt[0] == "|" else right(prompt))
    task.language = InputLanguage.everything(task.language.alphabet, task.language.max_length)
    assert all(run.wrong for run in check_generation(task, directory, seed=0, every=True)[:2])


def test_the_promise_is_about_what_the_model_itself_writes(checkpoint):
    """Prompts of the language lead to continuations in it; one outside is refused."""
    built, directory = checkpoint
    domain = artifact.report(built, {}, None)["guarantee"]["domain"]
    assert "two words of at most 2 letters" in domain and "and what the model itself writes after it" in domain
    told = CliRunner().invoke(app, ["generate", str(directory), "--prompt", "a a a | b ;"])
    assert isinstance(told.exception, ValueError) and "is outside of what construction.json promises" in str(
        told.exception
    )


def test_the_command_streams_what_the_function_returns(checkpoint):
    prompt, chain = next(iter(PROMPTS.items()))
    told = CliRunner().invoke(app, ["generate", str(checkpoint[1]), "--prompt", prompt])
    assert told.exit_code == 0 and told.stdout == chain + "\n" == generate(checkpoint[1], prompt) + "\n"


def test_a_file_as_json(checkpoint, tmp_path):
    (tmp_path / "prompts").write_text("\n\n".join(PROMPTS) + "\n")
    arguments = [
        "generate",
        str(checkpoint[1]),
        "--file",
        str(tmp_path / "prompts"),
        "--json",
        "--runtime",
        "transformers",
    ]
    rows = json.loads(CliRunner().invoke(app, arguments).stdout)["generations"]
    assert [row["text"] for row in rows] == list(PROMPTS.values())


def test_a_limit_cuts_the_chain_short(checkpoint):
    (row,) = Writer(checkpoint[1]).write(["a b | b ;"], most=3)
    assert row.text == "0 1 ;" and not row.ended and row.inside


@pytest.mark.parametrize(
    "prompt, reason",
    [("", "empty"), ("a q", "'q', which is no token"), ("; ;", "outside of what"), ("<pad>", "no token")],
)
def test_prompts_that_are_refused(checkpoint, prompt, reason):
    with pytest.raises(ValueError, match=reason):
        Writer(checkpoint[1]).write([prompt])


def test_a_near_token_is_named_and_the_sentence_ends_once(counts):
    with pytest.raises(ValueError, match=r"has '12', which is no token of this model; did you mean '[12]'\?$"):
        Writer(counts).write(["12"])
    with pytest.raises(ValueError, match=r"has 'q', which is no token of this model\.$"):
        Writer(counts).write(["q"])


def test_the_beginning_of_a_prompt_is_refused_with_what_is_missing(checkpoint):
    told = CliRunner().invoke(app, ["generate", str(checkpoint[1]), "--prompt", "a b"])
    assert isinstance(told.exception, ValueError) and not told.stdout
    assert "after 'a b' '|' must come; 'a b | ;' would do" in str(told.exception)


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    """A checkpoint whose answers are no inputs, and which ends no text."""
    directory, letters = tmp_path_factory.mktemp("generate") / "count", Alphabet.of("a", "b", "1", "2")
    count = readout_integer(Tokens(letters).is_in("a").cumsum(), letters, {"1": 1, "2": 2})
    inputs = InputLanguage.of(letters, "any", [("any", "any", ("a", "b"))], 6, "strings of a and b")
    compile(Circuit("count", count, inputs)).save(directory)
    return directory


@pytest.mark.parametrize("runtime", ["mamba-ssm", "transformers"])
def test_where_answers_are_no_inputs_the_answer_is_all_that_is_written(counts, runtime):
    rows = Writer(counts, runtime).write(["a b a", "b a"])
    assert [(row.text, row.inside, row.left, row.ended) for row in rows] == [
        ("2", True, True, False),
        ("1", True, True, False),
    ]
    told = CliRunner().invoke(app, ["generate", str(counts), "--prompt", "a b a", "--runtime", runtime])
    assert told.exit_code == 0 and told.stdout == "2\n"
    assert "'a b a': the first token is promised, then the text leaves the promise's language" in told.stderr
    assert "construct verify compares the weights with it" in told.stderr  # for generate only repeats the record
    told = CliRunner().invoke(app, ["generate", str(counts), "--prompt", "a b a", "--runtime", runtime, "--json"])
    assert json.loads(told.stdout)["promise"].startswith("as construction.json records it; construct verify")


def test_more_than_is_promised_is_written_where_it_is_asked_for_and_the_command_fails(counts):
    (row,) = Writer(counts).write(["a b a"], most=2)
    assert len(row.tokens) == 2 and row.promised == 1 and not row.inside
    asked = ["generate", str(counts), "--prompt", "a b a", "--max-tokens"]
    assert [CliRunner().invoke(app, [*asked, most]).exit_code for most in ("1", "2")] == [0, 1]


def test_at_least_one_token_is_asked_for(counts):
    with pytest.raises(ValueError, match="most is 0, and it must be at least 1"):
        Writer(counts).write(["a"], most=0)


@pytest.mark.parametrize("runtime", ["mamba-ssm", "transformers"])
@pytest.mark.parametrize("options", [[], ["--json"], ["--prompt", "b a"]], ids=["text", "json", "a batch"])
@pytest.mark.parametrize("bad", ["nan", "inf"])
def test_no_text_comes_from_scores_that_are_no_numbers(counts, tmp_path, runtime, options, bad):
    directory = tmp_path / "bad"
    shutil.copytree(counts, directory)
    tensors = load_file(directory / "model.safetensors")
    next(value for name, value in tensors.items() if "out_proj" in name).fill_(float(bad))
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    manifest = sealed(json.loads((directory / "construction.json").read_text()), directory)
    (directory / "construction.json").write_text(json.dumps(manifest))
    asked = ["generate", str(directory), "--prompt", "a b a", "--max-tokens", "1", "--runtime", runtime, *options]
    told = CliRunner().invoke(app, asked)
    assert told.stdout == "" and isinstance(told.exception, ScoreError)
    first = 3 if "--prompt" in options and runtime == "mamba-ssm" else 4  # which steps the shorter prompt's row first
    assert f"a score is no number at position {first}" in str(told.exception)
    assert f"construct verify {directory} compares" in str(told.exception)
    assert _refused(told.exception) == 1


def test_a_row_that_has_ended_needs_no_more_scores():
    rows, bad = _Rows(None, [1, 2], UNHEARD), torch.tensor([[float("nan"), 0.0], [1.0, 0.0]])
    rows.add(0, 1)
    rows.check(bad, [3, 3], [True, True])
    rows.check(bad.flip(0), [3, 3], [True, False])  # a row that still reads its prompt
    with pytest.raises(NoNumberError, match="at position 4"):
        rows.check(bad.flip(0), [3, 3], [True, True])


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_fewer_tokens_than_were_asked_for_are_told(tmp_path, options):
    letters = Alphabet.of("a", "b")
    other = readout_one_hot(Tokens(letters).one_hot("b", "a"), letters)
    compile(Circuit("turns", other, InputLanguage.everything(letters, 6))).save(tmp_path / "short")
    asked = ["generate", str(tmp_path / "short"), "--prompt", "a b", *options]
    told = CliRunner().invoke(app, [*asked, "--max-tokens", "5"])
    assert told.exit_code == 0
    assert "after 'a b': 4 of the 5 tokens are written: the promise ends before the model does" in told.stderr
    assert "construct verify compares the weights with it" in told.stderr
    whole = CliRunner().invoke(app, [*asked, "--max-tokens", "4"])
    assert whole.stderr == "", "as many as were asked for"
    if options:
        assert [json.loads(run.stdout)["generations"][0]["cut"] for run in (told, whole)] == [True, False]


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """A checkpoint for texts of every length, which ends none: each token, then the other one."""
    directory, letters = tmp_path_factory.mktemp("generate") / "turns", Alphabet.of("a", "b")
    other = readout_one_hot(Tokens(letters).one_hot("b", "a"), letters)
    compile(Circuit("turns", other, InputLanguage.everything(letters, None))).save(directory)
    return directory


@pytest.mark.parametrize("runtime", ["mamba-ssm", "transformers"])
@pytest.mark.parametrize("prompts", [["a"], ["a", "b a"]], ids=["a stream", "a batch"])
@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_a_promise_of_every_length_ends_at_a_limit_that_is_said(endless, runtime, prompts, options, monkeypatch):
    monkeypatch.setattr("compiler.artifact.generate.MOST_UNASKED", 5)
    asked = ["generate", str(endless), "--runtime", runtime, *options]
    told = CliRunner().invoke(app, [*asked, *(word for prompt in prompts for word in ("--prompt", prompt))])
    assert told.exit_code == 0, told.output
    for prompt in prompts:
        assert f"after {prompt!r}: the first 5 tokens are written, and the promise reaches further" in told.stderr
    texts = ["b a b a b"] * len(prompts)
    if options:
        rows = json.loads(told.stdout)["generations"]
        assert [row["text"] for row in rows] == texts and all(row["limited"] for row in rows)
    else:
        assert told.stdout.splitlines() == texts
    assert generate(endless, "a", runtime=runtime) == texts[0]


def test_who_says_how_many_gets_them_and_no_word_of_a_limit(endless, counts, monkeypatch):
    monkeypatch.setattr("compiler.artifact.generate.MOST_UNASKED", 5)
    told = CliRunner().invoke(app, ["generate", str(endless), "--prompt", "a", "--max-tokens", "8"])
    assert (told.exit_code, told.stdout, told.stderr) == (0, "b a b a b a b a\n", "")
    assert not any(row.limited for row in Writer(counts).write(["a b a"]))


def test_the_limit_is_the_one_that_help_and_docs_name():
    assert f"{MOST_UNASKED:,} tokens" in " ".join(CliRunner().invoke(app, ["generate", "--help"]).stdout.split())
    assert f"no more than {MOST_UNASKED:,}" in " ".join(generate.__doc__.split())
    assert f"{MOST_UNASKED:,} tokens at most" in Path("docs/constructions.md").read_text("utf-8")
