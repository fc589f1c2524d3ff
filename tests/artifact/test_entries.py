"""Every entry of construction.json and answers.json missing, null, of another type, shorter or huge, and sealed anew:
each command that reads a checkpoint does its work or refuses it in one sentence, before it prints anything."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile, count, readout_integer
from compiler.artifact.files import ANSWERS, MANIFEST
from compiler.artifact.manifest import sealed
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.checkpoints.guarantee import proof_of
from constructions.selectivity.mqar import MQAR
from tests.constructions.test_construct import run
from tests.spread import some

PYTHON = re.compile(
    r"Traceback|\w+Error\b|NoneType|argument \d|format code|index out of|object is not|has no attribute|\(\) arg"
)
READERS = (
    ("verify", "{dir}", "--verify", "random", "--samples", "2"),
    ("prove", "{dir}"),
    ("graph", "{dir}", "--json"),
    ("show", "{dir}"),
    ("report", "{dir}", "--out", "{out}.html"),
    ("disguise", "{dir}", "--out", "{out}"),
    ("export", "{dir}", "--format", "mlx", "--out", "{out}"),
    ("compose", "{dir}", "{dir}", "--out", "{out}"),
    ("generate", "{dir}", "--prompt", "{input}", "--max-tokens", "2"),
)
SEALED = {"format", "format_version", "sha256", "files"}  # which sealing writes anew


def since(tokens: list[str]) -> str:
    """How many a's since the last b."""
    return str("".join(tokens).rpartition("b")[2].count("a"))


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A construction with a proof, one with key codes, both with a record of a run, and an author's function."""
    root = tmp_path_factory.mktemp("originals")
    for name, construction in {
        "mqar": MQAR(kappa=2, vocab=2, length=16, max_length=64),
        "codes": MQAR(kappa=4, vocab=2, length=16, max_length=64, guarantee="random"),
    }.items():
        built = build(construction)
        ran = artifact.verify(built, built.stack(), "random", 2, 1, artifact.NO_PROGRESS)
        artifact.save(built, ran, root / name, ran, proof_of(built))
    letters = Alphabet.of("a", "b", *(str(n) for n in range(4)))
    x = Tokens(letters)
    answer = readout_integer(count(x.is_in("a"), reset=x.is_in("b")), letters, {str(n): n for n in range(4)})
    language = InputLanguage.of(letters, "any", [("any", "any", ("a", "b"))], 3, "strings of a and b")
    compile(Circuit("since", answer, language, task=since)).save(root / "own")
    return {name: root / name for name in ("mqar", "codes", "own")}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every entry; of a list only the first, for the others are like it."""
    inside = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, item in inside:
        yield (*path, key)
        yield from places(item, (*path, key))


def damages(value: Any) -> Iterator[tuple[str, Any]]:
    """What an entry is instead."""
    yield "gone", None
    yield "null", None
    yield "of another type", 7 if isinstance(value, str) else "x"
    yield "an empty list", []
    yield "an empty object", {}
    yield "huge", 10**30
    yield "negative", -1
    if isinstance(value, list) and value:
        yield "shorter", value[:-1]
        yield "longer", [*value, value[-1]]


def damaged(content: Any, path: tuple[Any, ...], kind: str, value: Any) -> Any:
    """A copy with this entry changed."""
    whole = json.loads(json.dumps(content))
    place = whole
    for key in path[:-1]:
        place = place[key]
    if kind == "gone":
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return whole


def cases(good: Path, file: str) -> list[tuple[str, Any]]:
    """(what was done, the content of the file) for each entry and damage."""
    content = json.loads((good / file).read_text("utf-8"))
    found = []
    for path in places(content):
        if path[0] in SEALED or path[:2] == ("promise", "language"):  # languages: test_commands.py
            continue
        value = content
        for key in path:
            value = value[key]
        where = ".".join(str(key)[:20] for key in path)
        found += [(f"{file}: {where} {kind}", damaged(content, path, kind, new)) for kind, new in damages(value)]
    return found


def put(bad: Path, file: str, content: Any) -> None:
    """The file with this content, and a seal around it."""
    (bad / file).write_text(json.dumps(content), "utf-8")
    manifest = content if file == MANIFEST else json.loads((bad / MANIFEST).read_text("utf-8"))
    (bad / MANIFEST).write_text(json.dumps(sealed(manifest, bad)), "utf-8")


def refused_well(arguments: tuple[str, ...], done: str, capsys: pytest.CaptureFixture) -> int:
    """The exit code of a command, which said nothing in Python's words, and nothing but a sentence where it refused."""
    capsys.readouterr()
    code = run(*arguments)
    out, err = capsys.readouterr()
    told = f"{done}: {' '.join(arguments)}: {code}\n{out[-300:]}\n{err[-1000:]}"
    assert code in (0, 1, 2) and not PYTHON.search(err + out), told
    if code == 2:
        assert len(err.strip().splitlines()) == 1 and (not out or out.startswith('{"error"')), told
    return code


