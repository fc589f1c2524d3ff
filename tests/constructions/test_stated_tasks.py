"""A task that a checkpoint states: each command says the same of it, where it is proved, tested, not asked or refused.

The checkpoints count letters since a reset. Their task is written into construction.json afterwards, sealed anew, as
whoever edits a checkpoint can; what is right of them is known from the circuit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
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
    readout_integer,
)
from compiler.artifact.json_files import canonical_json
from compiler.artifact.manifest import manifest_content, sealed
from constructions.command.cli import app
from verify.checker.check import check

LONGEST = 20
NUMBERS = [str(n) for n in range(LONGEST + 1)]
LETTERS = Alphabet.of("a", "b", "c", *NUMBERS)
RIGHT: dict[str, Any] = {"name": "count", "of": ["a"], "since": ["b"], "answers": NUMBERS, "end": None}
UNREADABLE = [{"name": "mqar", "write": "sum"}, {"name": "sorting"}, {"name": "count"}, RIGHT | {"odd": 1}]
UNFITTING = [RIGHT | {"end": "c"}, RIGHT | {"of": ["7"]}]
NEVER = [{"name": "keep-nth", "n": LONGEST + 1, "end": None}]


def counted(place: Path, claim: dict[str, Any] | None = None, task: Any = None) -> Path:
    """A count of a's since the last b, whose construction.json states this task."""
    x = Tokens(LETTERS)
    answer = readout_integer(count(x.is_in("a"), reset=x.is_in("b")), LETTERS, {n: int(n) for n in NUMBERS})
    language = InputLanguage.of(LETTERS, "any", [("any", "any", ("a", "b", "c"))], LONGEST, "strings of a, b, c")
    compile(Circuit("since", answer, language), "mamba").save(place, task=task)
    return place if claim is None else stated(place, claim)


def stated(place: Path, claim: dict[str, Any]) -> Path:
    content = sealed(manifest_content(place) | {"task": claim}, place)
    (place / "construction.json").write_text(canonical_json(content), "utf-8")
    return place


def run(*line: object) -> tuple[int, str, str]:
    """(exit code, output, errors), each on one line."""
    done = CliRunner().invoke(app, [str(word) for word in line])
    return done.exit_code, " ".join(done.stdout.split()), " ".join(done.stderr.split())


def test_all_answers_are_right_where_that_is_proved(tmp_path):
    place = counted(tmp_path / "c", RIGHT)
    code, said, _ = run("verify", place)
    assert code == 0 and "; answers right: all domain:" in said
    assert run("prove", place)[0] == 0


def test_a_count_that_leaves_its_range_in_the_longest_run_is_wrong(tmp_path):
    """Of all sequences one alone, of 20 letters a, is answered otherwise."""
    place = counted(tmp_path / "c", RIGHT | {"answers": NUMBERS[:-1]})
    code, said, _ = run("verify", place)
    assert code == 1 and "task, stated and not proved" in said and "answers right: all" not in said


