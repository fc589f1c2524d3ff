"""A sample of the zoo through the whole path: built, proved, asked, reloaded by transformers, and its data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from compiler import load
from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import WEIGHTS
from compiler.artifact.generate import transformers_model
from compiler.artifact.json_files import canonical_json
from compiler.artifact.manifest import sealed
from compiler.errors import CompileError
from compiler.tracing.compared import Unread
from constructions.zoo import build as building
from constructions.zoo import several
from constructions.zoo.build import build
from constructions.zoo.collection import chosen, entries
from constructions.zoo.entry import FromPaper, Own
from constructions.zoo.kept import Kept
from constructions.zoo.labels import labels, variables
from constructions.zoo.measured import measured
from constructions.zoo.parquet import write_data
from tests.constructions.test_construct import run

SAMPLE = (
    *("count-since-b-to-8", "distinct-letters", "ends-ab", "thermostat-0-3", "ab-or-ba-last", "only-b-6", "depth-3"),
    *("add-base-2", "lock", "calculator-2-8", "bigram-3", "tomita-2", "mqar-4", "fibonacci-7", "keep-1st"),
)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("zoo")
    for name in SAMPLE:
        row = build(entries()[name], place / name)
        assert row.good and row.proof == measured().get(name, row).proof and row.questions == row.right > 100, row
    return place


@pytest.mark.parametrize("name", SAMPLE)
def test_transformers_answers_as_the_oracle(checkpoints: Path, name: str) -> None:
    model, entry = transformers_model(checkpoints / name, "float32"), entries()[name]
    names = entry.circuit().token_alphabet.tokens
    asked = 0
    for word, answers in entry.sequences(4, 7):
        with torch.no_grad():
            scores = model(torch.tensor([[names.index(token) for token in word]])).logits[0]
        for row, answer in zip(scores, answers, strict=True):
            if answer is not None:
                asked += 1
                assert int(row.argmax()) == names.index(answer)
    assert asked


def test_a_checkpoint_says_what_its_circuit_answers(checkpoints: Path) -> None:
    said = json.loads((checkpoints / "only-b-6" / "construction.json").read_text("utf-8"))["answers"]
    entry = entries()["only-b-6"]
    assert (said["function"], said["says"]) == (entry.name, entry.says)


@pytest.mark.parametrize("name", SAMPLE)
def test_data_open_with_datasets_and_hold_every_variable(tmp_path: Path, name: str) -> None:
    datasets = pytest.importorskip("datasets")
    entry = entries()[name]
    wrote = write_data(entry, tmp_path / "data", 20, 10, 0)
    assert wrote == ({"train": 9, "test": 4} if name == "fibonacci-7" else {"train": 20, "test": 10})  # it has 13
    found = datasets.load_dataset(str(tmp_path / "data"), cache_dir=str(tmp_path / "cache"))
    assert {name: len(rows) for name, rows in found.items()} == wrote
    assert not set(found["train"]["text"]) & set(found["test"]["text"])
    for row in found["train"]:
        for variable in variables(entry.circuit()):
            assert len(row[variable.name]) == len(row["tokens"]) == len(row["answers"])


@pytest.mark.parametrize("name", SAMPLE)
def test_labels_are_what_the_lanes_of_the_model_hold(checkpoints: Path, name: str) -> None:
    entry, model = entries()[name], load(checkpoints / name)
    ((word, _),) = entry.sequences(1, 9)
    (found,) = labels(entry.circuit(), [word])
    trace, carried = model.trace(" ".join(word)), 0
    for variable in variables(entry.circuit()):
        try:
            raw = trace[variable.name].raw
        except Unread:  # it stands on no lane
            continue
        carried += 1
        assert variable.label(raw) == found[variable.name], variable.name
    assert carried or name in ("keep-1st",), "no variable is carried"


def test_labels_are_what_the_text_says(tmp_path: Path) -> None:
    from pyarrow import parquet

    write_data(entries()["count-since-b-to-8"], tmp_path, 30, 5, 3)
    for row in parquet.read_table(tmp_path / "train.parquet").to_pylist():
        text = "".join(row["tokens"])
        assert row["is_a"] == [int(letter == "a") for letter in text]
        assert row["since"] == [text[: t + 1].rpartition("b")[2].count("a") for t in range(len(text))]
        assert row["answers"] == [str(n) for n in row["since"]]


@pytest.mark.parametrize("name", sorted(entries()))
def test_data_have_one_column_of_a_name_and_a_row_at_least(name: str, tmp_path: Path) -> None:
    """So that all that reads by name opens them; also where a variable is called as the text, or there is one text."""
    from pyarrow import parquet

    entry = entries()[name]
    found = write_data(entry, tmp_path, 3, 2, 0)
    assert found["train"] > 0
    for part, rows in found.items():
        file = tmp_path / f"{part}.parquet"
        assert file.exists() == bool(rows)
        if rows:
            table = parquet.read_table(file)
            assert table.num_rows == rows and len(set(table.column_names)) == len(table.column_names)
            own = [json.loads(field.metadata[b"variable"])["name"] for field in table.schema if field.metadata]
            assert own == [variable.name for variable in variables(entry.circuit())]


def test_a_test_of_an_earlier_run_does_not_stay_where_there_is_one_text(tmp_path: Path) -> None:
    (tmp_path / "test.parquet").write_bytes(b"earlier")
    assert write_data(entries()["aa-star"], tmp_path, 3, 2, 0) == {"train": 1, "test": 0}
    assert not (tmp_path / "test.parquet").exists()


def test_the_same_arguments_give_the_same_bytes(tmp_path: Path, checkpoints: Path) -> None:
    entry = entries()["distinct-letters"]
    for name in ("one", "two"):
        write_data(entry, tmp_path / name, 12, 4, 5)
    for name in ("train.parquet", "test.parquet"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    entry.write(tmp_path / "again")
    for path in (tmp_path / "again").iterdir():
        assert path.read_bytes() == (checkpoints / entry.name / path.name).read_bytes(), path.name


def test_a_changed_weight_is_found(tmp_path: Path) -> None:
    entry = entries()["count-since-b-to-8"]
    made = entry.write(tmp_path / "broken")
    tensors = load_file(tmp_path / "broken" / WEIGHTS)
    head = tensors["lm_head.weight"]
    row, lane = np.argwhere(head.numpy() != 0)[0].tolist()
    head[row, lane] *= -1
    save_file(tensors, tmp_path / "broken" / WEIGHTS, metadata={"format": "pt"})
    assert not building.prove(tmp_path / "broken").accepted
    stack_of, building.load = building.load, lambda directory: stack_of(directory, sealed=False)
    try:
        found = building.ask(made, tmp_path / "broken", entry.sequences(20, 0))
    finally:
        building.load = stack_of
    assert not found.bit_exact and found.correct < found.queries


def other_checkpoint(place: Path) -> None:
    """Of another circuit of the zoo."""
    entries()["ends-ab"].write(place)


def own_files(place: Path) -> None:
    place.mkdir(parents=True)
    (place / "notes.txt").write_text("mine")


def contents(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.iterdir()}


@pytest.mark.parametrize("workers", [(), ("--workers", "1")], ids=["", "workers"])
@pytest.mark.parametrize("put", [other_checkpoint, own_files])
def test_what_stands_in_the_place_of_a_circuit_is_left_alone(put, workers, tmp_path: Path, capsys, here) -> None:
    put(tmp_path / "count-a-to-8")
    before = contents(tmp_path / "count-a-to-8")
    code = run("zoo", "build", "count-a-to-8", "token-1-back", "--out", str(tmp_path), "--json", *workers)
    told = json.loads(capsys.readouterr().out)
    assert code == 1 and told["kept"] == 0 and [row["name"] for row in told["circuits"]] == ["token-1-back"]
    assert "so it is left alone" in told["refused"]["count-a-to-8"]
    assert contents(tmp_path / "count-a-to-8") == before


@pytest.mark.parametrize("workers", [(), ("--workers", "1")], ids=["", "workers"])
def test_files_of_the_user_beside_a_circuit_stay(workers, tmp_path: Path, here) -> None:
    assert run("zoo", "build", "count-a-to-8", "--out", str(tmp_path), "--json") == 0
    for name in ("notes.txt", "README.md"):
        (tmp_path / "count-a-to-8" / name).write_text("mine")
    arguments = ("--seed", "1", "--out", str(tmp_path), "--json", *workers)  # another seed: it is built again
    assert run("zoo", "build", "count-a-to-8", *arguments) == 0
    assert all((tmp_path / "count-a-to-8" / name).read_text() == "mine" for name in ("notes.txt", "README.md"))
    assert building.prove(tmp_path / "count-a-to-8").accepted


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given to workers is done in this process."""
    results = lambda shards, *_: ((shard, several.built(**shard.arguments)) for shard in shards)
    monkeypatch.setattr("constructions.shards.engine.results", results)


