"""Every command that reads a checkpoint, on damaged ones and on other weights: done, or refused in words."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from tests.artifact.hostile.damage import damage
from tests.artifact.hostile.forked import forked, limited
from tests.artifact.hostile.originals import files_of, make, reseal
from tests.constructions.test_construct import run
from tests.spread import some

COMMANDS = {
    "inspect": ("inspect", "{dir}"),
    "verify": ("verify", "{dir}", "--samples", "2"),
    "prove": ("prove", "{dir}"),
    "show": ("show", "{dir}"),
    "report": ("report", "{dir}", "--out", "{out}.html"),
    "graph": ("graph", "{dir}", "--json"),
    "plot": ("plot", "{dir}", "--input", "{input}", "--out", "{out}.svg"),
    "trace": ("trace", "{dir}", "--input", "{input}"),
    "generate": ("generate", "{dir}", "--prompt", "{input}", "--max-tokens", "2"),
    "sensitivity": ("sensitivity", "{dir}", "--input", "{input}"),
    "disguise": ("disguise", "{dir}", "--out", "{out}"),
    "gguf": ("export", "{dir}", "--format", "gguf", "--out", "{out}.gguf"),
    "bare": ("export", "{dir}", "--format", "safetensors-bare", "--out", "{out}.safetensors"),
    "mamba-ssm": ("export", "{dir}", "--format", "mamba-ssm", "--out", "{out}"),
    "mlx": ("export", "{dir}", "--format", "mlx", "--out", "{out}"),
    "adopt": ("adopt", "{dir}", "--original", "{good}"),
}
REPEAT = {"report", "gguf", "bare", "mamba-ssm", "mlx"}  # what a checkpoint says of its answers, in a file of theirs
CASES = 30


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return make(tmp_path_factory.mktemp("originals"))


def asked(name: str, directory: Path, good: Path) -> tuple[int, list[Path]]:
    """(exit code, what the command wrote)"""
    out = directory.parent / "written"
    code = run(
        *(
            part.format(dir=directory, out=out, good=good, input="k0 v0" if good.name == "mqar" else "a b")
            for part in COMMANDS[name]
        )
    )
    return code, [path for path in directory.parent.iterdir() if path.name.startswith(("written", ".written"))]


def work(name: str, directory: Path, good: Path) -> Iterator[str]:
    """`asked`, as a case of its own process."""
    limited()
    code, written = asked(name, directory, good)
    yield f"{code} {len(written)}"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_damaged_checkpoint_is_refused_in_words(name: str, originals: list[Path], tmp_path: Path) -> None:
    """No traceback, no work without end, no exit code of another kind, and nothing written where something failed."""
    for case in some(range(CASES), 0.3):
        good, bad = originals[case % len(originals)], tmp_path / f"{case}" / "bad"
        shutil.copytree(good, bad)
        files = ("construction.json", *(("circuit.json", "config.json") if case % 2 else ()))
        kind = damage(bad, random.Random(case), files)
        if case % 3:
            reseal(bad, files_of(good))

        ended = forked(partial(work, name, bad, good))
        assert ended.fault is None, f"{name}, case {case}, {kind}: {ended.fault}"
        code, written = map(int, ended.given[-1].split())
        assert code in (0, 1, 2) and not (code and written), f"{name}, case {case}, {kind}: {code}, {written} written"


LANGUAGES = [
    True,
    1,
    "a",
    [],
    {},
    {"tokens": "2"},
    {"tokens": 2, "start": "s", "edges": 7},
    {"tokens": 2, "start": 7, "edges": []},
]
MALFORMED = [
    [[5, 90]], [[0, 30_000_000]], [[0, 1 << 64]], [[0, [1, 2]]], [[1, 0]], [[0, 1, 2]], 7, None, {}, [[-1, 0]],
]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "adopt"])
def test_a_language_that_is_none_is_refused(name: str, originals: list[Path], tmp_path: Path) -> None:
    whole = json.loads((originals[-1] / "construction.json").read_text())["promise"]["language"]
    edges = [whole["edges"][0] | {"tokens": tokens} for tokens in MALFORMED]
    for i, language in enumerate(some([*LANGUAGES, *(whole | {"edges": [edge]} for edge in edges)], 0.3)):
        bad = tmp_path / f"{i}" / "bad"
        shutil.copytree(originals[-1], bad)
        manifest = json.loads((bad / "construction.json").read_text())
        manifest["promise"]["language"] = language
        (bad / "construction.json").write_text(json.dumps(manifest))
        reseal(bad, files_of(originals[-1]))

        ended = forked(partial(work, name, bad, originals[-1]))
        assert ended.fault is None and ended.given == ["1 0"], (name, language, ended)


@pytest.mark.parametrize("name", sorted(REPEAT))
def test_other_weights_are_not_written_with_a_promise(
    name: str, originals: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """The rows of the head are turned round, and the seal is made anew: no answer is right any more."""
    for i, good in enumerate(originals):
        bad = tmp_path / f"{i}" / "bad"
        shutil.copytree(good, bad)
        weights = load_file(bad / "model.safetensors")
        head = weights["lm_head.weight"].clone()
        weights["lm_head.weight"] = head.flip(0).contiguous()
        assert not head.equal(weights["lm_head.weight"])
        save_file(weights, bad / "model.safetensors", metadata={"format": "pt"})
        reseal(bad, files_of(good))
        assert asked(name, bad, good) == (1, [])
        assert "construct verify" in capsys.readouterr().err
