"""`construct automaton`: what it says, what it builds, what it refuses."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from compiler.automata.images import CapMet
from compiler.automata.regex import regex_table
from compiler.automata.table import Table, table_of
from constructions.automata.automaton import table_json
from constructions.automata.explain import decide
from constructions.command.cli import app
from tests.automata.tables import random_table

KEYS = {"states", "monoid", "star_free", "groups", "levels", "sizes", "promise"}


def explained(*arguments: str) -> dict:
    done = CliRunner().invoke(app, ["automaton", *arguments, "--explain", "--json"], catch_exceptions=False)
    return json.loads(done.stdout)


def test_star_free_languages_live_for_ever() -> None:
    said = explained("--name", "dyck-2-3")
    assert said.keys() >= KEYS
    assert (said["states"], said["monoid"], said["star_free"], said["levels"]) == (16, 285, True, 4)
    assert said["promise"] == "every length" and said["sizes"]["layers"] == {"mamba": 5, "mamba2": 9}


@pytest.mark.parametrize(
    "name, group, promise", [("s4", "S_4", "sequences of at most 1536 letters"), ("a5", "A_5", "")]
)
def test_groups_are_named_with_the_theorem_that_says_what_they_take(name: str, group: str, promise: str) -> None:
    said = explained("--name", name)
    assert not said["star_free"] and said["groups"] == [group] and said["levels"] is None
    assert said["promise"] == promise and "Sarrof" in " ".join(said["says"])


@pytest.mark.parametrize("more", [[], ["--arch", "mamba2"], ["--length", "10"]])
def test_a_group_that_is_not_solvable_is_refused_with_the_theorem_and_what_holds_it(more: list[str]) -> None:
    """On both mixers, at any length: the compiler's limit, and beside it what works."""
    said = "Mamba and Mamba-2: refused at any length, for this compiler counts .* A_5 cannot: .*NC.1 .*; --arch gated"
    with pytest.raises(ValueError, match=said):
        CliRunner().invoke(app, ["automaton", "--name", "a5", *more], catch_exceptions=False)


def test_no_mixer_is_named_that_does_not_hold_it_either(monkeypatch: pytest.MonkeyPatch) -> None:
    def capped(table: Table) -> None:
        raise CapMet("a level of its cascade is large")

    monkeypatch.setattr("constructions.automata.explain.turning_of", capped)
    with pytest.raises(ValueError) as refusal:
        CliRunner().invoke(app, ["automaton", "--name", "a5"], catch_exceptions=False)
    assert "gated-deltanet" not in str(refusal.value) and str(refusal.value).endswith(".")


@pytest.mark.parametrize(
    "table, said",
    [
        (regex_table("a*b(a|b)"), "4 states (6 as written, before equal ones are joined), "),
        (regex_table("(aa|b)*"), "3 states (5 as written, before equal ones are joined), "),
        (
            table_of({"p": {"a": "p"}, "q": {"a": "p"}}, "p", {"p": "yes", "q": "no"}),
            "1 state (2 as written, before equal ones are joined and those that no word reaches are left out), ",
        ),
        (table_of({"p": {"a": "p"}}, "p", {"p": "yes"}), "1 state, "),
    ],
)
def test_states_are_told_as_they_are_written_too(table: Table, said: str) -> None:
    """For the task is told of those."""
    assert decide(table).says[0].startswith(said)


@pytest.mark.parametrize("seed, letters", [(0, "ab"), (1, "abcdefgh"), (2, "a")])
def test_fifty_states_are_answered_soon(seed: int, letters: str) -> None:
    started = time.process_time()
    decision = decide(random_table(seed, 50, letters))
    assert time.process_time() - started < 10
    assert decision.star_free is not None or "the cap was met" in decision.says[0]


def test_fifty_states_without_groups_are_answered_soon() -> None:
    """One letter climbs, one falls, one starts again: all intervals are images."""
    rows = tuple((min(s + 1, 49), max(s - 1, 0), 0) for s in range(50))
    outputs = tuple("yes" if s % 7 == 0 else "no" for s in range(50))
    started = time.process_time()
    decision = decide(Table(tuple("abc"), rows, 0, outputs, tuple(map(str, range(50)))))
    assert time.process_time() - started < 10
    assert decision.star_free


def write(tmp_path: Path, data: object) -> str:
    path = tmp_path / "table.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return str(path)


