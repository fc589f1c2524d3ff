"""What came out of one circuit, and the file of such rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from compiler.artifact.json_files import shown, strict_value
from compiler.artifact.plain_files import text_of, write_whole
from compiler.artifact.schema import parse

ASKED = 200  # sequences that a saved model is asked
PROOFS = ("answers", "scores", "")


@dataclass(frozen=True)
class Row:
    """What came out of one circuit.

    circuit: a hash of the circuit as data; weights: of the saved weights. proof: "answers" where every score and every
    answer is proved, "scores" where the weights are proved to compute the circuit and its answers are tested, "" where
    the weights are not proved; why: what the checker says of what is not. exact: whether every score of the asked
    sequences was the interpreter's, bit for bit. questions, right: answers that were asked for, and that were right.
    arch: the mixer that was asked for, "" for the circuit's own. manifest: a hash of construction.json, which seals all
    other files; "" in rows of earlier versions.
    """

    name: str
    circuit: str
    weights: str
    promise: str
    proof: str
    why: str
    exact: bool
    questions: int
    right: int
    seed: int
    difficulty: dict[str, int] = field(default_factory=dict)
    cpu_seconds: float = 0.0
    arch: str = ""
    manifest: str = ""

    @property
    def good(self) -> bool:
        return self.exact and bool(self.proof) and 0 < self.questions == self.right

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def read_rows(path: Path, part: str = "circuits") -> dict[str, Row]:
    """The rows of a part of a file by name; ValueError, in one sentence, for a file that has no such part."""
    known = {field.name for field in fields(Row)}
    found: dict[str, Row] = {}
    try:
        content = strict_value(text_of(path))
        records = content[part] if isinstance(content, dict) and part in content else None
        for record in parse(list[dict[str, Any]], records, part):  # type: ignore[arg-type]
            row = parse(Row, {key: value for key, value in record.items() if key in known}, "a row")
            _check(row, found)
            found[row.name] = row
    except RecursionError:
        raise ValueError(f"{path} holds no rows of the zoo (it is nested too deeply); remove it") from None
    except ValueError as reason:
        raise ValueError(f"{path} holds no rows of the zoo ({shown(str(reason), 160)[1:-1]}); remove it") from None
    return found


def _check(row: Row, others: Mapping[str, Row]) -> None:
    """ValueError where a row is none that a run can give."""
    where = f"the row of {shown(row.name)}"
    if row.name in others:
        raise ValueError(f"{where} stands there twice")
    if row.proof not in PROOFS:
        raise ValueError(f"{where} has proof = {shown(row.proof)}")
    if not 0 <= row.right <= row.questions < 1 << 53:
        raise ValueError(f"{where} has {shown(row.right)} right answers of {shown(row.questions)}")
    if min(row.seed, row.cpu_seconds, *row.difficulty.values()) < 0:
        raise ValueError(f"{where} has a number below 0")


def write_rows(path: Path, **parts: Sequence[Row]) -> None:
    """The file, whole or not at all; `circuits` is the part of what one directory holds."""
    found = {part: [row.to_json() for row in rows] for part, rows in parts.items()}
    write_whole(path, json.dumps(found, indent=1) + "\n")
