"""What a run writes never takes the place of what it writes as well, nor of a file of another kind."""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from safetensors.torch import save_file
from typer.testing import CliRunner

from compiler.artifact.errors import CheckpointError
from compiler.artifact.place import staging
from compiler.artifact.plain_files import write_whole
from compiler.artifact.save import write_tensors
from compiler.export.mamba_ssm import write_pickled
from conformance import loader as vectors
from conformance.cases import cases
from conformance.junit import junit
from constructions.automata import page as automata_page
from constructions.command import outputs
from constructions.command.cli import app, command_line
from constructions.experiments import page as experiments_page
from constructions.experiments.table_files import csv_text, latex_text
from constructions.pictures.page import save
from constructions.report.page import filled
from constructions.token_selection import lemma_page
from tests.command_lines import commands

ROOT = Path(__file__).parents[2]
INPUTS = {"--weights", "--data", "--file", "--original", "--tokens", "--checkpoint-dir", "--key", "directory", "host"}
GIVEN = {  # what a command needs beside the output, if it is to come to refuse that
    ("verify", "--table"): ("model",),
    ("plot", "--out"): ("model", "--input", "a"),
    ("graph", "--out"): ("model",),
    ("sensitivity", "--plot"): ("model", "--input", "a"),
    ("prove", "--certificate"): ("model",),
    ("report", "--out"): ("model",),
    ("disguise", "--key"): ("model", "--out", "hidden"),
    ("score-table", "place"): ("--keep", "kept"),
    ("score-table", "--keep"): ("models",),
    ("score-table", "--page"): ("models", "--keep", "kept"),
    ("conformance", "--junit"): ("--kernel", "k.py:f"),
    ("zoo", "data", "--out"): ("toggle-32",),
}
TWO = [
    ("reproduce", "table-a3", "--keep", "{}", "--page", "{}"),
    ("reproduce", "table-a3", "--csv", "{}", "--latex", "{}"),
    ("reproduce", "table-a3", "--keep", "{}", "--latex", "{}"),
    ("reproduce", "table-a3", "--csv", "{}", "--plot", "{}"),
    ("reproduce", "lemmas", "--page", "{}", "--plot", "{}"),
    ("reproduce", "statements", "--keep", "{}", "--csv", "{}"),
    ("reproduce", "languages", "--keep", "{}", "--page", "{}"),
    ("reproduce", "training", "--csv", "{}", "--latex", "{}"),
    ("haar", "--out", "{}", "--plot", "{}"),
    ("disguise", "plain", "--out", "{}", "--key", "{}"),
    ("conformance", "--kernel", "k.py:f", "--out", "{}", "--junit", "{}"),
]
FILLED = {  # directories that others are put into: of these, as well
    ("zoo", "build", "--out"): "toggle-32",
    ("zoo", "data", "--out"): "toggle-32/train.parquet",
    ("conformance", "--out"): "models",
    ("score-table", "place"): "last-name-twin",
}

