"""Random damage to every file of a checkpoint: refused or found in one sentence, never accepted as something else."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from compiler.artifact.json_files import canonical_json
from compiler.artifact.manifest import manifest_content, sealed
from tests.artifact.hostile import forked as forked_cases
from tests.artifact.hostile import verdict as judges
from tests.artifact.hostile.cases import run
from tests.artifact.hostile.forked import MOST_MEMORY, forked, limited
from tests.artifact.hostile.originals import make
from tests.artifact.hostile.verdict import verdict
from tests.spread import some
from verify.checker.check import check


def test_a_case_that_takes_too_much_is_ended_by_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    def spins() -> Iterator[str]:
        yield "begun"
        limited()
        while True:
            pass

    def holds() -> Iterator[str]:
        limited()
        yield str(len(bytearray(2 * MOST_MEMORY)))

    monkeypatch.setattr(forked_cases, "LONGEST", 0.1)
    spun = forked(spins)
    assert spun.given == ["begun"] and "processor time" in (spun.fault or "")
    assert forked(holds).fault == "it ended with exit code 1"


def test_a_case_that_waits_is_stopped_and_a_slow_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine stops nothing: what counts is processor time, not the clock."""

    def waits() -> Iterator[str]:
        yield "begun"
        time.sleep(30)

    def works() -> Iterator[str]:
        begun = time.process_time()  # of the process of the case, whose clock begins at 0
        while time.process_time() < begun + 0.5:
            pass
        yield "done"

    monkeypatch.setattr(forked_cases, "IDLE", 0.2)
    ended = forked(waits)
    assert ended.given == ["begun"] and "it waited for" in (ended.fault or "")
    assert forked(works).given == ["done"]