@pytest.mark.parametrize("claim", [*UNREADABLE, *UNFITTING, *NEVER], ids=lambda claim: str(claim)[:40])
def test_what_the_checker_refuses_is_refused_by_each_command(claim, tmp_path):
    """The circuit is proved, and nobody can say that it answers such a task."""
    place = counted(tmp_path / "c", claim)
    code, said, _ = run("prove", place)
    assert code == 1 and "meaning: proved" in said and "task: refused: " in said
    why = said.partition("task: refused: ")[2].partition(" the task is ")[0]
    code, said, complaint = run("verify", place)
    assert code == 1 and complaint.endswith(f"the task that construction.json states is refused: {why}")
    assert "answers right: not asked" in said and "answers right: all" not in said
    code, told, _ = run("verify", place, "--json")
    told = json.loads(told)
    assert code == 1 and told["task"] == claim and told["guarantee"]["answers"] == "not asked"
    assert told["task_refused"] == told["guarantee"]["certificate"]["refused"] == why
    run("report", place, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "Nobody has said what it should answer" not in page and "states a task" in page


@pytest.mark.parametrize("claim", [*UNREADABLE, *UNFITTING], ids=lambda claim: str(claim)[:40])
def test_scores_say_that_a_stated_task_is_refused(claim, tmp_path):
    code, told, _ = run("score", counted(tmp_path / "c", claim), "--method", "random", "--json")
    assert code == 0 and "for the task that is stated is refused: " in json.loads(told)["scored"]
    assert "states no task" not in told


@pytest.mark.parametrize("claim", [UNREADABLE[0], UNFITTING[1]], ids=["unreadable", "unfitting"])
def test_no_function_that_claims_a_refused_task_is_saved(claim, tmp_path):
    def since(tokens: list[str]) -> str:
        return str("".join(tokens).rpartition("b")[2].count("a"))

    since.claim = claim  # type: ignore[attr-defined]
    with pytest.raises(CheckpointError, match="claims to be one that is refused: the task .*; nothing is saved"):
        counted(tmp_path / "c", task=since)
    assert not (tmp_path / "c").exists()


def test_answers_that_were_only_tested_are_counted(tmp_path):
    """The author's function is asked, and nothing is stated that could be proved."""
    place = counted(tmp_path / "c", task=lambda tokens: str("".join(tokens).rpartition("b")[2].count("a")))
    asked = manifest_content(place)["answers"]["questions"]
    code, said, _ = run("verify", place)
    assert code == 0 and f"answers right: all that were tested ({asked:,})" in said
    told = json.loads(run("verify", place, "--json")[1])
    assert told["guarantee"]["answers"] == "tested" and "task_refused" not in told


def test_data_that_asks_nothing_shows_nothing(tmp_path):
    place = counted(tmp_path / "c", task=lambda tokens: "0" if tokens == ["b"] else None)
    np.savez(tmp_path / "none.npz", inputs=np.zeros((3, 4), dtype=int), labels=np.full((3, 4), -100))
    code, said, _ = run("verify", place, "--data", tmp_path / "none.npz")
    assert code == 0 and "answers right: not asked" in said


def test_questions_outside_of_the_promise_are_counted(tmp_path):
    place = counted(tmp_path / "c", task=lambda tokens: "0" if tokens == ["b"] else None)
    path = place / "answers.json"
    content = json.loads(path.read_text("utf-8"))
    content["sequences"] = [{"tokens": ["b"], "answers": ["0"]}, {"tokens": ["7"], "answers": ["0"]}]
    path.write_text(json.dumps(content), "utf-8")
    counts = manifest_content_of(place) | {
        "answers": {"function": "<lambda>", "says": "", "sequences": 2, "questions": 2}
    }
    (place / "construction.json").write_text(canonical_json(sealed(counts, place)), "utf-8")
    code, said, _ = run("verify", place)
    assert "1 of its 2 sequences outside of the promise" in said and "answers right: all domain" not in said


def manifest_content_of(place: Path) -> dict[str, Any]:
    return json.loads((place / "construction.json").read_text("utf-8"))


@pytest.mark.parametrize(
    "file, entry", [("generation_config.json", "eos_token_id"), ("config.json", "hidden_size"), ("circuit.json", "end")]
)
def test_a_task_is_not_said_to_be_missing_where_other_files_are_refused(file, entry, tmp_path):
    place = counted(tmp_path / "c", RIGHT)
    content = json.loads((place / file).read_text("utf-8"))
    (place / file).write_text(json.dumps(content | {entry: 1}), "utf-8")
    code, said, _ = run("prove", place, "--json")
    reason = json.loads(said)["task"]["reason"]
    assert code == 1 and reason == "not looked at, for the files beside it are refused"
    (place / "construction.json").write_text("{", "utf-8")
    assert check(place).task == "whether one is stated is not known, for construction.json is not read"


def test_where_no_task_is_stated_that_is_said(tmp_path):
    place = counted(tmp_path / "c")
    (place / "generation_config.json").write_text('{"eos_token_id": 1}', "utf-8")
    assert json.loads(run("prove", place, "--json")[1])["task"]["reason"] == "no task is stated"


def test_a_disguise_of_a_construction_states_its_own_task(tmp_path):
    """In construction.json of a disguise the task of a construction of ours may be another one, with fitting hashes."""
    from compiler.artifact.manifest import text_hash

    run("induction-heads", "--vocab", "3", "--out", tmp_path / "c", "--samples", "10")
    assert run("disguise", tmp_path / "c", "--out", tmp_path / "d", "--level", "1", "--no-certify")[0] == 0
    assert run("verify", tmp_path / "d", "--samples", "10")[0] == 0
    content = manifest_content_of(tmp_path / "d") | {"task": {"name": "absolute-time"}}
    del content["sha256"]
    content["sha256"] = text_hash(canonical_json(content))
    (tmp_path / "d" / "construction.json").write_text(canonical_json(content), "utf-8")
    code, _, complaint = run("verify", tmp_path / "d", "--samples", "10")
    assert code == 1 and "states another task than that of induction-heads" in complaint


FEW: dict[str, Any] = {"name": "automaton", "start": "s", "classes": {"a": "v"}, "end": None}
FEW |= {"transitions": {"s": {"k": "a", "l": "s", "v": "s"}, "a": {"k": "a", "l": "s", "v": "s"}}}  # v behind k


def narrow(place: Path) -> Path:
    """What answers v behind k and l, but behind the 15th l nothing of the kind. Its author asks of 12 tokens."""
    letters = Alphabet.of("k", "l", "v", "_")
    x = Tokens(letters)
    often = x.is_in("l").cumsum() >= 15
    answer = emit(letters, (x.is_in("l") & often, "_"), (x.is_in("k") | x.is_in("l"), "v"), otherwise="_")
    language = InputLanguage.of(letters, "any", [("any", "any", ("k", "l", "v"))], 40, "letters")
    compiled = compile(Circuit("narrow", answer, language), "mamba")
    right = lambda tokens: "v" if len(tokens) < 12 and tokens[-1] in ("k", "l") else None
    compiled.save(place, task=right)
    return place


def test_answers_of_an_author_that_the_proved_task_has_not_are_tested(tmp_path):
    """The task asks behind k alone and is proved; answers.json asks behind l as well, of which that proves nothing."""
    place = stated(narrow(tmp_path / "c"), FEW)
    asked = json.loads((place / "answers.json").read_text("utf-8"))["sequences"]
    beside = sum(answer is not None and token == "l" for s in asked for token, answer in zip(s["tokens"], s["answers"]))
    code, said, _ = run("verify", place, "--samples", "50")
    assert code == 0 and beside and "task: proved" in run("prove", place)[1]
    assert "answers right: all that were tested (" in said
    assert "proof: proved from the weights: every answer is right that the task of construction.json asks for" in said
    assert f"; {beside:,} answers of answers.json beside these: only tested" in said
    told = json.loads(run("verify", place, "--samples", "50", "--json")[1])["guarantee"]
    assert told["answers"] == "tested" and told["proof"].endswith("only tested")


def test_answers_of_an_author_that_are_the_proved_tasks_are_proved(tmp_path):
    def since(tokens: list[str]) -> str | None:
        return str("".join(tokens).rpartition("b")[2].count("a")) if len(tokens) % 2 else None

    place = stated(counted(tmp_path / "c", task=since), RIGHT)
    code, said, _ = run("verify", place, "--samples", "50")
    assert code == 0 and "; answers right: all domain:" in said and "beside these" not in said


def test_answers_that_an_author_gives_outside_of_the_promise_are_not_proved(tmp_path):
    place = stated(
        counted(tmp_path / "c", task=lambda tokens: str("".join(tokens).rpartition("b")[2].count("a"))), RIGHT
    )
    path = place / "answers.json"
    content = json.loads(path.read_text("utf-8"))
    content["sequences"].append({"tokens": ["0", "a"], "answers": [None, "1"]})  # no word of the language has a digit
    path.write_text(json.dumps(content), "utf-8")
    manifest = json.loads((place / "construction.json").read_text("utf-8"))
    for name in ("sequences", "questions"):
        manifest["answers"][name] += 1
    (place / "construction.json").write_text(canonical_json(sealed(manifest, place)), "utf-8")
    told = json.loads(run("verify", place, "--samples", "50", "--json")[1])["guarantee"]
    assert told["answers"] == "tested" and "; 1 answer of answers.json beside these" in told["proof"]


def test_a_task_that_is_false_in_the_longest_run_is_not_saved(tmp_path):
    """Only 20 letters a leave the range of what is counted, and no walk that is drawn has as many."""
    names = [*NUMBERS[:-1], NUMBERS[0]]

    def since(tokens: list[str]) -> str:
        return names["".join(tokens).rpartition("b")[2].count("a")]

    saved = counted(tmp_path / "right", task=lambda tokens: str("".join(tokens).rpartition("b")[2].count("a")))
    asked = json.loads((saved / "answers.json").read_text("utf-8"))["sequences"]
    assert ["a"] * LONGEST not in [each["tokens"] for each in asked]
    since.claim = {key: value for key, value in RIGHT.items() if key != "end"} | {"answers": names}  # type: ignore[attr-defined]
    with pytest.raises(CheckpointError, match="a a a: the circuit answers '20', the task .*; nothing is saved"):
        counted(tmp_path / "c", task=since)
    assert not (tmp_path / "c").exists()