GRAFTED = {"mode": "direct-sum", "circuit": "counts", "host": {}, "files": {}}
SPARED = {  # every command that replaces a directory and reads others: what of OUT it may replace, and its inputs
    "disguise": ("construction.json", {"format": "disguised-construction"}, "{}", ()),
    "undisguise": ("construction.json", {"format": "compiled-construction"}, "{} --key {}", ("--key",)),
    "twin": ("twin.json", {"format": "trained-twin", "files": {}}, "{}", ()),
    "graft": ("graft.json", GRAFTED, "{} {} --tokens {}", ("--tokens",)),
    "compose": ("construction.json", {"format": "compiled-construction"}, "{} {}", ()),
}
READING = [(name, place) for name, (_, _, told, _) in SPARED.items() for place in range(told.count("{}"))]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What a command says that refuses before it begins any work."""

    def work(*_arguments: object, **_options: object) -> NoReturn:
        raise AssertionError("work began")

    monkeypatch.chdir(tmp_path)
    for place in ("checkpoints.disguised.disguise_checkpoint", "report.page.page_of", "experiments.command._run"):
        monkeypatch.setattr(f"constructions.{place}", work)

    def said(*arguments: str) -> str:
        done = CliRunner().invoke(app, arguments, env={"COLUMNS": "400"})
        if isinstance(done.exception, SystemExit) and done.exit_code == 2:  # by the option's own parser
            return " ".join(done.output.split())
        assert isinstance(done.exception, ValueError), done.exception
        return str(done.exception)

    return said


@pytest.mark.parametrize("arguments", TWO, ids=" ".join)
def test_two_outputs_on_one_path_are_refused_before_the_work(arguments, refused, tmp_path: Path) -> None:
    given = iter(("one.png", "./one.png"))
    said = refused(*(next(given) if part == "{}" else part for part in arguments))
    assert "one.png and --" in said and said.endswith("are one file, and one would replace the other; name two files.")
    assert not [*tmp_path.iterdir()]


def test_the_results_and_the_page_of_scores_are_two_files(refused, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("{}")
    assert "are one file" in refused("score-table", "models", "--keep", "kept", "--page", "kept")
    assert (tmp_path / "kept").read_text() == "{}" and not (tmp_path / "models").exists()


def test_one_file_by_two_names_is_one_file(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "kept").write_text("a,b\n")
    (tmp_path / "linked").symlink_to("real")
    (tmp_path / "other").symlink_to("real/kept")
    (tmp_path / "leads to none").symlink_to("real/new")
    os.link(real / "kept", tmp_path / "hard")
    kept, new = real / "kept", real / "new"
    same = [(kept, tmp_path / name) for name in ("linked/kept", "other", "hard", "linked/../real/kept")]
    for first, second in [*same, (new, tmp_path / "leads to none"), (new, tmp_path / "linked" / "new")]:
        with pytest.raises(ValueError, match="are one file"):
            outputs.check_apart({"--csv": first, "--plot": None, "--latex": second})
    outputs.check_apart({"--csv": kept, "--latex": new, "--page": tmp_path / "new", "--plot": None})


def test_no_output_goes_where_the_standard_output_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "said").open("w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        outputs.check_apart({"--csv": tmp_path / "other"})
        with pytest.raises(ValueError, match="said and the standard output are one file"):
            outputs.check_apart({"--csv": tmp_path / "said"})


def paths() -> Iterator[tuple[str, ...]]:
    """(command, option) of every path that a command takes."""
    for names, command in commands(command_line()):
        for one in command.params:
            if "Path" in str(getattr(getattr(one, "type_descriptor", None), "annotation", "")):
                yield (*names, one.opts[0] if one.opts else one.name)


OUTPUTS = [found for found in paths() if found[-1] not in INPUTS and found != ("automaton", "--table")]
OUTPUTS += [("disguise", "--key")]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """What is told from its names to be somebody's model."""
    model = tmp_path / "model"
    (model / "below").mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        (model / name).write_text("{}")
    return model


@pytest.mark.parametrize("output", OUTPUTS, ids=" ".join)
def test_no_command_writes_into_a_model(output, refused, model: Path) -> None:
    """It would hold what is none of its own, and `verify` would refuse it."""
    (*names, option), before = output, sorted(model.rglob("*"))
    given = GIVEN.get(output, ("table-a3", "--keep", "kept") if names == ["reproduce"] else ())
    place = "model/below/new.png" if option == "--plot" or names[0] in ("plot", "graph") else "model/new"
    said = refused(*names, *given, *(() if option == "place" else (option,)), place)
    filled = FILLED.get(output, "")
    assert f"{Path(place, filled)} lies in {model}, which would hold" in said, said
    assert sorted(model.rglob("*")) == before
    if filled:
        said = refused(*names, *given, *(() if option == "place" else (option,)), "model")
        assert f"model/{filled} lies in {model}, which would hold" in said, said


@pytest.mark.parametrize(("name", "place"), READING, ids=str)
@pytest.mark.parametrize("lost", ["old", "old/below/mine", "old/leads-out", "linked/below/mine"])
def test_no_input_lies_in_what_is_replaced(name: str, place: int, lost: str, refused, tmp_path: Path) -> None:
    """Nor is it: of a directory that takes its place whole nothing of the earlier stands."""
    kept, content, told, _ = SPARED[name]
    for directory in ("old/below/mine", "other"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "linked").symlink_to("old")
    (tmp_path / "old" / "leads-out").symlink_to("../other")
    (tmp_path / "old" / kept).write_text(json.dumps(content))
    given = ["other"] * told.count("{}")
    given[place] = lost
    said = refused(name, *told.format(*given).split(), "--out", "old", "--force")
    assert said.startswith("--out old would be replaced, and ") and f" {lost}, which this run reads, would be" in said
    assert (tmp_path / "old" / "below" / "mine").is_dir()


