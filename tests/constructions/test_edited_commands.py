"""Commands on checkpoints that were edited: harmless edits are taken, others end in one sentence and one object."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from compiler.artifact.json_files import canonical_json
from compiler.artifact.manifest import sealed
from compiler.language.alphabet import Alphabet
from compiler.language.input_language import InputLanguage
from tests.constructions.test_construct import run
from tests.constructions.test_stated_tasks import counted
from verify.checker.check import check
from verify.kernel.files import Unproved, read
from verify.tasks.walks import Walks

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A circuit of one's own, one of a paper, and one over numbers."""
    place = tmp_path_factory.mktemp("edited")
    counted(place / "own")
    assert run("mqar", "--kappa", "2", "--vocab", "3", "--samples", "10", "--out", str(place / "mqar"), "--json") == 0
    sizes = ("--d", "2", "--d-k", "2", "--d-v", "1", "--length", "5")
    assert run("linear-attention", *sizes, "--out", str(place / "numbers"), "--json") == 0
    return place


@pytest.fixture
def copied(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "c"))


def edit(place: Path, **entries: object) -> None:
    """Entries of construction.json, with hashes that fit."""
    path = place / "construction.json"
    content = json.loads(path.read_text("utf-8")) | entries
    path.write_text(canonical_json(sealed(content, place)), "utf-8")


@pytest.mark.parametrize("name", ["own", "mqar"])
def test_the_order_of_words_in_a_tokenizer_says_nothing(name: str, copied: Path) -> None:
    path = copied / name / "tokenizer.json"
    content = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(content, sort_keys=True, indent=1), "utf-8")
    assert list(json.loads(path.read_text("utf-8"))["model"]["vocab"]) != list(content["model"]["vocab"])
    assert check(copied / name).weights is None


@pytest.mark.parametrize("ids", [(1, 0), (0, 0), (0, 2), (True, 0)], ids=str)
def test_other_ids_of_words_are_refused(ids: tuple[int, int], copied: Path) -> None:
    path = copied / "mqar" / "tokenizer.json"
    content = json.loads(path.read_text("utf-8"))
    first, second = list(content["model"]["vocab"])[:2]
    content["model"]["vocab"] |= {first: ids[0], second: ids[1]}
    path.write_text(json.dumps(content), "utf-8")
    assert "have other ids than" in str(check(copied / "mqar").meaning)


def test_a_claim_of_what_any_model_needs_is_found_where_none_is_known(copied: Path, capsys) -> None:
    edit(copied / "numbers", needed="x")
    assert run("verify", str(copied / "numbers")) == 1
    assert "construction.json has an entry 'needed', which the circuit does not give" in capsys.readouterr().err


@pytest.mark.parametrize("cut", ["missing", "empty", "sealed and empty", "no tensors"])
@pytest.mark.parametrize("name", ["own", "mqar", "numbers"])
def test_what_does_not_load_is_told_to_programs(cut: str, name: str, copied: Path, capsys) -> None:
    """One object, with what is wrong in it, and code 1: the files are not what was saved."""
    weights = copied / name / "model.safetensors"
    if cut == "missing":
        weights.unlink()
    else:
        weights.write_bytes(b"\x02\0\0\0\0\0\0\0{}" if cut == "no tensors" else b"")
    if cut == "sealed and empty":
        edit(copied / name)
    capsys.readouterr()
    assert run("verify", str(copied / name), "--json") == 1
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert told["exit_code"] == 1 and told["complaints"][0] == told["error"] and "model.safetensors" in told["error"]
    assert told["guarantee"] is None and told["error"] in err


def test_another_length_of_numbers_is_no_bad_usage(copied: Path, capsys) -> None:
    """Nobody gave inputs that are too long: the files do not fit together."""
    place = copied / "numbers"
    params = json.loads((place / "construction.json").read_text("utf-8"))["params"]
    edit(place, params=params | {"length": params["length"] + 1})
    capsys.readouterr()
    assert run("verify", str(place), "--json") == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["complaints"] and "the inputs have" not in err


def test_numbers_of_every_length_are_not_called_tokens(copied: Path, capsys) -> None:
    place = copied / "numbers"
    promise = json.loads((place / "construction.json").read_text("utf-8"))["promise"]
    edit(place, promise=promise | {"length": None})
    capsys.readouterr()
    assert run("verify", str(place)) == 1
    err = capsys.readouterr().err
    assert "promise.length is null" in err and "its promise is over tokens" not in err