@pytest.mark.parametrize("name", ["mqar", "codes", "own"])
def test_every_entry_of_a_manifest_is_read_by_its_type(
    name: str, originals: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """`inspect` prints most of a manifest; what it takes is given to the commands that do more."""
    bad = Path(shutil.copytree(originals[name], tmp_path / "bad"))
    taken = []
    for done, content in some(cases(bad, MANIFEST), 0.01):
        put(bad, MANIFEST, content)
        if refused_well(("inspect", str(bad)), done, capsys) not in (1, 2):
            taken.append((done, content))
    assert taken
    for done, content in some(taken, 0.1):
        put(bad, MANIFEST, content)
        refused_well(reader(done, bad), done, capsys)


def reader(done: str, bad: Path) -> tuple[str, ...]:
    """One of the commands, another for each damage."""
    words = READERS[sum(done.encode()) % len(READERS)]
    letters = "a b" if (bad / ANSWERS).exists() else "k0 v0"
    given = {"dir": bad, "out": bad.parent / f"out{len(list(bad.parent.iterdir()))}", "input": letters}
    return tuple(word.format(**given) for word in words)


def test_every_entry_of_answers_is_read_by_its_type(
    originals: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    for done, content in some(cases(originals["own"], ANSWERS), 0.2):
        bad = tmp_path / "bad"
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(originals["own"], bad)
        put(bad, ANSWERS, content)
        refused_well(reader(done, bad), done, capsys)


@pytest.mark.parametrize(
    ("kept", "says"),
    [
        ([], "answers.json: sequences asks nothing: it is an empty list."),
        ([(["a"], [None])], "answers.json: sequences asks nothing: every answer in it is null."),
        ([(["a"] * 30, ["1"] * 30)], "answers.json: sequences[0] has 30 tokens, and the promise is for at most 3."),
    ],
    ids=["none", "nulls", "long"],
)
def test_answers_that_nobody_can_ask_are_refused(
    kept: list, says: str, originals: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    bad = Path(shutil.copytree(originals["own"], tmp_path / "bad"))
    content = json.loads((bad / ANSWERS).read_text("utf-8"))
    put(bad, ANSWERS, content | {"sequences": [{"tokens": tokens, "answers": right} for tokens, right in kept]})
    for words in READERS:
        if words[0] in ("prove", "generate"):  # which read no answers
            continue
        given = {"dir": bad, "out": tmp_path / "out", "input": "a b"}
        capsys.readouterr()
        assert run(*(word.format(**given) for word in words)) == 1, words  # as a verification that failed
        assert capsys.readouterr().err.strip() == says, words


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("sizes.blocks.0.d_model", ..., "sizes.blocks[0] has no entry d_model"),
        ("sizes.blocks", [], "sizes.blocks has 0 entries, and sizes.layers is 1"),
        ("sizes.packaged.d_inner", ..., "sizes.packaged has no entry d_inner"),
        ("sizes.packaged", None, "sizes.packaged is null, and this is a language model"),
        ("sizes.parameters", None, "sizes.parameters is null, and this is a language model"),
        ("blocks", [], "blocks has 0 entries, and sizes.blocks has 1"),
        ("meanings.lanes", ["x", "y"], "meanings.lanes has 2 entries, and lanes has "),
        ("meanings.blocks", [], "meanings.blocks has 0 entries, and blocks has 1"),
        ("meanings.blocks.0.channels", [], "meanings.blocks[0].channels has 0 entries, and blocks[0].channels has "),
        ("meanings.blocks.0.columns", [], "meanings.blocks[0].columns has 0 entries, and blocks[0].columns has "),
        ("guarantee.certificate.asks", {"a": [1]}, "guarantee.certificate.asks is an object with 1 entry, expected"),
        (
            "guarantee.certificate.parts",
            [1],
            "guarantee.certificate.parts is a list with 1 entry, expected an object",
        ),
        ("guarantee.codes", {}, "guarantee.codes has no entry size"),
        ("guarantee.codes.coherence", "x", "guarantee.codes.coherence is 'x', expected a number"),
        ("verification.failure", {}, "verification.failure has no entry rate"),
        ("verification.failure.interval", [0.5], "verification.failure.interval has 1 entries, expected 2"),
    ],
)
def test_entries_that_do_not_fit_together_are_named(
    path: str, value: Any, says: str, originals: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    bad = Path(shutil.copytree(originals["codes"], tmp_path / "bad"))
    keys = tuple(int(key) if key.isdigit() else key for key in path.split("."))
    content = json.loads((bad / MANIFEST).read_text("utf-8"))
    put(bad, MANIFEST, damaged(content, keys, "gone" if value is ... else "changed", value))
    assert refused_well(("inspect", str(bad)), path, capsys) == 1
    assert refused_well(("inspect", str(bad), "--json"), path, capsys) == 1
    run("inspect", str(bad))
    assert capsys.readouterr().err.startswith(f"construction.json: {says}")


def test_a_run_of_the_bare_form_may_be_left_out(
    originals: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    bad = Path(shutil.copytree(originals["mqar"], tmp_path / "bad"))
    content = json.loads((bad / MANIFEST).read_text("utf-8"))
    put(bad, MANIFEST, damaged(content, ("verification", "bare"), "null", None))
    assert refused_well(("inspect", str(bad)), "no bare run", capsys) == 0