def test_every_command_that_replaces_a_directory_and_reads_others_is_walked() -> None:
    """A command of one input, whose directory is called so, is known by its --force as well."""
    found = {}
    for names, command in commands(command_line()):
        options = {opt for one in command.params for opt in (*one.opts, one.name)}
        if {"--out", "--force"} <= options and options & {"directory", "host", "circuits"}:
            found[names[0]] = {option for option in options & INPUTS if option.startswith("--")}
    keeps = {"export"}  # what is not of an earlier export, and takes the place of nothing else
    assert found.keys() == SPARED.keys() | keeps
    outputs_too = {"disguise": {"--key"}}
    assert {name: found[name] - outputs_too.get(name, set()) for name in SPARED} == {
        name: set(options) for name, (_, _, _, options) in SPARED.items()
    }


@pytest.mark.parametrize("name", SPARED)
def test_a_folder_that_only_has_a_file_of_that_name_is_left_alone(name: str, refused, tmp_path: Path) -> None:
    record, _, told, _ = SPARED[name]
    for given in ("{}", "[1]", '{"files": {}}', "mine"):
        (tmp_path / "old").mkdir(exist_ok=True)
        (tmp_path / "old" / record).write_text(given)
        said = refused(name, *told.format("one", "two", "three").split(), "--out", "old", "--force")
        assert said.startswith("old ") and ("left alone" in said or "choose another directory" in said)
        assert (tmp_path / "old" / record).read_text() == given


@pytest.mark.parametrize("key", ["hidden/k.json", "hidden/.git/k.json", "linked/.git/k.json"])
def test_no_key_stands_anywhere_below_the_disguise(key: str, refused, tmp_path: Path) -> None:
    (tmp_path / "hidden" / ".git").mkdir(parents=True)
    (tmp_path / "linked").symlink_to("hidden")
    (tmp_path / "hidden" / "construction.json").write_text(json.dumps({"format": "disguised-construction"}))
    said = refused("disguise", "plain", "--out", "hidden", "--key", key, "--force")
    assert f"--key {key} lies in the disguised directory" in said


def test_what_verify_lets_stand_in_a_model_is_written_there(refused, model: Path, monkeypatch) -> None:
    for name in ("state.png", "circuit.svg", "notes.txt", "README.md"):
        outputs.check_outside(model / name, "--out")
    for link, told in (("sideways", "below/new"), ("up", "../model/new")):
        (model.parent / link).symlink_to(model / told)
        with pytest.raises(ValueError, match=f"--out .*{link} lies in .*model, which would hold"):
            outputs.check_outside(model.parent / link, "--out")
    monkeypatch.chdir(model)
    with pytest.raises(ValueError, match="--out new lies in"):
        outputs.check_outside(Path("new"), "--out")
    (model / "model.safetensors").unlink()
    outputs.check_outside(model / "new", "--out")  # a config.json alone may be anybody's
    (model / "construction.json").write_text("{}")
    with pytest.raises(ValueError, match="--out .*new lies in"):
        outputs.check_outside(model / "new", "--out")


def test_a_certificate_is_not_the_record_of_the_proof(refused, model: Path) -> None:
    (model.parent / "to-record").symlink_to(model / "proof.json")
    for name in ("model/proof.json", "model/below/../proof.json", "to-record"):
        said = refused("prove", "model", "--certificate", name)
        assert "and the record model/proof.json are one file" in said or "leads nowhere" in said
    assert not (model / "proof.json").exists()


@pytest.mark.parametrize("command", [("plot", "other", "--input", "a"), ("graph", "other")], ids=" ".join)
def test_a_picture_through_a_link_destroys_no_other_file(command, refused, model: Path) -> None:
    (model.parent / "page.html").write_text("<!doctype html>")
    for name, told in (("config.svg", "model/config.json"), ("page.svg", "page.html")):
        (model.parent / name).symlink_to(told)
        said = refused(*command, "--out", name)
        assert f"{name} is there already, and no picture" in said or f"{name} lies in" in said
    assert (model / "config.json").read_text() == "{}" and (model.parent / "page.html").read_text() == "<!doctype html>"