def test_a_wrong_oracle_is_not_good(tmp_path: Path) -> None:
    entry = entries()["distinct-letters"]
    assert isinstance(entry, Own)
    wrong = replace(entry, oracle=lambda tokens: "2")
    with pytest.raises(Exception, match="answers"):
        build(wrong, tmp_path / "wrong")


def another_task(place: Path) -> None:
    """What an edited claim is with hashes that fit: the checker does not prove it, and the weights are as they were."""
    content = json.loads((place / "construction.json").read_text("utf-8"))
    content["task"] |= {"name": "count", "of": ["b"], "since": [], "answers": ["no", "yes"]}
    (place / "construction.json").write_text(canonical_json(sealed(content, place)), "utf-8")


def another_length(place: Path) -> None:
    content = json.loads((place / "construction.json").read_text("utf-8"))
    content["promise"]["length"] *= 1000
    (place / "construction.json").write_text(canonical_json(sealed(content, place)), "utf-8")


def another_head(place: Path) -> None:
    tensors = load_file(place / WEIGHTS)
    tensors["lm_head.weight"] += 0.5
    save_file(tensors, place / WEIGHTS, metadata={"format": "pt"})


def an_adapter(place: Path) -> None:
    (place / "adapter_config.json").write_text("{}")


def no_circuit(place: Path) -> None:
    (place / "circuit.json").unlink()


