"""Whatever a file makes the checker meet becomes a sentence with its place: no traceback, and nothing is accepted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.circuits import CASES
from tests.verify.checker.checkpoints import write
from verify.checker import check as checks
from verify.checker.__main__ import main
from verify.checker.check import check
from verify.checker.formats import Rejected
from verify.checker.meaning import compare, told
from verify.checker.meaning.conditions import Unproved
from verify.checker.tasks import task
from verify.checker.unexpected import UNEXPECTED, unexpected_told
from verify.checker.values.windows import TooLarge


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("unexpected") / "c", CASES[0].build(), "mamba")


@pytest.mark.parametrize("kind", UNEXPECTED)
def test_what_is_unexpected_is_told_with_its_place(kind: type[Exception]) -> None:
    said = r"in test_what_is_unexpected_is_told_with_its_place \(test_unexpected.py:\d+\)"
    with pytest.raises(Rejected, match=said), unexpected_told("an entry"):
        raise kind("odd")


def test_what_says_what_is_wrong_stays_as_it_is() -> None:
    for reason in (Rejected("so"), Unproved("so"), TooLarge("so")):
        with pytest.raises(type(reason), match=r"^so$"), unexpected_told("an entry"):
            raise reason


def test_for_want_of_memory_nothing_is_at_fault() -> None:
    said = r"^the proof takes more memory than there is: Unable to allocate 512. PiB .*, in test_for_want_of_memory"
    with pytest.raises(Rejected, match=said), unexpected_told("an entry"):
        np.zeros(1 << 56)


PARTS: dict[str, tuple[Any, str, str]] = {
    "files": (checks, "read", "arithmetic"),
    "circuit": (checks, "check_operands", "meaning"),
    "text": (checks, "check_text", "meaning"),
    "arithmetic": (checks, "prove_arithmetic", "arithmetic"),
    "meaning": (compare, "scores_differ", "meaning"),
    "task": (task, "read_task", "task"),
    "anywhere else": (checks, "compare", "arithmetic"),
}


@pytest.mark.parametrize("kind", [MemoryError, KeyError, RecursionError, TooLarge, Unproved])
@pytest.mark.parametrize("part", PARTS)
def test_no_part_of_a_proof_raises(
    part: str,
    kind: type[Exception],
    saved: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    directory = Path(shutil.copytree(saved, tmp_path / "c"))
    manifest = json.loads((directory / "construction.json").read_text())
    (directory / "construction.json").write_text(json.dumps(manifest | {"task": {"name": "lookup"}}))

    def fails(*_: object) -> None:
        raise kind("odd")

    module, name, place = PARTS[part]
    monkeypatch.setattr(module, name, fails)
    verdict = check(directory)
    where = [place] if kind in UNEXPECTED else verdict.parts()  # the others are not raised in every part
    assert not verdict.accepted and any("odd" in (verdict.parts()[part] or "") for part in where)
    assert main([str(directory)]) == 1
    said = capsys.readouterr().out
    assert "not proved" in said and ("more memory than there is" in said) == (kind is MemoryError)


def test_whom_a_proof_computes_with_is_not_told_where_that_fails(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said beside a refusal is no part of a proof: where it cannot be found, the refusal stands alone."""

    def fails(*_: object) -> None:
        raise MemoryError

    def rejects(*_: object) -> None:
        raise Rejected("it may round").of(object())

    monkeypatch.setattr(checks, "prove_arithmetic", rejects)
    monkeypatch.setattr(told, "_streams", fails)
    assert check(saved).arithmetic == "it may round"