def test_a_link_that_leads_nowhere_is_refused_before_the_work(refused, tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("nowhere")
    assert "out is a link that leads nowhere" in refused("disguise", "plain", "--out", "out")


@pytest.mark.parametrize("name", ["train", "test"])
def test_data_of_the_zoo_replace_no_file_that_is_none(name: str, refused, tmp_path: Path) -> None:
    path = tmp_path / "made" / "toggle-32" / f"{name}.parquet"
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    assert f"{name}.parquet is there already, and no Parquet" in refused("zoo", "data", "toggle-32", "--out", "made")
    assert path.read_text() == "mine" and len([*path.parent.iterdir()]) == 1
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"mine": [1]}), path)
    assert f"{name}.parquet is there already, and no Parquet" in refused("zoo", "data", "toggle-32", "--out", "made")
    path.unlink()
    for _ in range(2):  # and those of an earlier run are replaced
        done = CliRunner().invoke(app, ["zoo", "data", "toggle-32", "--out", "made", "--train", "4", "--test", "2"])
        assert done.exit_code == 0, done.output


def test_vectors_replace_no_weights_of_others(refused, tmp_path: Path) -> None:
    path = tmp_path / "made" / "vectors" / "norm.safetensors"
    path.parent.mkdir(parents=True)
    for metadata in (None, {"format": "pt"}):
        save_file({"mine": torch.ones(2)}, path, metadata)
        before = path.read_bytes()
        assert "norm.safetensors is there already, and no file of vectors" in refused("conformance", "--out", "made")
        assert path.read_bytes() == before and not (tmp_path / "made" / "models").exists()
    vectors.save(cases("norm", False)[:2], path)
    outputs.check_kind(path, "--out", outputs.VECTORS)


HEADS, ROWS = ["model", "said, and of whom"], [["a", 'it is "so",\nso'], ["b", "c"]]
WRITTEN = {
    outputs.CSV: csv_text(HEADS, ROWS),
    outputs.LATEX: latex_text("A table", HEADS, ROWS, ["why", "where"]),
    outputs.MARKDOWN: (ROOT / "docs" / "chains.md").read_text("utf-8"),
    outputs.HTML: filled("page.html", "A title", {}, {}),
    outputs.JUNIT: junit([]),
}
OF_OTHERS = {  # of a kind, and of somebody else
    outputs.LATEX: "\\begin{table}\n\\end{table}\n",
    outputs.MARKDOWN: "# My notes\n",
    outputs.HTML: "<!doctype html>\n<meta name='generator' content='me'>",
    outputs.JUNIT: '<?xml version="1.0"?>\n<testsuites><testsuite name="pytest"></testsuite></testsuites>',
}
OTHERS = ['{"rows": 1, "more": 2}', '{\n "rows": [\n  1,\n  2\n ]\n}', "import os\n\nprint(os, 1)\n", "one line"]


@pytest.mark.parametrize("kind", WRITTEN, ids=lambda kind: kind.name)
def test_a_file_of_one_kind_is_written_again_and_no_other(kind: outputs.Kind, tmp_path: Path) -> None:
    path = tmp_path / "there"
    outputs.path_of_kind(path, "--page", kind)
    for text in ("", WRITTEN[kind], f"\ufeff{WRITTEN[kind]}", csv_text(HEADS, []) if kind is outputs.CSV else ""):
        path.write_text(text, "utf-8")
        outputs.path_of_kind(path, "--page", kind)
    for text in (*(written for other, written in WRITTEN.items() if other is not kind), *OTHERS, *OF_OTHERS.values()):
        path.write_text(text, "utf-8")
        with pytest.raises(ValueError, match=f"there is there already, and no {kind.name}: it would be lost"):
            outputs.path_of_kind(path, "--page", kind)


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_a_picture_takes_the_place_of_one_of_ours_and_of_nothing_else(ending: str, tmp_path: Path) -> None:
    path, other = tmp_path / f"there.{ending}", tmp_path / "other.png"
    Figure().savefig(path)
    with pytest.raises(ValueError, match=rf"there\.{ending} is there already, and no picture of ours"):
        outputs.picture_path(path, "--plot")
    large = Figure(figsize=(40, 40))  # whose mark may stand far behind the beginning
    large.add_subplot().scatter(*np.random.default_rng(0).random((2, 3000)), s=np.arange(3000))
    save(large, path)
    assert path.stat().st_size > 1 << 17
    outputs.picture_path(path, "--plot")
    save(Figure(), path, 50)
    save(Figure(), other, 50)
    outputs.picture_path(path, "--plot")
    for bytes_ in (b"", other.read_bytes()):  # of another ending it is a picture as well
        path.write_bytes(bytes_)
        outputs.picture_path(path, "--plot")
    for text in (*WRITTEN.values(), *OTHERS):
        path.write_text(text, "utf-8")
        with pytest.raises(ValueError, match=rf"there\.{ending} is there already, and no picture of ours: it would"):
            outputs.picture_path(path, "--plot")


