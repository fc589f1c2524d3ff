"""`construct NAME` of every construction at a small size, verified and proved: it ends well and saves a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from compiler.artifact.files import MANIFEST, WEIGHTS
from constructions.registry import CONSTRUCTIONS
from tests.constructions.test_construct import run
from tests.verify.checker.evidence import SMALL

TARGETS = ("mamba", "mamba2")
SELECTION = ("token-selection", "recall", "unique-induction", "copy-ngram", "copy", "selective-copy")
"""Those of docs/token_selection.md, which compile for S4D as well."""
MORE: dict[str, list[dict[str, Any]]] = {  # most answers: of them none is proved, all are, or those under a condition
    "mqar": [{"kappa": 3, "vocab": 6, "guarantee": "random", "key_code": code} for code in (16, 32)],
    "copy-ngram": [{"n": 2, "vocab": 3, "length": 5}, {}],
}


def jobs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(construction, target, parameters)"""
    for name in CONSTRUCTIONS:
        for params in (*SMALL[name], *MORE.get(name, ())):
            yield from ((name, target, params) for target in (*TARGETS, *["s4d"] * (name in SELECTION)))


def options(name: str, params: dict[str, Any]) -> Iterator[str]:
    """As the command line has them."""
    told = {field.name: field.metadata.get("option") for field in fields(CONSTRUCTIONS[name])}
    for key, value in params.items():
        option = told[key] or f"--{key.replace('_', '-')}"
        if value is not False:
            yield option
            yield from () if value is True else (str(value),)


def title(job: tuple[str, str, dict[str, Any]]) -> str:
    name, target, params = job
    return " ".join([name, target, *(f"{key}={value}" for key, value in params.items())])


@pytest.mark.parametrize(("name", "target", "params"), [*jobs()], ids=map(title, jobs()))
def test_a_small_job_ends_well_and_saves_a_checkpoint(
    name: str, target: str, params: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    given = (*CONSTRUCTIONS[name].group.split(), name, *options(name, params), "--arch", target)
    code = run(*given, "--samples", "40", "--verify", "random", "--out", str(tmp_path / "c"), "--json")
    told = capsys.readouterr()
    assert code == 0, told.err
    report = json.loads(told.out)
    assert report["out"] == str(tmp_path / "c") and (tmp_path / "c" / WEIGHTS).is_file()
    assert report["verification"]["sequences"] >= 1 and report["verification"]["bit_exact"]
    assert report["guarantee"]["certificate"] is not None
    assert json.loads((tmp_path / "c" / MANIFEST).read_text("utf-8"))["arch"] == target


def test_every_construction_has_a_small_job() -> None:
    assert {name for name, *_ in jobs()} == {*CONSTRUCTIONS}
    takes_s4d = {n for n, c in CONSTRUCTIONS.items() if "s4d" in get_args(get_type_hints(c).get("arch"))}
    assert takes_s4d >= {*SELECTION}