@pytest.mark.parametrize("workers", [(), ("--workers", "1")], ids=["", "workers"])
@pytest.mark.parametrize("seed", ["0", "1"])
@pytest.mark.parametrize("edit", [another_task, another_length, another_head, an_adapter, no_circuit])
def test_what_was_edited_is_neither_called_proved_nor_replaced(
    edit, seed: str, workers, tmp_path: Path, capsys, here
) -> None:
    build_it = ("zoo", "build", "at-least-1", "--out", str(tmp_path), "--json")
    assert run(*build_it) == 0
    edit(tmp_path / "at-least-1")
    before = contents(tmp_path / "at-least-1")
    capsys.readouterr()
    assert run(*build_it, "--seed", seed, *workers) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["circuits"] == [] and told["proved"]["answers"] == told["right"] == 0
    assert "left alone" in told["refused"]["at-least-1"]
    assert contents(tmp_path / "at-least-1") == before


def test_numbers_of_a_record_are_not_repeated(tmp_path: Path, capsys) -> None:
    build_it = ("zoo", "build", "at-least-1", "--out", str(tmp_path), "--json")
    assert run(*build_it) == 0
    first = json.loads(capsys.readouterr().out)
    rows = json.loads((tmp_path / "zoo.json").read_text("utf-8"))
    rows["circuits"][0] |= {"questions": 10**6, "right": 10**6, "proof": "scores", "promise": "any"}
    (tmp_path / "zoo.json").write_text(json.dumps(rows), "utf-8")
    assert run(*build_it) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["right"], again["proved"], again["kept"]) == (first["right"], first["proved"], 1)


def test_what_a_run_left_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    entry = entries()["count-a-to-8"]
    row, files = build(entry, tmp_path / entry.name), contents(tmp_path / entry.name)
    assert Kept(tmp_path).check_replaced(entry.name, files), "the same stands there, whoever wrote it"
    other = files | {"config.json": b"{}"}
    with pytest.raises(CheckpointError, match="left alone"):
        Kept(tmp_path).check_replaced(entry.name, other)
    Kept(tmp_path).add(row)
    assert not Kept(tmp_path).check_replaced(entry.name, other)
    (tmp_path / entry.name / "README.md").write_text("mine")
    assert Kept(tmp_path).check_replaced(entry.name, files)
    (tmp_path / entry.name / WEIGHTS).write_bytes(b"damaged")
    for held in (files, other):
        with pytest.raises(CheckpointError, match="left alone"):
            Kept(tmp_path).check_replaced(entry.name, held)


def test_names_globs_and_families() -> None:
    assert [entry.name for entry in chosen(["count-a-to-*"])] == ["count-a-to-8", "count-a-to-24"]
    assert len(chosen(["counting"])) > 10
    assert chosen([], True) == list(entries().values())
    for names, everything in (([], False), (["mqar-4"], True)):
        with pytest.raises(ValueError, match="--all"):
            chosen(names, everything)
    with pytest.raises(ValueError, match="did you mean 'mqar-4'"):
        chosen(["mqar4"])