@pytest.mark.parametrize(
    "data, said",
    [
        ("{", "the table is no JSON"),
        ([], "the table must be"),
        (
            {"start": "p", "transitions": {"p": {"a": "p"}}, "accept": [], "accepts": ["p"]},
            "an entry 'accepts', and start, transitions, accept, classes are read",
        ),
        ({"start": "p", "transitions": {"p": {"a": "p"}}}, '"accept", a list of states, or "classes"'),
        ({"start": "p", "accept": ["q"], "transitions": {"p": {"a": "p"}}}, "\"accept\" names 'q'"),
        ({"start": "p", "accept": "p", "transitions": {"p": {"a": "p"}}}, '"accept" must be a list'),
        ({"start": "p", "classes": {"p": 1}, "transitions": {"p": {"a": "p"}}}, '"classes" must name'),
        ({"start": "p", "accept": [], "transitions": {"p": {"a": "q"}, "q": {}}}, "not total"),
        ('{"start": "p", "accept": [], "transitions": {"p": {"a": "p", "a": "p"}}}', "'a' stands in one object twice"),
        ('{"start": %s}' % ("1" * 5000), "has an integer of more than 4,300 digits"),
    ],
)
def test_a_table_that_is_none_is_refused(tmp_path: Path, data: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        CliRunner().invoke(app, ["automaton", "--table", write(tmp_path, data), "--explain"], catch_exceptions=False)


def test_a_letter_that_tokenizers_keep_is_refused_before_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("constructions.checkpoints.built.build", None)
    table = write(tmp_path, {"start": "p", "accept": [], "transitions": {"p": {"<pad>": "p"}}})
    with pytest.raises(ValueError, match="no name may hold <eos>, <pad>, <unk>, which tokenizers cut out"):
        CliRunner().invoke(app, ["automaton", "--table", table, "--out", str(tmp_path / "out")], catch_exceptions=False)


@pytest.mark.parametrize("rest", [["--explain"], ["--out", "out"]])
@pytest.mark.parametrize(
    "letter, answer, said",
    [
        ("a b", "p", "token 'a b' is empty or holds white space"),
        ("", "p", "token '' is empty or holds white space"),
        ("<unk>", "p", "no name may hold <eos>, <pad>, <unk>"),
        ("a", "\t", "holds white space"),
    ],
)
def test_names_that_no_tokenizer_holds_are_refused_before_anything_is_promised(
    letter: str, answer: str, said: str, rest: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of letters and of what is answered."""
    monkeypatch.chdir(tmp_path)
    table = write(tmp_path, {"start": "p", "classes": {"p": answer}, "transitions": {"p": {letter: "p"}}})
    done = CliRunner().invoke(app, ["automaton", "--table", table, *rest])
    assert isinstance(done.exception, ValueError) and said in str(done.exception)
    assert not done.stdout and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--explain"], "give exactly one"),
        (["--name", "tomita-9"], "no language is named 'tomita-9'"),
        (["--regex", "a*", "--name", "tomita-1"], "give exactly one"),
        (["--name", "tomita-1", "--letters", "ab"], "belongs to --regex"),
        (["--name", "tomita-1", "--length", "long"], "or forever for every length"),
        (["--name", "tomita-1", "--length", "0"], "or forever for every length"),
        (["--regex", "abc", "--letters", "ab"], "has the letter 'c'"),
        (["--regex", "(ab){}"], r"repeats by \{\}; write \{3\}"),
    ],
)
def test_bad_usage_is_refused(arguments: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        CliRunner().invoke(app, ["automaton", *arguments], catch_exceptions=False)


def test_a_table_of_classes_is_built_saved_proved_and_verified(tmp_path: Path) -> None:
    table = {
        "start": "low",
        "classes": {"low": "L", "middle": "M", "high": "H"},
        "transitions": {
            "low": {"up": "middle", "down": "low"},
            "middle": {"up": "high", "down": "low"},
            "high": {"up": "high", "down": "middle"},
        },
    }
    out = str(tmp_path / "built")
    run = lambda *arguments: CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    done = run("automaton", "--table", write(tmp_path, table), "--out", out, "--samples", "50")
    assert done.exit_code == 0
    report = json.loads(done.stdout)
    assert report.keys() >= KEYS and report["promise"] == "every length"
    assert all(report["guarantee"]["certificate"]["parts"].values())
    assert "of every length" in report["guarantee"]["certificate"]["domain"]
    assert report["guarantee"]["domain"] == "every sequence of the letters up down; of every length, float32"
    again = run("verify", out, "--samples", "20")
    assert again.exit_code == 0
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, names = AutoModelForCausalLM.from_pretrained(out, dtype="float32"), AutoTokenizer.from_pretrained(out)
    scores = model(names("up up down up down down", return_tensors="pt").input_ids).logits[0]
    assert names.decode(scores.argmax(-1)) == "M H M H M L"


@pytest.mark.parametrize("name", ["\u202eb", "a\u200b", "\x07"])
def test_a_name_that_nobody_sees_is_refused(name: str, tmp_path: Path) -> None:
    """The checker proves no task of such letters, for nobody could read which they are."""
    for table in (
        {"start": "s", "accept": ["s"], "transitions": {"s": {name: "s"}}},
        {"start": "s", "classes": {"s": name}, "transitions": {"s": {"a": "s"}}},
    ):
        with pytest.raises(ValueError, match="has characters that cannot be seen"):
            CliRunner().invoke(app, ["automaton", "--table", write(tmp_path, table)], catch_exceptions=False)


@pytest.mark.parametrize(
    ("start", "classes", "moves"),
    [
        ("s", {"s": "first", "t": "later"}, {"s": {"a": "t"}, "t": {"a": "t"}}),
        ("s", {"s": "first", "t": "later", "z": "never"}, {"s": {"a": "t"}, "t": {"a": "t"}, "z": {"a": "s"}}),
        ("s", {"s": "x", "t": "y"}, {"s": {"a": "t", "b": "s"}, "t": {"a": "t", "b": "t"}}),
    ],
    ids=["start", "start and one apart", "all"],
)
def test_an_answer_that_no_letter_leads_to_leaves_the_others_proved(start, classes, moves, tmp_path: Path) -> None:
    """It is asked nowhere, and the words say that its state asks nothing."""
    out = str(tmp_path / "built")
    table = {"start": start, "classes": classes, "transitions": moves}
    asked = ("automaton", "--table", write(tmp_path, table), "--length", "20", "--samples", "5", "--out", out)
    for arguments in (asked, ("prove", out), ("verify", out, "--samples", "5")):
        done = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
        assert done.exit_code == 0, done.output
    proved = json.loads(CliRunner().invoke(app, ["prove", out, "--json"], catch_exceptions=False).stdout)
    entered = {to for state in ("s", "t") for to in moves[state].values()}
    told = {state for state in classes if f"'{state}' asks nothing" in proved["task"]["asks"]}
    assert told == set(classes) - entered


def test_a_table_comes_back_from_its_text() -> None:
    from constructions.automata.automaton import read_table

    table = random_table(5, 6, "abc")
    assert read_table(table_json(table)) == table


@pytest.mark.parametrize("letter", ["[/x]", "[y]", "`a", ":x:", "[bold]"])
def test_letters_that_look_like_markup_are_shown_as_they_are(letter: str, tmp_path: Path) -> None:
    """Also to a person: what is proved is said of letters, and a letter that is left out is another one."""
    step = {letter: "1", "b": "0"}
    table = {"start": "0", "accept": ["1"], "transitions": {"0": step, "1": step}}
    out = str(tmp_path / "[built]")
    asked = ("automaton", "--table", write(tmp_path, table), "--out", out, "--length", "20", "--samples", "5")
    for arguments in (asked, ("inspect", out), ("verify", out, "--samples", "5")):
        done = CliRunner().invoke(app, [*arguments], catch_exceptions=False)
        said = " ".join(done.stdout.split())
        assert done.exit_code == 0 and f"every sequence of the letters {letter} b" in said, said
        assert f"('{letter}' to '1', 'b' to '0')" in said
    assert f"checkpoint: {out}" in "".join(done.stdout.splitlines())


def test_a_table_of_too_many_transitions_is_refused_before_work():
    letters = [f"a{i}" for i in range(2000)]
    rows = {str(i): {letter: str((i + 1) % 33) for letter in letters} for i in range(33)}
    with pytest.raises(ValueError, match="66,000 transitions, 33 states of 2,000 letters, and 65,536 are the most"):
        table_of(rows, "0", dict.fromkeys(rows, "no"))