def test_a_case_that_raises_or_says_too_much_is_a_failure(
    originals: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def raises(directory: Path) -> None:
        raise KeyError("x")

    monkeypatch.setattr(judges, "check", raises)
    assert judges.judge(None, originals[0]) == ("traceback", "KeyError: 'x'")
    monkeypatch.setattr(judges, "check", lambda directory: SimpleNamespace(reason=None))
    monkeypatch.setattr(judges, "verify_checkpoint", lambda *_: np.zeros(2) + np.zeros(3))
    assert "a sentence that nobody wrote: operands could not be" in (judges.judge(None, originals[0])[1] or "")
    monkeypatch.undo()
    monkeypatch.setattr(judges, "check", lambda directory: SimpleNamespace(reason="x" * 3000))
    assert "a sentence has 3000 characters" in (judges.judge(None, originals[0])[1] or "")


def blocks(cases: int) -> pytest.MarkDecorator:
    """Of so many cases twenty at a time, and of each twenty some."""
    return pytest.mark.parametrize("first", range(0, cases, 20))


@blocks(100)
def test_random_damage(first: int) -> None:
    cases = some(range(first, first + 20), 0.15, least=8)
    found = run(cases)
    counts = found.verdicts
    assert not found.failures, "\n".join(found.failures)
    assert counts["failed"] + counts["refused"] > 0.7 * len(cases) and counts["failed"] and counts["refused"]


@blocks(40)
def test_random_damage_of_models_over_numbers(first: int) -> None:
    cases = some(range(first, first + 20), 0.15, least=8)
    found = run(cases, over="numbers")
    counts = found.verdicts
    assert not found.failures, "\n".join(found.failures)
    assert counts["failed"] + counts["refused"] > 0.65 * len(cases) and counts["failed"] and counts["refused"]


@blocks(40)
def test_files_that_ask_for_too_much(first: int) -> None:
    cases = some(range(first, first + 20), 0.15, least=8)
    found = run(cases, over="oversized")
    counts = found.verdicts
    assert not found.failures, "\n".join(found.failures)
    assert counts["failed"] and counts["refused"] > len(cases) / 10 and not counts["traceback"]


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return make(tmp_path_factory.mktemp("good"))


def write(name: str, text: str) -> Callable[[Path], None]:
    return lambda directory: directory.joinpath(name).write_text(text) and None


def set_config(**entries) -> Callable[[Path], None]:
    """config.json with other entries."""
    return lambda directory: (
        directory.joinpath("config.json").write_text(
            json.dumps(json.loads((directory / "config.json").read_text()) | entries)
        )
        and None
    )


def change(**entries) -> Callable[[Path], None]:
    """The manifest with other entries, under a good seal; `__` separates the keys of inner objects."""

    def resealed(directory: Path) -> None:
        content = manifest_content(directory)
        for path, value in entries.items():
            *outer, last = path.split("__")
            inner = content
            for key in outer:
                inner = inner[key]
            inner[last] = value
        (directory / "construction.json").write_text(canonical_json(sealed(content, directory)))

    return resealed


def resealed(damage: Callable[[Path], None]) -> Callable[[Path], None]:
    def both(directory: Path) -> None:
        damage(directory)
        change()(directory)

    return both


def without_hashes(directory: Path) -> None:
    """A manifest under its own good hash that seals no file."""
    content = manifest_content(directory) | {"files": {}}
    del content["sha256"]
    content["sha256"] = hashlib.sha256(canonical_json(content).encode()).hexdigest()
    (directory / "construction.json").write_text(canonical_json(content))


# (damage, the words of the one sentence); the first original is a construction, the second a circuit of one's own.
REFUSED = {
    "huge kappa": (0, change(params__kappa=10**9), "params ask for 1000000004 tokens, and its promise is over 6"),
    "huge max_length": (0, change(params__max_length=10**30), "max_length = an integer beyond 2^64 is too large"),
    "huge length": (0, change(params__length=10**9), "params.length is 1000000000, and its circuit and weights have"),
    "huge key code": (
        0,
        change(params__key_code=10**9, params__guarantee="random"),
        "params.key_code is 1000000000, and its circuit and weights have",
    ),
    "kappa is a list": (0, change(params__kappa=[1]), "construction.json: params.kappa is a list"),
    "kappa is true": (0, change(params__kappa=True), "params.kappa is True, expected"),
    "arch of nothing": (0, change(params__arch=["mamba"]), "params.arch is a list"),
    "another arch": (0, change(params__arch="gpt"), "params.arch is 'gpt', expected one of mamba, mamba2, s4d"),
    "promise is 7": (0, change(promise=7), "construction.json: promise is 7, expected an object"),
    "no promise": (0, change(promise=None), "construction.json: promise is None, expected an object"),
    "sizes is a list": (1, change(sizes=[]), "construction.json: sizes is [], expected an object"),
    "lanes of numbers": (1, change(lanes=[1]), "construction.json: lanes[0] is 1, expected a string"),
    "unknown entry": (1, change(magic=1), "construction.json has an entry 'magic'"),
    "dtype": (1, change(dtype="int8"), "dtype is 'int8', expected one of float32"),
    "arch": (1, change(arch="gpt"), "'gpt' is no target"),
    "stop": (1, change(promise__stop="!"), "end is '!', and it must be a token"),
    "circuit is 7": (1, resealed(write("circuit.json", "7")), "circuit.json holds no circuit of ours"),
    "deep circuit": (1, resealed(write("circuit.json", "[" * 10**5)), "nested too deeply"),
}
FAILED = {
    "tokenizer is a list": (resealed(write("tokenizer.json", "[1]")), "tokenizer.json is a list"),
    "config is 7": (resealed(write("config.json", "7")), "the config is 7, expected an object"),
    "config is deep": (resealed(write("config.json", '{"a":' * 10**5)), "config.json is nested too deeply"),
    "config is cut": (resealed(write("config.json", "{")), "config.json is not JSON"),
    "generation is null": (resealed(write("generation_config.json", "null")), "generation_config.json is None"),
    "no hash": (without_hashes, "construction.json has no hash of config.json"),
}


def damaged(original: Path, folder: Path, damage: Callable[[Path], None]) -> Path:
    directory = Path(shutil.copytree(original, folder / "bad"))
    damage(directory)
    return directory


@pytest.mark.parametrize(("which", "damage", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_in_one_sentence(
    which: int, damage: Callable, words: str, originals: list[Path], tmp_path: Path
) -> None:
    name, said = verdict(damaged(originals[which], tmp_path, damage))
    assert name == "refused" and len(said) == 1 and words in said[0], said


@pytest.mark.parametrize(("damage", "words"), FAILED.values(), ids=FAILED.keys())
@pytest.mark.parametrize("which", [0, 1], ids=["construction", "own"])
def test_found_in_one_sentence(which: int, damage: Callable, words: str, originals: list[Path], tmp_path: Path) -> None:
    name, said = verdict(damaged(originals[which], tmp_path, damage))
    assert name == "failed" and any(words in sentence for sentence in said), said


def test_a_billion_layers_are_refused_before_they_are_counted(originals: list[Path], tmp_path: Path) -> None:
    def many_layers(directory: Path) -> None:
        path = directory / "config.json"
        path.write_text(path.read_text().replace('"num_hidden_layers": 1', '"num_hidden_layers": 1000000000'))
        change()(directory)

    name, said = verdict(damaged(originals[0], tmp_path, many_layers))
    assert name == "failed" and "1000000000 layers, but model.safetensors has" in said[0]


@pytest.mark.parametrize("name", ["construction.json", "config.json", "circuit.json", "model.safetensors"])
@pytest.mark.parametrize("put", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "endless"])
def test_the_checker_reads_ordinary_files_only(
    name: str, put: Callable[[Path], None], originals: list[Path], tmp_path: Path
) -> None:
    def damage(directory: Path) -> None:
        (directory / name).unlink()
        put(directory / name)

    reason = check(damaged(originals[1], tmp_path, damage)).reason
    assert reason == f"{name} is no ordinary file"


UNHASHED = {
    "use_cache": (set_config(use_cache=2), "the config has use_cache = 2, expected a value of type bool"),
    "pad token": (set_config(pad_token_id="x"), "the config has pad_token_id = 'x', expected a value of type int or"),
    "promised dtype": (change(promise__dtype=[0, 1]), r"the promise's dtype is \[0, 1\], expected one of"),
    "model type": (write("config.json", '{"model_type": []}'), r"the config has model_type \[\], expected one of "),
    "token ranges": (change(promise__language__edges=[{"from": "any", "to": "any", "tokens": 7, "distinct": False}]),
                     "an edge's token ranges are 7, expected a list"),
}  # fmt: skip


@pytest.mark.parametrize(("damage", "words"), UNHASHED.values(), ids=UNHASHED.keys())
def test_the_checker_takes_no_value_for_what_it_should_be(
    damage: Callable, words: str, originals: list[Path], tmp_path: Path
) -> None:
    """Random damage found these: a list is no key of a table, a number no list of ranges."""
    assert re.match(words, check(damaged(originals[1], tmp_path, damage)).reason)