def test_the_command_lists_builds_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*arguments: str) -> str:
        assert run("zoo", *arguments) == 0
        return capsys.readouterr().out

    assert [row["name"] for row in json.loads(said("list", "--json"))] == list(entries())
    assert "→" in said("show", "mqar-4")
    for kept in (0, 1):
        told = json.loads(said("build", "count-a-to-8", "--out", str(tmp_path), "--json"))
        assert told["kept"] == kept and told["failed"] == [] and told["right"] == told["questions"] > 0
    assert run("zoo", "build", "no-such-circuit") == 2
    assert "the zoo has no circuit" in capsys.readouterr().err


def test_circuits_are_built_of_mamba2(tmp_path: Path, capsys) -> None:
    names = ("count-since-b-to-8", "mqar-4", "bigram-3")
    assert run("zoo", "build", *names, "--arch", "mamba2", "--out", str(tmp_path), "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows["kept"] == 0 and not rows["refused"]
    for row in rows["circuits"]:
        assert row["arch"] == "mamba2" and row["exact"] and row["proof"] and row["right"] == row["questions"] > 100
        config = json.loads((tmp_path / row["name"] / "config.json").read_text("utf-8"))
        assert config["model_type"] == "mamba2"
    assert run("zoo", "build", names[0], "--arch", "mamba2", "--out", str(tmp_path), "--json") == 0
    assert json.loads(capsys.readouterr().out)["kept"] == 1
    assert run("zoo", "build", names[0], "--out", str(tmp_path), "--json") == 0
    again = json.loads(capsys.readouterr().out)
    assert again["kept"] == 0 and again["circuits"][0]["weights"] != rows["circuits"][0]["weights"], "another mixer"


def test_what_cannot_be_built_of_a_mixer_is_told(tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Own.write

    def refusing(entry: Own, directory: Path, arch: str = ""):
        if entry.name == "ends-ab":
            raise CompileError([(None, "it has no place for this")])
        return plain(entry, directory, arch)

    monkeypatch.setattr(Own, "write", refusing)
    code = run("zoo", "build", "ends-ab", "token-1-back", "--arch", "mamba2", "--out", str(tmp_path), "--json")
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert code == 1 and [row["name"] for row in found["circuits"]] == ["token-1-back"]
    assert "it has no place for this" in found["refused"]["ends-ab"]
    assert "ends-ab was not built of mamba2" in said.err and not (tmp_path / "ends-ab").exists()


def test_every_theorem_of_the_zoo_has_a_mixer_to_choose() -> None:
    assert all("arch" in e.construction.params() for e in entries().values() if isinstance(e, FromPaper))


def test_rows_of_an_earlier_file_are_read(tmp_path: Path) -> None:
    row = measured()["mqar-4"].to_json()
    assert row.pop("arch") == ""
    (tmp_path / "zoo.json").write_text(json.dumps({"circuits": [row]}))
    assert Kept(tmp_path)._rows["mqar-4"] == measured()["mqar-4"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"questions": "many"}, "a row.questions is 'many', expected an integer"),
        ({"questions": -5, "right": -5}, "has -5 right answers of -5"),
        ({"right": 10**9}, "right answers of"),
        ({"proof": "all of it"}, "has proof = 'all of it'"),
        ({"proof": []}, "a row.proof is"),
        ({"seed": -1}, "has a number below 0"),
        ({"difficulty": {"blocks": -1}}, "has a number below 0"),
        ({"cpu_seconds": float("nan")}, "NaN is no JSON number"),
        ({"name": 3}, "a row.name is 3"),
    ],
)
def test_rows_that_no_run_gives_are_refused(change: dict, says: str, tmp_path: Path) -> None:
    row = measured()["mqar-4"].to_json()
    (tmp_path / "zoo.json").write_text(json.dumps({"circuits": [row | change]}))
    with pytest.raises(ValueError, match="zoo.json holds no rows of the zoo") as refused:
        Kept(tmp_path)
    assert says in str(refused.value)


@pytest.mark.parametrize("text", ["[]", "3", "null", '{"circuits": 3}', '{"circuits": [3]}', '{"a": []}', "[" * 10**5])
def test_a_file_that_is_none_of_the_zoo_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "zoo.json").write_text(text)
    with pytest.raises(ValueError, match="holds no rows of the zoo"):
        Kept(tmp_path)


def test_two_rows_of_one_name_are_refused(tmp_path: Path) -> None:
    row = measured()["mqar-4"].to_json()
    (tmp_path / "zoo.json").write_text(json.dumps({"circuits": [row, row]}))
    with pytest.raises(ValueError, match="stands there twice"):
        Kept(tmp_path)