def test_wrong_labels_of_data_are_no_wrong_answers_of_the_circuit(copied: Path, capsys) -> None:
    np.savez(copied / "d.npz", inputs=np.zeros((1, 2), dtype=int), labels=np.zeros((1, 2), dtype=int))
    assert run("verify", str(copied / "own"), "--data", str(copied / "d.npz")) == 1
    err = capsys.readouterr().err
    assert "the label of the data is another than the circuit's answer there" in err and "wrong answer" not in err


LANGUAGES = [
    [("one", "one", ("a", "b"))],
    [("one", "two", ("a", "b", "c")), ("two", "one", ("a",))],
    [("one", "two", ("a",)), ("two", "two", ("b", "c")), ("two", "three", ("a",))],
]


@pytest.mark.parametrize("edges", LANGUAGES, ids=len)
def test_as_many_strings_are_counted_as_there_are(edges: list) -> None:
    """Each is spelled by one path; a letter that no edge carries counts for nothing."""
    letters = Alphabet.of("a", "b", "c", "d")
    walks = Walks(InputLanguage.of(letters, "one", edges, 6, "strings"))
    follows = {(source, name): target for source, target, names in edges for name in names}

    def spelled(word: tuple[str, ...]) -> bool:
        state = "one"
        for name in word:
            state = follows.get((state, name), "")
        return bool(state)

    assert walks.exhaustive_count() == sum(map(spelled, product("abcd", repeat=6))) > 0


FULL = [
    ("inspect", "own", "--json"),
    ("inspect", "own"),
    ("list", "--json"),
    ("trace", "own", "--input", "a b", "--json"),
    ("generate", "mqar", "--prompt", "k0", "--json"),
    ("inspect", "nowhere", "--json"),
]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is full")
@pytest.mark.parametrize("line", FULL, ids=" ".join)
def test_a_full_standard_output_is_one_sentence(line: tuple[str, ...], saved: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "constructions", *line],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=saved,
            env={"PYTHONPATH": str(ROOT), "PATH": ""},
        )
    assert done.returncode == 2
    said = done.stderr.strip()
    assert "\n" not in said and said.endswith(("no space left on device.", "nowhere does not exist."))


def test_no_runtime_writes_with_another_config(copied: Path, capsys) -> None:
    """A norm with another ε gives other scores; transformers would take it as it stands."""
    path = copied / "mqar" / "config.json"
    epsilon = json.loads(path.read_text("utf-8")) | {"layer_norm_epsilon": 1.0}
    path.write_text(json.dumps(epsilon), "utf-8")
    edit(copied / "mqar")
    for runtime in ("mamba-ssm", "transformers"):
        assert run("generate", str(copied / "mqar"), "--prompt", "k0", "--runtime", runtime) == 1
        out, err = capsys.readouterr()
        assert "layer_norm_epsilon" in err and not out
    assert "from 2^-126 on, below 1" in str(check(copied / "mqar").arithmetic)


def test_weights_that_are_no_numbers_are_named_where_nothing_else_is_proved(copied: Path, capsys) -> None:
    weights = copied / "numbers" / "model.safetensors"
    tensors = load_file(weights)
    name = max(tensors)
    tensors[name].fill_(float("nan"))
    save_file(tensors, weights, metadata={"format": "pt"})
    edit(copied / "numbers")
    capsys.readouterr()
    assert run("prove", str(copied / "numbers")) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert said == f"not proved: its weights {name} differ from what its circuit compiles to"


@pytest.mark.parametrize("entry, other", [("length", 7), ("language", None)])
def test_a_trace_tells_of_no_other_promise_than_the_checkpoint_s(
    entry: str, other: int | None, copied: Path, capsys
) -> None:
    promise = json.loads((copied / "own" / "construction.json").read_text("utf-8"))["promise"]
    other = promise["language"] | {"edges": promise["language"]["edges"][:0]} if other is None else other
    edit(copied / "own", promise=promise | {entry: other})
    assert run("trace", str(copied / "own"), "--input", "a b") == 1
    assert f"construction.json promises another {entry} than circuit.json" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["1_0", "\N{ARABIC-INDIC DIGIT ONE}", "1_000.5"])
def test_a_patch_is_a_number_as_it_is_printed(value: str, saved: Path, capsys) -> None:
    assert run("trace", str(saved / "own"), "--input", "a b", "--patch", f"count(is_a, reset=is_b)@1={value}") == 2
    assert "takes a number, and was given" in capsys.readouterr().err


