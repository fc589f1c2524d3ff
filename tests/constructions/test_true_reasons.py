"""What the commands say of what they do not take: the reason, and what would work, are true."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from compiler.disguise.directory import check_disguised, read_disguised
from compiler.disguise.errors import DisguiseError
from constructions.scoring.methods.named import Named
from tests.constructions.test_construct import checkpoint, made, run  # noqa: F401 (fixtures)


def test_a_circuit_over_numbers_is_not_offered_where_tokens_are_needed(tmp_path: Path, capsys) -> None:
    """graft and compose take circuits over tokens alone, and say so of one over numbers."""
    assert run("compose", "copy", "nope", "--out", str(tmp_path / "c")) == 2
    said = capsys.readouterr().err
    assert " mqar," in said and " selective-copy." in said and "haar" not in said
    assert "automaton" not in said, "its name does not tell its table"
    assert run("compose", "copy", "haar", "--out", str(tmp_path / "c")) == 2
    assert "circuit 'haar' reads numbers, and one that reads tokens is needed" in capsys.readouterr().err


def test_what_a_file_of_sequences_lacks_is_told(checkpoint: Path, tmp_path: Path, capsys) -> None:  # noqa: F811
    """Empty arrays have one shape, and a wrong answer of the file was drawn by nobody; emptied weights are damaged."""
    none, ids = np.zeros((3, 0), dtype=int), np.zeros((1, 2), dtype=int)
    np.savez(tmp_path / "none.npz", inputs=none, labels=none)
    np.savez(tmp_path / "wrong.npz", inputs=ids, labels=np.where([[False, True]], 1, -100))
    assert run("verify", str(checkpoint), "--data", str(tmp_path / "none.npz")) == 2
    assert "of shape (3, 0) are empty" in capsys.readouterr().err
    assert run("verify", str(checkpoint), "--data", str(tmp_path / "wrong.npz")) == 1
    said = capsys.readouterr().err
    assert "answers wrong; first at position 1 of" in said and "random" not in said
    shutil.copytree(checkpoint, tmp_path / "cut")
    (tmp_path / "cut" / "model.safetensors").write_bytes(b"")
    assert run("verify", str(tmp_path / "cut")) == 1
    assert "model.safetensors is damaged: bytes is 0" in capsys.readouterr().err


def test_a_line_of_ours_is_not_taken_for_one_of_a_method(tmp_path: Path) -> None:
    """What a method gives is scored by us: no line of its file can be named."""
    (tmp_path / "meth.py").write_text("def f(given):\n    return None\n")
    method = Named.of(f"{tmp_path / 'meth.py'}:f")
    object.__setattr__(method, "found", lambda problem: 3)  # what `score` cannot read
    with pytest.raises(ValueError, match="what it returned cannot be scored: ") as refused:
        method.score(None)
    assert re.search(r"line \d", str(refused.value)) is None


@pytest.mark.parametrize("content", ["", "{}", "[]"])
def test_an_emptied_manifest_is_not_taken_for_a_plain_checkpoint(content: str, tmp_path: Path) -> None:
    (tmp_path / "construction.json").write_text(content)
    for read in (check_disguised, read_disguised):
        with pytest.raises(DisguiseError, match=r"construction\.json") as refused:
            read(tmp_path)
        assert "leave the key out" not in str(refused.value) and refused.value.exit_code == 1  # a file is damaged