def test_titles_of_our_pages_are_those_of_the_pages() -> None:
    for head in (experiments_page._PAPERS, experiments_page._PROGRAMS, lemma_page.HEAD, automata_page.HEAD):
        assert outputs.MARKDOWN.is_ours(head.encode())


def test_a_page_of_an_earlier_version_is_ours_under_its_old_title() -> None:
    assert outputs.MARKDOWN.is_ours(b"# Every program of paper B: what was run\n")


def test_a_csv_of_anybody_is_replaced_with_force_only(refused, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("a,b\n1,2\n")
    (tmp_path / "mine.txt").write_text("precious")
    said = refused("reproduce", "lemmas", "--csv", "mine.csv")
    assert said.endswith("no mark says whose table it is: --force replaces it.")
    assert "mine.txt is there already, and no CSV" in refused("reproduce", "lemmas", "--csv", "mine.txt", "--force")
    outputs.check_csv(tmp_path / "mine.csv", "--csv", True)
    assert (tmp_path / "mine.csv").read_text() == "a,b\n1,2\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("reproduce", "table-a3", "--keep", "new.json", "--page"),
        ("reproduce", "table-a3", "--csv"),
        ("reproduce", "lemmas", "--latex"),
        ("report", "plain", "--out"),
        ("conformance", "--kernel", "k.py:f", "--junit"),
    ],
    ids=" ".join,
)
def test_results_are_not_replaced_by_what_is_written_of_them(arguments, refused, tmp_path: Path) -> None:
    (tmp_path / "kept.json").write_text(OTHERS[1])
    assert "kept.json is there already, and no " in refused(*arguments, "kept.json")
    assert (tmp_path / "kept.json").read_text() == OTHERS[1]


@pytest.fixture
def little_room() -> Iterator[None]:
    """No file may have more than 2,048 bytes, as on a disk that is all but full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
@pytest.mark.parametrize("earlier", [True, False])
def test_a_picture_is_written_whole_or_not_at_all(kind: str, earlier: bool, tmp_path: Path, little_room) -> None:
    place = tmp_path / f"p.{kind}"
    if earlier:
        place.write_bytes(b"good")
    figure = Figure()
    figure.subplots().imshow(np.random.default_rng(0).normal(size=(64, 64)))
    with pytest.raises(OSError, match="large") as full:
        save(figure, place)
    assert full.value.filename == str(place)
    assert [path.name for path in tmp_path.iterdir()] == [place.name] * earlier
    assert not earlier or place.read_bytes() == b"good"


def test_what_a_full_disk_does_not_take_is_named(tmp_path: Path, little_room) -> None:
    for write in (lambda: write_whole(tmp_path / "a.html", "x" * 4096), lambda: _staged(tmp_path / "a.html")):
        with pytest.raises(OSError, match="large") as full:
            write()
        assert full.value.filename == str(tmp_path / "a.html") and not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["safetensors", "pickled"])
def test_weights_that_a_full_disk_does_not_take_are_named(kind: str, tmp_path: Path, little_room) -> None:
    """Neither library raises an OSError."""
    tensors = {"x": torch.zeros(4096)}
    with pytest.raises(CheckpointError, match="could not be written"), staging(tmp_path / "made") as place:
        if kind == "pickled":
            write_pickled(tensors, place / "x.bin")
        write_tensors(tensors, place / "x.safetensors", {})
    assert not list(tmp_path.iterdir())


def _staged(target: Path) -> None:
    with staging(target) as place:
        (place / "a").write_text("x" * 4096)