def test_one_of_a_kind_is_counted_as_one(tmp_path: Path, capsys) -> None:
    place = counted(tmp_path / "c", task=lambda tokens: "0" if tokens == ["b"] else None)
    np.savez(tmp_path / "d.npz", inputs=np.zeros((1, 1), dtype=int), labels=np.full((1, 1), -100))
    capsys.readouterr()
    assert run("verify", str(place), "--data", str(tmp_path / "d.npz")) == 0
    assert "d.npz: 1 sequence of 1 token" in capsys.readouterr().out


def test_what_differs_is_one_sentence_with_one_full_stop(copied: Path, capsys) -> None:
    (copied / "mqar" / "circuit.json").write_text("{", "utf-8")
    edit(copied / "mqar")
    assert run("plot", str(copied / "mqar"), "--input", "k0", "--out", str(copied / "p.svg")) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert ".. " not in said and said.endswith("lists the differences.")


def cut(text: str) -> str:
    return text[: len(text) // 2]


def doubled(text: str) -> str:
    return text.replace("{", '{"format": 1, "format": 2, ', 1)


@pytest.mark.parametrize("name", ["own", "mqar", "numbers"])
@pytest.mark.parametrize("file", ["construction.json", "circuit.json", "config.json"])
@pytest.mark.parametrize(
    "damage",
    [cut, doubled, lambda text: "", lambda text: "\ufeff" + text],
    ids=["cut", "an entry twice", "empty", "byte order mark"],
)
def test_damage_of_a_file_is_a_verification_that_failed(name: str, file: str, damage, copied: Path, capsys) -> None:
    """Whatever the file and the circuit are: 1, from each command that says whether the files are right."""
    path = copied / name / file
    path.write_text(damage(path.read_text("utf-8")), "utf-8")
    if file != "construction.json":
        edit(copied / name)
    for command in ("verify", "prove"):
        assert run(command, str(copied / name), "--json") == 1, command
        said = json.loads(capsys.readouterr().out)
        assert said.get("exit_code", 1) == 1


def foreign_weights(place: Path) -> None:
    """One layer's decay has another shape."""
    tensors = load_file(place / "model.safetensors")
    name = next(name for name in sorted(tensors) if name.endswith("A_log"))
    tensors[name] = tensors[name].reshape(-1)[:1].clone()
    save_file(tensors, place / "model.safetensors", {"format": "pt"})


def foreign_tokens(place: Path) -> None:
    """The tokenizer has a letter less."""
    content = json.loads((place / "tokenizer.json").read_text("utf-8"))
    del content["added_tokens"][-1]
    words = content["model"]["vocab"]
    del words[max(words, key=words.get)]
    (place / "tokenizer.json").write_text(json.dumps(content), "utf-8")


def no_lines(place: Path) -> None:
    """No program reads a circuit whose streams are written nowhere."""
    content = json.loads((place / "circuit.json").read_text("utf-8"))
    for stream in content["streams"]:
        stream["source"] = []
    (place / "circuit.json").write_text(json.dumps(content), "utf-8")


READ = [
    ("trace", "{}", "--input", "k0 v1"),
    ("plot", "{}", "--input", "k0 v1", "--out", "{}.png"),
    ("disguise", "{}", "--out", "{}-out"),
    ("export", "{}", "--format", "gguf"),
    ("compose", "{}", "{}", "--out", "{}-out"),
    ("twin", "{}", "--out", "{}-out", "--steps", "1"),
    ("verify", "{}", "--samples", "2"),
]
WRITE = [("generate", "{}", "--prompt", "k0", "--runtime", runtime) for runtime in ("mamba-ssm", "transformers")]


@pytest.mark.parametrize(
    ("damage", "lines"),
    [(foreign_weights, READ + WRITE), (foreign_tokens, READ + WRITE), (no_lines, READ)],
    ids=["weights", "tokens", "lines"],
)
def test_files_that_do_not_fit_together_are_no_bad_usage(damage, lines, copied: Path, capsys) -> None:
    """Each was sealed anew: 1, from every command that meets it, and a sentence."""
    place = copied / "mqar"
    damage(place)
    edit(place)
    for line in lines:
        assert run(*(word.format(place) for word in line)) == 1, line
        assert capsys.readouterr().err.strip(), line
    assert sorted(path.name for path in copied.iterdir()) == ["mqar", "numbers", "own"]


def test_a_causal_graph_that_is_gone_is_missed_wherever_the_checkpoint_is_compared(copied: Path, capsys) -> None:
    place = copied / "mqar"
    (place / "causal_graph.json").unlink()
    commands = [("compose", place, place, "--out", copied / "out"), ("graph", place, "--out", copied / "graph.svg")]
    for line in [*commands, ("report", place, "--out", copied / "page.html")]:
        assert run(*map(str, line)) == 1, line
        assert "causal_graph.json is missing" in " ".join(capsys.readouterr().err.split()), line


def test_a_circuit_without_its_lines_is_told_by_its_file(copied: Path, capsys) -> None:
    no_lines(copied / "mqar")
    edit(copied / "mqar")
    assert run("verify", str(copied / "mqar"), "--samples", "2") == 1
    assert "circuit.json has another streams[0].source: []" in " ".join(capsys.readouterr().err.split())
    assert run("trace", str(copied / "mqar"), "--input", "k0 v1") == 1
    assert "mqar/circuit.json does not compile: stream 0: its source must be" in capsys.readouterr().err


def test_where_no_checkpoint_stands_the_usage_is_bad(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    for place in (tmp_path, tmp_path / "nowhere", Path()):
        for command in ("verify", "prove", "inspect"):
            assert run(command, str(place)) == 2, (command, place)
    assert "the present directory is not a checkpoint of ours" in capsys.readouterr().err


def test_an_entry_that_is_missing_or_one_too_many_is_told_as_that(copied: Path, capsys) -> None:
    content = json.loads((copied / "mqar" / "construction.json").read_text("utf-8"))
    del content["guarantee"]["certificate"]["holds"]
    content["guarantee"]["certificate"]["zzz"] = 1
    for missing, says in ((True, "holds"), (False, "zzz, 1, which the circuit does not give")):
        if not missing:
            content["guarantee"]["certificate"]["holds"] = True
        edit(copied / "mqar", guarantee=content["guarantee"])
        assert run("verify", str(copied / "mqar"), "--samples", "2") == 1
        said = capsys.readouterr().err
        assert f"entry guarantee.certificate.{says}" in said and "None" not in said


def test_answers_of_an_author_are_nothing_that_a_circuit_compiles_to(tmp_path: Path, capsys) -> None:
    place = counted(tmp_path / "c", task=lambda tokens: str("".join(tokens).rpartition("b")[2].count("a")))
    path = place / "answers.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"function": "another"}), "utf-8")
    edit(place)
    assert run("verify", str(place), "--samples", "2") == 1
    said = " ".join("".join(capsys.readouterr()).split())
    assert "answers.json is another file than construction.json tells of: " in said
    assert "'<lambda>', not 'another'" in said and "compiles to" not in said and "construction builds" not in said


def test_a_token_that_a_generation_config_forbids_is_not_laid_on_the_weights_alone(copied: Path, capsys) -> None:
    path = copied / "mqar" / "generation_config.json"
    tokens = json.loads((copied / "mqar" / "config.json").read_text("utf-8"))["vocab_size"]
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"suppress_tokens": [*range(tokens)]}), "utf-8")
    edit(copied / "mqar")
    asked = ("generate", str(copied / "mqar"), "--prompt", "k0 v0 k0", "--max-tokens", "2", "--runtime", "transformers")
    assert run(*asked) == 1
    assert "compares the weights and generation_config.json, which may forbid a token" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "says"),
    [("[" * 10**5, "is nested too deeply"), (f'{{"a": {"7" * 5000}}}', "has an integer of more than 4,300 digits")],
    ids=["deep", "long"],
)
def test_limits_of_a_reader_are_not_called_mistakes_of_json(text: str, says: str, copied: Path) -> None:
    place = copied / "mqar"
    (place / "circuit.json").write_text(text, "utf-8")
    assert str(check(place).meaning) == f"circuit.json {says}"
    with pytest.raises(Unproved, match=f"^circuit.json {says}$"):
        read(place)


@pytest.mark.parametrize(("name", "entry", "value"), [("mqar", "max_length", 1), ("numbers", "d_k", 0)])
def test_what_edited_parameters_ask_for_is_told_of_the_file(name: str, entry: str, value, copied: Path, capsys) -> None:
    params = json.loads((copied / name / "construction.json").read_text("utf-8"))["params"]
    assert entry in params
    edit(copied / name, params=params | {entry: value})
    assert run("verify", str(copied / name)) == 1
    said = capsys.readouterr().err
    assert said.startswith("construction.json: params ask for what is refused: ") and said.count("\n") == 1


def test_weights_that_are_missing_are_not_called_damaged(tmp_path: Path, capsys) -> None:
    place = tmp_path / "abb"
    assert run("automaton", "--regex", "(a|b)*abb", "--samples", "4", "--no-certify", "--out", str(place)) == 0
    (place / "model.safetensors").unlink()
    capsys.readouterr()
    assert run("graph", str(place), "--out", str(tmp_path / "graph.svg")) == 1
    assert "model.safetensors is missing from the checkpoint" in capsys.readouterr().err
