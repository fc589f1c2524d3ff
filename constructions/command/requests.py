"""What is refused before any work, because it would be lost, overwrite something or never end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from compiler.artifact.place import check_place
from constructions.command.outputs import check_outside

if TYPE_CHECKING:
    from constructions.construction import Construction

MOST_EXHAUSTIVE = 10_000_000


def directory(text: str) -> Path:
    """The path of a directory to write, where that can be done; ValueError for an empty one, which Path would take for
    the present one, or one in a model's directory, and CheckpointError for a place that takes nothing.
    """
    if not text.strip():
        raise ValueError("--out is empty, and a checkpoint needs a directory of its own, such as --out out/mine")
    check_place(Path(text))
    check_outside(Path(text), "--out")
    return Path(text)


def checkpoint_directory(construction: Construction, out: Path | None, force: bool) -> tuple[Path, bool]:
    """(where the checkpoint goes, whether it may replace what is there): --out, or out/NAME.

    The default place is used again for the same parameters only: ValueError where it holds other ones.
    """
    directory = out or Path("out") / construction.name
    if force or out is not None:
        return directory, force
    differing = _other_parameters(directory, construction)
    if differing:
        raise ValueError(
            f"{directory} holds a {construction.name} with {differing}; "
            "give another directory by --out, or replace it by --force."
        )
    return directory, True


def _other_parameters(directory: Path, construction: Construction) -> str:
    """What the checkpoint there has other than this construction, such as "kappa = 16".

    "" for nothing, or no checkpoint.
    """
    from compiler.artifact.plain_files import text_of

    try:
        manifest = json.loads(text_of(directory / "construction.json"))
        saved, name = dict(manifest["params"]), manifest["construction"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""  # nothing, or nothing of ours: whoever writes there refuses that
    if name != construction.name:
        return f"construction = {name}"
    wanted = construction.params()
    return ", ".join(f"{key} = {saved.get(key)}" for key in wanted if saved.get(key) != wanted[key])


def check_exhaustive(construction: Construction, mode: str, most: int = MOST_EXHAUSTIVE) -> None:
    """ValueError where --verify exhaustive would run more sequences than anyone waits for."""
    if mode != "exhaustive":
        return
    count = sum(task.exhaustive_count() for task in construction.tasks())
    if count > most:
        shown = f"{count:,}" if count < 10**15 else f"about 10^{_digits(count) - 1}"
        raise ValueError(
            f"--verify exhaustive would run {shown} sequences, and at most {most:,} are tried; "
            "use --verify random, or smaller parameters."
        )


def _digits(number: int) -> int:
    """How many decimal digits, within one, without writing them all out."""
    return int((number.bit_length() - 1) * 0.30103) + 1
