"""The sizes of paper D's statements, compiled anew: `construct reproduce token-selection`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compiler.artifact.plain_files import text_of, write_whole
from constructions.command.reporting import strict_json
from constructions.construction import Construction
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.selective_copy import SelectiveCopy
from constructions.experiments.names import WHAT
from constructions.experiments.table_files import TableFiles
from constructions.token_selection import network
from constructions.token_selection.copy_ngram import CopyNgram
from constructions.token_selection.recall import AssociativeRecall
from constructions.token_selection.selection import TokenSelection
from constructions.token_selection.unique_induction import UniqueInduction
from verify.obstructions import least_channels

HEAD = "| statement |"


def models() -> Iterator[tuple[str, Construction]]:
    """What each row of the table builds, and the statement that it is of."""
    yield "3.2", AssociativeRecall(8, 16, 8, True, arch="fnn+ssm")
    yield "3.2", AssociativeRecall(8, 16, 8, arch="fnn+ssm")
    yield "3.2", AssociativeRecall(32, 32, 100, arch="fnn+ssm")
    yield "D.1", UniqueInduction(8, 16, arch="fnn+ssm")
    yield "D.1", UniqueInduction(26, 100, arch="fnn+ssm")
    yield "3.3, d' = 1", TokenSelection("angle", 8, 4, 16, arch="fnn+ssm")
    yield "3.3, d' = 2", TokenSelection("plane", 5, 4, 16, arch="fnn+ssm")
    yield "3.3, d' = 3", TokenSelection("signs", 3, 4, 16, arch="fnn+ssm")
    yield "3.1, places", Copy(n=8, vocab=6, arch="fnn+ssm")
    yield "3.1, places", Copy(n=32, vocab=26, arch="fnn+ssm")
    yield "3.1, n-grams", CopyNgram(3, 4, 8, arch="fnn+ssm")
    yield "D.2", SelectiveCopy(n=8, vocab=6, length=32, arch="fnn+ssm")


def rows() -> list[dict[str, Any]]:
    """Each model's sizes, those by hand, and the least D of any exact network, and of one of its kind."""
    found = []
    for statement, construction in models():
        built = network.build(construction)
        bounds = network.obstructions(built)
        found.append(
            {
                "statement": statement,
                "model": named(construction),
                "sizes": {name: getattr(built.compiled.sizes, name) for name in network.LETTERS},
                "by_hand": construction.by_hand(),
                "least_D": least_channels(bounds),
                "least_D_of_its_kind": least_channels(bounds, given=True),
            }
        )
    return found


def named(construction: Construction) -> str:
    """`recall --keys 8 …`, as the command line takes it, without the mixer."""
    options = {"max_length": 0, "seed": 0, "dtype": "float32", "max_d_state": 0, "form": "string"}
    words = []
    for name, value in construction.params().items():
        if name != "arch" and options.get(name, False) != value:
            words.append(f"--{name}" if value is True else f"--{name} {value}")
    return " ".join([construction.name, *words])


def table(found: list[dict[str, Any]]) -> str:
    """Markdown."""
    head = [
        "statement",
        "`construct … --arch fnn+ssm`",
        *network.LETTERS,
        "D by hand",
        "S by hand",
        "D ≥",
        "D ≥, its kind",
    ]
    lines = [head, ["---"] * len(head)]
    for row in found:
        built = [f"{row['sizes'][name]:g}" for name in network.LETTERS]
        by_hand = [str(row["by_hand"].get(name, "")) for name in ("D", "S")]
        lines.append(
            [
                row["statement"],
                f"`{row['model']}`",
                *built,
                *by_hand,
                str(row["least_D"]),
                str(row["least_D_of_its_kind"]),
            ]
        )
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def with_table(text: str, found: list[dict[str, Any]]) -> str:
    """A page with its table written anew; ValueError for one that has none."""
    return with_table_at(HEAD, text, table(found))


def with_table_at(head: str, text: str, table: str) -> str:
    """A page whose table of this first line, and a list right behind it, are written anew; ValueError where none is."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith(head)), None)
    if start is None:
        raise ValueError(f"the page has no such table, whose first line begins with {head!r}")
    end = next((i for i in range(start, len(lines)) if not lines[i].startswith("|")), len(lines))
    if lines[end + 1 : end + 2] and lines[end + 1].startswith("- "):
        end = next((i for i in range(end + 1, len(lines)) if not lines[i].startswith("- ")), len(lines))
    return "\n".join([*lines[:start], table, *lines[end:]]) + "\n"


def reproduce(path: Path | None, plot: Path | None, files: TableFiles, as_json: bool) -> None:
    """Compile and show; path: a page whose table is written anew."""

    from constructions.command import display

    if plot is not None:
        raise ValueError(f"--plot {plot}: token-selection has no figure; leave out --plot.")
    with display.working("token-selection", quiet=as_json):
        found = rows()
    if path is not None:
        write_whole(path, with_table(text_of(path), found))
    files.write_records(WHAT["token-selection"], found)
    display.say(strict_json(found) if as_json else table(found))
